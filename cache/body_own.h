// What the files of a body share: body (life, chunks, flows), body_read and body_disk. The body's lock is
// held for all of it.
#pragma once

#include "cache/body.h"

static inline uint64_t body_least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static inline uint64_t body_most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static inline uint64_t body_start_of(const struct chunk *chunk) {
    return (uint64_t)chunk->number * BODY_CHUNK_BYTES;
}

// Where the chunk is, or would be; the chunk that holds the byte, NULL: there is none; a new one, counted in
// the budget as far as *reserved has not been.
unsigned body_place_of(const struct body *body, uint64_t number);
struct chunk *body_find(const struct body *body, uint64_t offset);
struct chunk *body_add(struct body *body, uint64_t number, uint64_t *reserved);
// Its chunks can come back, from the origin or from the disk, and are evicted one by one from now on.
void body_go_by_chunks(struct body *body);
void body_link_flow(struct body *body, struct flow *flow, uint64_t from, uint64_t end);
// The chunk is to be written.
void body_queue_full(struct body *body, struct chunk *chunk);
