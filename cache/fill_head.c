// The producing side of the façade: a response head arrives, and decides what becomes of the fill.
#include "admin/check.h"
#include "cache/partial.h"
#include "cache/store.h"
#include "cache/tier.h"
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
    if (rules_ignore_no_cache(response->rules, response->head))
        arrival->freshness.no_cache = false;
    if (!request)
        return;
    bool vary_is_known = vary_names(response->head, arrival->vary_text, &arrival->vary) &&
                         vary_select(arrival->vary, request, arrival->selectors_text, &arrival->selectors);
    arrival->verdict =
            policy_storable(request, response, &arrival->control, &arrival->freshness, vary_is_known, limits);
}

static struct stored_head *head_of(const struct arrival *arrival, bool is_stored) {
    const struct cache_response *response = arrival->response;
    struct stored_head_source source = {.head = response->head,
            .date_s = -1,
            .vary = arrival->vary, // also of what is not stored: its holes are asked for, too
            .selectors = arrival->selectors};
    if (is_stored) {
        bool needs_date = !http_field_find(response->head, FIELD_DATE, 0);
        source.control = &arrival->control;
        source.date_s = needs_date ? arrival->freshness.date_s : -1;
    }
    struct stored_head *head = stored_head_new(&source);
    head->freshness = arrival->freshness;
    head->content_length = response->content_length;
    head->has_body = response->has_body;
    return head;
}

// What it holds of a representation; before its head is published.
static void set_extent(struct cache_fill *fill, const struct cache_response *response) {
    struct cache_object *object = fill->object;
    struct content_range given;
    if (response->head->status == 206 && content_range_of(response->head, response->content_length, &given)) {
        object->start = object->floor = given.range.first;
        object->end = given.range.last + 1;
        object->size = given.has_size ? given.size : SIZE_UNKNOWN;
        fill->content_length = (int64_t)object->end;
    } else if (response->head->status == 200 && response->has_body && response->content_length >= 0) {
        object->size = (uint64_t)response->content_length;
    }
}

static void publish_head(
        struct cache_fill *fill, struct stored_head *head, const char *reason, bool is_refused) {
    struct cache_object *object = fill->object;
    pthread_mutex_lock(&object->lock);
    object->head = head;
    object->reason = reason;
    for (struct cache_reader *reader = object->readers; reader; reader = reader->next)
        reader->offset = object->start;
    object->refused |= is_refused;
    object->streaming |= is_refused;
    object->frees = object->body->is_stream && !fill->is_resuming; // else by the readers of its owner
    object->is_paced = object->frees || (object->streaming && body_can_ask(object->body));
    atomic_store_explicit(&object->phase, PHASE_ARRIVING, memory_order_release);
    object_wake_readers(object);
    pthread_mutex_unlock(&object->lock);
}

static void begin_flow(struct cache_fill *fill) {
    struct cache_object *object = fill->object;
    uint64_t end = fill->content_length < 0 ? BODY_SIZE_UNKNOWN : (uint64_t)fill->content_length;
    bool is_whole = !fill->is_resuming && !object->end && fill->content_length >= 0;
    if (is_whole)
        body_set_size(object->body, (uint64_t)fill->content_length);
    if (!fill->flow.is_running)
        body_begin(object->body, &fill->flow, object->start, end);
    body_confirm(object->body, &fill->flow);
}

static enum fill_kind begin_stream(struct cache_fill *fill, const struct arrival *arrival) {
    struct cache_object *object = fill->object;
    struct stored_head *head = head_of(arrival, false);
    object_charge(object, memory_cost(head->bytes), fill->request == NULL);
    // The body of what is stored stays as it is, when a part of it came with a head that may not be stored.
    if (atomic_load_explicit(&object->body->references, memory_order_acquire) == 1)
        body_become_stream(object->body);
    begin_flow(fill);
    publish_head(fill, head, arrival->verdict.reason, true);
    return FILL_STREAM;
}

