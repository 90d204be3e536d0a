// The producing side of the façade: a fill's life, its content and its end. Its head: fill_head.c.
#include "admin/check.h"
#include "cache/partial.h"
#include "cache/store.h"
#include "cache/tier.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALIDATORS_BYTES POLICY_ETAG_BYTES // of the entity tags asked about; those that do not fit are not

struct cache_fill *fill_new(struct cache *cache, const struct http_head *request, const char *pass_reason) {
    struct cache_fill *fill = memory_new(sizeof *fill);
    *fill = (struct cache_fill){.cache = cache, .pass_reason = pass_reason, .content_length = -1};
    fill->object = object_new(cache, !request);
    object_charge(fill->object, memory_cost(sizeof *fill), !request);
    if (request) {
        fill->request = stored_head_new_request(request);
        object_charge(fill->object, memory_cost(fill->request->bytes), false);
    }
    fill->object->fill = fill;
    atomic_fetch_add_explicit(&cache->fills, 1, memory_order_relaxed);
    return fill;
}

static uint64_t fill_cost(const struct cache_fill *fill) {
    return memory_cost(sizeof *fill) + (fill->request ? memory_cost(fill->request->bytes) : 0);
}

void fill_free(struct cache_fill *fill) {
    struct cache *cache = fill->cache;
    struct cache_object *object = fill->object;
    uint64_t bytes = fill_cost(fill);
    if (object->charged_stream) { // only a stream from its beginning has it, and it has no request
        object->charged_stream -= bytes;
        atomic_fetch_sub_explicit(&cache->budget.streams, bytes, memory_order_relaxed);
    } else {
        object->charged -= bytes;
        budget_give(cache, bytes);
    }
    budget_give(cache, fill->reserved);
    tier_wait_no_more(fill);
    fill_drop_bases(fill);
    fill_end_flow(fill);
    if (fill->selected)
        object_put(fill->selected);
    if (fill->resumed)
        object_put(fill->resumed);
    object_put(object);
    free(fill->request);
    free(fill->spare);
    free(fill->validators);
    free(fill);
    atomic_fetch_sub_explicit(&cache->fills, 1, memory_order_relaxed);
}

// ---- validators ----

static const struct http_field *etag_of(const struct cache_object *object) {
    return policy_etag(&object->head->http);
}

static void take_base(struct cache_fill *fill, struct cache_object *object) {
    if (fill->base_count < INDEX_VARIANTS_MAX)
        fill->bases[fill->base_count++] = object_get(object);
}

// An origin that is given entity tags looks at nothing else [RFC 9110 §13.1.3]: one that has to be confirmed
// by its date is asked about alone.
void fill_take_bases(struct cache_fill *fill, struct entry *entry, struct cache_object *selected) {
    if (selected && object_phase(selected) == PHASE_WHOLE) {
        fill->selected = object_get(selected);
        if (policy_has_validator(&selected->head->http))
            take_base(fill, selected);
    }
    if (fill->asks_range || (fill->base_count && !etag_of(fill->bases[0])))
        return;
    for (struct cache_object *object = entry ? entry->stored : NULL; object; object = object->sibling)
        if (object != selected && etag_of(object) && object_phase(object) == PHASE_WHOLE &&
                !object->is_partial)
            take_base(fill, object);
}

void fill_drop_bases(struct cache_fill *fill) {
    while (fill->base_count)
        object_put(fill->bases[--fill->base_count]);
}

struct text {
    char *data;
    size_t length;
};

static void put(struct text *text, struct view view) {
    memcpy(text->data + text->length, view.data, view.length);
    text->length += view.length;
}

static bool is_listed(const struct cache_fill *fill, unsigned count, struct view etag) {
    for (unsigned i = 0; i < count; i++)
        if (etag_of(fill->bases[i]) && view_equal(etag_of(fill->bases[i])->value, etag))
            return true;
    return false;
}

static void put_etags(const struct cache_fill *fill, struct text *text) {
    bool is_first = true;
    for (unsigned i = 0; i < fill->base_count; i++) {
        const struct http_field *etag = etag_of(fill->bases[i]);
        if (!etag || is_listed(fill, i, etag->value) || text->length + etag->value.length > VALIDATORS_BYTES)
            continue;
        put(text, is_first ? VIEW("If-None-Match: ") : VIEW(", "));
        put(text, etag->value);
        is_first = false;
    }
    if (!is_first)
        put(text, VIEW("\r\n"));
}

