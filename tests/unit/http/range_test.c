#include "http/range.h"

#include "tests/unit/http/message.h"
#include "tests/unit/unit.h"

#include <stdio.h>

static void ranges(void) {
    static const struct {
        const char *value;
        uint64_t size;
        enum range range;
        uint64_t first, last;
    } all[] = {
            {"bytes=0-0", 10, RANGE_ONE, 0, 0},
            {"bytes=0-9", 10, RANGE_ONE, 0, 9},
            {"bytes=2-5", 10, RANGE_ONE, 2, 5},
            {"bytes=9-", 10, RANGE_ONE, 9, 9},
            {"bytes=0-", 10, RANGE_ONE, 0, 9},
            {"bytes=5-99", 10, RANGE_ONE, 5, 9},
            {"Bytes= 2-5 ", 10, RANGE_ONE, 2, 5},
            {"bytes=5-99999999999999999999999", 10, RANGE_ONE, 5, 9},
            {"bytes=-1", 10, RANGE_ONE, 9, 9},
            {"bytes=-10", 10, RANGE_ONE, 0, 9},
            {"bytes=-11", 10, RANGE_ONE, 0, 9},
            {"bytes=-99999999999999999999999", 10, RANGE_ONE, 0, 9},
            {"bytes=0-18446744073709551615", UINT64_MAX, RANGE_ONE, 0, UINT64_MAX - 1},
            {"bytes=10-", 10, RANGE_UNSATISFIABLE, 0, 0},
            {"bytes=10-20", 10, RANGE_UNSATISFIABLE, 0, 0},
            {"bytes=99999999999999999999999-", 10, RANGE_UNSATISFIABLE, 0, 0},
            {"bytes=-0", 10, RANGE_UNSATISFIABLE, 0, 0},
            {"bytes=0-", 0, RANGE_UNSATISFIABLE, 0, 0},
            {"bytes=-5", 0, RANGE_NONE, 0, 0},
            {"", 10, RANGE_NONE, 0, 0},
            {"bytes", 10, RANGE_NONE, 0, 0},
            {"bytes=", 10, RANGE_NONE, 0, 0},
            {"bytes=-", 10, RANGE_NONE, 0, 0},
            {"bytes=5", 10, RANGE_NONE, 0, 0},
            {"bytes=5-4", 10, RANGE_NONE, 0, 0},
            {"bytes=50-40", 10, RANGE_NONE, 0, 0},
            {"bytes=0-1,3-4", 10, RANGE_NONE, 0, 0},
            {"bytes=-1,-2", 10, RANGE_NONE, 0, 0},
            {"bytes=a-b", 10, RANGE_NONE, 0, 0},
            {"bytes=0-b", 10, RANGE_NONE, 0, 0},
            {"bytes=0 - 1", 10, RANGE_NONE, 0, 0},
            {"bytes=0--1", 10, RANGE_NONE, 0, 0},
            {"bytes=--1", 10, RANGE_NONE, 0, 0},
            {"bytes=+0-1", 10, RANGE_NONE, 0, 0},
            {"bytes=0x0-1", 10, RANGE_NONE, 0, 0},
            {"bytes 0-1", 10, RANGE_NONE, 0, 0},
            {"items=0-1", 10, RANGE_NONE, 0, 0},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        uint64_t first = 0, last = 0;
        enum range range = range_parse(message_guarded(view_of(all[i].value)), all[i].size, &first, &last);
        if (range != all[i].range)
            printf("\n  range %s of %ju: %d\n", all[i].value, (uintmax_t)all[i].size, range);
        CU_ASSERT_EQUAL(range, all[i].range);
        CU_ASSERT(range != RANGE_ONE || (first == all[i].first && last == all[i].last));
    }
}

SUITE(http_range, CASE(ranges))