static void mark(struct cache_fill *fill, enum marker marker) {
    struct cache *cache = fill->cache;
    struct shard *shard = index_shard(&cache->index, fill->object->key);
    pthread_mutex_lock(&shard->lock);
    if (fill->object->entry)
        budget_give(cache, index_mark(shard, fill->object->entry, marker, fill->now.steady_s));
    pthread_mutex_unlock(&shard->lock);
}

// A new response that may not be stored: what it replaces is out of date for good. An error tells nothing of
// that, nor does an answer that is for one client alone.
static bool is_outdating(const struct arrival *arrival) {
    int status = arrival->response->head->status;
    return arrival->verdict.is_general && (status < 400 || status == 404 || status == 410);
}

// An error of the origin is for the request that met it: the next one asks again.
static enum marker marker_of(const struct arrival *arrival) {
    bool is_lasting = arrival->verdict.is_general && !policy_is_trouble(arrival->response->head->status);
    return is_lasting ? MARKER_ALONE : MARKER_NONE;
}

static enum fill_kind refuse(struct cache_fill *fill, const struct arrival *arrival) {
    fill_leave_index(fill, marker_of(arrival), is_outdating(arrival));
    return begin_stream(fill, arrival);
}

// A head's too much, while something is being written and will make room.
static bool take_room(struct cache *cache, uint64_t bytes) {
    if (budget_take(cache, bytes))
        return true;
    if (!tier_is_writing(cache))
        return budget_take(cache, bytes);
    budget_charge(cache, bytes);
    return true;
}

static enum fill_kind begin_storing(struct cache_fill *fill, struct arrival *arrival) {
    struct cache_object *object = fill->object;
    struct stored_head *head = head_of(arrival, true);
    if (!fill->is_resuming)
        object->body->fingerprint = object->key.low;
    if (!take_room(fill->cache, memory_cost(head->bytes))) {
        free(head);
        arrival->verdict = (struct policy_verdict){false, false, "no-room"};
        return refuse(fill, arrival);
    }
    object->charged += memory_cost(head->bytes);
    bool is_shared = !head->freshness.no_cache && head->freshness.lifetime_s > head->freshness.initial_age_s;
    mark(fill, is_shared ? MARKER_NONE : MARKER_ALONE);
    struct shard *shard = index_shard(&fill->cache->index, object->key);
    pthread_mutex_lock(&shard->lock);
    struct body *before = partial_choose_body(fill, head);
    begin_flow(fill);
    publish_head(fill, head, arrival->verdict.reason, false);
    pthread_mutex_unlock(&shard->lock);
    if (before)
        body_put(before);
    return FILL_STORE;
}

// ---- a 304 ----

static bool has_range(const struct cache_fill *fill) {
    return fill->request && http_field_find(&fill->request->http, FIELD_RANGE, 0);
}

// Others may be looking at the fill in the index: whether it asks what they would ask.
static struct cache_object *change_question(struct cache_fill *fill, bool is_of_range) {
    struct shard *shard = index_shard(&fill->cache->index, fill->object->key);
    pthread_mutex_lock(&shard->lock);
    struct cache_object *resumed = fill->resumed;
    fill->resumed = NULL;
    fill->asks_range = is_of_range;
    fill->asks_whole &= !is_of_range;
    pthread_mutex_unlock(&shard->lock);
    return resumed;
}

// The validators and the range were not what the origin answered to: once more, without.
static enum fill_kind ask_again(struct cache_fill *fill, const char **reason) {
    bool is_of_range = fill->resumed && has_range(fill);
    fill_drop_bases(fill);
    fill_end_flow(fill);
    struct cache_object *resumed = change_question(fill, is_of_range);
    if (resumed)
        object_put(resumed);
    free(fill->validators);
    fill->validators = NULL;
    fill->validators_length = 0;
    if (is_of_range)
        fill_write_own_range(fill);
    return *reason = "validator-differs", FILL_AGAIN;
}

