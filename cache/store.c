#include "cache/store.h"

#include "admin/check.h"
#include "admin/container.h"
#include "cache/tier.h"
#include "cache/vary.h"

#include <stdlib.h>

// ---- memory ----

void budget_charge(struct cache *cache, uint64_t bytes) {
    atomic_fetch_add_explicit(&cache->budget.used, bytes, memory_order_relaxed);
}

void budget_give(struct cache *cache, uint64_t bytes) {
    uint64_t before = atomic_fetch_sub_explicit(&cache->budget.used, bytes, memory_order_relaxed);
    CHECK(before >= bytes);
}

static struct cache_object *object_of(struct eviction_node *node) {
    return CONTAINER_OF(node, struct cache_object, node);
}

static struct chunk *chunk_of(struct eviction_node *node) {
    return CONTAINER_OF(node, struct chunk, node);
}

// Whether there are chunks that will be evicted one by one, and are of no use without their head: it goes
// last.
static bool has_chunks(const struct body *body) {
    return atomic_load_explicit(&body->is_by_chunks, memory_order_relaxed) && body_can_ask(body) &&
           atomic_load_explicit(&body->chunk_count, memory_order_relaxed) > 0;
}

// What somebody reads stays in memory until it is released: evicting it would free nothing.
static bool claim(struct eviction_node *node) {
    if (node->kind == EVICTION_CHUNK) {
        struct chunk *chunk = chunk_of(node);
        // Without either, it could not come back.
        bool is_loss =
                !body_can_ask(chunk->body) && !atomic_load_explicit(&chunk->is_on_disk, memory_order_relaxed);
        if (is_loss || atomic_load_explicit(&chunk->references, memory_order_relaxed) > 1 ||
                !body_try_get(chunk->body))
            return false;
        chunk_get(chunk);
        return true;
    }
    struct cache_object *object = object_of(node);
    if (atomic_load_explicit(&object->references, memory_order_relaxed) > 1 || has_chunks(object->body))
        return false;
    object_get(object);
    return true;
}

static void evict_chunk(struct chunk *chunk) {
    struct body *body = chunk->body;
    body_evict(body, chunk);
    chunk_put(chunk);
    body_put(body);
}

static void evict_object(struct cache *cache, struct cache_object *object) {
    if (store_evict(cache, object))
        atomic_fetch_add_explicit(&cache->evictions, 1, memory_order_relaxed);
    object_put(object);
}

static bool evict_one(struct cache *cache) {
    struct eviction_node *node = eviction_victim(&cache->eviction, claim);
    if (!node)
        return false;
    switch (node->kind) {
    case EVICTION_CHUNK:
        evict_chunk(chunk_of(node));
        return true;
    case EVICTION_OBJECT:
        evict_object(cache, object_of(node));
        return true;
    }
    UNREACHABLE("a kind of node");
}

static bool is_over(struct cache *cache) {
    return atomic_load_explicit(&cache->budget.used, memory_order_relaxed) >
           atomic_load_explicit(&cache->budget.limit, memory_order_relaxed);
}

// False: nothing more can be evicted.
static bool settle(struct cache *cache) {
    while (is_over(cache))
        if (!evict_one(cache))
            return !is_over(cache);
    return true;
}

void budget_settle(struct cache *cache) {
    (void)settle(cache);
}

// What others count just after there was room is theirs to make room for.
bool budget_take(struct cache *cache, uint64_t bytes) {
    budget_charge(cache, bytes);
    if (settle(cache))
        return true;
    budget_give(cache, bytes);
    return false;
}

// ---- what stands in the index ----

struct policy_limits store_limits(struct cache *cache) {
    return (struct policy_limits){atomic_load_explicit(&cache->minimum_object_bytes, memory_order_relaxed),
            atomic_load_explicit(&cache->maximum_object_bytes, memory_order_relaxed)};
}

