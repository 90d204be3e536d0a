// A response, whole or arriving: a head that never changes once it is there, a body of content, and those who
// read. Counted: by its fill, its readers, the index, and by objects that share its content.
#pragma once

#include "cache/body.h"
#include "cache/cache.h"
#include "cache/eviction.h"
#include "cache/index.h"
#include "cache/stored_head.h"

#include <pthread.h>
#include <stdatomic.h>

enum phase {
    PHASE_PENDING,   // no head yet
    PHASE_ARRIVING,  // head there
    PHASE_WHOLE,     // complete, and nothing in it changes any more: read without a lock
    PHASE_ENDED,     // complete, but a stream: what all have read is gone
    PHASE_BROKEN,    // abandoned
    PHASE_PASSED_ON, // `successor` is what its readers read: confirmed by a 304, or standing in
};

#define SIZE_UNKNOWN BODY_SIZE_UNKNOWN

enum place { PLACE_NONE, PLACE_ARRIVING, PLACE_STORED };

enum reader_role {
    ROLE_OWN,     // the producer's: takes whatever comes
    ROLE_JOINED,  // undecided until it has looked at the head
    ROLE_HIT,     // decided by the lookup, but has not taken the head yet: can still go elsewhere
    ROLE_READING, // has the head
    ROLE_GONE,    // was told so; waits for its detach
};

struct cache_object {
    struct cache *cache;
    _Atomic unsigned references;
    _Atomic enum phase phase;
    _Atomic bool doomed;       // purged while it arrives: is not to be stored
    _Atomic bool contradicted; // by the origin's answer to a HEAD, or dropped as out of date: to be confirmed
                               // before every use
    const char *reason;        // why its readers have it; set before its phase
    struct stored_head *head;  // set before PHASE_ARRIVING
    struct body *body;         // counted; its own until its head tells whose content it shares
    uint64_t start, end;       // of a 206: the first byte it gives, and the one behind its last; else 0
    _Atomic uint64_t size;     // of the representation; SIZE_UNKNOWN: not known in advance
    _Atomic bool is_partial;   // stored with holes, or from several messages
    _Atomic uint64_t
            location; // of its head's record, where its body lies; DISK_LOCATION_NONE: none, or not yet
    _Atomic uint64_t sequence; // up to which it was written
    _Atomic bool is_unwanted;  // dropped: is not to be found on disk any more
    uint64_t charged;          // for this struct, its head and its fill; in the budget
    uint64_t charged_stream;   // the same for a stream

    // by its shard's lock
    struct cache_key key;
    struct entry *entry; // NULL when in none
    struct cache_object *sibling;
    enum place place;
    bool is_left;      // arriving for nobody, and about to be given up: nobody joins it any more
    bool is_forgotten; // dropped, and what lies on disk is to go as well
    struct eviction_node node;

    // by `lock`, until PHASE_WHOLE
    pthread_mutex_t lock;
    uint64_t floor; // a stream's slowest reader
    bool streaming; // is not to be stored
    bool is_paced;  // by its readers, as one that is not to be stored: but one whose body others share, and
                    // the origin cannot be asked for what they miss
    bool frees;     // what all have read: so is its body a stream
    bool refused;   // so from its head on: joiners are told to go
    struct cache_reader *readers;
    struct cache_fill *fill; // while it runs
    struct cache_object *successor;
    enum freshness_trouble trouble; // with a successor that stands in
    bool stands_in;
};

struct cache_object *object_new(struct cache *cache, bool is_stream); // one reference
static inline struct cache_object *object_get(struct cache_object *object) {
    atomic_fetch_add_explicit(&object->references, 1, memory_order_relaxed);
    return object;
}
void object_put(struct cache_object *object); // hold no lock

static inline enum phase object_phase(struct cache_object *object) {
    return atomic_load_explicit(&object->phase, memory_order_acquire);
}
// Stored in parts, or whole once, and chunks of it may have been evicted since.
static inline bool object_may_have_holes(const struct cache_object *object) {
    return object->is_partial || atomic_load_explicit(&object->body->is_by_chunks, memory_order_relaxed);
}
// Counts `bytes` more for this object, given back when it is freed. Producer only.
void object_charge(struct cache_object *object, uint64_t bytes, bool is_stream);

// It has the content of another one from now on. Before anybody else sees it.
void object_take_body(struct cache_object *object, const struct cache_object *from);

// It replaces the other one, and with it its record on disk, should it be dropped before it has its own.
void object_take_record(struct cache_object *object, const struct cache_object *from);

// Attaches a detached reader at the first byte. The caller sees to it that the object is alive and holds its
// beginning.
void object_attach(struct cache_object *object, struct cache_reader *reader, enum reader_role role);

// All below: the object's lock is held.
void object_wake_readers(struct cache_object *object); // all that wait
void object_unlink_reader(struct cache_object *object, struct cache_reader *reader);
unsigned object_count_readers(const struct cache_object *object); // who want what comes
// After a reader of a stream went on or away: frees what all have passed, and wakes the producer when there
// is enough room again.
void object_reader_passed(struct cache_object *object);
unsigned object_shed_laggards(struct cache_object *object); // cache_fill_shed, with the lock held
size_t object_room(const struct cache_object *object);      // of a stream; 0 rather than little
