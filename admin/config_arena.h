// What a configuration's texts and words live in: taken piece by piece, dropped all at once. Not for
// requests. Bounded by what the loader reads (CONFIG_BYTES_MAXIMUM).
#pragma once

#include "admin/view.h"

#include <stddef.h>

struct config_arena;

struct config_arena *config_arena_new(void);        // NULL: no memory
void config_arena_free(struct config_arena *arena); // NULL is allowed
// `bytes` of zeroed memory, aligned for anything; NULL: no memory.
void *config_arena_take(struct config_arena *arena, size_t bytes);
// A NUL-terminated copy; NULL: no memory.
const char *config_arena_text(struct config_arena *arena, struct view text);