// Which of those asked about it confirms; NULL: none, or it cannot be told.
static struct cache_object *choose(const struct cache_fill *fill, const struct http_head *not_modified) {
    const struct stored_head *heads[INDEX_VARIANTS_MAX];
    for (unsigned i = 0; i < fill->base_count; i++)
        heads[i] = fill->bases[i]->head;
    int chosen = update_choose(heads, fill->base_count, not_modified);
    return chosen < 0 ? NULL : fill->bases[chosen];
}

struct freshening {
    struct cache_object *base;
    const struct cache_response *response; // whose fields are new
    const struct http_head *request;
    struct policy_verdict verdict; // on what comes of it
};

// The stored body under a head of its own.
static struct cache_object *freshen(struct cache *cache, struct freshening *freshening) {
    struct cache_object *base = freshening->base, *object = object_new(cache, false);
    struct cache_response confirmed = *freshening->response;
    struct http_head merged;
    struct arrival arrival;
    update_merge(&merged, &base->head->http, freshening->response->head);
    confirmed.head = &merged;
    confirmed.has_body = base->head->has_body;
    confirmed.content_length = confirmed.has_body ? (int64_t)base->size : base->head->content_length;
    struct policy_limits limits = store_limits(cache);
    read_arrival(&arrival, &confirmed, freshening->request, &limits);
    if (!update_fits(&merged, &base->head->http))
        arrival.verdict = (struct policy_verdict){false, true, "too-large"};
    freshening->verdict = arrival.verdict;
    object->refused = !arrival.verdict.is_storable; // good for the one who asked
    object->key = base->key;
    object->head = head_of(&arrival, true);
    object_take_body(object, base);
    object->reason = "confirmed";
    object_charge(object, memory_cost(object->head->bytes), false);
    fill_count_node(object, 0);
    atomic_store_explicit(&object->phase, PHASE_WHOLE, memory_order_release);
    free(merged.fields);
    return object;
}

// The object takes the place of the one it confirms; that one stays when it is another variant, or one that
// others may have, confirmed for this request alone. The shard's lock is held.
static void replace_base(struct cache *cache, struct entry *entry, const struct freshening *freshening,
        struct cache_object *object, struct cache_object **dropped) {
    const struct cache_object *base = freshening->base;
    bool is_same = vary_matches(base->head->vary, base->head->selectors, freshening->request);
    bool is_storable = freshening->verdict.is_storable;
    if (base->entry == entry && (is_storable ? is_same : freshening->verdict.is_general)) {
        if (is_storable)
            object_take_record(object, base);
        store_unlink(cache, freshening->base, is_storable ? object->body : NULL, dropped);
    }
    if (is_storable)
        store_insert(cache, entry, object, freshening->request, dropped);
}

static void replace_confirmed(
        struct cache_fill *fill, const struct freshening *freshening, struct cache_object *object) {
    struct cache *cache = fill->cache;
    struct cache_object *dropped = NULL;
    struct shard *shard = index_shard(&cache->index, object->key);
    pthread_mutex_lock(&shard->lock);
    struct entry *entry = fill->object->entry;
    if (entry) { // else it was purged meanwhile
        store_unlink(cache, fill->object, NULL, &dropped);
        replace_base(cache, entry, freshening, object, &dropped);
        index_mark(shard, entry, MARKER_NONE, fill->now.steady_s);
        store_release(cache, shard, entry);
    }
    pthread_mutex_unlock(&shard->lock);
    store_put_dropped(dropped);
}

static enum fill_kind confirm(
        struct cache_fill *fill, const struct cache_response *response, const char **reason) {
    struct freshening freshening = {
            .base = choose(fill, response->head), .response = response, .request = &fill->request->http};
    if (!freshening.base)
        return ask_again(fill, reason);
    struct cache_object *object = freshen(fill->cache, &freshening);
    replace_confirmed(fill, &freshening, object);
    if (freshening.verdict.is_storable)
        tier_stored(object, freshening.base);
    fill_pass_on(fill, object, object->reason);
    object_put(object);
    budget_settle(fill->cache);
    return *reason = "confirmed", FILL_NOT_MODIFIED;
}

// ---- the answer to a HEAD ----

#define HEADS_MAX INDEX_VARIANTS_MAX

