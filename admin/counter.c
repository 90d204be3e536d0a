#include "admin/counter.h"

#include <inttypes.h>

struct counter_about {
    const char *name, *meaning;
};

static const struct counter_about about[COUNTER_COUNT] = {
#define COUNTER(name, meaning) [COUNTER_##name] = {#name, meaning},
#define GAUGE(name, meaning) [COUNTER_##name] = {#name, meaning},
#include "admin/counter.tbl"
};

void counter_sum(struct counter_sums *sums, const struct counter_row *row) {
    for (int id = 0; id < COUNTER_COUNT; id++)
        sums->value[id] += counter_read(row, (enum counter_id)id);
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
