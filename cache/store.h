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
    // the disk's
    _Atomic(struct disk *) disk; // borrowed; NULL: there is none
    bool is_ending;
    uint32_t boot;              // since when the steady clock counts
    _Atomic uint64_t purges;    // so far: what was read before one is not to be believed after it
    pthread_mutex_t dirty_lock; // all below
    pthread_cond_t idle;
    uint64_t dirty_bytes;    // wait to be written
    unsigned jobs;           // that wait or run
    unsigned writes;         // of them, with something dirty
    struct cache_fill *held; // fills that wait for the disk
    uint64_t fixed_bytes;    // counted from the start: tables
};

struct cache_fill {
    struct cache *cache;
    struct cache_object *object;
    // immutable while other threads can find the fill through the index
    struct cache_object *selected;   // what is stored for this request: is replaced, or stands in; NULL: none
    struct stored_head *request;     // NULL for a stream
    struct cache_control asked;      // the request's
    const struct refresh_rule *rule; // of the lookup
    struct entry *spare;             // for a response that enters the index with its head (POST), else NULL
    struct cache_object *resumed;    // stored in part, when a hole of it was asked for
    struct body_hole hole;           // that one
    bool is_hole;         // it fills `hole` for a reader of `resumed`, and is no response of its own
    bool is_pending_hole; // `flow` is announced in the body of `resumed`
    bool asks_range;      // goes out with the request's own Range
    bool asks_whole;      // goes out for the whole, whatever the request's range
    bool alone;           // not to be joined before its head is there
    // the producer's own
    struct cache_object *bases[INDEX_VARIANTS_MAX]; // what a 304 could confirm, the selected one first
    unsigned base_count;
    const char *pass_reason; // of a stream
    char *validators;
    size_t validators_length;
    int64_t content_length; // announced: where the content ends; -1: not known in advance
    bool is_resuming;       // the hole's bytes come
    bool is_whole_again;    // and all others
    bool is_counted;        // by the message's own Content-Length
    bool is_overrun;        // more came than was announced: nothing of it is to be trusted
    struct flow flow;       // into the object's body, or while a hole is asked for, into that of `resumed`
    uint64_t reserved;      // counted in the budget for content to come
    size_t told;            // what is left of the room last told
    struct moment now;      // of the lookup, then of the head
    // by the cache's dirty_lock
    struct cache_fill *held_next;
    bool is_held;
    // by the object's lock
    bool waiting;
    void (*wake)(void *owner);
    void *owner;
};

// A fill and its object, neither in the index. `request` NULL: a stream.
struct cache_fill *fill_new(struct cache *cache, const struct http_head *request, const char *pass_reason);
// What it can confirm and replace. The shard's lock is held; the fill is not in the index yet.
void fill_take_bases(struct cache_fill *fill, struct entry *entry, struct cache_object *selected);
void fill_drop_bases(struct cache_fill *fill);
void fill_free(struct cache_fill *fill); // of one that nobody has seen yet, or that has ended
void fill_write_validators(struct cache_fill *fill);
void fill_write_range(struct cache_fill *fill);
void fill_write_own_range(struct cache_fill *fill); // as its client has it
// Another body than its own takes what it brings. Before its head is published.
void fill_share_body(struct cache_fill *fill, struct body *body);
// What evicting the object would free, `aside` of what it is charged with not counted.
void fill_count_node(struct cache_object *object, uint64_t aside);
// The flow ends, wherever it goes.
void fill_end_flow(struct cache_fill *fill);
// Out of the index, with what it was to replace if `drop_selected`: not to be joined any more, nor found.
// `marker` keeps the next crowd from queueing.
void fill_leave_index(struct cache_fill *fill, enum marker marker, bool drop_selected);
// Readers go on to `successor`.
void fill_pass_on(struct cache_fill *fill, struct cache_object *successor, const char *reason);
// The same, to what is selected, when that may stand in for the origin now. False: it may not, nothing
// changed.
bool fill_stand_in(struct cache_fill *fill, enum freshness_trouble trouble, struct moment now);

static inline const struct refresh_rule *store_rule(const struct cache_rules *rules) {
    return rules ? rules->refresh : NULL;
}
struct policy_limits store_limits(struct cache *cache);
struct entry_name store_name(struct cache *cache, const struct cache_query *query); // views borrowed from it

// Puts the answer to `request` into `entry` in place of those it supersedes: the same variant, and what was
// selected by Vary for this request before; those are added to the chain `dropped` (by
// sibling), to be put by store_put_dropped() once the lock is released. The shard's lock is held. False when
// a newer one stands there.
bool store_insert(struct cache *cache, struct entry *entry, struct cache_object *object,
        const struct http_head *request, struct cache_object **dropped);
// Takes an object out of its entry, whichever place it has; a stored one goes to `dropped`. Lock held. What
// lies on disk of it goes, too, unless its body is `kept`.
void store_unlink(struct cache *cache, struct cache_object *object, const struct body *kept,
        struct cache_object **dropped);
// Puts it there, as the newest. Lock held.
void store_link(struct cache *cache, struct entry *entry, struct cache_object *object);
// Takes it out of memory; what lies on disk stays.
bool store_evict(struct cache *cache, struct cache_object *object);
void store_put_dropped(struct cache_object *dropped);
// Releases an entry that may be empty, and what it cost. Lock held.
void store_release(struct cache *cache, struct shard *shard, struct entry *entry);

// What a lookup would do, without doing it. `fill` is NULL or was never in the index, and has the fields that
// would be sent; lookup_preview_end() frees it.
struct lookup_preview {
    enum lookup lookup;
    const char *reason;
    bool is_unavailable;
    bool is_refreshed;
    struct cache_fill *fill;
};
void lookup_preview(struct cache *cache, const struct cache_query *query, struct lookup_preview *preview);
void lookup_preview_end(struct lookup_preview *preview);
