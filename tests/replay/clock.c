#include "tests/replay/clock.h"

#include "admin/check.h"

#include <stdatomic.h>

#define START_STEADY_MS 1000000
#define START_WALL_MS 1767225600000 // 2026-01-01T00:00:00Z

static _Atomic int64_t steady_ms = START_STEADY_MS;
static _Atomic int64_t ahead_ms = START_WALL_MS - START_STEADY_MS; // the wall clock, of the steady one

void replay_clock_set(int64_t at_ms) {
    CHECK(at_ms >= steady_ms);
    steady_ms = at_ms;
}

void replay_clock_step(int64_t by_ms) {
    ahead_ms += by_ms;
}

int64_t clock_monotonic_ms(void) {
    return steady_ms;
}

int64_t clock_wall_ms(void) {
    return steady_ms + ahead_ms;
}
