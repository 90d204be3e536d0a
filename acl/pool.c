#include "acl/pool.h"

#include <stdlib.h>
#include <string.h>

#define POOL_FIRST_BYTES 256

void pool_init(struct pool *pool) {
    *pool = (struct pool){0};
}

void pool_fini(struct pool *pool) {
    free(pool->data);
    *pool = (struct pool){0};
}

static bool reserve(struct pool *pool, size_t more) {
    size_t need = pool->length + more, capacity = pool->capacity ? pool->capacity : POOL_FIRST_BYTES;
    if (need > UINT32_MAX)
        return false;
    while (capacity < need)
        capacity += capacity / 2;
    if (capacity == pool->capacity)
        return true;
    char *grown = realloc(pool->data, capacity);
    if (!grown)
        return false;
    pool->data = grown;
    pool->capacity = capacity;
    return true;
}

bool pool_add(struct pool *pool, struct view text, uint32_t *offset) {
    if (!reserve(pool, text.length))
        return false;
    *offset = (uint32_t)pool->length;
    if (text.length)
        memcpy(pool->data + pool->length, text.data, text.length);
    pool->length += text.length;
    return true;
}

void pool_trim(struct pool *pool) {
    char *fitting = pool->length ? realloc(pool->data, pool->length) : NULL;
    if (fitting) {
        pool->data = fitting;
        pool->capacity = pool->length;
    }
}
