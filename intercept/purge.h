// `weir purge`: dropping what is stored, by name. On the wire: "url URL", "prefix URL", "host NAME", "mask
// MASK" or "all".
#pragma once

#include "admin/view.h"
#include "cache/cache.h"

#include <stdio.h>

// Drops, then answers how many responses went, or an error.
void purge_answer(struct cache *cache, struct view what, FILE *out);

// What is wrong with it and what to write instead, a static sentence; NULL: nothing.
const char *purge_problem(struct view what);
