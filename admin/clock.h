// The clocks. Only intercept/ and admin/ read them; everything below is given the time as an argument.
#pragma once

#include <stdint.h>

int64_t clock_monotonic_ms(void); // CLOCK_MONOTONIC, milliseconds; never steps
int64_t clock_wall_ms(void);      // CLOCK_REALTIME, milliseconds since 1970-01-01 UTC; can step
