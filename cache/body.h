// The content of a representation, as far as it is there: shared by all heads of it that are stored (a 304
// makes a new head), by the fills that bring it and by those who read it. In chunks of BODY_CHUNK_BYTES,
// which come and go one by one; within a chunk, what is there is runs of bytes in blocks of BODY_BLOCK_BYTES.
//
// Whoever brings bytes announces them as a flow: readers wait for what flows bring, and nobody asks for it a
// second time. Bytes that are there are never changed: parts are combined under a strong validator alone, so
// a second copy says the same.
//
// A body that is a stream keeps what its slowest reader has not passed, and no more: it has one flow.
#pragma once

#include "cache/cache.h"
#include "cache/chunk.h"
#include "cache/disk.h"

#include <pthread.h>
#include <stdatomic.h>

#define BODY_AHEAD_BYTES                                                                                     \
    (1024 * 1024) // what a flow brings further ahead is not waited for where the origin can be asked for it
#define BODY_LOOK_CHUNKS 256 // how far ahead holes are looked for at once
#define BODY_SIZE_UNKNOWN UINT64_MAX

struct tier_name;

struct flow {
    struct flow *next;
    _Atomic uint64_t position; // of the next byte it brings
    uint64_t end;              // the offset behind its last; BODY_SIZE_UNKNOWN: as far as it goes
    bool is_confirmed;         // its response head is there and fits
    bool is_load;              // from the disk
    bool is_running;           // among its body's
    struct chunk *chunk;       // the one it writes to, counted
};

struct body {
    struct cache *cache;
    _Atomic unsigned references;
    _Atomic bool can_ask;      // what is missing can be asked for: a strong validator, a known size, and the
                               // origin has shown that it answers ranges, and nothing else since
    _Atomic bool was_askable;  // so at any time: what others have brought completes it
    _Atomic bool is_by_chunks; // its chunks are evicted one by one
    pthread_mutex_t writing;   // by whoever puts bytes into chunks; before `lock`
    pthread_mutex_t lock;      // all below
    uint64_t size;             // BODY_SIZE_UNKNOWN until it is known; then it stays
    struct chunk **chunks;     // ascending
    struct chunk *single;      // room for `chunks` of one
    _Atomic unsigned chunk_count; // the eviction looks at it without the lock
    unsigned chunk_room;
    struct flow *flows;
    struct cache_reader *waiters;
    bool is_stream;
    uint64_t floor;   // of a stream: what lies before it is gone
    uint64_t charged; // in the budget: the store's, or the streams'
    // On disk. A small one (TIER_SMALL) lies with its head; of another one, chunks.
    struct disk_place place; // `volume` NULL: nowhere, or not yet
    struct tier_name *name;  // under which chunks are written; heap. NULL: none was so far
    bool is_unwanted;        // dropped: nothing more is written
    struct chunk *full;      // chunks to be written, counted
    uint64_t fingerprint;    // of its chunks' eviction; set before the first
};

struct body *body_new(struct cache *cache, bool is_stream); // one reference
static inline struct body *body_get(struct body *body) {
    atomic_fetch_add_explicit(&body->references, 1, memory_order_relaxed);
    return body;
}
void body_put(struct body *body); // hold no lock
// For the eviction: false when it is being freed.
bool body_try_get(struct body *body);

static inline bool body_can_ask(const struct body *body) {
    return atomic_load_explicit(&body->can_ask, memory_order_relaxed);
}
static inline bool body_was_askable(const struct body *body) {
    return atomic_load_explicit(&body->was_askable, memory_order_relaxed);
}
void body_set_can_ask(struct body *body);
void body_never_ask(struct body *body); // the origin does not answer ranges, after all: who is there waits
void body_set_size(struct body *body, uint64_t size); // once
uint64_t body_size(struct body *body);
uint64_t body_charged(struct body *body);

// ---- flows ----

