// Counters. Each worker owns a row and is its only writer; readers add the rows up. Nothing is shared for
// writing, so counting costs a plain add. A GAUGE goes down as well: its row may wrap below zero when what
// one thread counted up another counts down, and the sum over all rows is right all the same.
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

enum counter_id {
#define COUNTER(name, meaning) COUNTER_##name,
#define GAUGE(name, meaning) COUNTER_##name,
#include "admin/counter.tbl"
    COUNTER_COUNT
};

struct counter_row {
    _Alignas(64) _Atomic uint64_t value[COUNTER_COUNT];
};

// Only by the row's owner.
static inline void counter_add(struct counter_row *row, enum counter_id id, uint64_t amount) {
    uint64_t old = atomic_load_explicit(&row->value[id], memory_order_relaxed);
    atomic_store_explicit(&row->value[id], old + amount, memory_order_relaxed);
}

static inline void counter_subtract(struct counter_row *row, enum counter_id id, uint64_t amount) {
    counter_add(row, id, 0 - amount);
}

static inline uint64_t counter_read(const struct counter_row *row, enum counter_id id) {
    return atomic_load_explicit(&row->value[id], memory_order_relaxed);
}

// Rows added up.
struct counter_sums {
    uint64_t value[COUNTER_COUNT];
};
void counter_sum(struct counter_sums *sums, const struct counter_row *row); // adds one; from any thread

// For people: value, name, meaning. For programs: one JSON object of name: value.
void counter_print(const struct counter_sums *sums, FILE *out);
void counter_print_json(const struct counter_sums *sums, FILE *out);
