// The façade's whole: making, sizing and emptying the store.
#include "cache/cache.h"

#include "admin/check.h"
#include "cache/store.h"
#include "cache/tier.h"
#include "http/reference.h"

#include <stdlib.h>
#include <sys/random.h>

#define BYTES_AN_ENTRY 4096 // of memory, for sizing the index
#define BYTES_A_GHOST 4096

// ---- making and sizing ----

static void set_limits(struct cache *cache, const struct cache_limits *limits) {
    uint64_t maximum = limits->maximum_object_bytes;
    if (maximum == 0 || (maximum > limits->memory_bytes && !limits->has_disk))
        maximum = maximum ? limits->memory_bytes : limits->memory_bytes / 4;
    uint32_t window = limits->window_bytes ? limits->window_bytes : WINDOW_BYTES_DEFAULT;
    atomic_store(&cache->budget.limit, limits->memory_bytes);
    atomic_store(&cache->minimum_object_bytes, limits->minimum_object_bytes);
    atomic_store(&cache->maximum_object_bytes, maximum);
    atomic_store(&cache->window_bytes, window < WINDOW_BYTES_MINIMUM ? WINDOW_BYTES_MINIMUM : window);
}

struct cache *cache_new(const struct cache_limits *limits) {
    struct cache *cache = aligned_alloc(_Alignof(struct cache), sizeof *cache);
    CHECK(cache);
    *cache = (struct cache){.fixed_bytes = memory_cost(sizeof *cache)};
    uint64_t seed = 0;
    ssize_t got = getrandom(&seed, sizeof seed, GRND_NONBLOCK); // without: only chains could be aimed at
    (void)got;
    cache->fixed_bytes += index_init(&cache->index, seed, limits->memory_bytes / BYTES_AN_ENTRY);
    cache->fixed_bytes += eviction_init(&cache->eviction, limits->memory_bytes / BYTES_A_GHOST);
    budget_charge(cache, cache->fixed_bytes);
    pthread_mutex_init(&cache->whole, NULL);
    pthread_mutex_init(&cache->dirty_lock, NULL);
    pthread_cond_init(&cache->idle, NULL);
    set_limits(cache, limits);
    return cache;
}

void cache_set_limits(struct cache *cache, const struct cache_limits *limits) {
    pthread_mutex_lock(&cache->whole);
    set_limits(cache, limits);
    int64_t growth = index_resize(&cache->index, limits->memory_bytes / BYTES_AN_ENTRY);
    cache->fixed_bytes += (uint64_t)growth; // modulo 2^64, as below
    budget_charge(cache, (uint64_t)growth);
    pthread_mutex_unlock(&cache->whole);
    budget_settle(cache);
}

void cache_stats(struct cache *cache, struct cache_stats *stats) {
    *stats = (struct cache_stats){.objects = atomic_load_explicit(&cache->objects, memory_order_relaxed),
            .bytes = atomic_load_explicit(&cache->budget.used, memory_order_relaxed),
            .stream_bytes = atomic_load_explicit(&cache->budget.streams, memory_order_relaxed),
            .limit_bytes = atomic_load_explicit(&cache->budget.limit, memory_order_relaxed),
            .fills = atomic_load_explicit(&cache->fills, memory_order_relaxed),
            .evictions = atomic_load_explicit(&cache->evictions, memory_order_relaxed)};
}

unsigned cache_disk_stats(struct cache *cache, struct disk_volume_stats *out) {
    return cache->disk ? disk_stats(cache->disk, out) : 0;
}

bool cache_has_disk(struct cache *cache) {
    return atomic_load(&cache->disk) != NULL;
}

void cache_use_disk(struct cache *cache, struct disk *disk, uint32_t boot) {
    cache->boot = boot;
    atomic_store(&cache->disk, disk);
}

