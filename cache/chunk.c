#include "cache/chunk.h"

#include "admin/check.h"
#include "cache/memory.h"

#include <stdlib.h>
#include <string.h>

size_t chunk_struct_bytes(uint32_t length) {
    return sizeof(struct chunk) + chunk_blocks(length) * sizeof(char *);
}

struct chunk *chunk_new(struct body *body, uint64_t number, uint32_t length) {
    struct chunk *chunk = memory_new(chunk_struct_bytes(length));
    *chunk = (struct chunk){.body = body,
            .references = 1,
            .number = number,
            .length = length,
            .span_room = 1,
            .disk_end = UINT32_MAX};
    chunk->spans = &chunk->single;
    chunk->node.kind = EVICTION_CHUNK;
    memset(chunk->blocks, 0, chunk_blocks(length) * sizeof(char *));
    return chunk;
}

struct chunk *chunk_new_whole(struct body *body, uint32_t length, void *whole, size_t bytes, char *content) {
    struct chunk *chunk = chunk_new(body, 0, length);
    for (uint32_t i = 0; i < chunk_blocks(length); i++)
        chunk->blocks[i] = content + i * BODY_BLOCK_BYTES;
    chunk->whole = whole;
    chunk->charged = (uint32_t)(memory_cost(chunk_struct_bytes(length)) + memory_cost(bytes));
    chunk_add(chunk, 0, length);
    return chunk;
}

void chunk_put(struct chunk *chunk) {
    if (!chunk || atomic_fetch_sub_explicit(&chunk->references, 1, memory_order_acq_rel) > 1)
        return;
    for (uint32_t i = 0; i < chunk_blocks(chunk->length) && !chunk->whole; i++)
        free(chunk->blocks[i]);
    free(chunk->whole);
    if (chunk->spans != &chunk->single)
        free(chunk->spans);
    free(chunk);
}

const struct chunk_span *chunk_next(const struct chunk *chunk, uint32_t offset) {
    for (uint32_t i = 0; i < chunk->span_count; i++)
        if (chunk->spans[i].to > offset)
            return &chunk->spans[i];
    return NULL;
}

const struct chunk_span *chunk_find(const struct chunk *chunk, uint32_t offset) {
    const struct chunk_span *span = chunk_next(chunk, offset);
    return span && span->from <= offset ? span : NULL;
}

static void take_out(struct chunk *chunk, uint32_t at, uint32_t count) {
    memmove(&chunk->spans[at], &chunk->spans[at + count],
            (chunk->span_count - at - count) * sizeof *chunk->spans);
    chunk->span_count -= count;
}

static void drop_smallest(struct chunk *chunk) {
    uint32_t smallest = 0;
    for (uint32_t i = 1; i < chunk->span_count; i++)
        if (chunk->spans[i].to - chunk->spans[i].from <
                chunk->spans[smallest].to - chunk->spans[smallest].from)
            smallest = i;
    take_out(chunk, smallest, 1);
}

static void make_room(struct chunk *chunk) {
    if (chunk->span_count == CHUNK_SPANS_MAX)
        drop_smallest(chunk);
    if (chunk->span_count < chunk->span_room)
        return;
    uint32_t room = chunk->span_room < 4 ? 4 : chunk->span_room * 2;
    struct chunk_span *spans = memory_new(room * sizeof *spans);
    memcpy(spans, chunk->spans, chunk->span_count * sizeof *spans);
    if (chunk->spans != &chunk->single)
        free(chunk->spans);
    chunk->spans = spans;
    chunk->span_room = room;
}

void chunk_add(struct chunk *chunk, uint32_t from, uint32_t to) {
    uint32_t at = 0, end;
    while (at < chunk->span_count && chunk->spans[at].to < from)
        at++;
    for (end = at; end < chunk->span_count && chunk->spans[end].from <= to; end++) {
        from = chunk->spans[end].from < from ? chunk->spans[end].from : from;
        to = chunk->spans[end].to > to ? chunk->spans[end].to : to;
    }
    if (end > at) {
        take_out(chunk, at + 1, end - at - 1);
    } else {
        make_room(chunk);
        for (at = 0; at < chunk->span_count && chunk->spans[at].to < from; at++)
            continue;
        memmove(&chunk->spans[at + 1], &chunk->spans[at], (chunk->span_count - at) * sizeof *chunk->spans);
        chunk->span_count++;
    }
    chunk->spans[at] = (struct chunk_span){from, to};
}

static uint32_t make_block(struct chunk *chunk, uint32_t block) {
    if (chunk->blocks[block])
        return 0;
    uint32_t bytes = chunk_block_bytes(chunk, block);
    chunk->blocks[block] = memory_new(bytes);
    return (uint32_t)memory_cost(bytes);
}

static uint32_t copy_absent(struct chunk *chunk, uint32_t from, const char *data, uint32_t to) {
    uint32_t cost = 0;
    while (from < to) {
        uint32_t block = from / BODY_BLOCK_BYTES, at = from % BODY_BLOCK_BYTES;
        uint32_t bytes = to - from < BODY_BLOCK_BYTES - at ? to - from : BODY_BLOCK_BYTES - at;
        cost += make_block(chunk, block);
        memcpy(chunk->blocks[block] + at, data, bytes);
        from += bytes;
        data += bytes;
    }
    return cost;
}

uint32_t chunk_copy(struct chunk *chunk, uint32_t from, const char *data, uint32_t length) {
    uint32_t to = from + length, cost = 0;
    CHECK(to <= chunk->length);
    while (from < to) {
        const struct chunk_span *span = chunk_next(chunk, from);
        uint32_t end = span && span->from < to ? span->from : to;
        if (end > from)
            cost += copy_absent(chunk, from, data, end);
        uint32_t next = span && span->from < to ? span->to : to;
        next = next < to ? next : to;
        data += next - from;
        from = next;
    }
    return cost;
}

int chunk_pieces(const struct chunk *chunk, uint32_t from, uint32_t to, struct iovec *pieces, int count) {
    int used = 0;
    while (from < to && used < count) {
        uint32_t at = from % BODY_BLOCK_BYTES;
        uint32_t bytes = to - from < BODY_BLOCK_BYTES - at ? to - from : BODY_BLOCK_BYTES - at;
        pieces[used++] = (struct iovec){chunk->blocks[from / BODY_BLOCK_BYTES] + at, bytes};
        from += bytes;
    }
    return used;
}

uint32_t chunk_free_before(struct chunk *chunk, uint32_t offset) {
    uint32_t freed = 0;
    if (chunk->whole)
        return 0;
    for (uint32_t i = 0; i < offset / BODY_BLOCK_BYTES && i < chunk_blocks(chunk->length); i++)
        if (chunk->blocks[i]) {
            freed += (uint32_t)memory_cost(chunk_block_bytes(chunk, i));
            free(chunk->blocks[i]);
            chunk->blocks[i] = NULL;
        }
    return freed;
}
