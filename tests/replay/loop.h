// What the driver does with the fake loop (loop.c, linked in place of intercept/loop.c): descriptors are
// polled without waiting, and time passes only in loop_advance.
#pragma once

#include "intercept/loop.h"

// loop_run calls this again and again until loop_stop: the driver's next command.
void replay_next(void *context);

// Runs rounds until nothing more can happen without time passing. Aborts when that never comes to be.
void loop_settle(struct loop *loop);
// Time passes: deadlines expire in their order, everything settles in between.
void loop_advance(struct loop *loop, int64_t by_ms);
// This deadline comes round again and again and changes nothing: time does not stop for it alone.
void loop_ignore(struct loop *loop, struct deadline *deadline);
