// The store's inside, shared by its files: not for others.
#pragma once

#include "cache/budget.h"
#include "cache/object.h"
#include "cache/policy.h"

#define WINDOW_BYTES_DEFAULT 65536
#define WINDOW_BYTES_MINIMUM 4096
#define ROOM_BYTES 65536 // what a storing fill takes at a time

struct cache {
    struct budget budget;
    struct index index;
    struct eviction eviction;
    _Atomic uint64_t minimum_object_bytes, maximum_object_bytes;
    _Atomic uint32_t window_bytes;
    _Atomic uint64_t objects, fills, evictions;
    pthread_mutex_t whole; // one purge or change of limits at a time
    uint64_t fixed_bytes;  // counted from the start: tables
};

struct cache_fill {
    struct cache *cache;
    struct cache_object *object;
    // immutable while other threads can find the fill through the index
    struct cache_object *base;   // what a 304 would confirm
    struct stored_head *request; // NULL for a stream
    bool alone;                  // not to be joined before its head is there
    // the producer's own
    const char *pass_reason; // of a stream
    char *validators;
    size_t validators_length;
    int64_t content_length; // announced
    uint64_t reserved;      // counted in the budget for content to come
    uint64_t content_cost;  // of the blocks so far
    size_t told;            // what is left of the room last told
    int64_t now_s;          // steady: of the lookup, then of the head
    // by the object's lock
    bool waiting;
    void (*wake)(void *owner);
    void *owner;
};

// A fill and its object, neither in the index. `request` NULL: a stream.
struct cache_fill *fill_new(struct cache *cache, const struct http_head *request, const char *pass_reason);
void fill_free(struct cache_fill *fill); // of one that nobody has seen yet, or that has ended
void fill_write_validators(struct cache_fill *fill);
// Out of the index, with its base if `drop_base`: not to be joined any more, nor found. `marker` keeps the
// next crowd from queueing.
void fill_leave_index(struct cache_fill *fill, enum marker marker, bool drop_base);

struct policy_limits store_limits(struct cache *cache);
struct entry_name store_name(struct cache *cache, const struct cache_query *query); // views borrowed from it

// Takes the object out of the index, if it is there as stored. True when it was.
bool store_drop(struct cache *cache, struct cache_object *object);
// Puts an object into `entry` in place of those it replaces; those are added to the chain `dropped` (by
// sibling), to be put by store_put_dropped() once the lock is released. The shard's lock is held. False when
// a newer one stands there.
bool store_insert(
        struct cache *cache, struct entry *entry, struct cache_object *object, struct cache_object **dropped);
// Takes an object out of its entry, whichever place it has; a stored one goes to `dropped`. Lock held.
void store_unlink(struct cache *cache, struct cache_object *object, struct cache_object **dropped);
void store_put_dropped(struct cache_object *dropped);
// Releases an entry that may be empty, and what it cost. Lock held.
void store_release(struct cache *cache, struct shard *shard, struct entry *entry);

// What a lookup would do, without doing it. `found` is a reference, or NULL; `fill` was never in the index,
// and has the fields that would be sent; lookup_preview_end() gives both back.
struct lookup_preview {
    enum lookup lookup;
    const char *reason;
    bool is_unavailable;
    bool is_refreshed;
    struct cache_object *found;
    struct cache_fill *fill;
};
void lookup_preview(struct cache *cache, const struct cache_query *query, struct lookup_preview *preview);
void lookup_preview_end(struct lookup_preview *preview);
