// The façade's whole: making and sizing the store, looking up, dropping.
#include "cache/cache.h"

#include "admin/check.h"
#include "cache/store.h"
#include "cache/vary.h"

#include <stdlib.h>
#include <sys/random.h>

#define BYTES_AN_ENTRY 4096 // of memory, for sizing the index
#define BYTES_A_GHOST 8192

// ---- making and sizing ----

static void set_limits(struct cache *cache, const struct cache_limits *limits) {
    uint64_t maximum = limits->maximum_object_bytes;
    if (maximum == 0 || maximum > limits->memory_bytes)
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

void cache_free(struct cache *cache) {
    if (!cache)
        return;
    cache_purge_all(cache);
    CHECK(atomic_load(&cache->fills) == 0);
    CHECK(atomic_load(&cache->budget.used) == cache->fixed_bytes); // a reader or a fill is left
    CHECK(atomic_load(&cache->budget.streams) == 0);
    index_fini(&cache->index);
    eviction_fini(&cache->eviction);
    pthread_mutex_destroy(&cache->whole);
    free(cache);
}

void cache_stats(struct cache *cache, struct cache_stats *stats) {
    *stats = (struct cache_stats){.objects = atomic_load_explicit(&cache->objects, memory_order_relaxed),
            .bytes = atomic_load_explicit(&cache->budget.used, memory_order_relaxed),
            .stream_bytes = atomic_load_explicit(&cache->budget.streams, memory_order_relaxed),
            .limit_bytes = atomic_load_explicit(&cache->budget.limit, memory_order_relaxed),
            .fills = atomic_load_explicit(&cache->fills, memory_order_relaxed),
            .evictions = atomic_load_explicit(&cache->evictions, memory_order_relaxed)};
}

// ---- looking up ----

struct search {
    struct cache *cache;
    const struct cache_query *query;
    struct cache_request request;
    struct entry_name name;
    struct shard *shard;
    struct cache_reader *reader;
    const char *reason;
    struct cache_object *found; // to be read, joined or confirmed
    bool is_unavailable;        // only-if-cached, and nothing usable
    bool is_alone; // a fill of this request would be of no use to others before its head is there
};

static struct cache_object *find_stored(const struct search *search, const struct entry *entry) {
    for (struct cache_object *object = entry->stored; object; object = object->sibling)
        if (vary_matches(object->head->vary, object->head->selectors, search->query->head))
            return object;
    return NULL;
}

static bool is_usable(struct search *search, const struct cache_object *object) {
    return freshness_usable(
            &object->head->freshness, &search->request.control, search->query->now_s, &search->reason);
}

// One whose head is there and that may be read from its beginning.
static struct cache_object *find_arriving(struct search *search, const struct entry *entry) {
    for (struct cache_object *object = entry->arriving; object; object = object->sibling) {
        if (object_phase(object) != PHASE_ARRIVING)
            continue;
        if (vary_matches(object->head->vary, object->head->selectors, search->query->head) &&
                is_usable(search, object))
            return object;
    }
    return NULL;
}

// One without a head, whose request would select the same variant as far as the URL's Vary is known.
static struct cache_object *find_pending(const struct search *search, const struct entry *entry) {
    struct view names = entry->stored ? entry->stored->head->vary : (struct view){"", 0};
    char text[VARY_SELECTORS_BYTES];
    struct view selectors;
    if (!vary_select(names, search->query->head, text, &selectors))
        return NULL;
    for (struct cache_object *object = entry->arriving; object; object = object->sibling)
        if (object_phase(object) == PHASE_PENDING && !object->fill->alone &&
                vary_matches(names, selectors, &object->fill->request->http))
            return object;
    return NULL;
}

static enum lookup say(struct search *search, enum lookup lookup, const char *reason) {
    search->reason = reason;
    return lookup;
}

// Without anything usable: whose answer to wait for, or what to ask the origin.
static enum lookup decide_fetch(struct search *search, struct entry *entry, struct cache_object *stale) {
    const struct cache_request *request = &search->request;
    const char *why = stale ? search->reason : entry && entry->stored ? "variant" : "absent";
    if (request->control.only_if_cached) {
        search->is_unavailable = true;
        return say(search, LOOKUP_PASS, "only-if-cached");
    }
    if (!request->is_get)
        return say(search, LOOKUP_PASS, "head");
    if (request->has_range)
        return say(search, LOOKUP_PASS, "range");
    enum marker marker = entry ? index_marker(search->shard, entry, search->query->now_s) : MARKER_NONE;
    if (marker == MARKER_PASS)
        return say(search, LOOKUP_PASS, "marked");
    search->is_alone = request->has_authorization || (request->has_condition && !stale);
    if (entry && marker == MARKER_NONE && !search->is_alone && (search->found = find_pending(search, entry)))
        return say(search, LOOKUP_JOIN, "arriving");
    search->found = stale && policy_has_validator(&stale->head->http) ? stale : NULL;
    if (search->found)
        return say(search, LOOKUP_STALE, why);
    search->is_alone |= request->has_condition;
    return say(search, LOOKUP_MISS, why);
}

static enum lookup decide(struct search *search, struct entry *entry) {
    const struct cache_request *request = &search->request;
    struct cache_object *stored = entry ? find_stored(search, entry) : NULL;
    // A range needs the whole; one is stored an instant before it is whole.
    if (stored && is_usable(search, stored) && (!request->has_range || object_phase(stored) == PHASE_WHOLE)) {
        search->found = stored;
        return LOOKUP_HIT;
    }
    const char *why_not = search->reason;
    if (entry && !request->has_range && (search->found = find_arriving(search, entry)))
        return say(search, LOOKUP_JOIN, "arriving");
    search->reason = why_not;
    return decide_fetch(search, entry, stored);
}

// What a MISS or STALE puts into the index; made before the lock is taken again.
struct spare {
    struct cache_fill *fill;
    struct entry *entry;
};

static void put_into_index(struct search *search, struct entry *entry, struct spare *spare) {
    struct cache_object *object = spare->fill->object;
    if (!entry) {
        entry = spare->entry;
        spare->entry = NULL;
        index_add(search->shard, entry);
        budget_charge(search->cache, memory_cost(entry->bytes));
    }
    object->key = search->name.key;
    object->entry = entry;
    object->place = PLACE_ARRIVING;
    object->sibling = entry->arriving;
    entry->arriving = object;
    spare->fill->alone = search->is_alone;
}

static void attach_hit(struct search *search) {
    eviction_hit(&search->found->node);
    object_attach(search->found, search->reader, ROLE_HIT);
}

// One pass with the lock held. False when a fill is needed and there is none to spare yet.
static bool try_lookup(
        struct search *search, struct spare *spare, struct cache_fill **fill, enum lookup *lookup) {
    struct entry *entry = index_find(search->shard, &search->name);
    search->found = NULL;
    *lookup = decide(search, entry);
    switch (*lookup) {
    case LOOKUP_HIT:
        attach_hit(search);
        return true;
    case LOOKUP_JOIN: // with a head that was looked at, or to wait for it
        object_attach(search->found, search->reader,
                object_phase(search->found) == PHASE_PENDING ? ROLE_JOINED : ROLE_HIT);
        return true;
    case LOOKUP_PASS:
        return true;
    case LOOKUP_STALE:
    case LOOKUP_MISS:
        if (!spare->fill)
            return false;
        if (search->found)
            spare->fill->base = object_get(search->found);
        put_into_index(search, entry, spare);
        *fill = spare->fill;
        spare->fill = NULL;
        return true;
    }
    UNREACHABLE("a lookup");
}

static void make_spare(struct search *search, struct spare *spare) {
    spare->fill = fill_new(search->cache, search->query->head, NULL);
    spare->entry = index_entry_new(&search->name);
}

static void begin_stream(
        struct cache *cache, struct cache_reader *reader, struct cache_fill **fill, const char *reason) {
    *fill = fill_new(cache, NULL, reason);
    object_attach((*fill)->object, reader, ROLE_OWN);
}

static enum lookup search_index(struct search *search, struct cache_fill **fill) {
    struct spare spare = {NULL, NULL};
    enum lookup lookup;
    pthread_mutex_lock(&search->shard->lock);
    while (!try_lookup(search, &spare, fill, &lookup)) {
        pthread_mutex_unlock(&search->shard->lock);
        make_spare(search, &spare);
        pthread_mutex_lock(&search->shard->lock);
    }
    pthread_mutex_unlock(&search->shard->lock);
    if (spare.fill)
        fill_free(spare.fill);
    free(spare.entry);
    return lookup;
}

static void finish_lookup(struct search *search, enum lookup lookup, struct cache_fill **fill) {
    if (lookup == LOOKUP_PASS && !search->is_unavailable)
        begin_stream(search->cache, search->reader, fill, search->reason);
    if (lookup == LOOKUP_STALE)
        fill_write_validators(*fill);
    if (lookup == LOOKUP_STALE || lookup == LOOKUP_MISS) {
        object_attach((*fill)->object, search->reader, ROLE_OWN);
        budget_settle(search->cache);
    }
}

static struct entry_name name_of(struct cache *cache, const struct cache_query *query) {
    return (struct entry_name){
            .key = key_of(cache->index.seed, &query->destination, query->authority, query->path),
            .destination = &query->destination,
            .authority = query->authority,
            .path = query->path};
}

enum lookup cache_lookup(struct cache *cache, const struct cache_query *query, struct cache_reader *reader,
        struct cache_fill **fill, const char **reason) {
    CHECK(!reader->object && reader->wake);
    *fill = NULL;
    struct search search = {.cache = cache, .query = query, .reader = reader, .reason = "absent"};
    bool is_on = atomic_load_explicit(&cache->budget.limit, memory_order_relaxed) > 0;
    if (!policy_read_request(query->head, query->store_allowed && is_on, &search.request, reason)) {
        begin_stream(cache, reader, fill, *reason);
        return LOOKUP_PASS;
    }
    search.name = name_of(cache, query);
    search.shard = index_shard(&cache->index, search.name.key);
    enum lookup lookup = search_index(&search, fill);
    finish_lookup(&search, lookup, fill);
    *reason = search.reason;
    return lookup;
}

void cache_stream(struct cache *cache, struct cache_reader *reader, struct cache_fill **fill) {
    cache_reader_detach(reader);
    begin_stream(cache, reader, fill, "alone");
}

// ---- dropping ----

// Everything in the entry, which may be freed by it; running fills will not be stored. Returns how many stood
// there. The shard's lock is held.
static unsigned empty(
        struct cache *cache, struct shard *shard, struct entry *entry, struct cache_object **dropped) {
    unsigned count = 0;
    while (entry->stored) {
        store_unlink(cache, entry->stored, dropped);
        count++;
    }
    while (entry->arriving) {
        atomic_store_explicit(&entry->arriving->doomed, true, memory_order_relaxed);
        store_unlink(cache, entry->arriving, dropped);
    }
    index_mark(shard, entry, MARKER_NONE, 0);
    store_release(cache, shard, entry);
    return count;
}

struct target {
    const struct view *authority, *path; // NULL: any
};

static bool is_target(const struct entry *entry, const struct target *target) {
    return (!target->authority || view_equal(entry->authority, *target->authority)) &&
           (!target->path || view_equal(entry->path, *target->path));
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

unsigned cache_purge_url(struct cache *cache, struct view authority, struct view path) {
    return purge(cache, &(struct target){&authority, &path});
}

unsigned cache_purge_host(struct cache *cache, struct view authority) {
    return purge(cache, &(struct target){&authority, NULL});
}

unsigned cache_purge_all(struct cache *cache) {
    return purge(cache, &(struct target){NULL, NULL});
}

void cache_invalidate(struct cache *cache, const struct cache_query *query) {
    struct entry_name name = name_of(cache, query);
    struct shard *shard = index_shard(&cache->index, name.key);
    struct cache_object *dropped = NULL;
    pthread_mutex_lock(&shard->lock);
    struct entry *entry = index_find(shard, &name);
    if (entry)
        empty(cache, shard, entry, &dropped);
    pthread_mutex_unlock(&shard->lock);
    store_put_dropped(dropped);
}
