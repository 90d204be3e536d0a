#include "admin/nearest.h"
#include "tests/unit/unit.h"

#include <limits.h>
#include <string.h>

static const struct {
    const char *a, *b;
    unsigned distance;
} distances[] = {
        {"", "", 0},
        {"", "abc", 3},
        {"abc", "", 3},
        {"workers", "WORKERS", 0},
        {"workers", "worker", 1},
        {"workers", "wokrers", 1},
        {"ab", "ba", 1},
        {"abc", "cab", 2},
        {"kitten", "sitting", 3},
        {"123456789012345678901234567890123456789012345678", "x", 48},
        {"1234567890123456789012345678901234567890123456789", "x", UINT_MAX},
};

static void distance(void) {
    for (size_t i = 0; i < sizeof distances / sizeof distances[0]; i++) {
        struct view a = view_of(distances[i].a), b = view_of(distances[i].b);
        CU_ASSERT_EQUAL(nearest_distance(a, b), distances[i].distance);
        CU_ASSERT_EQUAL(nearest_distance(b, a), distances[i].distance);
    }
}

static void hints(void) {
    static const struct {
        const char *wanted, *hint;
    } cases[] = {{"alow", " (did you mean allow?)"}, {"dney", " (did you mean deny?)"},
            {"block", " (did you mean block?)"}, {"blocklist", ""}, {"q", ""}, {"", ""},
            {"pas", " (did you mean pass?)"}};
    char out[NEAREST_HINT_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nearest nearest = nearest_to(cases[i].wanted);
        nearest_offer(&nearest, "allow");
        nearest_offer(&nearest, "deny");
        nearest_offer(&nearest, "block");
        nearest_offer(&nearest, "pass");
        CU_ASSERT_STRING_EQUAL(nearest_hint(&nearest, out), cases[i].hint);
    }
}

SUITE(admin_nearest, CASE(distance), CASE(hints))
