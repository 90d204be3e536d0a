#include "cache/partial.h"

#include "admin/check.h"
#include "cache/tier.h"
#include "cache/update.h"
#include "cache/vary.h"
#include "http/condition.h"

#include <stdlib.h>
#include <string.h>

static struct view value_of(const struct http_head *head, enum field_id id) {
    const struct http_field *field = http_field_find(head, id, 0);
    return field ? field->value : VIEW("");
}

// ---- what it serves ----

static bool is_within(const struct range_list *ranges, uint64_t first, uint64_t end) {
    for (unsigned i = 0; i < ranges->count; i++)
        if (ranges->all[i].first < first || ranges->all[i].last >= end)
            return false;
    return true;
}

static bool covers(struct body *body, const struct range_list *ranges) {
    for (unsigned i = 0; i < ranges->count; i++)
        if (!body_serves(body, ranges->all[i].first, ranges->all[i].last))
            return false;
    return true;
}

// The ranges that the request would be sent of a representation of this size: of the whole without any.
static void wanted(
        struct range_list *ranges, const struct cache_object *object, const struct cache_query *query) {
    bool is_some = condition_range_applies(query->head, &object->head->http, query->now.wall_s) &&
                   range_of_request(query->head, object->size, ranges) == RANGES_SOME;
    if (!is_some)
        *ranges = (struct range_list){.count = object->size > 0, .all = {{0, object->size - 1}}};
}

// A 206 as it came gives what lies within it, and to those alone who ask for ranges.
static bool part_serves(const struct cache_object *object, const struct cache_query *query) {
    struct range_list ranges;
    return object->size != SIZE_UNKNOWN &&
           condition_range_applies(query->head, &object->head->http, query->now.wall_s) &&
           range_of_request(query->head, object->size, &ranges) == RANGES_SOME &&
           is_within(&ranges, object->start, object->end);
}

bool partial_serves(const struct cache_object *object, const struct cache_query *query) {
    struct range_list ranges;
    if (object->head->http.status == 206)
        return part_serves(object, query);
    if (!object_may_have_holes(object))
        return true;
    wanted(&ranges, object, query);
    return covers(object->body, &ranges);
}

bool partial_will_serve(struct cache_object *object, const struct cache_query *query) {
    const struct stored_head *head = object->head;
    bool is_part = head->http.status == 206;
    struct range_list ranges;
    if (!http_field_find(query->head, FIELD_RANGE, 0))
        return !is_part;
    if (object->size == SIZE_UNKNOWN)
        return false;
    if (!condition_range_applies(query->head, &head->http, query->now.wall_s))
        return !is_part;
    switch (range_of_request(query->head, object->size, &ranges)) {
    case RANGES_NONE:
    case RANGES_UNSATISFIABLE:
        return !is_part;
    case RANGES_SOME:
        return (!is_part || is_within(&ranges, object->start, object->end)) && covers(object->body, &ranges);
    }
    UNREACHABLE("an outcome of ranges");
}

bool partial_find_hole(const struct cache_object *object, const struct cache_query *query, struct flow *flow,
        struct body_hole *hole) {
    struct range_list ranges;
    // One that gave the whole instead is asked again by the next request, though not for those who wait.
    if (!body_was_askable(object->body))
        return false;
    wanted(&ranges, object, query);
    for (unsigned i = 0; i < ranges.count; i++)
        if (body_find_hole(object->body, ranges.all[i].first, ranges.all[i].last, UINT64_MAX, flow, hole))
            return true;
    return false;
}

bool partial_can_ask(struct cache_object *object) {
    return body_can_ask(object->body) ||
           (object_phase(object) == PHASE_WHOLE && !object->is_partial && object->size > 0 &&
                   object->size != SIZE_UNKNOWN && partial_is_provable(object->head));
}

bool partial_wants(
        const struct cache_object *object, const struct cache_query *query, const struct body_hole *hole) {
    struct range_list ranges;
    wanted(&ranges, object, query);
    for (unsigned i = 0; i < ranges.count; i++)
        if (ranges.all[i].first <= hole->last && hole->first <= ranges.all[i].last)
            return true;
    return false;
}

bool partial_is_alike(const struct http_head *a, const struct http_head *b) {
    return http_field_total(a, FIELD_RANGE) <= 1 && http_field_total(b, FIELD_RANGE) <= 1 &&
           view_equal(value_of(a, FIELD_RANGE), value_of(b, FIELD_RANGE)) &&
           view_equal(value_of(a, FIELD_IF_RANGE), value_of(b, FIELD_IF_RANGE));
}

// ---- what can be combined ----

bool partial_is_same(const struct http_head *a, const struct http_head *b) {
    if (http_field_find(a, FIELD_ETAG, 0) || http_field_find(b, FIELD_ETAG, 0))
        return etag_equal_strong(value_of(a, FIELD_ETAG), value_of(b, FIELD_ETAG));
    return condition_has_strong_date(a) && condition_has_strong_date(b) &&
           view_equal(value_of(a, FIELD_LAST_MODIFIED), value_of(b, FIELD_LAST_MODIFIED));
}

