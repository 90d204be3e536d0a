// A chunk of a body in memory. Its bytes are written under its body's `writing` and published under its
// `lock`; what is published stays where it is as long as the chunk is counted (streams aside, which free what
// all have passed).
#pragma once

#include "cache/eviction.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define BODY_CHUNK_BYTES (1 << 20)
#define BODY_BLOCK_BYTES 16384
#define CHUNK_SPANS_MAX 64 // beyond it the smallest is forgotten

struct body;

struct chunk_span {
    uint32_t from, to; // `to` is behind the last byte
};

struct chunk {
    struct eviction_node node;
    struct body *body;
    _Atomic unsigned references; // its body's, readers', flows'
    _Atomic bool is_on_disk;
    uint64_t number;
    uint32_t length;  // room for so many bytes
    uint32_t charged; // of the budget
    // by the body's lock, too
    struct chunk *next_full; // among its body's that wait to be written
    uint32_t disk_end;       // how much of it lies on disk, if any does; UINT32_MAX: all, as far as is known
    bool is_queued;          // to be written, or it was
    // by the body's lock, and changed under `writing`, too
    uint32_t span_count, span_room;
    struct chunk_span *spans; // ascending, disjoint, not touching
    struct chunk_span single;
    void *whole;    // what all blocks lie in, when they are none of their own; owned
    char *blocks[]; // NULL where nothing was written
};

static inline uint32_t chunk_blocks(uint32_t length) {
    return (length + BODY_BLOCK_BYTES - 1) / BODY_BLOCK_BYTES;
}
static inline uint32_t chunk_block_bytes(const struct chunk *chunk, uint32_t block) {
    uint32_t start = block * BODY_BLOCK_BYTES, left = chunk->length - start;
    return left < BODY_BLOCK_BYTES ? left : BODY_BLOCK_BYTES;
}

struct chunk *chunk_new(struct body *body, uint64_t number, uint32_t length); // one reference
// One whose content is there, within `whole` of so many bytes, which it takes over (malloc).
struct chunk *chunk_new_whole(struct body *body, uint32_t length, void *whole, size_t bytes, char *content);
static inline struct chunk *chunk_get(struct chunk *chunk) {
    atomic_fetch_add_explicit(&chunk->references, 1, memory_order_relaxed);
    return chunk;
}
void chunk_put(struct chunk *chunk); // NULL is allowed; what it took of the budget is its body's to give back

size_t chunk_struct_bytes(uint32_t length);

// The run that holds the byte at `offset`; NULL: it is not there.
const struct chunk_span *chunk_find(const struct chunk *chunk, uint32_t offset);
// The first run that ends behind `offset`; NULL: none.
const struct chunk_span *chunk_next(const struct chunk *chunk, uint32_t offset);
void chunk_add(struct chunk *chunk, uint32_t from, uint32_t to);
// Makes the blocks for it, and copies what is not there yet. Returns what the blocks take of the budget.
uint32_t chunk_copy(struct chunk *chunk, uint32_t from, const char *data, uint32_t length);
int chunk_pieces(const struct chunk *chunk, uint32_t from, uint32_t to, struct iovec *pieces, int count);
// Frees the blocks that end at or before `offset`, and returns what they took.
uint32_t chunk_free_before(struct chunk *chunk, uint32_t offset);
static inline bool chunk_is_full(const struct chunk *chunk, uint32_t length) {
    return chunk->span_count == 1 && chunk->spans[0].from == 0 && chunk->spans[0].to >= length;
}
