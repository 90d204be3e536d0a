// The clocks. Only intercept/ and admin/ read them; everything below is given the time as an argument.
#pragma once

#include <stdint.h>

// An instant on both clocks, whole seconds. What a date means is a question for `wall_s`; how much time has
// gone by between two instants one for `steady_s`, which no correction of the wall clock touches.
struct moment {
    int64_t wall_s;   // since 1970-01-01 UTC; can step in either direction
    int64_t steady_s; // since an unknown point; never goes back
};

static inline struct moment moment_of_ms(int64_t wall_ms, int64_t steady_ms) {
    return (struct moment){wall_ms / 1000, steady_ms / 1000};
}

int64_t clock_monotonic_ms(void); // CLOCK_MONOTONIC, milliseconds; never steps
int64_t clock_wall_ms(void);      // CLOCK_REALTIME, milliseconds since 1970-01-01 UTC; can step
