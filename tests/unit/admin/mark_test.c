#include "admin/mark.h"

#include "tests/unit/unit.h"

static struct config of(uint32_t mark, uint32_t mask) {
    return (struct config){.rule_mark = mark, .rule_mask = mask};
}

static void two_marks_within_the_mask(void) {
    static const uint32_t pairs[][2] = {{0x57000000, 0xff000000}, {0xff000000, 0xff000000},
            {0x01000000, 0xff000000}, {0x1, 0x3}, {0x2, 0x3}, {0x3, 0x3}, {0x1, 0x5}, {0x4, 0x5}, {0x5, 0x5},
            {0x80000000, 0xc0000000}, {0x40000000, 0xc0000000}, {1, UINT32_MAX}, {UINT32_MAX, UINT32_MAX}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct config config = of(pairs[i][0], pairs[i][1]);
        CU_ASSERT_PTR_NULL(mark_problem(&config));
        CU_ASSERT_EQUAL(mark_intercept(&config), pairs[i][0]);
        CU_ASSERT_NOT_EQUAL(mark_upstream(&config), 0);
        CU_ASSERT_NOT_EQUAL(mark_upstream(&config), mark_intercept(&config));
        CU_ASSERT_EQUAL(mark_upstream(&config) & ~pairs[i][1], 0);
    }
}

static void marks_that_cannot_work(void) {
    static const uint32_t pairs[][2] = {{0x1, 0xff000000}, {0, 0xff000000}, {0x10, 0x10}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct config config = of(pairs[i][0], pairs[i][1]);
        CU_ASSERT_PTR_NOT_NULL(mark_problem(&config));
    }
}

SUITE(mark, CASE(two_marks_within_the_mask), CASE(marks_that_cannot_work))