// `flow` brings what lies from `from` to `end`. It stays where it is until body_end.
void body_begin(struct body *body, struct flow *flow, uint64_t from, uint64_t end);
void body_confirm(struct body *body, struct flow *flow);
bool body_is_fetched(struct body *body);                          // by whatever flow, but from the disk
bool body_is_awaited(struct body *body, const struct flow *flow); // by a reader that has taken all there is
// What the next `length` bytes of the flow will take of the budget, at the most.
uint64_t body_cost(struct body *body, const struct flow *flow, size_t length);
// Copies what is not there yet, and goes on by `length`. What it takes is counted, as far as *reserved, which
// it lessens, has not been before.
void body_write(struct body *body, struct flow *flow, const void *data, size_t length, uint64_t *reserved);
// All of a body that nobody has seen yet, as it came from the disk: `content` to the end of `memory`, malloc,
// which it takes over.
void body_take_whole(struct body *body, void *memory, char *content, uint32_t length);
void body_skip(struct body *body, struct flow *flow, size_t length); // the same without keeping anything
void body_end(struct body *body, struct flow *flow);                 // idempotent; wakes all who wait
// What it holds from now on is a stream's. One for which the origin can be asked never becomes one.
void body_become_stream(struct body *body);
void body_free_before(struct body *body, uint64_t floor); // of a stream
// A body of unknown size has ended: gives back the room that was left for more.
void body_trim(struct body *body);

// The next chunk that has become full and is to be written; counted. NULL: none.
struct chunk *body_take_full(struct body *body);
// Everything that is there and not written yet becomes that, as far as it begins its chunk: nothing more
// comes.
void body_queue_rest(struct body *body);
// Copies what is there of the chunk from its beginning on. Returns how much.
uint32_t body_copy_chunk(struct body *body, struct chunk *chunk, void *out);
// The flow brings nothing any more, though its owner does not know yet: who waits is woken.
void body_withdraw(struct body *body, struct flow *flow);
// It lies on disk from now on, unless that volume leaves. Takes the place over.
void body_set_place(struct body *body, struct disk_place *place);
bool body_is_leaving(struct body *body); // its volume does
void body_leave_disk(struct body *body); // its volume, should that leave: what is in memory is all there is

// The place, one more of it (`volume` NULL: there is none).
void body_copy_place(struct body *body, struct disk_place *place);
// The chunk that begins at `start` ends on disk where `end` says: what lies behind is missing.
void body_note_disk_end(struct body *body, uint64_t start, uint32_t end);
void body_hit_disk(struct body *body, uint64_t location); // the head there was hit
struct chunk *body_first_chunk(struct body *body);        // counted; NULL: it is not there

// ---- reading ----

enum body_look {
    BODY_ON_DISK, // not in memory

    BODY_HERE,   // *used pieces
    BODY_COMING, // a flow brings it: the reader waits and will be woken
    BODY_OVER,   // the end
    BODY_ABSENT, // neither
};
// What lies at the reader's offset.
enum body_look body_look(
        struct body *body, struct cache_reader *reader, struct iovec *pieces, int count, int *used);
void body_rest(struct cache_reader *reader);                     // lets go of what it was shown
void body_leave(struct body *body, struct cache_reader *reader); // and does not wait any more

// Whether all from `first` to `last` is there or about to come.
bool body_serves(struct body *body, uint64_t first, uint64_t last);
bool body_is_complete(struct body *body);
// The first hole at or behind `first` and not behind `last`, that nobody fills, widened to chunk borders as
// far as nothing is there. Begins `flow` for it when that is not NULL. False: none.
struct body_hole {
    uint64_t first, last;
};
bool body_find_hole(struct body *body, uint64_t first, uint64_t last, uint64_t reach, struct flow *flow,
        struct body_hole *hole);
// The run of bytes in memory at or behind `offset`. False: none.
bool body_run(struct body *body, uint64_t offset, struct body_hole *run);

// Takes a chunk that nobody uses out; for the eviction, which has it and the body counted.
void body_evict(struct body *body, struct chunk *chunk);