static unsigned collect(struct shard *shard, const struct entry_name *name, const struct http_head *request,
        struct cache_object *objects[static HEADS_MAX]) {
    unsigned count = 0;
    pthread_mutex_lock(&shard->lock);
    struct entry *entry = index_find(shard, name);
    for (struct cache_object *object = entry ? entry->stored : NULL; object && count < HEADS_MAX;
            object = object->sibling)
        if (object_phase(object) == PHASE_WHOLE && vary_rank(object->head->vary, object->head->selectors,
                                                           request, &object->head->http) != VARY_OTHER)
            objects[count++] = object_get(object);
    pthread_mutex_unlock(&shard->lock);
    return count;
}

static void freshen_by_head(struct cache *cache, struct freshening *freshening) {
    struct cache_object *object = freshen(cache, freshening), *dropped = NULL;
    struct shard *shard = index_shard(&cache->index, object->key);
    pthread_mutex_lock(&shard->lock);
    struct entry *entry = freshening->base->entry;
    if (entry) {
        replace_base(cache, entry, freshening, object, &dropped);
        store_release(cache, shard, entry);
    }
    pthread_mutex_unlock(&shard->lock);
    store_put_dropped(dropped);
    if (freshening->verdict.is_storable)
        tier_stored(object, freshening->base);
    object_put(object);
}

void cache_update_by_head(
        struct cache *cache, const struct cache_query *query, const struct cache_response *response) {
    struct cache_object *objects[HEADS_MAX];
    struct entry_name name = store_name(cache, query);
    struct shard *shard = index_shard(&cache->index, name.key);
    struct tier_pins pins;
    tier_look(cache, &name, &query->now, false, NULL, &pins);
    unsigned count = collect(shard, &name, query->head, objects);
    tier_unpin(&pins);
    struct cache_control asked;
    cache_control_parse(query->head, &asked);
    for (unsigned i = 0; i < count; i++) {
        struct freshening freshening = {.base = objects[i], .response = response, .request = query->head};
        int64_t length = objects[i]->head->has_body ? (int64_t)objects[i]->size : -1;
        switch (update_by_head(&objects[i]->head->http, length, response->head)) {
        case UPDATE_BY_HEAD_NOTHING:
            break;
        case UPDATE_BY_HEAD_FRESHENS:
            if (!asked.no_store) // of such a request's response nothing is kept [RFC 9111 §5.2.1.5]
                freshen_by_head(cache, &freshening);
            break;
        case UPDATE_BY_HEAD_STALE:
            if (!atomic_exchange(&objects[i]->contradicted, true))
                tier_contradicted(objects[i]);
            break;
        }
        object_put(objects[i]);
    }
    budget_settle(cache);
}

// ---- the answer to a POST ----

static bool enter_index(struct cache_fill *fill) {
    struct cache *cache = fill->cache;
    struct cache_object *object = fill->object;
    struct entry *spare = fill->spare;
    struct entry_name name = {spare->key, &spare->destination, spare->authority, spare->path};
    struct shard *shard = index_shard(&cache->index, name.key);
    pthread_mutex_lock(&shard->lock);
    struct entry *entry = index_find(shard, &name);
    if (!entry) {
        entry = spare;
        fill->spare = NULL;
        index_add(shard, entry);
        budget_charge(cache, memory_cost(entry->bytes));
    }
    object->entry = entry;
    object->place = PLACE_ARRIVING;
    object->sibling = entry->arriving;
    entry->arriving = object;
    pthread_mutex_unlock(&shard->lock);
    return true;
}

// Only of a 2xx does Content-Location say that the content is what the target is now [RFC 9110 §8.7].
static bool is_for_get(const struct cache_fill *fill, const struct arrival *arrival) {
    const struct http_head *head = arrival->response->head;
    return head->status / 100 == 2 &&
           policy_post(head, &arrival->freshness, fill->spare->authority, fill->spare->path);
}

