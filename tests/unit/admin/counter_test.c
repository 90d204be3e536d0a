#include "admin/counter.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct counter_row rows[2];

static uint64_t sum_of(enum counter_id id) {
    struct counter_sums sums = {0};
    for (int i = 0; i < 2; i++)
        counter_sum(&sums, &rows[i]);
    return sums.value[id];
}

// A gauge may go down in another row than it went up in.
static void rows_add_up(void) {
    counter_add(&rows[0], COUNTER_hits, 3);
    counter_add(&rows[1], COUNTER_hits, 4);
    counter_add(&rows[0], COUNTER_sessions_open, 2);
    counter_subtract(&rows[1], COUNTER_sessions_open, 1);
    CU_ASSERT_EQUAL(sum_of(COUNTER_hits), 7);
    CU_ASSERT_EQUAL(sum_of(COUNTER_sessions_open), 1);
    counter_subtract(&rows[1], COUNTER_sessions_open, 1);
    CU_ASSERT_EQUAL(sum_of(COUNTER_sessions_open), 0);
    CU_ASSERT_EQUAL((uintptr_t)&rows[1] % 64, 0);
}

#define ROUNDS 20000

static void *count(void *row) {
    for (int i = 0; i < ROUNDS; i++)
        counter_add(row, COUNTER_misses, 1);
    return NULL;
}

static void reading_while_counting(void) {
    pthread_t thread[2];
    uint64_t last = 0;
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&thread[i], NULL, count, &rows[i]), 0);
    for (int i = 0; i < 100; i++) {
        uint64_t now = sum_of(COUNTER_misses);
        CU_ASSERT_TRUE(now >= last);
        last = now;
    }
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    CU_ASSERT_EQUAL(sum_of(COUNTER_misses), 2 * ROUNDS);
}

static char *printed(void (*print)(const struct counter_sums *, FILE *)) {
    struct counter_sums sums = {0};
    char *text = NULL;
    size_t length;
    sums.value[COUNTER_hits] = UINT64_MAX;
    sums.value[COUNTER_sessions_open] = 5;
    FILE *out = open_memstream(&text, &length);
    print(&sums, out);
    fclose(out);
    return text;
}

static void printing(void) {
    char *table = printed(counter_print), *json = printed(counter_print_json);
    CU_ASSERT_PTR_NOT_NULL(strstr(table, "18446744073709551615  hits "));
    CU_ASSERT_EQUAL(strncmp(json, "{\"connections\": 0, \"sessions_open\": 5, ", 39), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(json, "\"hits\": 18446744073709551615, "));
    CU_ASSERT_STRING_EQUAL(json + strlen(json) - 2, "}\n");
    free(table);
    free(json);
}

SUITE(admin_counter, CASE(rows_add_up), CASE(reading_while_counting), CASE(printing))