// A Date of our own making says nothing of how old the origin's Last-Modified was [RFC 9110 §8.8.2.2].
static bool is_told_by_origin(const struct stored_head *head) {
    return http_field_find(&head->http, FIELD_ETAG, 0) || head->freshness.has_date;
}

static bool is_same_stored(const struct stored_head *a, const struct stored_head *b) {
    return is_told_by_origin(a) && is_told_by_origin(b) && partial_is_same(&a->http, &b->http);
}

bool partial_is_provable(const struct stored_head *head) {
    return is_same_stored(head, head);
}

void partial_read_head(struct http_head *whole, const struct http_head *partial) {
    *whole = *partial;
    whole->status = 200;
    whole->reason = VIEW("OK");
    whole->field_count = 0;
    whole->field_capacity = partial->field_count;
    whole->fields = memory_new((partial->field_count + 1) * sizeof *whole->fields);
    for (unsigned i = 0; i < partial->field_count; i++)
        if (partial->fields[i].id != FIELD_CONTENT_RANGE)
            whole->fields[whole->field_count++] = partial->fields[i];
}

// ---- storing ----

static struct cache_object *find_variant(const struct entry *entry, const struct stored_head *head) {
    struct cache_object *object = entry->stored;
    while (object && !vary_is_same(object->head, head))
        object = object->sibling;
    return object;
}

// The fields of the later response replace those of the earlier, Content-Range aside [RFC 9111 §3.4]. What
// the later one does not say of its lifetime, the earlier one has said.
static void read_freshness(struct freshness *freshness, const struct http_head *merged,
        const struct freshness *later, const struct freshness *earlier) {
    *freshness = *later;
    if (later->is_explicit || !earlier->is_explicit)
        return;
    struct cache_control control;
    struct moment at = later->response_at;
    cache_control_parse(merged, &control);
    freshness_of(freshness, merged, &control, at, at);
    freshness->initial_age_s = later->initial_age_s;
    freshness->has_age = later->has_age;
    freshness->date_s = later->date_s;
    freshness->has_date = later->has_date;
}

static struct stored_head *make_head(const struct stored_head *later, const struct stored_head *earlier) {
    struct http_head whole, merged = {.fields = NULL};
    struct stored_head_source source = {
            .head = &whole, .date_s = -1, .vary = later->vary, .selectors = later->selectors};
    partial_read_head(&whole, &later->http);
    if (earlier)
        update_merge(&merged, &earlier->http, &whole);
    if (earlier && update_fits(&merged, &earlier->http))
        source.head = &merged;
    else
        earlier = NULL; // the later one speaks for itself
    struct stored_head *head = stored_head_new(&source);
    head->freshness = later->freshness;
    if (earlier)
        read_freshness(&head->freshness, &merged, &later->freshness, &earlier->freshness);
    head->has_body = true;
    free(whole.fields);
    free(merged.fields);
    return head;
}

struct stored_head *partial_whole_head(const struct stored_head *head) {
    return make_head(head, NULL);
}

// Of parts that arrived side by side, the one whose head came last speaks for all.
static struct stored_head *combine_heads(const struct stored_head *part, const struct stored_head *old) {
    if (old && old->freshness.response_at.steady_s > part->freshness.response_at.steady_s)
        return make_head(old, NULL);
    return make_head(part, old);
}

// By a 206 (to a hole of what is there, too), or in as many words [RFC 9110 §14.3].
static bool shows_ranges(const struct http_head *head, bool is_resuming) {
    return head->status == 206 || is_resuming || range_is_offered(head);
}

// A head of the whole for what there is of it; it takes the place of `old` (NULL: nothing).
static struct cache_object *combine(struct cache_fill *fill, const struct cache_object *old) {
    const struct cache_object *part = fill->object;
    struct cache_object *object = object_new(fill->cache, false);
    object->key = part->key;
    object->reason = "stored";
    object->head = combine_heads(part->head, old ? old->head : NULL);
    object->head->content_length = (int64_t)part->size;
    object_take_body(object, part);
    if (old)
        object_take_record(object, old);
    object->is_partial = true;
    object_charge(object, memory_cost(object->head->bytes), false);
    fill_count_node(object, 0);
    atomic_store_explicit(&object->phase, PHASE_WHOLE, memory_order_release);
    return object;
}

// A 206 to If-Range may leave out what the client knows already [RFC 9110 §15.3.7].
static bool is_abridged(const struct cache_fill *fill) {
    return fill->object->head->http.status == 206 &&
           http_field_find(&fill->request->http, FIELD_IF_RANGE, 0) &&
           !http_field_find(&fill->object->head->http, FIELD_CONTENT_TYPE, 0);
}

enum verdict { VERDICT_JOIN, VERDICT_REPLACE, VERDICT_LEAVE };