static enum fill_kind begin(struct cache_fill *fill, struct arrival *arrival) {
    const struct http_head *head = arrival->response->head;
    if (fill->spare && !(arrival->verdict.is_storable && is_for_get(fill, arrival)))
        arrival->verdict = (struct policy_verdict){false, false, fill->pass_reason};
    if (!fill->request || (fill->spare && !arrival->verdict.is_storable)) {
        arrival->verdict.reason = fill->pass_reason;
        return begin_stream(fill, arrival);
    }
    if (atomic_load_explicit(&fill->object->doomed, memory_order_relaxed))
        arrival->verdict = (struct policy_verdict){false, false, "purged"};
    else if (fill->selected && policy_keeps_stored(head->status, &arrival->freshness))
        arrival->verdict = (struct policy_verdict){false, false, "trouble"};
    if (!arrival->verdict.is_storable)
        return refuse(fill, arrival);
    if (fill->spare)
        enter_index(fill);
    return begin_storing(fill, arrival);
}

// ---- a part ----

// A date alone does not tell variants apart: the rest must be selected as the beginning was.
static bool is_of_variant(const struct cache_fill *fill, const struct http_head *head) {
    char names_text[VARY_NAMES_BYTES], selectors_text[VARY_SELECTORS_BYTES];
    const struct stored_head *stored = fill->resumed->head;
    struct view names, selectors;
    return vary_names(head, names_text, &names) &&
           vary_select(names, &fill->request->http, selectors_text, &selectors) &&
           view_equal(names, stored->vary) && view_equal(selectors, stored->selectors);
}

// Whether the 206 is the rest that was asked for, of what its beginning is stored of.
static bool is_rest(const struct cache_fill *fill, const struct cache_response *response) {
    const struct cache_object *resumed = fill->resumed;
    struct content_range given;
    // Without a length of the message's own, nothing says before its end that it keeps to what it has
    // announced: what is stored must not have any of it by then.
    return fill->is_counted && content_range_of(response->head, response->content_length, &given) &&
           given.has_size && given.size == resumed->size && given.range.first == fill->hole.first &&
           given.range.last == fill->hole.last && partial_is_same(&resumed->head->http, response->head) &&
           is_of_variant(fill, response->head);
}

// A whole, a part of which arrives, the rest being there already or asked for by others [RFC 9111 §3.4].
static enum fill_kind resume(
        struct cache_fill *fill, const struct cache_response *response, const char **reason) {
    struct cache_object *object = fill->object;
    const struct cache_object *resumed = fill->resumed;
    struct cache_response whole = *response;
    struct http_head base = resumed->head->http, merged;
    struct arrival arrival;
    struct policy_limits limits = store_limits(fill->cache);
    // A part that has lost some of it to the eviction while it is read: judged as what it is a part of.
    if (base.status == 206)
        partial_read_head(&base, &resumed->head->http);
    update_merge(&merged, &base, response->head);
    if (resumed->head->http.status == 206)
        free(base.fields);
    whole.head = &merged;
    whole.content_length = (int64_t)resumed->size;
    fill->content_length = (int64_t)fill->hole.last + 1;
    read_arrival(&arrival, &whole, &fill->request->http, &limits);
    if (!update_fits(&merged, &resumed->head->http))
        arrival.verdict = (struct policy_verdict){false, true, "too-large"};
    object->size = resumed->size;
    fill_share_body(fill, resumed->body);
    fill->is_pending_hole = false;
    fill->is_resuming = true;
    enum fill_kind kind = begin(fill, &arrival);
    free(merged.fields);
    return *reason = arrival.verdict.reason, kind;
}

// Judged as the whole that it is a part of. What is not a part by its Content-Range, or was not asked for, is
// passed on as it came.
static void read_part(
        struct arrival *arrival, struct cache_fill *fill, const struct cache_response *response) {
    struct policy_limits limits = store_limits(fill->cache);
    struct content_range given;
    struct cache_response whole = *response;
    struct http_head head;
    bool is_part =
            content_range_of(response->head, response->content_length, &given) && given.has_size &&
            given.size <= INT64_MAX && fill->request && fill->asks_range &&
            range_judge(&fill->request->http, response->head, response->content_length) != RANGE_ANSWER_BAD;
    if (!is_part) {
        read_arrival(arrival, response, NULL, &limits);
        arrival->verdict = (struct policy_verdict){false, false, "partial"};
        return;
    }
    partial_read_head(&head, response->head);
    whole.head = &head;
    whole.content_length = (int64_t)given.size;
    read_arrival(arrival, &whole, &fill->request->http, &limits);
    arrival->response = response;
    free(head.fields);
}

