// Counters. Each worker owns a row and is its only writer; readers add the rows up. Nothing is shared for
// writing, so counting costs a plain add.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

enum counter_id {
#define COUNTER(name, meaning) COUNTER_##name,
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

static inline uint64_t counter_read(const struct counter_row *row, enum counter_id id) {
    return atomic_load_explicit(&row->value[id], memory_order_relaxed);
}

const char *counter_name(enum counter_id id);
const char *counter_meaning(enum counter_id id);