// What becomes of what is stored.
static enum verdict judge(const struct cache_fill *fill, struct cache_object *old, bool is_broken) {
    const struct cache_object *part = fill->object;
    if (!old)
        return is_abridged(fill) ? VERDICT_LEAVE : VERDICT_REPLACE;
    if (object_phase(old) != PHASE_WHOLE)
        return VERDICT_LEAVE;
    if (old->body == part->body)
        return VERDICT_JOIN;
    // The one that has more stays.
    if (is_same_stored(old->head, part->head) && old->size == part->size)
        return body_charged(old->body) >= body_charged(part->body) ? VERDICT_LEAVE : VERDICT_REPLACE;
    return is_abridged(fill) || (is_broken && !old->is_partial) ? VERDICT_LEAVE : VERDICT_REPLACE;
}

// Puts `object` (NULL: nothing) in the place of `old`, and takes the fill out of the index. False when
// another than `old` stands there: that is `*now`, counted.
static bool replace(struct cache_fill *fill, const struct cache_object *old, struct cache_object *object,
        struct cache_object **now) {
    struct cache *cache = fill->cache;
    struct cache_object *dropped = NULL;
    struct shard *shard = index_shard(&cache->index, fill->object->key);
    pthread_mutex_lock(&shard->lock);
    struct entry *entry = fill->object->entry; // NULL: purged meanwhile
    *now = entry ? find_variant(entry, fill->object->head) : NULL;
    bool is_as_seen = !entry || *now == old;
    if (!is_as_seen && *now)
        object_get(*now);
    if (is_as_seen && entry) {
        store_unlink(cache, fill->object, NULL, &dropped);
        if (object)
            store_insert(cache, entry, object, &fill->request->http, &dropped);
        store_release(cache, shard, entry);
    }
    pthread_mutex_unlock(&shard->lock);
    store_put_dropped(dropped);
    return is_as_seen;
}

void partial_store(struct cache_fill *fill, bool is_broken) {
    struct cache_object *old = NULL, *now;
    bool is_done = false;
    while (!is_done) { // again only when another fill stored something meanwhile
        enum verdict verdict = judge(fill, old, is_broken);
        struct cache_object *object =
                verdict == VERDICT_LEAVE ? NULL : combine(fill, verdict == VERDICT_JOIN ? old : NULL);
        is_done = replace(fill, old, object, &now);
        if (is_done && object)
            tier_stored(object, old && old->body == object->body ? old : NULL);
        if (object)
            object_put(object);
        if (old)
            object_put(old);
        old = now;
    }
}

// ---- sharing ----

// A whole takes the place of a whole: only what is stored in part is completed by it. A part that is there
// already, since the whole has arrived faster, is not kept twice.
static bool is_shareable(
        const struct cache_fill *fill, struct cache_object *other, const struct stored_head *head) {
    const struct cache_object *object = fill->object;
    bool is_there =
            other != object && (object_phase(other) == PHASE_WHOLE || object_phase(other) == PHASE_ARRIVING);
    if (!is_there || !other->head || other->size != object->size || !vary_is_same(other->head, head) ||
            !is_same_stored(other->head, head))
        return false;
    bool is_whole = head->http.status != 206 && !fill->is_resuming;
    bool is_other_whole = other->head->http.status != 206 && !other->is_partial;
    return !(is_whole && is_other_whole);
}

static struct body *find_body(
        const struct cache_fill *fill, struct cache_object *first, const struct stored_head *head) {
    for (struct cache_object *other = first; other; other = other->sibling)
        if (is_shareable(fill, other, head))
            return body_get(other->body);
    return NULL;
}

struct body *partial_choose_body(struct cache_fill *fill, const struct stored_head *head) {
    struct cache_object *object = fill->object;
    bool is_known = object->size != SIZE_UNKNOWN && head->has_body, is_strong = partial_is_provable(head);
    struct body *body = NULL, *own = NULL;
    // What breaks its own framing's word is not to be trusted: it must not be among what others have.
    if (is_known && is_strong && fill->is_counted && !fill->is_resuming) {
        const struct entry *entry = object->entry;
        body = entry ? find_body(fill, entry->stored, head) : NULL;
        if (!body && entry)
            body = find_body(fill, entry->arriving, head);
    }
    if (body) {
        own = object->body;
        object->body = body;
    } else if (is_known && !fill->is_resuming) {
        body_set_size(object->body, object->size);
    }
    if (is_known && is_strong && fill->is_counted && !fill->is_whole_again &&
            shows_ranges(&head->http, fill->is_resuming))
        body_set_can_ask(object->body);
    return own;
}

static bool gives_ranges(const struct cache_fill *fill) {
    const struct cache_object *object = fill->object;
    return object->head->http.status == 206 || fill->is_resuming ||
           (object->head->http.status == 200 && range_may_be_asked(&object->head->http));
}

bool partial_is_kept(const struct cache_fill *fill) {
    struct cache_object *object = fill->object;
    return object_phase(object) == PHASE_ARRIVING && !object->streaming && !fill->is_overrun &&
           !fill->spare && object->size != SIZE_UNKNOWN && fill->is_counted && !fill->is_hole &&
           (fill->flow.position > object->start || fill->is_resuming) && gives_ranges(fill) &&
           partial_is_provable(object->head);
}
