// The index: URL (in its scope) to what is stored and what arrives under it. Sharded by key; a shard's lock
// is held for a few instructions, and objects' and queues' locks may be taken while it is held, never the
// other way round.
#pragma once

#include "admin/address.h"
#include "cache/key.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INDEX_SHARDS 64
#define INDEX_VARIANTS_MAX 16 // responses of one URL; the oldest makes room
#define INDEX_MARKERS_MAX 64  // of one shard; the oldest makes room
#define INDEX_MARKER_SECONDS 5

struct cache;
struct cache_object;
struct load;

enum marker { // what a head said about sharing this URL's responses, for a few seconds
    MARKER_NONE,
    MARKER_ALONE, // not storable, or not without being confirmed: every request asks for itself, joins no
                  // fill
};

struct entry {
    struct entry *next;
    struct cache_key key;
    struct endpoint destination;
    struct view authority, path;   // in `text`
    struct cache_object *stored;   // newest first; any Vary
    struct cache_object *arriving; // of running fills that may be stored; newest first
    bool is_loaded; // all that the disk has under this name is here, or was dropped since
    enum marker marker;
    int64_t marker_until_s;
    struct entry *marker_newer, *marker_older;
    size_t bytes;
    char text[];
};

struct shard {
    _Alignas(64) pthread_mutex_t lock;
    struct entry **buckets;
    size_t bucket_count; // a power of two
    struct entry *marker_newest, *marker_oldest;
    unsigned markers;
    struct load *loads; // names that are being read from a disk
};

struct index {
    struct shard shards[INDEX_SHARDS];
    uint64_t seed;
};

// Room for about `objects`; more make longer chains. Returns the bytes its tables take.
uint64_t index_init(struct index *index, uint64_t seed, uint64_t objects);
void index_fini(struct index *index); // must be empty
// The same for a new size. One at a time. Returns the growth in bytes, which may be negative.
int64_t index_resize(struct index *index, uint64_t objects);

static inline struct shard *index_shard(struct index *index, struct cache_key key) {
    return &index->shards[key.high % INDEX_SHARDS];
}

// All below: the shard's lock is held.
struct entry_name {
    struct cache_key key;
    const struct endpoint *destination;
    struct view authority, path;
};
struct entry *index_find(struct shard *shard, const struct entry_name *name);
struct entry *index_entry_new(const struct entry_name *name); // no lock needed: only allocates
void index_add(struct shard *shard, struct entry *entry);

// Frees the entry when nothing is left in it, and returns the bytes freed.
size_t index_release(struct shard *shard, struct entry *entry);

// The marker in force. Forgets one that has run out.
enum marker index_marker(struct shard *shard, struct entry *entry, int64_t now_s);
// Sets or clears it. Others may be forgotten to make room; returns the bytes freed with them.
size_t index_mark(struct shard *shard, struct entry *entry, enum marker marker, int64_t now_s);
