// A bucket of the index: six entries and a sequence number in one cache line. Who writes holds its lock,
// which is the lowest bit of the sequence; who reads takes the sequence before and after, and reads again
// when it changed. The words are atomic and none is read without acquire or written without release, so that
// nothing here is a data race, and a changed word implies a changed sequence on any machine.
#pragma once

#include "cache/table.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BUCKET_ENTRIES 6
#define BUCKET_BYTES 64
#define BUCKET_HIT_ONE (UINT64_C(1) << 16)
#define BUCKET_HITS_MASK (BUCKET_HIT_ONE * TABLE_HITS_MAXIMUM)
#define BUCKET_TAG_MASK UINT64_C(0xffff)
#define BUCKET_REST_MASK 0xff
#define BUCKET_SPINS 100 // then the one who holds the lock may want this processor

struct bucket {
    _Alignas(BUCKET_BYTES) _Atomic uint64_t words[BUCKET_ENTRIES];
    _Atomic uint16_t rests[BUCKET_ENTRIES];
    _Atomic uint32_t sequence; // odd while it is locked
};
_Static_assert(sizeof(struct bucket) == BUCKET_BYTES, "a bucket is one cache line");

struct bucket_entry {
    uint64_t word; // location (46), hits (2), lower tag (16), which is never 0. 0: a free place
    uint16_t rest; // upper tag (8) in the lower byte, the other one spare
};

// What the index itself is made of.
struct table {
    struct bucket *buckets;
    uint32_t bucket_count;
    _Alignas(BUCKET_BYTES) _Atomic uint64_t entries;
};

struct table *table_new_of(uint64_t buckets); // NULL without memory

// ---- an entry ----

static inline struct bucket_entry bucket_entry_of(uint32_t tag, uint64_t location, uint8_t hits) {
    return (struct bucket_entry){
            location << 18 | (uint64_t)hits << 16 | (tag & BUCKET_TAG_MASK), (uint16_t)(tag >> 16)};
}

static inline uint64_t bucket_location(uint64_t word) {
    return word >> 18;
}

static inline uint8_t bucket_hits(uint64_t word) {
    return (uint8_t)(word >> 16 & TABLE_HITS_MAXIMUM);
}

static inline uint32_t bucket_tag(struct bucket_entry entry) {
    return (uint32_t)entry.rest << 16 | (uint32_t)(entry.word & BUCKET_TAG_MASK);
}

// ---- for readers ----

static inline void bucket_pause(unsigned *spins) {
    if (++*spins % BUCKET_SPINS == 0)
        sched_yield();
}

// Waits out a writer.
static inline uint32_t bucket_sequence(const struct bucket *bucket) {
    uint32_t sequence;
    for (unsigned spins = 0; (sequence = atomic_load_explicit(&bucket->sequence, memory_order_acquire)) & 1;)
        bucket_pause(&spins);
    return sequence;
}

static inline bool bucket_changed(const struct bucket *bucket, uint32_t sequence) {
    return atomic_load_explicit(&bucket->sequence, memory_order_relaxed) != sequence;
}

static inline struct bucket_entry bucket_read(const struct bucket *bucket, unsigned place) {
    return (struct bucket_entry){atomic_load_explicit(&bucket->words[place], memory_order_acquire),
            atomic_load_explicit(&bucket->rests[place], memory_order_acquire)};
}

// ---- for writers ----

static inline bool bucket_try_lock(struct bucket *bucket) {
    uint32_t sequence = atomic_load_explicit(&bucket->sequence, memory_order_relaxed);
    return !(sequence & 1) && atomic_compare_exchange_strong_explicit(&bucket->sequence, &sequence,
                                      sequence + 1, memory_order_acquire, memory_order_relaxed);
}

static inline void bucket_lock(struct bucket *bucket) {
    for (unsigned spins = 0; !bucket_try_lock(bucket);)
        bucket_pause(&spins);
}

static inline void bucket_unlock(struct bucket *bucket) {
    uint32_t sequence = atomic_load_explicit(&bucket->sequence, memory_order_relaxed);
    atomic_store_explicit(&bucket->sequence, sequence + 1, memory_order_release);
}

static inline void bucket_write(struct bucket *bucket, unsigned place, struct bucket_entry entry) {
    atomic_store_explicit(&bucket->rests[place], entry.rest, memory_order_release);
    atomic_store_explicit(&bucket->words[place], entry.word, memory_order_release);
}

static inline void bucket_clear(struct bucket *bucket, unsigned place) {
    bucket_write(bucket, place, (struct bucket_entry){0, 0});
}

// How many places are free, and one of them in *place.
static inline unsigned bucket_room(const struct bucket *bucket, unsigned *place) {
    unsigned room = 0;
    for (unsigned i = 0; i < BUCKET_ENTRIES; i++)
        if (atomic_load_explicit(&bucket->words[i], memory_order_relaxed) == 0) {
            room++;
            *place = i;
        }
    return room;
}
