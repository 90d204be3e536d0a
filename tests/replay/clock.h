// The clocks of a replay: they stand still until the driver moves them. Linked in place of admin/clock.c.
#pragma once

#include "admin/clock.h"

void replay_clock_set(int64_t steady_ms); // moves both clocks on by the same time; never back
void replay_clock_step(int64_t by_ms);    // the wall clock alone, in either direction
