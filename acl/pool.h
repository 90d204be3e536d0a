// Texts one after the other in one block, named by offset: a million short texts cost their bytes and no
// pointers. Append-only; at most 4 GiB.
#pragma once

#include "admin/view.h"

#include <stdbool.h>

struct pool {
    char *data;
    size_t length, capacity;
};

void pool_init(struct pool *pool);
void pool_fini(struct pool *pool);

// Adds the bytes; false when out of memory or full. Pointers into the pool are stale afterwards, offsets
// stay.
bool pool_add(struct pool *pool, struct view text, uint32_t *offset);
void pool_trim(struct pool *pool); // gives unused room back, once nothing more is added

static inline struct view pool_text(const struct pool *pool, uint32_t offset, size_t length) {
    return (struct view){pool->data + offset, length};
}
