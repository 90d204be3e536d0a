#include "cache/object.h"

#include "admin/check.h"
#include "cache/store.h"

#include <stdlib.h>

struct cache_object *object_new(struct cache *cache, bool is_stream) {
    struct cache_object *object = memory_new(sizeof *object);
    *object = (struct cache_object){.cache = cache,
            .references = 1,
            .size = SIZE_UNKNOWN,
            .streaming = is_stream,
            .refused = is_stream};
    object->body = object;
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

// ---- blocks ----

struct block *block_new(uint64_t start, size_t size, bool is_stream) {
    struct block *block = memory_new(sizeof *block + size);
    *block = (struct block){.start = start, .size = (uint32_t)size, .is_stream = is_stream};
    block->data = (char *)(block + 1);
    return block;
}

uint64_t block_cost(const struct block *block) {
    return block->is_inline ? 0 : memory_cost(sizeof *block + block->size);
}

static void block_free(struct cache *cache, struct block *block) {
    uint64_t bytes = block_cost(block);
    if (block->is_inline)
        return;
    if (block->is_stream)
        atomic_fetch_sub_explicit(&cache->budget.streams, bytes, memory_order_relaxed);
    else
        budget_give(cache, bytes);
    free(block);
}

static void object_free(struct cache_object *object) {
    struct cache *cache = object->cache;
    CHECK(!object->readers && !object->fill && object->place == PLACE_NONE);
    while (object->first) {
        struct block *next = object->first->next;
        block_free(cache, object->first);
        object->first = next;
    }
    spans_free(object->spans);
    if (object->body != object)
        object_put(object->body);
    if (object->successor)
        object_put(object->successor);
    budget_give(cache, object->charged);
    atomic_fetch_sub_explicit(&cache->budget.streams, object->charged_stream, memory_order_relaxed);
    pthread_mutex_destroy(&object->lock);
    free(object->head);
    free(object);
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
        reader->offset = object_first(object);
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

void object_wake_reached(struct cache_object *object) {
    for (struct cache_reader *reader = object->readers; reader; reader = reader->next)
        if (reader->waiting && reader->offset < object->length)
            wake(reader);
}

struct spans *object_take_spans(struct cache_object *object) {
    struct spans *spans = object->fill || object->readers ? NULL : object->spans;
    if (spans)
        object->spans = NULL;
    return spans;
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

static uint64_t slowest_offset(const struct cache_object *object) {
    uint64_t slowest = object->length;
    for (const struct cache_reader *reader = object->readers; reader; reader = reader->next)
        if (is_interested(object, reader) && reader->offset < slowest)
            slowest = reader->offset;
    return slowest;
}

static bool has_waiting_reader(const struct cache_object *object) {
    for (const struct cache_reader *reader = object->readers; reader; reader = reader->next)
        if (is_interested(object, reader) && reader->offset >= object->length)
            return true;
    return false;
}

// They may be reading what they were given: it stays until they detach.
unsigned object_cut_laggards(struct cache_object *object) {
    uint64_t window = atomic_load_explicit(&object->cache->window_bytes, memory_order_relaxed);
    unsigned cut = 0;
    if (!object->streaming || !has_waiting_reader(object))
        return 0;
    for (struct cache_reader *reader = object->readers; reader; reader = reader->next) {
        if (!is_interested(object, reader) || reader->is_cut || reader->offset + window / 2 >= object->length)
            continue;
        reader->is_cut = true;
        reader->waiting = false;
        reader->wake(reader);
        cut++;
    }
    return cut;
}

size_t object_room(const struct cache_object *object) {
    uint64_t window = atomic_load_explicit(&object->cache->window_bytes, memory_order_relaxed);
    uint64_t ahead = object->length - object->floor;
    return ahead > window - window / 4 ? 0 : (size_t)(window - ahead);
}

// A block is freed only when every offset lies beyond its end, not at it: a reader's position may still be
// the block that its offset ends.
static void free_passed(struct cache_object *object) {
    struct block *block;
    while ((block = object->first) != object->last && block->start + block->used < object->floor) {
        object->first = block->next;
        block_free(object->cache, block);
    }
}

void object_reader_passed(struct cache_object *object) {
    if (!object->streaming || object_phase(object) == PHASE_PENDING)
        return;
    object->floor = slowest_offset(object);
    free_passed(object);
    struct cache_fill *fill = object->fill;
    if (fill && fill->waiting && (object_room(object) > 0 || object_count_readers(object) == 0)) {
        fill->waiting = false;
        fill->wake(fill->owner);
    }
}
