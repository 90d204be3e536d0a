// A body's way to the disk.
#include "cache/body_own.h"

#include "cache/store.h"

#include <stdlib.h>
#include <string.h>

struct chunk *body_take_full(struct body *body) {
    pthread_mutex_lock(&body->lock);
    struct chunk *chunk = body->full;
    if (chunk)
        body->full = chunk->next_full;
    pthread_mutex_unlock(&body->lock);
    return chunk;
}

void body_queue_rest(struct body *body) {
    pthread_mutex_lock(&body->lock);
    bool is_wanted = body->cache->disk && !body->is_stream && body->size > RECORD_SMALL_BYTES;
    for (unsigned i = 0; is_wanted && i < body->chunk_count; i++) {
        struct chunk *chunk = body->chunks[i];
        uint64_t length = body_least(chunk->length, body->size - body_start_of(chunk));
        bool is_of_use =
                body_can_ask(body) || chunk_is_full(chunk, (uint32_t)length); // else the rest is lost
        if (is_of_use && !chunk->is_queued && chunk->span_count && chunk->spans[0].from == 0)
            body_queue_full(body, chunk);
    }
    pthread_mutex_unlock(&body->lock);
}

// A stream's blocks are freed behind its readers, whoever has the chunk: block by block, and only while it is
// none.
static bool copy_block(struct body *body, const struct chunk *chunk, uint32_t at, char *to, uint32_t bytes) {
    pthread_mutex_lock(&body->lock);
    bool is_kept = !body->is_stream;
    if (is_kept)
        memcpy(to, chunk->blocks[at / BODY_BLOCK_BYTES], bytes);
    pthread_mutex_unlock(&body->lock);
    return is_kept;
}

uint32_t body_copy_chunk(struct body *body, struct chunk *chunk, void *out) {
    char *to = out;
    pthread_mutex_lock(&body->lock);
    uint32_t bytes = chunk->span_count && chunk->spans[0].from == 0 ? chunk->spans[0].to : 0;
    // What comes behind it is to be written, too.
    if (!chunk_is_full(chunk, chunk->length))
        chunk->is_queued = false;
    pthread_mutex_unlock(&body->lock);
    for (uint32_t at = 0; at < bytes; at += BODY_BLOCK_BYTES)
        if (!copy_block(body, chunk, at, to + at, (uint32_t)body_least(bytes - at, BODY_BLOCK_BYTES)))
            return 0;
    return bytes;
}

void body_set_place(struct body *body, struct disk_place *place) {
    pthread_mutex_lock(&body->lock);
    struct disk_place old = body->place;
    bool is_of_use = !place->volume || !disk_place_is_leaving(place);
    if (is_of_use)
        body->place = *place;
    if (is_of_use && place->volume)
        body_go_by_chunks(body);
    pthread_mutex_unlock(&body->lock);
    disk_place_put(is_of_use ? &old : place);
    *place = (struct disk_place){.volume = NULL};
}

bool body_is_leaving(struct body *body) {
    pthread_mutex_lock(&body->lock);
    bool is_leaving = body->place.volume && disk_place_is_leaving(&body->place);
    pthread_mutex_unlock(&body->lock);
    return is_leaving;
}

void body_leave_disk(struct body *body) {
    struct disk_place old = {.volume = NULL};
    pthread_mutex_lock(&body->lock);
    if (body->place.volume && disk_place_is_leaving(&body->place)) {
        old = body->place;
        body->place.volume = NULL;
    }
    for (unsigned i = 0; old.volume && i < body->chunk_count; i++)
        atomic_store_explicit(&body->chunks[i]->is_on_disk, false, memory_order_relaxed);
    pthread_mutex_unlock(&body->lock);
    disk_place_put(&old);
}

void body_copy_place(struct body *body, struct disk_place *place) {
    pthread_mutex_lock(&body->lock);
    *place = body->place.volume ? disk_place_get(&body->place) : body->place;
    pthread_mutex_unlock(&body->lock);
}

void body_note_disk_end(struct body *body, uint64_t start, uint32_t end) {
    uint64_t reserved = 0;
    pthread_mutex_lock(&body->lock);
    struct chunk *chunk = body_find(body, start);
    bool is_short = start + end < body_least(start + BODY_CHUNK_BYTES, body->size);
    if (!chunk && is_short)
        chunk = body_add(body, start / BODY_CHUNK_BYTES, &reserved);
    if (chunk && is_short)
        chunk->disk_end = end;
    pthread_mutex_unlock(&body->lock);
}

void body_hit_disk(struct body *body, uint64_t location) {
    pthread_mutex_lock(&body->lock);
    if (body->place.volume)
        disk_hit(&body->place, location);
    pthread_mutex_unlock(&body->lock);
}

struct chunk *body_first_chunk(struct body *body) {
    pthread_mutex_lock(&body->lock);
    struct chunk *chunk =
            body->chunk_count && body->chunks[0]->number == 0 ? chunk_get(body->chunks[0]) : NULL;
    pthread_mutex_unlock(&body->lock);
    return chunk;
}