void fill_write_validators(struct cache_fill *fill) {
    bool is_selected = fill->base_count && fill->bases[0] == fill->selected;
    const struct http_field *modified =
            is_selected ? http_field_find(&fill->selected->head->http, FIELD_LAST_MODIFIED, 0) : NULL;
    struct text text = {memory_new(VALIDATORS_BYTES + 64 + (modified ? modified->value.length : 0)), 0};
    put_etags(fill, &text);
    if (modified) {
        put(&text, VIEW("If-Modified-Since: "));
        put(&text, modified->value);
        put(&text, VIEW("\r\n"));
    }
    fill->validators = text.data;
    fill->validators_length = text.length;
}

// [RFC 9110 §13.1.5]: what is missing, if what is there is still of the same representation.
void fill_write_range(struct cache_fill *fill) {
    const struct http_head *head = &fill->resumed->head->http;
    const struct http_field *validator = http_field_find(head, FIELD_ETAG, 0);
    if (!validator)
        validator = http_field_find(head, FIELD_LAST_MODIFIED, 0);
    size_t size = validator->value.length + 96;
    fill->validators = memory_new(size);
    uint64_t last = fill->hole.last;
    bool is_rest = last + 1 == fill->resumed->size;
    int length = is_rest ? snprintf(fill->validators, size, "Range: bytes=%" PRIu64 "-\r\n", fill->hole.first)
                         : snprintf(fill->validators, size, "Range: bytes=%" PRIu64 "-%" PRIu64 "\r\n",
                                   fill->hole.first, last);
    length += snprintf(fill->validators + length, size - (size_t)length, "If-Range: " VIEW_FORMAT "\r\n",
            VIEW_ARGUMENT(validator->value));
    CHECK(length > 0 && (size_t)length < size);
    fill->validators_length = (size_t)length;
}

static void put_own(struct text *text, const struct http_head *request, enum field_id id) {
    const struct http_field *field;
    for (unsigned from = 0; (field = http_field_find(request, id, from));
            from = (unsigned)(field - request->fields) + 1) {
        put(text, field->name);
        put(text, VIEW(": "));
        put(text, field->value);
        put(text, VIEW("\r\n"));
    }
}

void fill_write_own_range(struct cache_fill *fill) {
    struct text text = {memory_new(fill->request->bytes + 64), 0};
    put_own(&text, &fill->request->http, FIELD_RANGE);
    put_own(&text, &fill->request->http, FIELD_IF_RANGE);
    fill->validators = text.data;
    fill->validators_length = text.length;
}

struct view cache_fill_fields(const struct cache_fill *fill) {
    return (struct view){fill->validators ? fill->validators : "", fill->validators_length};
}

// ---- the index ----

void fill_leave_index(struct cache_fill *fill, enum marker marker, bool drop_selected) {
    struct cache *cache = fill->cache;
    struct cache_object *object = fill->object, *dropped = NULL;
    struct shard *shard = index_shard(&cache->index, object->key);
    pthread_mutex_lock(&shard->lock);
    struct entry *entry = object->entry;
    if (entry) {
        store_unlink(cache, object, NULL, &dropped);
        if (drop_selected && fill->selected && fill->selected->entry == entry)
            store_unlink(cache, fill->selected, NULL, &dropped);
        if (drop_selected && fill->resumed && fill->resumed->entry == entry)
            store_unlink(cache, fill->resumed, NULL, &dropped);
        if (marker != MARKER_NONE)
            budget_give(cache, index_mark(shard, entry, marker, fill->now.steady_s));
        store_release(cache, shard, entry);
    }
    pthread_mutex_unlock(&shard->lock);
    store_put_dropped(dropped);
}

// ---- another object in its place ----

void fill_pass_on(struct cache_fill *fill, struct cache_object *successor, const char *reason) {
    struct cache_object *object = fill->object;
    pthread_mutex_lock(&object->lock);
    object->successor = object_get(successor);
    object->reason = reason;
    atomic_store_explicit(&object->phase, PHASE_PASSED_ON, memory_order_release);
    object_wake_readers(object);
    pthread_mutex_unlock(&object->lock);
}

static bool is_told(const struct cache_object *object) {
    for (const struct cache_reader *reader = object->readers; reader; reader = reader->next)
        if (reader->has_head && reader->role != ROLE_GONE)
            return true;
    return false;
}