// What is small is in memory as a whole. What is large may not be: it goes with its volume, once those who
// read it have ended. Under the shard's lock; the entry may be freed.
static void leave_volumes(
        struct cache *cache, struct shard *shard, struct entry *entry, struct cache_object **dropped) {
    for (struct cache_object *object = entry->stored, *next; object; object = next) {
        next = object->sibling;
        bool is_small = object->size <= RECORD_SMALL_BYTES;
        if (is_small || !body_is_leaving(object->body)) {
            body_leave_disk(object->body);
            continue;
        }
        store_unlink(cache, object, object->body, dropped);
        entry->is_loaded = false;
    }
    // Before its head is there, an arriving one may be given another body.
    for (struct cache_object *object = entry->arriving; object; object = object->sibling)
        if (object_phase(object) == PHASE_ARRIVING)
            body_leave_disk(object->body);
    store_release(cache, shard, entry);
}

void cache_leave_volumes(struct cache *cache) {
    pthread_mutex_lock(&cache->whole);
    for (unsigned i = 0; i < INDEX_SHARDS; i++) {
        struct shard *shard = &cache->index.shards[i];
        for (size_t bucket = 0; bucket < shard->bucket_count; bucket++) {
            struct cache_object *dropped = NULL;
            pthread_mutex_lock(&shard->lock);
            for (struct entry *entry = shard->buckets[bucket], *next; entry; entry = next) {
                next = entry->next;
                leave_volumes(cache, shard, entry, &dropped);
            }
            pthread_mutex_unlock(&shard->lock);
            store_put_dropped(dropped);
        }
    }
    pthread_mutex_unlock(&cache->whole);
}

// ---- dropping ----

// At the end the disk keeps what it has.
static const struct body *kept(const struct cache *cache, const struct cache_object *object) {
    return cache->is_ending ? object->body : NULL;
}

// Everything in the entry, which may be freed by it; running fills will not be stored, and what they were to
// confirm stands in for nothing any more [RFC 9111 §4.4]. Returns how many stood there. The shard's lock is
// held.
static unsigned empty(
        struct cache *cache, struct shard *shard, struct entry *entry, struct cache_object **dropped) {
    unsigned count = 0;
    while (entry->stored) {
        atomic_store_explicit(&entry->stored->contradicted, true, memory_order_relaxed);
        store_unlink(cache, entry->stored, kept(cache, entry->stored), dropped);
        count++;
    }
    while (entry->arriving) {
        atomic_store_explicit(&entry->arriving->doomed, true, memory_order_relaxed);
        store_unlink(cache, entry->arriving, NULL, dropped);
    }
    index_mark(shard, entry, MARKER_NONE, 0);
    store_release(cache, shard, entry);
    return count;
}

struct target {
    const struct view *authority, *path, *path_prefix;                       // NULL: any
    bool (*matches)(void *context, struct view authority, struct view path); // NULL: everything
    void *context;
};

static bool is_target(const struct entry *entry, const struct target *target) {
    return (!target->authority || view_equal(entry->authority, *target->authority)) &&
           (!target->path || view_equal(entry->path, *target->path)) &&
           (!target->path_prefix || view_starts(entry->path, *target->path_prefix)) &&
           (!target->matches || target->matches(target->context, entry->authority, entry->path));
}

static unsigned purge_bucket(
        struct cache *cache, struct shard *shard, size_t bucket, const struct target *target) {
    struct cache_object *dropped = NULL;
    unsigned count = 0;
    pthread_mutex_lock(&shard->lock);
    for (struct entry *entry = shard->buckets[bucket], *next; entry; entry = next) {
        next = entry->next;
        if (is_target(entry, target))
            count += empty(cache, shard, entry, &dropped);
    }
    pthread_mutex_unlock(&shard->lock);
    store_put_dropped(dropped);
    return count;
}

// Bucket by bucket, so that nobody waits for long. Only index_resize moves entries between buckets, and it
// waits for `whole` too.
static unsigned purge(struct cache *cache, const struct target *target) {
    unsigned count = 0;
    pthread_mutex_lock(&cache->whole);
    for (unsigned i = 0; i < INDEX_SHARDS; i++)
        for (size_t bucket = 0; bucket < cache->index.shards[i].bucket_count; bucket++)
            count += purge_bucket(cache, &cache->index.shards[i], bucket, target);
    pthread_mutex_unlock(&cache->whole);
    return count;
}