struct entry_name store_name(struct cache *cache, const struct cache_query *query) {
    return (struct entry_name){
            .key = key_of(cache->index.seed, &query->destination, query->authority, query->path),
            .destination = &query->destination,
            .authority = query->authority,
            .path = query->path};
}

static struct cache_object **list_of(struct entry *entry, enum place place) {
    return place == PLACE_STORED ? &entry->stored : &entry->arriving;
}

void store_unlink(struct cache *cache, struct cache_object *object, const struct body *kept,
        struct cache_object **dropped) {
    if (object->place == PLACE_NONE)
        return;
    struct cache_object **link = list_of(object->entry, object->place);
    while (*link != object)
        link = &(*link)->sibling;
    *link = object->sibling;
    object->sibling = NULL;
    if (object->place == PLACE_STORED) {
        eviction_remove(&cache->eviction, &object->node);
        atomic_fetch_sub_explicit(&cache->objects, 1, memory_order_relaxed);
        object->is_forgotten = object->body != kept;
        object->sibling = *dropped;
        *dropped = object;
    }
    object->place = PLACE_NONE;
    object->entry = NULL;
}

void store_put_dropped(struct cache_object *dropped) {
    for (struct cache_object *next; dropped; dropped = next) {
        next = dropped->sibling;
        dropped->sibling = NULL;
        if (dropped->is_forgotten)
            tier_forget(dropped);
        object_put(dropped);
    }
}

void store_release(struct cache *cache, struct shard *shard, struct entry *entry) {
    budget_give(cache, index_release(shard, entry));
}

bool store_evict(struct cache *cache, struct cache_object *object) {
    struct cache_object *dropped = NULL;
    struct shard *shard = index_shard(&cache->index, object->key);
    pthread_mutex_lock(&shard->lock);
    if (object->place == PLACE_STORED) {
        struct entry *entry = object->entry;
        store_unlink(cache, object, object->body, &dropped);
        entry->is_loaded = false;
        store_release(cache, shard, entry);
    }
    pthread_mutex_unlock(&shard->lock);
    store_put_dropped(dropped);
    return dropped != NULL;
}

static bool is_outdated(const struct entry *entry, const struct stored_head *head) {
    for (struct cache_object *stored = entry->stored; stored; stored = stored->sibling)
        if (vary_is_same(stored->head, head) &&
                stored->head->freshness.response_at.steady_s > head->freshness.response_at.steady_s)
            return true;
    return false;
}

// What the request would have selected by its fields before: from now on it selects the new one. A response
// without Vary stays, for it may still be the default for others [RFC 9111 §4.1].
static bool is_superseded(
        const struct stored_head *old, const struct stored_head *head, const struct http_head *request) {
    return vary_is_same(old, head) || (old->vary.length && old->freshness.date_s <= head->freshness.date_s &&
                                              vary_matches(old->vary, old->selectors, request));
}

static void drop_superseded(struct cache *cache, struct entry *entry, const struct cache_object *object,
        const struct http_head *request, struct cache_object **dropped) {
    unsigned kept = 0;
    for (struct cache_object *stored = entry->stored, *next; stored; stored = next) {
        next = stored->sibling;
        if (is_superseded(stored->head, object->head, request) || ++kept >= INDEX_VARIANTS_MAX)
            store_unlink(cache, stored, object->body, dropped);
    }
}

bool store_insert(struct cache *cache, struct entry *entry, struct cache_object *object,
        const struct http_head *request, struct cache_object **dropped) {
    CHECK(object->place == PLACE_NONE);
    if (is_outdated(entry, object->head))
        return false;
    drop_superseded(cache, entry, object, request, dropped);
    store_link(cache, entry, object);
    return true;
}

void store_link(struct cache *cache, struct entry *entry, struct cache_object *object) {
    object->entry = entry;
    object->place = PLACE_STORED;
    object->sibling = entry->stored;
    entry->stored = object_get(object);
    object->node.fingerprint = object->key.low;
    eviction_add(&cache->eviction, &object->node);
    atomic_fetch_add_explicit(&cache->objects, 1, memory_order_relaxed);
}
