// What becomes of a fetch that nobody reads any more: whether it goes on for the store alone. Squid's
// quick_abort_min, quick_abort_max and quick_abort_pct, and a bound on how long. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define QUICK_ABORT_UNLIMITED ((uint64_t)INT64_MAX)

struct quick_abort {
    uint64_t minimum_bytes; // with no more than this to come it goes on
    uint64_t maximum_bytes; // else with more than this to come it ends
    unsigned percent;       // else it goes on once so much of it has come
};

// `left`: bytes still to come; -1: not known, then it goes on for `minimum_bytes` more, of which `alone` have
// come, where the client had its answer without the content and did not break it off (`is_answered`). `done`:
// bytes that came.
bool quick_abort_goes_on(
        const struct quick_abort *rule, bool is_answered, int64_t left, uint64_t done, uint64_t alone);

// A trickle must not hold its connection for as long as it likes: after QUICK_ABORT_GRACE_MS alone, those
// that bring less than QUICK_ABORT_PACE bytes a second end.
#define QUICK_ABORT_GRACE_MS 10000
#define QUICK_ABORT_PACE 32768
bool quick_abort_is_trickle(uint64_t alone, int64_t alone_ms);
