// What else on this gateway keeps intercepted traffic from flowing. Nothing is changed, each is named with
// its cure.
#pragma once

#include "iptables/plan.h"

#include <stdio.h>

// The one that matters at once: nobody listens where the rules lead. Returns how many.
unsigned hint_listener(FILE *out, const struct plan *plan);

// All of them, a line each, "hint: ...". Returns how many.
unsigned hint_print(FILE *out, const struct plan *plan);
