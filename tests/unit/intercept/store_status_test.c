#include "intercept/store_status.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

static char *printed(void (*print)(const struct disk_volume_stats *, unsigned, FILE *),
        const struct disk_volume_stats *volumes, unsigned count) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    print(volumes, count, out);
    fclose(out);
    return text;
}

static const struct disk_volume_stats two[] = {
        {.path = "/c", .state = DISK_READY, .volume = {.bytes = 11, .bytes_put = 200, .bytes_written = 250}},
        {.path = "/d \"x\"", .state = DISK_OFFLINE, .trouble = "Input/output error", .queued = 7},
};

static void for_people(void) {
    char *text = printed(store_status_print, two, 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "/c: ready: in use\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "            1.25  amplification"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "              11  bytes           that it takes\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n\n/d \"x\": offline: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "last trouble: Input/output error\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "               7  queued"));
    free(text);
    text = printed(store_status_print, two, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "no volumes"));
    free(text);
}

static void for_programs(void) {
    char *text = printed(store_status_print_json, two, 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(
            text, "[{\"path\":\"/c\",\"state\":\"ready\",\"trouble\":\"\",\"limit_bytes\":0,\"bytes\":11,"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "},{\"path\":\"/d \\\"x\\\"\",\"state\":\"offline\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"queued\":7}]"));
    free(text);
    text = printed(store_status_print_json, two, 0);
    CU_ASSERT_STRING_EQUAL(text, "[]");
    free(text);
}

SUITE(intercept_store_status, CASE(for_people), CASE(for_programs))
