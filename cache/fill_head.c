// The producing side of the façade: a response head arrives, and decides what becomes of the fill.
#include "admin/check.h"
#include "cache/store.h"
#include "cache/update.h"
#include "cache/vary.h"

#include <stdlib.h>

struct arrival { // a response head on its way into the object
    const struct cache_response *response;
    struct cache_control control;
    struct freshness freshness;
    char vary_text[VARY_NAMES_BYTES], selectors_text[VARY_SELECTORS_BYTES];
    struct view vary, selectors;
    struct policy_verdict verdict;
};

// `request`: NULL for what is not to be stored anyway.
static void read_arrival(struct arrival *arrival, const struct cache_response *response,
        const struct http_head *request, const struct policy_limits *limits) {
    arrival->response = response;
    arrival->vary = arrival->selectors = (struct view){"", 0};
    cache_control_parse(response->head, &arrival->control);
    freshness_of(&arrival->freshness, response->head, &arrival->control, response->request_at,
            response->response_at);
    if (!request)
        return;
    bool vary_is_known = vary_names(response->head, arrival->vary_text, &arrival->vary) &&
                         vary_select(arrival->vary, request, arrival->selectors_text, &arrival->selectors);
    arrival->verdict =
            policy_storable(request, response, &arrival->control, &arrival->freshness, vary_is_known, limits);
}

static size_t inline_bytes(const struct cache_response *response) {
    bool fits = response->has_body && response->content_length > 0 &&
                response->content_length <= BLOCK_INLINE_BYTES;
    return fits ? sizeof(struct block) + (size_t)response->content_length : 0;
}

static struct stored_head *head_of(const struct arrival *arrival, bool is_stored, size_t tail_bytes) {
    const struct cache_response *response = arrival->response;
    struct stored_head_source source = {.head = response->head, .date_s = -1};
    if (is_stored) {
        bool needs_date = !http_field_find(response->head, FIELD_DATE, 0);
        source.control = &arrival->control;
        source.date_s = needs_date ? arrival->freshness.date_s : -1;
        source.vary = arrival->vary;
        source.selectors = arrival->selectors;
        source.tail_bytes = tail_bytes;
    }
    struct stored_head *head = stored_head_new(&source);
    head->freshness = arrival->freshness;
    head->content_length = response->content_length;
    head->has_body = response->has_body;
    return head;
}

// A small body's room, right behind its head.
static struct block *inline_block(struct stored_head *head) {
    if (!head->tail_bytes)
        return NULL;
    struct block *block = (struct block *)head->tail;
    *block = (struct block){.size = (uint32_t)(head->tail_bytes - sizeof *block),
            .is_inline = true,
            .data = (char *)(block + 1)};
    return block;
}

static void publish_head(struct cache_object *object, struct stored_head *head, bool is_refused) {
    pthread_mutex_lock(&object->lock);
    object->head = head;
    object->first = object->last = inline_block(head);
    if (is_refused)
        object->refused = object->streaming = true;
    atomic_store_explicit(&object->phase, PHASE_ARRIVING, memory_order_release);
    object_wake_readers(object);
    pthread_mutex_unlock(&object->lock);
}

static enum fill_kind begin_stream(struct cache_fill *fill, const struct arrival *arrival) {
    struct cache_object *object = fill->object;
    struct stored_head *head = head_of(arrival, false, 0);
    object_charge(object, memory_cost(head->bytes), fill->request == NULL);
    publish_head(object, head, true);
    return FILL_STREAM;
}

static void mark(struct cache_fill *fill, enum marker marker) {
    struct cache *cache = fill->cache;
    struct shard *shard = index_shard(&cache->index, fill->object->key);
    pthread_mutex_lock(&shard->lock);
    if (fill->object->entry)
        budget_give(cache, index_mark(shard, fill->object->entry, marker, fill->now_s));
    pthread_mutex_unlock(&shard->lock);
}

static enum fill_kind refuse(struct cache_fill *fill, const struct arrival *arrival) {
    bool is_trouble = policy_is_trouble(arrival->response->head->status);
    fill_leave_index(fill, arrival->verdict.is_general ? MARKER_PASS : MARKER_NONE, !is_trouble);
    return begin_stream(fill, arrival);
}

static enum fill_kind begin_storing(struct cache_fill *fill, struct arrival *arrival) {
    struct cache_object *object = fill->object;
    struct stored_head *head = head_of(arrival, true, inline_bytes(arrival->response));
    if (!budget_take(fill->cache, memory_cost(head->bytes))) {
        free(head);
        arrival->verdict = (struct policy_verdict){false, false, "no-room"};
        return refuse(fill, arrival);
    }
    object->charged += memory_cost(head->bytes);
    bool is_shared = !head->freshness.no_cache && head->freshness.lifetime_s > head->freshness.initial_age_s;
    mark(fill, is_shared ? MARKER_NONE : MARKER_ALONE);
    publish_head(object, head, false);
    return FILL_STORE;
}

