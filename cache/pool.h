// A volume's segments, in a small and a main queue that share one pool of bytes: who may open a new one, and
// which one is reclaimed next (S3-FIFO over segments). Pure: it counts, and touches no disk.
//
// A segment lies in a slot, a number that the index stores with a place in the segment. All but pool_find
// under the volume's lock.
#pragma once

#include "cache/record.h"
#include "cache/segment.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define POOL_SLOT_NONE UINT32_MAX
#define POOL_SLOTS_MAXIMUM (UINT32_C(1) << 22)
#define POOL_OFFSET_BITS 24 // of a location, in units of RECORD_ALIGNMENT
_Static_assert(SEGMENT_BYTES_MAXIMUM / RECORD_ALIGNMENT == 1 << POOL_OFFSET_BITS, "a location takes a place");

enum pool_queue { POOL_SMALL, POOL_MAIN, POOL_QUEUES };

enum pool_state {
    POOL_FREE,
    POOL_TAKEN,   // its file is being made
    POOL_OPEN,    // being appended to
    POOL_CLOSING, // full; waits to be sealed
    POOL_CLOSED,  // can be reclaimed
};

struct pool_slot {
    _Atomic(struct segment *) segment;
    uint64_t bytes; // on the disk
    uint32_t newer, older;
    enum pool_queue queue;
    enum pool_state state;
    bool is_doomed; // writing to it failed: it is given up instead of sealed
};

struct pool_list {
    uint32_t newest, oldest;
    uint64_t bytes, count;
};

struct pool {
    struct pool_slot *slots;
    uint32_t slot_count, free_slots, next_slot;
    struct pool_list lists[POOL_QUEUES];
    uint64_t limit;  // what all segments together may take
    uint64_t target; // the same now: less while the disk has less
    uint64_t used;
    _Atomic uint64_t held; // by segments that are unlinked and still read
    unsigned small_percent;
    unsigned closing;
};

void pool_init(struct pool *pool, uint64_t limit, uint32_t slots, unsigned small_percent);
void pool_fini(struct pool *pool); // gives up the segments that are still in it

uint64_t pool_free_bytes(const struct pool *pool);
// Takes a slot and `bytes` when `spare` bytes are left then. POOL_SLOT_NONE: there is no room.
uint32_t pool_take(struct pool *pool, uint64_t bytes, uint64_t spare);
// The same however little room there is: it lies on the disk already.
uint32_t pool_take_anyway(struct pool *pool, uint64_t bytes);
void pool_give_back(struct pool *pool, uint32_t slot); // one that was taken and not entered
// Into the queue as its newest. The slot counts the segment from now on, and readers find it.
void pool_enter(struct pool *pool, uint32_t slot, struct segment *segment, enum pool_queue queue,
        enum pool_state state);
// A closed one from the disk, into the queue as its oldest.
void pool_enter_oldest(
        struct pool *pool, uint32_t slot, struct segment *segment, enum pool_queue queue);
void pool_set_state(struct pool *pool, uint32_t slot, enum pool_state state);
void pool_set_bytes(struct pool *pool, uint32_t slot, uint64_t bytes);
void pool_move_to_main(struct pool *pool, uint32_t slot); // as its newest
// Out of queue and slot; the caller has the count now. The segment's bytes are held until it is gone: see
// segment_unlink.
struct segment *pool_leave(struct pool *pool, uint32_t slot);

// The one to reclaim next: the oldest of the small queue, or of main while that has more than its share.
// POOL_SLOT_NONE: none is closed.
uint32_t pool_victim(const struct pool *pool);

// The oldest that waits to be sealed.
uint32_t pool_closing(const struct pool *pool);

// From any thread. Counted, or NULL.
struct segment *pool_find(const struct pool *pool, uint32_t slot);

static inline uint64_t pool_location(uint32_t slot, uint64_t offset) {
    return (uint64_t)slot << POOL_OFFSET_BITS | offset / RECORD_ALIGNMENT;
}
static inline uint32_t pool_slot_of(uint64_t location) {
    return (uint32_t)(location >> POOL_OFFSET_BITS);
}
static inline uint64_t pool_offset_of(uint64_t location) {
    return (location & ((1 << POOL_OFFSET_BITS) - 1)) * RECORD_ALIGNMENT;
}
