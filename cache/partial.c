#include "cache/partial.h"

#include "admin/check.h"
#include "cache/spans.h"
#include "cache/update.h"
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

static bool covers(const struct spans *spans, const struct range_list *ranges) {
    for (unsigned i = 0; i < ranges->count; i++)
        if (spans_end(spans, ranges->all[i].first) <= ranges->all[i].last)
            return false;
    return true;
}

bool partial_serves(const struct cache_object *object, const struct cache_query *query) {
    const struct cache_object *body = object->body;
    struct range_list ranges;
    if (!body->is_partial)
        return true;
    if (!condition_range_applies(query->head, &object->head->http, query->now.wall_s))
        return false; // the whole would be asked for
    switch (range_of_request(query->head, body->length, &ranges)) {
    case RANGES_NONE:
    case RANGES_UNSATISFIABLE: // not within what is there, whatever its length [RFC 9111 §3.3]
        return false;
    case RANGES_SOME:
        return covers(body->spans, &ranges);
    }
    UNREACHABLE("an outcome of ranges");
}

// By the start of the range that lies furthest ahead.
static bool is_close(const struct range_list *ranges, uint64_t arrived) {
    for (unsigned i = 0; i < ranges->count; i++)
        if (ranges->all[i].first > arrived && ranges->all[i].first - arrived > PARTIAL_AHEAD_BYTES)
            return false;
    return true;
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
        break;
    }
    pthread_mutex_lock(&object->lock);
    uint64_t arrived = object->length;
    pthread_mutex_unlock(&object->lock);
    return is_close(&ranges, arrived) && (!is_part || is_within(&ranges, object->start, object->end));
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

static bool has_strong_validator(const struct stored_head *head) {
    return is_same_stored(head, head);
}

uint64_t partial_prefix(const struct cache_object *object) {
    const struct cache_object *body = object->body;
    bool can_ask = body->is_partial && body->gives_ranges && has_strong_validator(object->head);
    return can_ask ? spans_end(body->spans, 0) : 0;
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

static bool is_same_variant(const struct stored_head *a, const struct stored_head *b) {
    return view_equal(a->vary, b->vary) && view_equal(a->selectors, b->selectors);
}

static struct cache_object *find_variant(const struct entry *entry, const struct stored_head *head) {
    struct cache_object *object = entry->stored;
    while (object && !is_same_variant(object->head, head))
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

// Of parts that arrived side by side, the one whose head came last speaks for all.
static struct stored_head *combine_heads(const struct stored_head *part, const struct stored_head *old) {
    if (old && old->freshness.response_at.steady_s > part->freshness.response_at.steady_s)
        return make_head(old, NULL);
    return make_head(part, old);
}

// What a fill leaves has room for all that was announced, a head, a request: a little is copied out of it.
// One reference.
static struct cache_object *compact(struct cache_object *part) {
    uint64_t bytes = part->length - part->start;
    if (bytes == 0 || bytes > BLOCK_BYTES_MAXIMUM)
        return object_get(part);
    struct cache_object *object = object_new(part->cache, false);
    struct block *block = block_new(part->start, (size_t)bytes, false);
    for (const struct block *from = part->first; from; from = from->next) {
        memcpy(block->data + block->used, from->data, from->used);
        block->used += from->used;
    }
    object->start = part->start;
    object->length = part->length;
    object->first = object->last = block;
    object->node.bytes = object->charged + block_cost(block);
    budget_charge(part->cache, block_cost(block));
    atomic_store_explicit(&object->phase, PHASE_WHOLE, memory_order_release);
    return object;
}

static void combine_spans(struct spans *spans, const struct cache_object *part, struct cache_object *content,
        const struct cache_object *old) {
    if (old)
        spans_add_all(spans, old->body->spans, UINT64_MAX);
    if (part->spans)
        spans_add_all(spans, part->spans, UINT64_MAX);
    if (content->length > content->start)
        spans_add(spans, content->start, content->length - 1, content);
}

// By a 206 (to the rest of what is there, too), or in as many words [RFC 9110 §14.3].
static bool shows_ranges(const struct cache_object *part) {
    const struct http_head *head = &part->head->http;
    return head->status == 206 || part->spans || range_is_offered(head);
}

// What takes the place of `old`, with what that has (NULL: nothing).
static struct cache_object *combine(
        struct cache_fill *fill, struct cache_object *content, const struct cache_object *old) {
    const struct cache_object *part = fill->object;
    struct cache_object *object = object_new(fill->cache, false);
    object->key = part->key;
    object->reason = "stored";
    object->head = combine_heads(part->head, old ? old->head : NULL);
    object->head->content_length = (int64_t)part->size;
    object->spans = spans_new();
    combine_spans(object->spans, part, content, old);
    object->length = object->size = part->size;
    object->is_partial = spans_end(object->spans, 0) < part->size;
    object->gives_ranges = shows_ranges(part) || (old && old->body->gives_ranges);
    object_charge(object, memory_cost(object->head->bytes) + memory_cost(sizeof *object->spans), false);
    object->node.bytes = object->charged;
    for (unsigned i = 0; i < object->spans->count; i++)
        object->node.bytes += object->spans->all[i].source->node.bytes;
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
    bool is_same = is_same_stored(old->head, part->head) && old->body->length == part->size;
    if (is_same && old->body->spans)
        return VERDICT_JOIN;
    if (is_same || is_abridged(fill) || (is_broken && !old->body->is_partial))
        return VERDICT_LEAVE;
    return VERDICT_REPLACE;
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
        store_unlink(cache, fill->object, &dropped);
        if (object)
            store_insert(cache, entry, object, &fill->request->http, &dropped);
        store_release(cache, shard, entry);
    }
    pthread_mutex_unlock(&shard->lock);
    store_put_dropped(dropped);
    return is_as_seen;
}

void partial_store(struct cache_fill *fill, bool is_broken) {
    struct cache_object *content = compact(fill->object), *old = NULL, *now;
    bool is_done = false;
    while (!is_done) { // again only when another fill stored something meanwhile
        enum verdict verdict = judge(fill, old, is_broken);
        struct cache_object *object = verdict == VERDICT_LEAVE
                                              ? NULL
                                              : combine(fill, content, verdict == VERDICT_JOIN ? old : NULL);
        is_done = replace(fill, old, object, &now);
        if (object)
            object_put(object);
        if (old)
            object_put(old);
        old = now;
    }
    object_put(content);
}

static bool gives_ranges(const struct cache_object *object) {
    return object->head->http.status == 206 || object->spans ||
           (object->head->http.status == 200 && range_may_be_asked(&object->head->http));
}

bool partial_is_kept(const struct cache_fill *fill) {
    struct cache_object *object = fill->object;
    return object_phase(object) == PHASE_ARRIVING && !object->streaming && !fill->spare &&
           object->size != SIZE_UNKNOWN && fill->is_counted &&
           (object->length > object->start || object->spans) && gives_ranges(object) &&
           has_strong_validator(object->head);
}
