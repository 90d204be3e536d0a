// What goes to the disk: heads, with or without their content, and chunks.
#include "admin/check.h"
#include "admin/container.h"
#include "cache/partial.h"
#include "cache/store.h"
#include "cache/tier_own.h"

#include <errno.h>
#include <stdlib.h>

enum write_kind {
    WRITE_WHOLE,  // a small one: head and content
    WRITE_CHUNK,  // and the head, when it is the first
    WRITE_HEAD,   // in place of the one there
    WRITE_FORGET, // for good
};

struct write {
    struct disk_job job;
    enum write_kind kind;
    struct cache *cache;
    struct tier_name *name;
    struct cache_object *object; // counted
    struct chunk *chunk;         // counted
    uint64_t dirty_bytes;
};

// ---- what a head says ----

static struct head_record record_of(const struct write *write) {
    const struct cache_object *object = write->object;
    const struct entry_name *name = &write->name->entry;
    return (struct head_record){.destination = *name->destination,
            .authority = name->authority,
            .path = name->path,
            .body_length = object->size == SIZE_UNKNOWN ? -1 : (int64_t)object->size,
            .gives_ranges = body_can_ask(object->body),
            .is_contradicted = atomic_load_explicit(&object->contradicted, memory_order_relaxed),
            .boot = write->cache->boot};
}

static bool is_unwanted(struct body *body) {
    pthread_mutex_lock(&body->lock);
    bool is_unwanted = body->is_unwanted;
    pthread_mutex_unlock(&body->lock);
    return is_unwanted;
}

// The record of what was dropped meanwhile goes again.
static void settle(struct cache_object *object, struct disk_place *place, uint64_t location) {
    struct disk_place copy = disk_place_get(place);
    body_set_place(object->body, place);
    atomic_store(&object->sequence, disk_sequence(&copy));
    atomic_store(&object->location, location);
    if (atomic_load(&object->is_unwanted))
        disk_drop(&copy, location, atomic_load_explicit(&object->contradicted, memory_order_relaxed));
    disk_place_put(&copy);
}

// ---- each kind ----

static void put_head(struct write *write, bool has_content, const struct iovec *content) {
    struct cache_object *object = write->object;
    struct head_record record = record_of(write);
    struct disk_place place = {.volume = NULL};
    uint64_t location;
    struct stored_head *whole = object->head->http.status == 206 ? partial_whole_head(object->head) : NULL;
    int error = disk_put_head(write->cache->disk, &record, whole ? whole : object->head, has_content, content,
            content ? 1 : 0, &place, &location);
    free(whole);
    if (error == 0)
        settle(object, &place, location);
    disk_place_put(&place);
}

static void run_whole(struct write *write) {
    struct body *body = write->object->body;
    struct iovec content = {NULL, 0};
    if (write->object->size > 0) {
        struct chunk *chunk = body_first_chunk(body);
        if (!chunk)
            return;
        content.iov_base = memory_new(BODY_CHUNK_BYTES);
        content.iov_len = body_copy_chunk(body, chunk, content.iov_base);
        chunk_put(chunk);
    }
    if (content.iov_len == write->object->size)
        put_head(write, true, content.iov_len ? &content : NULL);
    free(content.iov_base);
}

static void run_chunk(struct write *write) {
    struct body *body = write->object->body;
    struct disk_place place = {.volume = NULL};
    body_copy_place(body, &place);
    if (!place.volume) {
        put_head(write, false, NULL);
        body_copy_place(body, &place);
    }
    if (!place.volume)
        return;
    struct iovec content = {memory_new(BODY_CHUNK_BYTES), 0};
    content.iov_len = body_copy_chunk(body, write->chunk, content.iov_base);
    if (content.iov_len && disk_put_chunk(&place, write->chunk->number, &content, 1) == 0)
        atomic_store_explicit(&write->chunk->is_on_disk, true, memory_order_relaxed);
    free(content.iov_base);
    disk_place_put(&place);
}

static void run_head(struct write *write) {
    struct cache_object *object = write->object;
    struct disk_place place = {.volume = NULL};
    uint64_t location = atomic_load(&object->location);
    body_copy_place(object->body, &place);
    if (!place.volume) {
        if (object->size <= RECORD_SMALL_BYTES) // it was not to be written before, or could not be
            run_whole(write);
        return;
    }
    struct head_record record = record_of(write);
    record.generation = place.generation;
    if (disk_put_update(&place, &record, object->head, &location) == 0)
        settle(object, &place, location);
    disk_place_put(&place);
}

static void run_forget(struct write *write) {
    struct disk_place place = {.volume = NULL};
    body_copy_place(write->object->body, &place);
    if (place.volume)
        disk_drop_until(&place, atomic_load(&write->object->sequence));
    disk_place_put(&place);
}

// What was purged while it arrives is not to come back with the rest of it.
static bool is_dropped(const struct write *write) {
    switch (write->kind) {
    case WRITE_WHOLE:
    case WRITE_HEAD:
        return atomic_load(&write->object->is_unwanted);
    case WRITE_CHUNK:
        return atomic_load_explicit(&write->object->doomed, memory_order_relaxed) ||
               is_unwanted(write->object->body);
    case WRITE_FORGET:
        return false;
    }
    UNREACHABLE("a kind of write");
}

