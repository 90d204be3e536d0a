#include "admin/counter.h"

#include "admin/check.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

struct counter_about {
    const char *name, *meaning;
    bool is_gauge;
};

static const struct counter_about about[COUNTER_COUNT] = {
#define COUNTER(name, meaning) [COUNTER_##name] = {#name, meaning, false},
#define GAUGE(name, meaning) [COUNTER_##name] = {#name, meaning, true},
#include "admin/counter.tbl"
};

static struct {
    pthread_mutex_t lock;
    struct counter_row *row[COUNTER_ROWS_MAXIMUM];
    size_t count;
    uint64_t freed[COUNTER_COUNT]; // what rows that are gone had counted
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

const char *counter_name(enum counter_id id) {
    return about[id].name;
}

const char *counter_meaning(enum counter_id id) {
    return about[id].meaning;
}

bool counter_is_gauge(enum counter_id id) {
    return about[id].is_gauge;
}

struct counter_row *counter_row_new(void) {
    struct counter_row *row = aligned_alloc(_Alignof(struct counter_row), sizeof *row);
    if (!row)
        return NULL;
    for (int id = 0; id < COUNTER_COUNT; id++)
        atomic_init(&row->value[id], 0);
    pthread_mutex_lock(&registry.lock);
    bool is_full = registry.count == COUNTER_ROWS_MAXIMUM;
    if (!is_full)
        registry.row[registry.count++] = row;
    pthread_mutex_unlock(&registry.lock);
    if (is_full) {
        free(row);
        return NULL;
    }
    return row;
}

void counter_row_free(struct counter_row *row) {
    if (!row)
        return;
    pthread_mutex_lock(&registry.lock);
    size_t at = 0;
    while (at < registry.count && registry.row[at] != row)
        at++;
    CHECK(at < registry.count);
    registry.row[at] = registry.row[--registry.count];
    for (int id = 0; id < COUNTER_COUNT; id++)
        registry.freed[id] += counter_read(row, (enum counter_id)id);
    pthread_mutex_unlock(&registry.lock);
    free(row);
}

void counter_sum(struct counter_sums *sums) {
    pthread_mutex_lock(&registry.lock);
    for (int id = 0; id < COUNTER_COUNT; id++) {
        sums->value[id] = registry.freed[id];
        for (size_t i = 0; i < registry.count; i++)
            sums->value[id] += counter_read(registry.row[i], (enum counter_id)id);
    }
    pthread_mutex_unlock(&registry.lock);
}

void counter_print(const struct counter_sums *sums, FILE *out) {
    for (int id = 0; id < COUNTER_COUNT; id++)
        fprintf(out, "%16" PRIu64 "  %-24s %s\n", sums->value[id], about[id].name, about[id].meaning);
}

void counter_print_json(const struct counter_sums *sums, FILE *out) {
    for (int id = 0; id < COUNTER_COUNT; id++)
        fprintf(out, "%s\"%s\": %" PRIu64, id ? ", " : "{", about[id].name, sums->value[id]);
    fputs("}\n", out);
}

void counter_print_prometheus(const struct counter_sums *sums, FILE *out) {
    for (int id = 0; id < COUNTER_COUNT; id++) {
        const char *name = about[id].name, *end = about[id].is_gauge ? "" : "_total";
        fprintf(out, "# HELP weir_%s%s %s\n", name, end, about[id].meaning);
        fprintf(out, "# TYPE weir_%s%s %s\n", name, end, about[id].is_gauge ? "gauge" : "counter");
        fprintf(out, "weir_%s%s %" PRIu64 "\n", name, end, sums->value[id]);
    }
}
