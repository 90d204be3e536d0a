// A volume's segments, in a small and a main queue that share one pool of bytes: who may open a new one, and
// which one is reclaimed next (S3-FIFO over segments). Pure: it counts, and touches no disk.
//
// A segment lies in a slot, a number that the index stores with a place in the segment. All but segments_find
// under the volume's lock.
#pragma once

#include "cache/record.h"
#include "cache/segment.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SEGMENTS_SLOT_NONE UINT32_MAX
#define SEGMENTS_SLOTS_MAXIMUM (UINT32_C(1) << 22)
#define SEGMENTS_OFFSET_BITS 24 // of a location, in units of RECORD_ALIGNMENT
_Static_assert(
        SEGMENT_BYTES_MAXIMUM / RECORD_ALIGNMENT == 1 << SEGMENTS_OFFSET_BITS, "a location takes a place");

enum segments_queue { SEGMENTS_SMALL, SEGMENTS_MAIN, SEGMENTS_QUEUES };

enum segments_state {
    SEGMENTS_FREE,
    SEGMENTS_TAKEN,   // its file is being made
    SEGMENTS_OPEN,    // being appended to
    SEGMENTS_CLOSING, // full; waits to be sealed
    SEGMENTS_CLOSED,  // can be reclaimed
    SEGMENTS_DRAINED, // was reclaimed; its file stays until what was carried over is safe
};

struct segments_slot {
    _Atomic(struct segment *) segment;
    uint64_t bytes; // on the disk
    uint32_t newer, older;
    enum segments_queue queue;
    enum segments_state state;
    bool is_doomed; // writing to it failed: it is given up instead of sealed
};

struct segments_list {
    uint32_t newest, oldest;
    uint64_t bytes, count;
};

struct segments {
    struct segments_slot *slots;
    uint32_t slot_most; // that there is memory for
    uint32_t slot_count, free_slots, next_slot;
    struct segments_list lists[SEGMENTS_QUEUES];
    uint64_t limit;  // what all segments together may take
    uint64_t target; // the same now: less while the disk has less
    uint64_t used;
    _Atomic uint64_t held; // by segments that are unlinked and still read
    unsigned small_percent;
    unsigned closing, drained;
};

// Later at most `slot_most` (what no segment ever lay in takes no memory).
void segments_init(
        struct segments *pool, uint64_t limit, uint32_t slots, uint32_t slot_most, unsigned small_percent);
void segments_grow(struct segments *pool, uint32_t slots); // when there are fewer
void segments_fini(struct segments *pool);                 // gives up the segments that are still in it

uint64_t segments_free_bytes(const struct segments *pool);
// Takes a slot and `bytes` when `spare` bytes are left then. SEGMENTS_SLOT_NONE: there is no room.
uint32_t segments_take(struct segments *pool, uint64_t bytes, uint64_t spare);
// The same however little room there is: it lies on the disk already.
uint32_t segments_take_anyway(struct segments *pool, uint64_t bytes);
// The same, this very slot. False: there is no such slot, or it is not free.
bool segments_take_slot(struct segments *pool, uint32_t slot, uint64_t bytes);
void segments_give_back(struct segments *pool, uint32_t slot); // one that was taken and not entered
// Into the queue as its newest. The slot counts the segment from now on, and readers find it.
void segments_enter(struct segments *pool, uint32_t slot, struct segment *segment, enum segments_queue queue,
        enum segments_state state);
// A closed one from the disk, into the queue as its oldest.
void segments_enter_oldest(
        struct segments *pool, uint32_t slot, struct segment *segment, enum segments_queue queue);
void segments_set_state(struct segments *pool, uint32_t slot, enum segments_state state);
void segments_set_bytes(struct segments *pool, uint32_t slot, uint64_t bytes);
void segments_move_to_main(struct segments *pool, uint32_t slot); // as its newest
// Out of queue and slot; the caller has the count now. The segment's bytes are held until it is gone: see
// segment_unlink.
struct segment *segments_leave(struct segments *pool, uint32_t slot);

// The one to reclaim next: the oldest of the small queue, or of main while that has more than its share.
// SEGMENTS_SLOT_NONE: none is closed.
uint32_t segments_victim(const struct segments *pool);

// The oldest that waits to be sealed; any that is drained; the newest of main that is open: or none.
uint32_t segments_closing(const struct segments *pool);
uint32_t segments_drained(const struct segments *pool);
uint32_t segments_open_main(const struct segments *pool);

// From any thread. Counted, or NULL.
struct segment *segments_find(const struct segments *pool, uint32_t slot);

static inline uint64_t segments_location(uint32_t slot, uint64_t offset) {
    return (uint64_t)slot << SEGMENTS_OFFSET_BITS | offset / RECORD_ALIGNMENT;
}
static inline uint32_t segments_slot_of(uint64_t location) {
    return (uint32_t)(location >> SEGMENTS_OFFSET_BITS);
}
static inline uint64_t segments_offset_of(uint64_t location) {
    return (location & ((1 << SEGMENTS_OFFSET_BITS) - 1)) * RECORD_ALIGNMENT;
}