static void write_run(struct disk_job *job) {
    struct write *write = CONTAINER_OF(job, struct write, job);
    if (is_dropped(write))
        return;
    switch (write->kind) {
    case WRITE_WHOLE:
        run_whole(write);
        return;
    case WRITE_CHUNK:
        run_chunk(write);
        return;
    case WRITE_HEAD:
        run_head(write);
        return;
    case WRITE_FORGET:
        run_forget(write);
        return;
    }
}

static void write_give_up(struct disk_job *job) {
    struct write *write = CONTAINER_OF(job, struct write, job);
    tier_dirty_ends(write->cache, write->dirty_bytes); // fills do not wait for a slow disk
    write->dirty_bytes = 0;
}

static void write_done(struct disk_job *job) {
    struct write *write = CONTAINER_OF(job, struct write, job);
    struct cache *cache = write->cache;
    uint64_t dirty_bytes = write->dirty_bytes;
    chunk_put(write->chunk);
    object_put(write->object);
    free(write->name);
    free(write);
    budget_settle(cache);
    tier_job_ends(cache, dirty_bytes);
}

// ---- submitting ----

static struct tier_name *name_in_index(struct cache_object *object) {
    struct shard *shard = index_shard(&object->cache->index, object->key);
    struct tier_name *name = NULL;
    pthread_mutex_lock(&shard->lock);
    if (object->entry)
        name = tier_name_new(&(struct entry_name){object->entry->key, &object->entry->destination,
                object->entry->authority, object->entry->path});
    pthread_mutex_unlock(&shard->lock);
    return name;
}

// A body goes on to be written when its heads come and go in the index. NULL: it was never there.
static struct tier_name *name_of(struct cache_object *object, bool is_of_chunk) {
    struct body *body = object->body;
    struct tier_name *name = name_in_index(object);
    if (!is_of_chunk)
        return name;
    pthread_mutex_lock(&body->lock);
    if (name && !body->name)
        body->name = tier_name_new(&name->entry);
    else if (!name && body->name)
        name = tier_name_new(&body->name->entry);
    pthread_mutex_unlock(&body->lock);
    return name;
}

static struct disk_volume *volume_of(struct cache_object *object, const struct tier_name *name) {
    struct disk_place place = {.volume = NULL};
    struct disk_name disk_name = tier_disk_name(&name->entry);
    body_copy_place(object->body, &place);
    struct disk_volume *volume = place.volume;
    disk_place_put(&place);
    return volume ? volume : disk_volume_for(object->cache->disk, &disk_name);
}

// Takes the chunk over. What cannot be written stays in memory for as long as it can.
static void submit(struct cache_object *object, enum write_kind kind, struct chunk *chunk, uint64_t bytes) {
    struct tier_name *name = kind == WRITE_FORGET ? NULL : name_of(object, kind == WRITE_CHUNK);
    struct disk_place place = {.volume = NULL};
    body_copy_place(object->body, &place);
    struct disk_volume *volume = name ? volume_of(object, name) : place.volume;
    disk_place_put(&place);
    if (!volume || (kind != WRITE_FORGET && !name)) {
        free(name);
        chunk_put(chunk);
        return;
    }
    struct write *write = memory_new(sizeof *write);
    *write = (struct write){.job = {.run = write_run, .give_up = write_give_up, .done = write_done},
            .kind = kind,
            .cache = object->cache,
            .name = name,
            .object = object_get(object),
            .chunk = chunk,
            .dirty_bytes = bytes};
    tier_job_begins(object->cache, bytes);
    if (!disk_submit(volume, DISK_WRITE, &write->job))
        write_done(&write->job);
}

void tier_flush(struct cache_object *object) {
    struct chunk *chunk;
    while (object->cache->disk && (chunk = body_take_full(object->body)))
        submit(object, WRITE_CHUNK, chunk, BODY_CHUNK_BYTES);
}

static bool has_place(struct body *body) {
    pthread_mutex_lock(&body->lock);
    bool has_place = body->place.volume;
    pthread_mutex_unlock(&body->lock);
    return has_place;
}

void tier_stored(struct cache_object *object, struct cache_object *base) {
    if (!object->cache->disk)
        return;
    body_queue_rest(object->body);
    tier_flush(object);
    bool is_small = object->size != SIZE_UNKNOWN && object->size <= RECORD_SMALL_BYTES;
    bool is_large = object->size != SIZE_UNKNOWN && !is_small;
    if (is_large || base || has_place(object->body))
        submit(object, WRITE_HEAD, NULL, 0); // behind what places it
    else if (is_small && body_is_complete(object->body))
        submit(object, WRITE_WHOLE, NULL, object->size);
}

void tier_contradicted(struct cache_object *object) {
    if (object->cache->disk && has_place(object->body))
        submit(object, WRITE_HEAD, NULL, 0);
}

void tier_forget(struct cache_object *object) {
    struct body *body = object->body;
    struct disk_place place = {.volume = NULL};
    if (!object->cache->disk)
        return;
    pthread_mutex_lock(&body->lock);
    body->is_unwanted = true;
    pthread_mutex_unlock(&body->lock);
    atomic_store(&object->is_unwanted, true);
    body_copy_place(body, &place);
    uint64_t location = atomic_load(&object->location);
    if (!place.volume || location == DISK_LOCATION_NONE) {
        disk_place_put(&place);
        return;
    }
    disk_drop(&place, location, false);
    disk_place_put(&place);
    // Nothing comes in its place whose record would be the later one.
    if (atomic_load_explicit(&object->contradicted, memory_order_relaxed))
        submit(object, WRITE_FORGET, NULL, 0);
}