// ---- a 304 ----

static void publish_successor(struct cache_object *object, struct cache_object *successor) {
    pthread_mutex_lock(&object->lock);
    object->successor = object_get(successor);
    atomic_store_explicit(&object->phase, PHASE_CONFIRMED, memory_order_release);
    object_wake_readers(object);
    pthread_mutex_unlock(&object->lock);
}

// The stored body under a head of its own.
static struct cache_object *freshen(struct cache_fill *fill, const struct arrival *arrival) {
    struct cache_object *base = fill->base, *object = object_new(fill->cache, false);
    struct stored_head *head = head_of(arrival, true, 0);
    object->key = base->key;
    object->head = head;
    object->body = object_get(base->body);
    object->node.bytes = base->body->node.bytes + memory_cost(sizeof *object) + memory_cost(head->bytes);
    object_charge(object, memory_cost(head->bytes), false);
    atomic_store_explicit(&object->phase, PHASE_WHOLE, memory_order_release);
    return object;
}

// The fill leaves the index, and the confirmed object takes the place of the one it confirms.
static void replace_base(struct cache_fill *fill, struct cache_object *object, bool is_storable) {
    struct cache *cache = fill->cache;
    struct cache_object *dropped = NULL;
    struct shard *shard = index_shard(&cache->index, object->key);
    pthread_mutex_lock(&shard->lock);
    struct entry *entry = fill->object->entry;
    if (entry) { // else it was purged meanwhile
        store_unlink(cache, fill->object, &dropped);
        if (fill->base->entry == entry)
            store_unlink(cache, fill->base, &dropped);
        if (is_storable)
            store_insert(cache, entry, object, &dropped);
        index_mark(shard, entry, MARKER_NONE, fill->now_s);
        store_release(cache, shard, entry);
    }
    pthread_mutex_unlock(&shard->lock);
    store_put_dropped(dropped);
}

static enum fill_kind confirm(
        struct cache_fill *fill, const struct cache_response *response, const char **reason) {
    struct cache_object *base = fill->base;
    if (!update_matches(&base->head->http, response->head)) {
        // We asked about one validator alone, so the 304 can only mean that; but its fields are of another
        // response: serve what is stored a last time.
        fill_leave_index(fill, MARKER_NONE, true);
        publish_successor(fill->object, base);
        return *reason = "validator-differs", FILL_NOT_MODIFIED;
    }
    struct http_head merged;
    update_merge(&merged, &base->head->http, response->head);
    struct cache_response confirmed = *response;
    confirmed.head = &merged;
    confirmed.has_body = base->head->has_body;
    confirmed.content_length = confirmed.has_body ? (int64_t)base->body->length : base->head->content_length;
    struct policy_limits limits = store_limits(fill->cache);
    struct arrival arrival;
    read_arrival(&arrival, &confirmed, &fill->request->http, &limits);
    struct cache_object *object = freshen(fill, &arrival);
    replace_base(fill, object, arrival.verdict.is_storable);
    publish_successor(fill->object, object);
    object_put(object);
    free(merged.fields);
    budget_settle(fill->cache);
    return *reason = "confirmed", FILL_NOT_MODIFIED;
}

enum fill_kind cache_fill_head(
        struct cache_fill *fill, const struct cache_response *response, const char **reason) {
    struct cache_object *object = fill->object;
    CHECK(object_phase(object) == PHASE_PENDING && !object->head);
    fill->content_length = response->has_body ? response->content_length : 0;
    fill->now_s = response->response_at.steady_s;
    if (fill->base && response->head->status == 304)
        return confirm(fill, response, reason);
    struct arrival arrival;
    struct policy_limits limits = store_limits(fill->cache);
    read_arrival(&arrival, response, fill->request ? &fill->request->http : NULL, &limits);
    if (!fill->request)
        return *reason = fill->pass_reason, begin_stream(fill, &arrival);
    if (atomic_load_explicit(&object->doomed, memory_order_relaxed))
        arrival.verdict = (struct policy_verdict){false, false, "purged"};
    else if (fill->base && policy_is_trouble(response->head->status))
        arrival.verdict = (struct policy_verdict){false, false, "trouble"};
    enum fill_kind kind =
            arrival.verdict.is_storable ? begin_storing(fill, &arrival) : refuse(fill, &arrival);
    return *reason = arrival.verdict.reason, kind;
}