bool fill_stand_in(struct cache_fill *fill, enum freshness_trouble trouble, struct moment now) {
    struct cache_object *object = fill->object, *selected = fill->selected;
    const char *reason;
    if (!selected || atomic_load_explicit(&object->doomed, memory_order_relaxed) ||
            atomic_load_explicit(&selected->contradicted, memory_order_relaxed) ||
            !freshness_on_error(&selected->head->freshness, &fill->asked, fill->rule, now, trouble, &reason))
        return false;
    pthread_mutex_lock(&object->lock);
    bool is_too_late = is_told(object);
    if (!is_too_late) {
        object->successor = object_get(selected);
        object->stands_in = true;
        object->trouble = trouble;
        object->reason = reason;
        atomic_store_explicit(&object->phase, PHASE_PASSED_ON, memory_order_release);
        object_wake_readers(object);
    }
    pthread_mutex_unlock(&object->lock);
    if (!is_too_late)
        fill_leave_index(fill, MARKER_NONE, false);
    return !is_too_late;
}

// ---- the content ----

static struct body *flow_body(const struct cache_fill *fill) {
    return fill->is_pending_hole ? fill->resumed->body : fill->object->body;
}

void fill_end_flow(struct cache_fill *fill) {
    if (fill->flow.is_running)
        body_end(flow_body(fill), &fill->flow);
    fill->is_pending_hole = false;
}

void fill_share_body(struct cache_fill *fill, struct body *body) {
    struct body *own = fill->object->body;
    fill->object->body = body_get(body);
    body_put(own);
}

// A storing fill in mid-flight gives up its place. Those who read it go on, and pace it from here: what has
// arrived stays until the slowest has passed it. A body that others share stays as it is, and so does one of
// which the origin can be asked for what is missing: its chunks come and go, what a reader is behind of may
// have gone already, and a stream has no place for what is asked for out of turn.
static void become_stream(struct cache_fill *fill, enum marker marker) {
    struct cache_object *object = fill->object;
    fill_leave_index(fill, marker, true);
    budget_give(fill->cache, fill->reserved);
    fill->reserved = 0;
    bool is_shared = atomic_load_explicit(&object->body->references, memory_order_acquire) > 1;
    bool can_ask = body_can_ask(object->body), frees = !is_shared && !can_ask;
    if (frees)
        body_become_stream(object->body);
    pthread_mutex_lock(&object->lock);
    object->streaming = true;
    object->frees = frees;
    object->is_paced = frees || can_ask;
    object_reader_passed(object);
    pthread_mutex_unlock(&object->lock);
}

static uint64_t left(const struct cache_fill *fill, uint64_t otherwise) {
    uint64_t position = fill->flow.position, announced = (uint64_t)fill->content_length;
    return fill->content_length < 0 ? otherwise : announced > position ? announced - position : 0;
}

// Counts what the next append may need, so that it cannot fail.
static bool reserve(struct cache_fill *fill, size_t bytes) {
    uint64_t wanted = body_cost(fill->object->body, &fill->flow, bytes);
    if (fill->reserved >= wanted)
        return true;
    if (!budget_take(fill->cache, wanted - fill->reserved))
        return false;
    fill->reserved = wanted;
    return true;
}

// Room of a storing fill; 0: it has outgrown the store and is a stream now, or `*is_held` until there is
// room.
static size_t storing_room(struct cache_fill *fill, void (*wake)(void *owner), void *owner, bool *is_held) {
    struct cache_object *object = fill->object;
    uint64_t maximum = store_limits(fill->cache).maximum_bytes, position = fill->flow.position;
    if (atomic_load_explicit(&object->doomed, memory_order_relaxed))
        return become_stream(fill, MARKER_NONE), 0;
    if (position > maximum)
        return become_stream(fill, MARKER_ALONE), 0;
    // One byte more than may be stored: a body of exactly the maximum must be seen to end there.
    uint64_t room = maximum - position + 1, announced = left(fill, ROOM_BYTES);
    room = room < ROOM_BYTES ? room : ROOM_BYTES;
    if (announced < room)
        room = announced ? announced : 1; // all has come: never a wait for more
    if (reserve(fill, (size_t)room))
        return (size_t)room;
    *is_held = tier_will_free(fill, wake, owner);
    if (*is_held)
        return 0;
    if (reserve(fill, (size_t)room)) // the last of it has just been written
        return (size_t)room;
    become_stream(fill, MARKER_NONE);
    return 0;
}

