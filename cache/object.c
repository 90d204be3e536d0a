#include "cache/object.h"

#include "admin/check.h"
#include "cache/store.h"

#include <stdlib.h>

struct cache_object *object_new(struct cache *cache, bool is_stream) {
    struct cache_object *object = memory_new(sizeof *object);
    *object = (struct cache_object){.cache = cache,
            .references = 1,
            .size = SIZE_UNKNOWN,
            .location = DISK_LOCATION_NONE,
            .streaming = is_stream,
            .is_paced = is_stream,
            .frees = is_stream,
            .refused = is_stream};
    object->body = body_new(cache, is_stream);
    pthread_mutex_init(&object->lock, NULL);
    object_charge(object, memory_cost(sizeof *object), is_stream);
    return object;
}

void object_charge(struct cache_object *object, uint64_t bytes, bool is_stream) {
    if (is_stream) {
        object->charged_stream += bytes;
        atomic_fetch_add_explicit(&object->cache->budget.streams, bytes, memory_order_relaxed);
    } else {
        object->charged += bytes;
        budget_charge(object->cache, bytes);
    }
}

static void object_free(struct cache_object *object) {
    struct cache *cache = object->cache;
    CHECK(!object->readers && !object->fill && object->place == PLACE_NONE);
    body_put(object->body);
    if (object->successor)
        object_put(object->successor);
    budget_give(cache, object->charged);
    atomic_fetch_sub_explicit(&cache->budget.streams, object->charged_stream, memory_order_relaxed);
    pthread_mutex_destroy(&object->lock);
    free(object->head);
    free(object);
}

void object_take_body(struct cache_object *object, const struct cache_object *from) {
    body_put(object->body);
    object->body = body_get(from->body);
    object->size = from->size;
    object->is_partial = from->is_partial;
}

void object_take_record(struct cache_object *object, const struct cache_object *from) {
    atomic_store(&object->location, atomic_load(&from->location));
    atomic_store(&object->sequence, atomic_load(&from->sequence));
}

void object_put(struct cache_object *object) {
    unsigned before = atomic_fetch_sub_explicit(&object->references, 1, memory_order_acq_rel);
    CHECK(before > 0);
    if (before == 1)
        object_free(object);
}

// ---- readers ----

static void link_reader(struct cache_object *object, struct cache_reader *reader) {
    reader->next = object->readers;
    reader->link = &object->readers;
    if (reader->next)
        reader->next->link = &reader->next;
    object->readers = reader;
    reader->linked = true;
}

void object_unlink_reader(struct cache_object *object, struct cache_reader *reader) {
    (void)object;
    *reader->link = reader->next;
    if (reader->next)
        reader->next->link = reader->link;
    reader->linked = false;
    reader->waiting = false;
}

void object_attach(struct cache_object *object, struct cache_reader *reader, enum reader_role role) {
    void (*wake)(struct cache_reader *) = reader->wake;
    *reader = (struct cache_reader){.wake = wake, .object = object_get(object), .role = (unsigned char)role};
    if (object_phase(object) == PHASE_WHOLE)
        return;
    pthread_mutex_lock(&object->lock);
    if (object_phase(object) != PHASE_WHOLE)
        link_reader(object, reader);
    if (object_phase(object) != PHASE_PENDING)
        reader->offset = object->start;
    pthread_mutex_unlock(&object->lock);
}

static void wake(struct cache_reader *reader) {
    reader->waiting = false;
    reader->wake(reader);
}

void object_wake_readers(struct cache_object *object) {
    for (struct cache_reader *reader = object->readers; reader; reader = reader->next)
        if (reader->waiting)
            wake(reader);
}

static bool is_interested(const struct cache_object *object, const struct cache_reader *reader) {
    return reader->role != ROLE_GONE && !(object->refused && reader->role == ROLE_JOINED);
}

unsigned object_count_readers(const struct cache_object *object) {
    unsigned count = 0;
    for (const struct cache_reader *reader = object->readers; reader; reader = reader->next)
        count += is_interested(object, reader);
    return count;
}

// Where what has arrived ends.
static uint64_t arrived(const struct cache_object *object) {
    return object->fill ? object->fill->flow.position : object->floor;
}

static bool is_far_behind(const struct cache_object *object, const struct cache_reader *reader) {
    uint64_t window = atomic_load_explicit(&object->cache->window_bytes, memory_order_relaxed);
    return reader->offset + window / 2 < arrived(object);
}

static uint64_t slowest_offset(const struct cache_object *object) {
    uint64_t slowest = arrived(object);
    for (struct cache_reader *reader = object->readers; reader; reader = reader->next) {
        reader->is_left = reader->is_left && is_far_behind(object, reader);
        if (is_interested(object, reader) && !reader->is_left && reader->offset < slowest)
            slowest = reader->offset;
    }
    return slowest;
}

// Those who read another object of the same body wait for what this one brings, too.
static bool has_waiting_reader(const struct cache_object *object) {
    if (object->fill && body_is_awaited(object->body, &object->fill->flow))
        return true;
    for (const struct cache_reader *reader = object->readers; reader; reader = reader->next)
        if (is_interested(object, reader) && reader->offset >= arrived(object))
            return true;
    return false;
}

// They may be reading what they were given: it stays until they detach. Where they can ask for what is gone
// by the time they come to it, they are left behind.
unsigned object_shed_laggards(struct cache_object *object) {
    unsigned cut = 0;
    if (!object->streaming || !has_waiting_reader(object))
        return 0;
    for (struct cache_reader *reader = object->readers; reader; reader = reader->next) {
        if (!is_interested(object, reader) || reader->is_cut || !is_far_behind(object, reader))
            continue;
        if (!object->frees) {
            reader->is_left = true;
            continue;
        }
        reader->is_cut = true;
        wake(reader);
        cut++;
    }
    object_reader_passed(object);
    return cut;
}

size_t object_room(const struct cache_object *object) {
    uint64_t window = atomic_load_explicit(&object->cache->window_bytes, memory_order_relaxed);
    uint64_t ahead = arrived(object) - object->floor;
    return ahead > window - window / 4 ? 0 : (size_t)(window - ahead);
}

void object_reader_passed(struct cache_object *object) {
    if (!object->streaming || object_phase(object) == PHASE_PENDING)
        return;
    object->floor = slowest_offset(object);
    if (object->frees)
        body_free_before(object->body, object->floor);
    struct cache_fill *fill = object->fill;
    if (fill && fill->waiting && (object_room(object) > 0 || object_count_readers(object) == 0)) {
        fill->waiting = false;
        fill->wake(fill->owner);
    }
}
