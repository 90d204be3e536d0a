// A unit test file writes its cases as functions and names them in one SUITE; the runner finds every suite by
// itself.
//
//     static void a_case(void) { CU_ASSERT_EQUAL(1 + 1, 2); }
//     SUITE(http_head, CASE(a_case), CASE(another))
#pragma once

#include <CUnit/CUnit.h>

struct unit_case {
    const char *name;
    void (*run)(void);
};

struct unit_suite {
    const char *name;
    const struct unit_case *cases; // ends with a NULL name
    struct unit_suite *next;
};

void unit_register(struct unit_suite *suite);

#define CASE(function)                                                                                       \
    { #function, function }
#define SUITE(suite_name, ...)                                                                               \
    static const struct unit_case suite_cases[] = {__VA_ARGS__, {NULL, NULL}};                               \
    static struct unit_suite suite = {#suite_name, suite_cases, NULL};                                       \
    __attribute__((constructor)) static void register_suite(void) {                                          \
        unit_register(&suite);                                                                               \
    }