static size_t stream_room(struct cache_fill *fill, void (*wake)(void *owner), void *owner) {
    struct cache_object *object = fill->object;
    if (!object->frees)
        budget_settle(fill->cache); // nothing was reserved
    pthread_mutex_lock(&object->lock);
    object_reader_passed(object);
    bool is_paced = object->is_paced;
    size_t room = is_paced ? object_room(object) : ROOM_BYTES;
    fill->wake = wake;
    fill->owner = owner;
    fill->waiting = room == 0;
    pthread_mutex_unlock(&object->lock);
    if (!is_paced) // what it brings is others' and takes of the store's budget, unasked
        budget_settle(fill->cache);
    return room;
}

size_t cache_fill_room(struct cache_fill *fill, void (*wake)(void *owner), void *owner) {
    CHECK(object_phase(fill->object) == PHASE_ARRIVING);
    if (!fill->object->streaming && tier_is_busy(fill, wake, owner))
        return fill->told = 0;
    bool is_held = false;
    size_t room = fill->object->streaming ? 0 : storing_room(fill, wake, owner, &is_held);
    if (is_held)
        return fill->told = 0;
    if (!room)
        room = stream_room(fill, wake, owner);
    return fill->told = room;
}

// Nobody reads this stream, and nobody can come to: what arrives is dropped.
static bool drop_unread(struct cache_object *object, struct flow *flow, size_t length) {
    pthread_mutex_lock(&object->lock);
    bool is_unread = object->frees && object_count_readers(object) == 0;
    if (is_unread) {
        body_skip(object->body, flow, length);
        object_reader_passed(object);
    }
    pthread_mutex_unlock(&object->lock);
    return is_unread;
}

// Where the framing does not say where the content ends (a chunked 206), what comes behind the announced end
// is not content: a reader who was told the length must not get it.
static size_t cut_surplus(struct cache_fill *fill, size_t length) {
    uint64_t most = left(fill, length);
    fill->is_overrun |= length > most;
    return length < most ? length : (size_t)most;
}

void cache_fill_append(struct cache_fill *fill, const void *data, size_t length) {
    struct cache_object *object = fill->object;
    CHECK(length <= fill->told);
    fill->told -= length;
    length = cut_surplus(fill, length);
    if (length == 0 || (object->streaming && drop_unread(object, &fill->flow, length)))
        return;
    body_write(object->body, &fill->flow, data, length, &fill->reserved);
    if (!object->streaming)
        tier_flush(fill->is_hole ? fill->resumed : object);
}

// ---- the end ----

static void end(struct cache_fill *fill, enum phase phase) {
    struct cache_object *object = fill->object;
    struct cache *cache = fill->cache;
    pthread_mutex_lock(&object->lock);
    object->fill = NULL; // no wake from here on
    if (object_phase(object) != PHASE_PASSED_ON)
        atomic_store_explicit(&object->phase, phase, memory_order_release);
    object_wake_readers(object);
    pthread_mutex_unlock(&object->lock);
    bool is_nothing = phase != PHASE_WHOLE && !fill->is_hole && !fill->is_resuming;
    if (is_nothing && atomic_load_explicit(&object->body->references, memory_order_acquire) == 1)
        tier_forget(object);
    fill_free(fill); // ends the flow, and wakes those who wait for content
    budget_settle(cache);
}

static bool is_complete(const struct cache_fill *fill) {
    const struct cache_object *object = fill->object;
    return object->head && !fill->is_overrun &&
           (fill->content_length < 0 || (uint64_t)fill->content_length == fill->flow.position);
}