// The origin gives the whole, of the same representation, though it was asked for a part: it does not answer
// ranges, whatever it says.
static bool is_whole_again(const struct cache_fill *fill, const struct cache_response *response) {
    return fill->resumed && response->head->status == 200 && fill->is_counted &&
           response->content_length == (int64_t)fill->resumed->size &&
           partial_is_same(&fill->resumed->head->http, response->head) && is_of_variant(fill, response->head);
}

// Its bytes fill every hole as they come; what waits elsewhere waits for them.
static enum fill_kind take_whole(
        struct cache_fill *fill, const struct cache_response *response, const char **reason) {
    struct cache_object *object = fill->object;
    struct cache_response whole = *response;
    struct policy_limits limits = store_limits(fill->cache);
    struct arrival arrival;
    body_never_ask(fill->resumed->body);
    fill_end_flow(fill);
    object->size = fill->resumed->size;
    fill_share_body(fill, fill->resumed->body);
    fill->is_resuming = fill->is_whole_again = true;
    read_arrival(&arrival, &whole, &fill->request->http, &limits);
    enum fill_kind kind = begin(fill, &arrival);
    return *reason = arrival.verdict.reason, kind;
}

// What was asked for a reader's hole does not fit: the origin has another representation by now, or it is in
// trouble.
static enum fill_kind miss_hole(
        struct cache_fill *fill, const struct cache_response *response, const char **reason) {
    if (is_whole_again(fill, response))
        return take_whole(fill, response, reason);
    if (!freshness_status_is_error(response->head->status) &&
            !atomic_exchange(&fill->resumed->contradicted, true))
        tier_contradicted(fill->resumed);
    fill_end_flow(fill);
    return *reason = "validator-differs", FILL_STALE;
}

// ---- any ----

enum fill_kind cache_fill_head(
        struct cache_fill *fill, const struct cache_response *response, const char **reason) {
    struct cache_object *object = fill->object;
    int status = response->head->status;
    CHECK(object_phase(object) == PHASE_PENDING && !object->head);
    fill->content_length = response->has_body ? response->content_length : 0;
    fill->is_counted = response->has_body && response->content_length >= 0;
    fill->now = response->response_at;
    if (fill->base_count && status == 304)
        return confirm(fill, response, reason);
    if (!fill->is_hole && freshness_status_is_error(status) &&
            fill_stand_in(fill, FRESHNESS_ERROR, fill->now)) {
        return *reason = object->reason, FILL_STALE;
    }
    bool is_asked = fill->resumed || fill->base_count;
    if (fill->resumed && status == 206 && is_rest(fill, response))
        return resume(fill, response, reason);
    if (!fill->is_hole &&
            ((is_asked && status == 206) || (fill->resumed && (status == 304 || status == 416 ||
                                                                      (status == 200 && has_range(fill))))))
        return ask_again(fill, reason);
    if (fill->is_hole)
        return miss_hole(fill, response, reason);
    fill_end_flow(fill); // of a hole that this does not fill
    struct arrival arrival = {.verdict = {false, false, fill->pass_reason}};
    struct policy_limits limits = store_limits(fill->cache);
    set_extent(fill, response);
    if (status == 206)
        read_part(&arrival, fill, response);
    else
        read_arrival(&arrival, response, fill->request ? &fill->request->http : NULL, &limits);
    if (status == 416 && fill->asks_range) // of this range alone
        arrival.verdict = (struct policy_verdict){false, false, "unsatisfiable"};
    enum fill_kind kind = begin(fill, &arrival);
    return *reason = arrival.verdict.reason, kind;
}
