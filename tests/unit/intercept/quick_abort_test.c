#include "intercept/quick_abort.h"

#include "tests/unit/unit.h"

#define K 1024

static void what_is_left_decides(void) {
    static const struct {
        struct quick_abort rule;
        int64_t left;
        uint64_t done;
        bool goes_on;
    } rows[] = {
            {{16 * K, 64 * K, 95}, 0, 0, true},
            {{16 * K, 64 * K, 95}, 16 * K, 0, true},
            {{16 * K, 64 * K, 95}, 16 * K + 1, 0, false},
            {{16 * K, 64 * K, 95}, 20 * K, 379 * K, false},
            {{16 * K, 64 * K, 95}, 20 * K, 380 * K, true},
            {{16 * K, 64 * K, 95}, 64 * K, 9999 * K, true},
            {{16 * K, 64 * K, 95}, 64 * K + 1, 9999 * K, false},
            {{0, 0, 0}, 1, 9999, false},
            {{0, 1, 0}, 1, 0, true}, // percent 0: at once
            {{0, 9999, 100}, 1, 9999, false},
            {{9999, 0, 100}, 9999, 0, true}, // the minimum comes first
            {{0, QUICK_ABORT_UNLIMITED, 50}, INT64_MAX, UINT64_MAX, false},
            {{QUICK_ABORT_UNLIMITED, 0, 100}, INT64_MAX, 0, true},
            {{0, QUICK_ABORT_UNLIMITED, 50}, INT64_MAX / 200, INT64_MAX / 200, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool goes_on = quick_abort_goes_on(&rows[i].rule, false, rows[i].left, rows[i].done, 0);
        CU_ASSERT_EQUAL(goes_on, rows[i].goes_on);
    }
}

static void of_unknown_length_only_for_an_answered_client(void) {
    static const struct quick_abort rule = {100, 1000, 50};
    CU_ASSERT_FALSE(quick_abort_goes_on(&rule, false, -1, 0, 0));
    CU_ASSERT_TRUE(quick_abort_goes_on(&rule, true, -1, 0, 100));
    CU_ASSERT_FALSE(quick_abort_goes_on(&rule, true, -1, 0, 101));
    static const struct quick_abort always = {QUICK_ABORT_UNLIMITED, 0, 100};
    CU_ASSERT_TRUE(quick_abort_goes_on(&always, false, -1, 0, 101));
}

static void a_trickle_ends(void) {
    CU_ASSERT_FALSE(quick_abort_is_trickle(0, QUICK_ABORT_GRACE_MS - 1));
    CU_ASSERT_TRUE(quick_abort_is_trickle(0, QUICK_ABORT_GRACE_MS));
    CU_ASSERT_TRUE(quick_abort_is_trickle(10 * QUICK_ABORT_PACE - 1, 10000));
    CU_ASSERT_FALSE(quick_abort_is_trickle(10 * QUICK_ABORT_PACE, 10000));
    CU_ASSERT_TRUE(quick_abort_is_trickle(10 * QUICK_ABORT_PACE, 11000));
}

SUITE(intercept_quick_abort, CASE(what_is_left_decides), CASE(of_unknown_length_only_for_an_answered_client),
        CASE(a_trickle_ends))