// From the arriving to the stored, unless it was purged or turns out too small.
static void store(struct cache_fill *fill) {
    struct cache *cache = fill->cache;
    struct cache_object *object = fill->object, *dropped = NULL;
    struct policy_limits limits = store_limits(cache);
    bool is_wanted = !object->head->has_body || (fill->flow.position >= limits.minimum_bytes &&
                                                        fill->flow.position <= limits.maximum_bytes);
    // Another fill of the same content may have crowded out some of it (CHUNK_SPANS_MAX).
    if (object->head->has_body && !object_may_have_holes(object) && !body_is_complete(object->body))
        object->is_partial = true;
    struct shard *shard = index_shard(&cache->index, object->key);
    pthread_mutex_lock(&shard->lock);
    struct entry *entry = object->entry;
    if (entry) {
        store_unlink(cache, object, NULL, &dropped);
        if (is_wanted)
            store_insert(cache, entry, object, &fill->request->http, &dropped);
        store_release(cache, shard, entry);
    }
    bool is_stored = object->place == PLACE_STORED;
    pthread_mutex_unlock(&shard->lock);
    store_put_dropped(dropped);
    if (is_stored)
        tier_stored(object, NULL);
    else if (atomic_load_explicit(&object->body->references, memory_order_acquire) == 1)
        tier_forget(object); // its chunks have brought its head to the disk
}

// What evicting it would free: its chunks have nodes of their own when they go one by one.
void fill_count_node(struct cache_object *object, uint64_t aside) {
    bool is_by_chunks = atomic_load_explicit(&object->body->is_by_chunks, memory_order_relaxed);
    object->node.bytes = object->charged - aside + (is_by_chunks ? 0 : body_charged(object->body));
}

static bool is_part(const struct cache_fill *fill) {
    return fill->is_resuming || fill->object->head->http.status == 206;
}

// What came until the end of the message is all there is. What is no 200 was not known to be a whole before.
static void settle_size(struct cache_fill *fill) {
    struct cache_object *object = fill->object;
    if (fill->content_length < 0 || (object->size == SIZE_UNKNOWN && object->head->has_body && !object->end))
        object->size = fill->flow.position;
    if (fill->content_length >= 0)
        return;
    body_set_size(object->body, fill->flow.position);
    fill_end_flow(fill); // nobody waits for it any more: all has come
    body_trim(object->body);
}

void cache_fill_finish(struct cache_fill *fill) {
    bool is_passed_on = object_phase(fill->object) == PHASE_PASSED_ON;
    if (!is_passed_on && !is_complete(fill)) {
        cache_fill_abandon(fill);
        return;
    }
    bool is_storing = !fill->object->streaming;
    if (!is_passed_on)
        settle_size(fill);
    if (is_storing && !is_passed_on) {
        fill_count_node(fill->object, fill_cost(fill));
        if (!fill->is_hole && is_part(fill))
            partial_store(fill, false);
        else if (!fill->is_hole)
            store(fill);
    }
    end(fill, is_storing ? PHASE_WHOLE : PHASE_ENDED);
}

void cache_fill_abandon(struct cache_fill *fill) {
    if (partial_is_kept(fill)) {
        fill_count_node(fill->object, fill_cost(fill));
        partial_store(fill, true);
    } else if (object_phase(fill->object) != PHASE_PASSED_ON) {
        fill_leave_index(fill, MARKER_NONE, false);
    }
    end(fill, PHASE_BROKEN);
}

bool cache_fill_fail(struct cache_fill *fill) {
    bool stands_in = object_phase(fill->object) == PHASE_PASSED_ON ||
                     fill_stand_in(fill, FRESHNESS_DISCONNECTED, fill->now);
    cache_fill_abandon(fill);
    return stands_in;
}

bool cache_fill_confirms(const struct cache_fill *fill) {
    return fill->selected;
}

unsigned cache_fill_readers(struct cache_fill *fill) {
    pthread_mutex_lock(&fill->object->lock);
    unsigned readers = object_count_readers(fill->object);
    pthread_mutex_unlock(&fill->object->lock);
    return readers;
}

bool cache_fill_leave(struct cache_fill *fill) {
    struct cache_object *object = fill->object;
    struct shard *shard = index_shard(&fill->cache->index, object->key);
    pthread_mutex_lock(&shard->lock);
    object->is_left = cache_fill_readers(fill) == 0;
    bool is_left = object->is_left;
    pthread_mutex_unlock(&shard->lock);
    return is_left;
}

unsigned cache_fill_shed(struct cache_fill *fill) {
    pthread_mutex_lock(&fill->object->lock);
    unsigned cut = object_shed_laggards(fill->object);
    pthread_mutex_unlock(&fill->object->lock);
    return cut;
}

bool cache_fill_stores(const struct cache_fill *fill) {
    return !fill->object->streaming && !atomic_load_explicit(&fill->object->doomed, memory_order_relaxed);
}
