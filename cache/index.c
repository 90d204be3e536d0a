#include "cache/index.h"

#include "admin/check.h"
#include "cache/budget.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS_MINIMUM 16
#define BUCKETS_MAXIMUM (1 << 20) // of a shard

static size_t buckets_for(uint64_t objects) {
    size_t buckets = BUCKETS_MINIMUM;
    while (buckets < objects / INDEX_SHARDS && buckets < BUCKETS_MAXIMUM)
        buckets *= 2;
    return buckets;
}

static struct entry **buckets_new(size_t count) {
    struct entry **buckets = memory_new(count * sizeof(struct entry *));
    memset(buckets, 0, count * sizeof(struct entry *));
    return buckets;
}

uint64_t index_init(struct index *index, uint64_t seed, uint64_t objects) {
    size_t count = buckets_for(objects);
    index->seed = seed;
    for (unsigned i = 0; i < INDEX_SHARDS; i++) {
        struct shard *shard = &index->shards[i];
        *shard = (struct shard){.bucket_count = count, .buckets = buckets_new(count)};
        pthread_mutex_init(&shard->lock, NULL);
    }
    return INDEX_SHARDS * memory_cost(count * sizeof(struct entry *));
}

void index_fini(struct index *index) {
    for (unsigned i = 0; i < INDEX_SHARDS; i++) {
        struct shard *shard = &index->shards[i];
        for (size_t j = 0; j < shard->bucket_count; j++)
            CHECK(!shard->buckets[j]);
        free(shard->buckets);
        pthread_mutex_destroy(&shard->lock);
    }
}

static struct entry **bucket_of(const struct shard *shard, struct cache_key key) {
    return &shard->buckets[key.low & (shard->bucket_count - 1)];
}

static void resize_shard(struct shard *shard, struct entry **buckets, size_t count) {
    pthread_mutex_lock(&shard->lock);
    struct entry **old = shard->buckets;
    size_t old_count = shard->bucket_count;
    shard->buckets = buckets;
    shard->bucket_count = count;
    for (size_t i = 0; i < old_count; i++)
        for (struct entry *entry = old[i], *next; entry; entry = next) {
            next = entry->next;
            index_add(shard, entry);
        }
    pthread_mutex_unlock(&shard->lock);
    free(old);
}

int64_t index_resize(struct index *index, uint64_t objects) {
    size_t count = buckets_for(objects), old_count = index->shards[0].bucket_count;
    if (count == old_count)
        return 0;
    for (unsigned i = 0; i < INDEX_SHARDS; i++)
        resize_shard(&index->shards[i], buckets_new(count), count);
    return INDEX_SHARDS * ((int64_t)memory_cost(count * sizeof(struct entry *)) -
                                  (int64_t)memory_cost(old_count * sizeof(struct entry *)));
}

static bool has_name(const struct entry *entry, const struct entry_name *name) {
    return key_equal(entry->key, name->key) && endpoint_equal(&entry->destination, name->destination) &&
           view_equal(entry->authority, name->authority) && view_equal(entry->path, name->path);
}

struct entry *index_find(struct shard *shard, const struct entry_name *name) {
    struct entry *entry = *bucket_of(shard, name->key);
    while (entry && !has_name(entry, name))
        entry = entry->next;
    return entry;
}

struct entry *index_entry_new(const struct entry_name *name) {
    size_t bytes = sizeof(struct entry) + name->authority.length + name->path.length;
    struct entry *entry = memory_new(bytes);
    *entry = (struct entry){.key = name->key, .destination = *name->destination, .bytes = bytes};
    char *path = entry->text + name->authority.length;
    if (name->authority.length)
        memcpy(entry->text, name->authority.data, name->authority.length);
    if (name->path.length)
        memcpy(path, name->path.data, name->path.length);
    entry->authority = (struct view){entry->text, name->authority.length};
    entry->path = (struct view){path, name->path.length};
    return entry;
}

void index_add(struct shard *shard, struct entry *entry) {
    struct entry **bucket = bucket_of(shard, entry->key);
    entry->next = *bucket;
    *bucket = entry;
}

size_t index_release(struct shard *shard, struct entry *entry) {
    if (entry->stored || entry->arriving || entry->marker != MARKER_NONE)
        return 0;
    struct entry **link = bucket_of(shard, entry->key);
    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
    size_t bytes = entry->bytes;
    free(entry);
    return memory_cost(bytes);
}

// ---- markers ----

static void unmark(struct shard *shard, struct entry *entry) {
    if (entry->marker == MARKER_NONE)
        return;
    *(entry->marker_newer ? &entry->marker_newer->marker_older : &shard->marker_newest) = entry->marker_older;
    *(entry->marker_older ? &entry->marker_older->marker_newer : &shard->marker_oldest) = entry->marker_newer;
    entry->marker_newer = entry->marker_older = NULL;
    entry->marker = MARKER_NONE;
    shard->markers--;
}

// A clock that went back must not keep a marker for longer than it was meant to live.
static bool is_over(const struct entry *entry, int64_t now_s) {
    return now_s >= entry->marker_until_s || now_s < entry->marker_until_s - INDEX_MARKER_SECONDS;
}

enum marker index_marker(struct shard *shard, struct entry *entry, int64_t now_s) {
    if (entry->marker != MARKER_NONE && is_over(entry, now_s))
        unmark(shard, entry);
    return entry->marker;
}

static size_t forget_old(struct shard *shard, const struct entry *keep, int64_t now_s) {
    size_t freed = 0;
    for (struct entry *oldest = shard->marker_oldest, *newer; oldest && oldest != keep; oldest = newer) {
        if (shard->markers <= INDEX_MARKERS_MAX && !is_over(oldest, now_s))
            break;
        newer = oldest->marker_newer;
        unmark(shard, oldest);
        freed += index_release(shard, oldest);
    }
    return freed;
}

size_t index_mark(struct shard *shard, struct entry *entry, enum marker marker, int64_t now_s) {
    unmark(shard, entry);
    if (marker == MARKER_NONE)
        return 0;
    entry->marker = marker;
    entry->marker_until_s = now_s + INDEX_MARKER_SECONDS;
    entry->marker_older = shard->marker_newest;
    *(shard->marker_newest ? &shard->marker_newest->marker_newer : &shard->marker_oldest) = entry;
    shard->marker_newest = entry;
    shard->markers++;
    return forget_old(shard, entry, now_s);
}
