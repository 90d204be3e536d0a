// What else on this gateway keeps intercepted traffic from flowing. Nothing is changed, each is named with
// its cure.
#pragma once

#include "iptables/plan.h"

#include <stdio.h>

// A line each, "hint: ...". Returns how many.
unsigned hint_print(FILE *out, const struct plan *plan);
