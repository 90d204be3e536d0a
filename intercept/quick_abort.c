#include "intercept/quick_abort.h"

static bool is_far_enough(const struct quick_abort *rule, uint64_t left, uint64_t done) {
    if (left > UINT64_MAX / 100 || done > UINT64_MAX / 100 - left)
        return false; // beyond any size that could be told
    return done * 100 >= (left + done) * rule->percent;
}

bool quick_abort_goes_on(
        const struct quick_abort *rule, bool is_answered, int64_t left, uint64_t done, uint64_t alone) {
    if (rule->minimum_bytes >= QUICK_ABORT_UNLIMITED)
        return true;
    if (left < 0)
        return is_answered && alone <= rule->minimum_bytes;
    if ((uint64_t)left <= rule->minimum_bytes)
        return true;
    return (uint64_t)left <= rule->maximum_bytes && is_far_enough(rule, (uint64_t)left, done);
}

bool quick_abort_is_trickle(uint64_t alone, int64_t alone_ms) {
    return alone_ms >= QUICK_ABORT_GRACE_MS && alone / QUICK_ABORT_PACE < (uint64_t)alone_ms / 1000;
}
