// Looking up: what a request may have, and what the origin must be asked for.
#include "admin/check.h"
#include "cache/store.h"
#include "cache/vary.h"

#include <stdlib.h>

struct search {
    struct cache *cache;
    const struct cache_query *query;
    struct cache_request request;
    struct entry_name name;
    struct shard *shard;
    struct cache_reader *reader;
    const char *reason;
    struct cache_object *found; // to be read, joined or confirmed
    enum reader_role role;      // of who reads or joins it
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
            &object->head->freshness, &search->request.control, search->query->now, &search->reason);
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
    enum marker marker =
            entry ? index_marker(search->shard, entry, search->query->now.steady_s) : MARKER_NONE;
    if (marker == MARKER_PASS)
        return say(search, LOOKUP_PASS, "marked");
    struct cache_object *base = stale && policy_has_validator(&stale->head->http) ? stale : NULL;
    search->is_alone = request->has_authorization || (request->has_condition && !base);
    if (entry && marker == MARKER_NONE && !search->is_alone &&
            (search->found = find_pending(search, entry))) {
        search->role = ROLE_JOINED;
        return say(search, LOOKUP_JOIN, "awaited");
    }
    search->found = base;
    return say(search, base ? LOOKUP_STALE : LOOKUP_MISS, why);
}

static enum lookup decide(struct search *search, struct entry *entry) {
    const struct cache_request *request = &search->request;
    struct cache_object *stored = entry ? find_stored(search, entry) : NULL;
    // A range needs the whole; one is stored an instant before it is whole.
    if (stored && is_usable(search, stored) && (!request->has_range || object_phase(stored) == PHASE_WHOLE)) {
        search->found = stored;
        search->role = ROLE_HIT;
        return LOOKUP_HIT;
    }
    const char *why_not = search->reason;
    if (entry && !request->has_range && (search->found = find_arriving(search, entry))) {
        search->role = ROLE_HIT;
        return say(search, LOOKUP_JOIN, "arriving");
    }
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

// One pass with the lock held. False when a fill is needed and there is none to spare yet.
static bool try_lookup(
        struct search *search, struct spare *spare, struct cache_fill **fill, enum lookup *lookup) {
    struct entry *entry = index_find(search->shard, &search->name);
    search->found = NULL;
    *lookup = decide(search, entry);
    switch (*lookup) {
    case LOOKUP_HIT:
        eviction_hit(&search->found->node);
        object_attach(search->found, search->reader, search->role);
        return true;
    case LOOKUP_JOIN:
        object_attach(search->found, search->reader, search->role);
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
    if (spare.fill) {
        spare.fill->object->fill = NULL;
        fill_free(spare.fill);
    }
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
    search.name = store_name(cache, query);
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

// ---- without effects ----

static void preview_decision(struct search *search, struct lookup_preview *preview) {
    pthread_mutex_lock(&search->shard->lock);
    preview->lookup = decide(search, index_find(search->shard, &search->name));
    if (search->found)
        preview->found = object_get(search->found);
    pthread_mutex_unlock(&search->shard->lock);
    preview->is_unavailable = search->is_unavailable;
    if (preview->lookup != LOOKUP_STALE)
        return;
    preview->fill->base = object_get(preview->found);
    fill_write_validators(preview->fill);
}

void lookup_preview(struct cache *cache, const struct cache_query *query, struct lookup_preview *preview) {
    struct search search = {.cache = cache, .query = query, .reason = "absent"};
    *preview = (struct lookup_preview){.lookup = LOOKUP_PASS};
    bool is_on = atomic_load_explicit(&cache->budget.limit, memory_order_relaxed) > 0;
    if (!policy_read_request(query->head, query->store_allowed && is_on, &search.request, &preview->reason))
        return;
    search.name = store_name(cache, query);
    search.shard = index_shard(&cache->index, search.name.key);
    preview->fill = fill_new(cache, query->head, NULL);
    preview_decision(&search, preview);
    preview->reason = search.reason;
}

void lookup_preview_end(struct lookup_preview *preview) {
    if (preview->found)
        object_put(preview->found);
    if (preview->fill) {
        preview->fill->object->fill = NULL;
        fill_free(preview->fill);
    }
}