void cache_free(struct cache *cache) {
    if (!cache)
        return;
    cache->is_ending = true;
    bool is_idle = tier_drain(cache);
    purge(cache, &(struct target){.context = NULL});
    if (!is_idle) // a disk hangs: its threads have what their jobs are about, and this with it
        return;
    CHECK(atomic_load(&cache->fills) == 0);
    CHECK(atomic_load(&cache->budget.used) == cache->fixed_bytes); // a reader or a fill is left
    CHECK(atomic_load(&cache->budget.streams) == 0);
    index_fini(&cache->index);
    eviction_fini(&cache->eviction);
    pthread_mutex_destroy(&cache->whole);
    pthread_mutex_destroy(&cache->dirty_lock);
    pthread_cond_destroy(&cache->idle);
    free(cache);
}

// In memory first, so that nothing of it is written any more; then on disk, durably; then what was read from
// there meanwhile.
static unsigned purge_both(struct cache *cache, const struct target *target, enum disk_purge kind,
        struct view authority, struct view path) {
    struct disk *disk = atomic_load(&cache->disk);
    unsigned count = purge(cache, target);
    if (disk)
        disk_purge(disk, kind, authority, path);
    atomic_fetch_add(&cache->purges, 1);
    return count + (disk ? purge(cache, target) : 0);
}

unsigned cache_purge_url(struct cache *cache, struct view authority, struct view path) {
    return purge_both(
            cache, &(struct target){.authority = &authority, .path = &path}, DISK_PURGE_URL, authority, path);
}

unsigned cache_purge_host(struct cache *cache, struct view authority) {
    return purge_both(cache, &(struct target){.authority = &authority}, DISK_PURGE_HOST, authority, VIEW(""));
}

unsigned cache_purge_all(struct cache *cache) {
    return purge_both(cache, &(struct target){0}, DISK_PURGE_ALL, VIEW(""), VIEW(""));
}

unsigned cache_purge_prefix(struct cache *cache, struct view authority, struct view path_prefix) {
    return purge_both(cache, &(struct target){.authority = &authority, .path_prefix = &path_prefix},
            DISK_PURGE_PREFIX, authority, path_prefix);
}

unsigned cache_purge_mask(struct cache *cache,
        bool (*matches)(void *context, struct view authority, struct view path), void *context,
        struct view mask_text) {
    return purge_both(cache, &(struct target){.matches = matches, .context = context}, DISK_PURGE_MASK,
            VIEW(""), mask_text);
}

int cache_purge_missed(struct cache *cache, char *path, size_t size) {
    struct disk *disk = atomic_load(&cache->disk);
    return disk ? disk_purge_missed(disk, path, size) : 0;
}

static void drop_name(struct cache *cache, const struct entry_name *name) {
    struct shard *shard = index_shard(&cache->index, name->key);
    struct cache_object *dropped = NULL;
    pthread_mutex_lock(&shard->lock);
    struct entry *entry = index_find(shard, name);
    if (entry)
        empty(cache, shard, entry, &dropped);
    pthread_mutex_unlock(&shard->lock);
    store_put_dropped(dropped);
}

// As a purge: what was read from the disk meanwhile goes as well.
static void drop_url(struct cache *cache, const struct cache_query *query) {
    struct entry_name name = store_name(cache, query);
    drop_name(cache, &name);
    if (tier_invalidate(cache, &name))
        drop_name(cache, &name);
}

// What a response may say only of its own origin [RFC 9111 §4.4].
static void drop_reference(struct cache *cache, const struct cache_query *query, struct view reference) {
    char buffer[REFERENCE_BYTES];
    struct reference_target target;
    if (!reference_resolve(query->authority, query->path, reference, buffer, &target) ||
            !view_equal(target.authority, query->authority))
        return;
    struct cache_query named = *query;
    named.path = target.path;
    drop_url(cache, &named);
}

void cache_invalidate(
        struct cache *cache, const struct cache_query *query, const struct http_head *response) {
    if (http_method_is_safe(query->head->method_id) || response->status < 200 || response->status >= 400)
        return;
    drop_url(cache, query);
    for (unsigned i = 0; i < response->field_count; i++)
        if (response->fields[i].id == FIELD_LOCATION || response->fields[i].id == FIELD_CONTENT_LOCATION)
            drop_reference(cache, query, response->fields[i].value);
}
