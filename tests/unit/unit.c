// The unit test runner: every suite, or those named on the command line. Exit status 1 when a case failed or
// none ran.
#include "tests/unit/unit.h"

#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct unit_suite *suites;

void unit_register(struct unit_suite *suite) {
    struct unit_suite **place = &suites;
    while (*place && strcmp((*place)->name, suite->name) < 0)
        place = &(*place)->next;
    suite->next = *place;
    *place = suite;
}

static int is_wanted(const char *name, int argc, char **argv) {
    if (argc < 2)
        return 1;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return 1;
    return 0;
}

static void add_suite(const struct unit_suite *suite) {
    CU_pSuite added = CU_add_suite(suite->name, NULL, NULL);
    for (const struct unit_case *one = suite->cases; one->name; one++)
        if (!added || !CU_add_test(added, one->name, one->run)) {
            fprintf(stderr, "unit: cannot add %s.%s: %s\n", suite->name, one->name, CU_get_error_msg());
            exit(1);
        }
}

int main(int argc, char **argv) {
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    for (const struct unit_suite *suite = suites; suite; suite = suite->next)
        if (is_wanted(suite->name, argc, argv))
            add_suite(suite);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_tests_failed(), run = CU_get_number_of_tests_run();
    CU_cleanup_registry();
    return failed != 0 || run == 0;
}
