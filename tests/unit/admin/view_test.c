#include "admin/view.h"
#include "tests/unit/unit.h"

static void numbers(void) {
    uint64_t number = 7;
    CU_ASSERT_TRUE(view_number(VIEW("18446744073709551615"), &number));
    CU_ASSERT_EQUAL(number, UINT64_MAX);
    CU_ASSERT_FALSE(view_number(VIEW("18446744073709551616"), &number));
    CU_ASSERT_FALSE(view_number(VIEW(""), &number));
    CU_ASSERT_FALSE(view_number(VIEW("+1"), &number));
    CU_ASSERT_FALSE(view_number(VIEW("1 "), &number));
}

static void comparing(void) {
    CU_ASSERT_TRUE(view_equal_fold(VIEW("Host"), VIEW("hOST")));
    CU_ASSERT_FALSE(view_equal(VIEW("Host"), VIEW("hOST")));
    CU_ASSERT_TRUE(view_starts(VIEW("abc"), VIEW("")));
    CU_ASSERT_FALSE(view_starts(VIEW("a"), VIEW("ab")));
    CU_ASSERT_TRUE(view_equal(view_trim(VIEW(" \ta b\t ")), VIEW("a b")));
    CU_ASSERT_EQUAL(view_trim(VIEW(" \t ")).length, 0);
    CU_ASSERT_EQUAL(view_find(VIEW("abc"), 'c'), 2);
    CU_ASSERT_EQUAL(view_find(VIEW("abc"), 'd'), 3);
}

SUITE(admin_view, CASE(numbers), CASE(comparing))
