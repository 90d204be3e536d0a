#include "iptables/tool.h"

#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

static void status_and_both_streams(void) {
    struct tool_output output;
    struct problem problem;
    const char *const argv[] = {"sh", "-c", "cat; echo complaint >&2; exit 3", NULL};
    CU_ASSERT_EQUAL_FATAL(tool_run(argv, "input\n", &output, &problem), 0);
    CU_ASSERT_EQUAL(output.status, 3);
    CU_ASSERT_STRING_EQUAL(output.out, "input\n");
    CU_ASSERT_STRING_EQUAL(output.err, "complaint\n");
    tool_output_fini(&output);
}

static void a_failure_has_its_first_line(void) {
    struct problem problem;
    const char *const argv[] = {"sh", "-c", "echo; echo '  it broke'; echo more; exit 1", NULL};
    CU_ASSERT_EQUAL(tool_demand(argv, NULL, NULL, &problem), -EIO);
    CU_ASSERT_PTR_NOT_NULL(strstr(problem.text, "sh failed (exit status 1): it broke"));
    CU_ASSERT_PTR_NULL(strstr(problem.text, "more"));
}

static void a_signal_is_a_failure(void) {
    struct problem problem;
    const char *const argv[] = {"sh", "-c", "kill -9 $$", NULL};
    CU_ASSERT_EQUAL(tool_demand(argv, NULL, NULL, &problem), -EIO);
    CU_ASSERT_PTR_NOT_NULL(strstr(problem.text, "137"));
}

static void what_is_not_installed_is_named(void) {
    struct problem problem;
    const char *const argv[] = {"weir-no-such-tool", NULL};
    CU_ASSERT_EQUAL(tool_demand(argv, NULL, NULL, &problem), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(problem.text, "weir-no-such-tool is not in PATH"));
}

static void endless_output_is_refused(void) {
    struct problem problem;
    struct tool_output output;
    const char *const zeros[] = {"cat", "/dev/zero", NULL};
    CU_ASSERT_EQUAL(tool_run(zeros, NULL, &output, &problem), -EFBIG);
}

SUITE(tool, CASE(status_and_both_streams), CASE(a_failure_has_its_first_line), CASE(a_signal_is_a_failure),
        CASE(what_is_not_installed_is_named), CASE(endless_output_is_refused))
