// Sealing and reclaiming: what was hit is carried over to the main queue, the rest goes, with the file.
#include "cache/file.h"
#include "cache/head_record.h"
#include "cache/memory.h"
#include "cache/volume_own.h"

#include <errno.h>
#include <stdlib.h>

struct reclaim {
    struct volume *volume;
    struct segment *segment;
    uint32_t slot;
    enum segments_queue queue;
    unsigned char *buffer;
    bool stays;   // as a whole, in the main queue
    bool carried; // something lies elsewhere now
};

static void add(_Atomic uint64_t *counter, uint64_t number) {
    atomic_fetch_add_explicit(counter, number, memory_order_relaxed);
}

static uint64_t first_location(uint32_t slot) {
    return segments_location(slot, 0);
}

static uint64_t last_location(uint32_t slot) {
    return segments_location(slot + 1, 0) - 1;
}

static struct segment *segment_of(const struct volume *volume, uint32_t slot) {
    return atomic_load_explicit(&volume->pool.slots[slot].segment, memory_order_relaxed);
}

// The file goes, and what it took is free once nobody reads it any more. False: it cannot be deleted.
static bool give_up(struct volume *volume, uint32_t slot) {
    struct segment *segment = segment_of(volume, slot);
    int error = segment_unlink(segment, volume->pool.slots[slot].bytes, &volume->pool.held);
    if (error < 0) {
        health_failed(volume, error, "deleting a segment");
        return false;
    }
    pthread_mutex_lock(&volume->lock);
    segments_leave(&volume->pool, slot);
    pthread_mutex_unlock(&volume->lock);
    segment_put(segment);
    pthread_mutex_lock(&volume->lock);
    pthread_cond_broadcast(&volume->room);
    pthread_mutex_unlock(&volume->lock);
    return true;
}

// ---- one record of a segment that is reclaimed ----

static bool is_entered(const struct volume *volume, struct cache_key key, uint64_t location, uint8_t *hits) {
    struct table_entry entries[TABLE_CANDIDATES_MAX];
    unsigned count = table_find(volume->table, key, entries);
    for (unsigned i = 0; i < count; i++)
        if (entries[i].location == location) {
            *hits = entries[i].hits;
            return true;
        }
    return false;
}

// Into the buffer.
static bool read_whole(struct reclaim *reclaim, const struct segment_entry *entry, struct record *record) {
    uint64_t offset = (uint64_t)entry->offset * RECORD_ALIGNMENT;
    int error = segment_read_record(reclaim->segment, offset, reclaim->buffer, record);
    if (error == 0 && key_equal(record->key, entry->key))
        return true;
    volume_complain(reclaim->volume, error == -ENODATA || error == 0 ? -EBADMSG : error);
    return false;
}

static bool is_head(enum record_type type) {
    return type == RECORD_HEAD || type == RECORD_UPDATE;
}

static struct view head_of(const struct reclaim *reclaim, const struct record *record) {
    return (struct view){(const char *)reclaim->buffer + RECORD_HEADER_BYTES, record->head_bytes};
}

// Chunks of a head that is gone are out of reach, and not hit any more.
static bool is_purged(const struct reclaim *reclaim, const struct record *record) {
    struct head_record head = {0};
    if (is_head(record->type))
        head_record_read(head_of(reclaim, record), &head);
    struct purge_asked asked = {record->key, head.authority, head.path, record->sequence};
    return purges_is_purged(reclaim->volume, &asked);
}

static bool is_wanted(const struct reclaim *reclaim, const struct record *record, uint8_t hits) {
    const struct volume_settings *settings = &reclaim->volume->settings;
    enum volume_verdict verdict = VOLUME_BY_HITS;
    struct volume_judged judged = {record, head_of(reclaim, record), hits, reclaim->queue == SEGMENTS_MAIN};
    if (settings->keep && is_head(record->type))
        verdict = settings->keep(settings->context, &judged);
    return verdict == VOLUME_KEEP || (verdict == VOLUME_BY_HITS && hits > 0);
}

static bool carry(struct reclaim *reclaim, struct record *record, uint64_t location, uint8_t hits) {
    struct iovec payload = {
            reclaim->buffer + RECORD_HEADER_BYTES, record_body_at(record->head_bytes, record->body_bytes) +
                                                           record->body_bytes - RECORD_HEADER_BYTES};
    struct append append = {.record = record,
            .payload = &payload,
            .count = 1,
            .is_keeper = true,
            .is_carried = true,
            .from = location,
            .hits = hits};
    reclaim->carried = true;
    return append_record(reclaim->volume, SEGMENTS_MAIN, &append) == 0;
}

// False: it is to be forgotten.
static bool keep(
        struct reclaim *reclaim, const struct segment_entry *entry, uint64_t location, uint8_t hits) {
    struct volume *volume = reclaim->volume;
    struct record record;
    if (!read_whole(reclaim, entry, &record) || !is_wanted(reclaim, &record, hits))
        return false;
    // One hit is enough to leave the small queue; in main each hit is worth one round.
    uint8_t left = reclaim->queue == SEGMENTS_MAIN && hits > 0 ? (uint8_t)(hits - 1) : 0;
    bool kept = false;
    pthread_mutex_lock(&volume->purges.carry);
    if (is_purged(reclaim, &record))
        kept = false;
    else if (!segment_is_in_memory(reclaim->segment) &&
             append_is_alone(volume, SEGMENTS_MAIN, (uint64_t)entry->bytes * RECORD_ALIGNMENT)) {
        // No need to copy what is a file of its own.
        kept = reclaim->stays = table_move(volume->table, entry->key, location, location, left);
    } else
        kept = carry(reclaim, &record, location, left);
    pthread_mutex_unlock(&volume->purges.carry);
    return kept;
}

static bool reclaim_entry(void *context, const struct segment_entry *entry) {
    struct reclaim *reclaim = context;
    struct volume *volume = reclaim->volume;
    uint64_t location = segments_location(reclaim->slot, (uint64_t)entry->offset * RECORD_ALIGNMENT);
    uint8_t hits = 0;
    if (!is_entered(volume, entry->key, location, &hits))
        return true;
    bool is_judged = hits > 0 || (volume->settings.judges_unhit && volume->settings.keep &&
                                         is_head((enum record_type)entry->type));
    if (is_judged && keep(reclaim, entry, location, hits))
        return true;
    if (hits == 0 && reclaim->queue == SEGMENTS_SMALL) {
        ghosts_limit(volume->ghosts, table_count(volume->table));
        ghosts_add(volume->ghosts, entry->key);
    }
    table_remove(volume->table, entry->key, location);
    return true;
}

static void drain(struct volume *volume, uint32_t slot) {
    pthread_mutex_lock(&volume->lock);
    segments_set_state(&volume->pool, slot, SEGMENTS_DRAINED);
    volume->drained_bytes += volume->pool.slots[slot].bytes;
    pthread_mutex_unlock(&volume->lock);
}

// When its file cannot be deleted it is reclaimed again, with nothing in it.
static bool leave_drained(struct volume *volume, uint32_t slot) {
    pthread_mutex_lock(&volume->lock);
    volume->drained_bytes -= volume->pool.slots[slot].bytes;
    segments_set_state(&volume->pool, slot, SEGMENTS_CLOSED);
    pthread_mutex_unlock(&volume->lock);
    return give_up(volume, slot);
}

static uint32_t next_of(struct volume *volume, uint32_t choose(const struct segments *pool)) {
    pthread_mutex_lock(&volume->lock);
    uint32_t slot = choose(&volume->pool);
    pthread_mutex_unlock(&volume->lock);
    return slot;
}

void reclaim_segment(struct volume *volume, uint32_t slot) {
    struct reclaim reclaim = {.volume = volume,
            .segment = segment_of(volume, slot),
            .slot = slot,
            .queue = volume->pool.slots[slot].queue,
            .buffer = memory_new(SEGMENT_RECORD_MAXIMUM)};
    int error = segment_walk(reclaim.segment, reclaim_entry, &reclaim);
    free(reclaim.buffer);
    if (error < 0) {
        volume_complain(volume, error);
        table_forget(volume->table, first_location(slot), last_location(slot));
        reclaim.stays = false;
    }
    if (reclaim.stays) {
        pthread_mutex_lock(&volume->lock);
        segments_move_to_main(&volume->pool, slot);
        pthread_mutex_unlock(&volume->lock);
        return;
    }
    add(&volume->reclaimed, 1);
    if (reclaim.carried && !segment_is_in_memory(reclaim.segment))
        drain(volume, slot);
    else
        give_up(volume, slot);
}

// ---- making safe what was carried over ----

// The keeper alone writes what is carried over, so it lies in main segments that are open or closing now.
void reclaim_flush(struct volume *volume) {
    pthread_mutex_lock(&volume->lock);
    uint32_t slot, open = segments_open_main(&volume->pool);
    pthread_mutex_unlock(&volume->lock);
    struct segment *segment = open == SEGMENTS_SLOT_NONE ? NULL : segments_find(&volume->pool, open);
    while ((slot = next_of(volume, segments_closing)) != SEGMENTS_SLOT_NONE)
        reclaim_seal(volume, slot);
    int error = segment && !segment_is_sealed(segment) ? segment_sync(segment) : 0;
    if (segment)
        segment_put(segment);
    if (error < 0) {
        health_failed(volume, error, "syncing a segment");
        pthread_mutex_lock(&volume->lock);
        volume->pool.slots[open].is_doomed = !health_is_space(error);
        pthread_mutex_unlock(&volume->lock);
    }
    while ((slot = next_of(volume, segments_drained)) != SEGMENTS_SLOT_NONE)
        if (!leave_drained(volume, slot))
            return;
}

// ---- sealing ----

static bool forget_entry(void *context, const struct segment_entry *entry) {
    struct reclaim *reclaim = context;
    uint64_t offset = (uint64_t)entry->offset * RECORD_ALIGNMENT;
    table_remove(reclaim->volume->table, entry->key, segments_location(reclaim->slot, offset));
    return true;
}

static void abandon(struct volume *volume, uint32_t slot) {
    struct reclaim reclaim = {.volume = volume, .segment = segment_of(volume, slot), .slot = slot};
    if (segment_walk(reclaim.segment, forget_entry, &reclaim) < 0)
        table_forget(volume->table, first_location(slot), last_location(slot));
    if (give_up(volume, slot))
        return;
    pthread_mutex_lock(&volume->lock); // empty now; reclaimed when files can be deleted again
    segments_set_state(&volume->pool, slot, SEGMENTS_CLOSED);
    pthread_mutex_unlock(&volume->lock);
}

static void close_sealed(struct volume *volume, uint32_t slot) {
    struct segment *segment = segment_of(volume, slot);
    uint64_t bytes = volume->pool.slots[slot].bytes, on_disk;
    if (segment_disk_bytes(segment, &on_disk) == 0 && segment_is_sealed(segment))
        bytes = on_disk;
    pthread_mutex_lock(&volume->lock);
    segments_set_bytes(&volume->pool, slot, bytes);
    segments_set_state(&volume->pool, slot, SEGMENTS_CLOSED);
    pthread_cond_broadcast(&volume->room);
    pthread_mutex_unlock(&volume->lock);
}

void reclaim_seal(struct volume *volume, uint32_t slot) {
    struct segment *segment = segment_of(volume, slot);
    bool is_empty = segment_used(segment) <= RECORD_HEADER_BYTES;
    int error = volume->pool.slots[slot].is_doomed ? -EIO : is_empty ? 0 : segment_seal(segment);
    if (error < 0 && !volume->pool.slots[slot].is_doomed)
        health_failed(volume, error, "sealing a segment");
    if (is_empty || (error < 0 && !health_is_space(error))) {
        abandon(volume, slot);
        return;
    }
    if (segment_is_sealed(segment))
        add(&volume->bytes_written, segment_overhead(segment));
    close_sealed(volume, slot);
}

// ---- what was deleted underneath ----

static bool is_deleted(struct volume *volume, uint32_t slot) {
    struct segment *segment = segment_of(volume, slot);
    return segment && !segment_is_in_memory(segment) && file_is_deleted(segment_descriptor(segment));
}

static void close_deleted(struct volume *volume) {
    for (unsigned i = 0; i < SEGMENTS_QUEUES; i++) {
        pthread_mutex_lock(&volume->append[i]);
        if (volume->open[i] != SEGMENTS_SLOT_NONE && is_deleted(volume, volume->open[i]))
            append_close(volume, i);
        pthread_mutex_unlock(&volume->append[i]);
    }
}

// SEGMENTS_FREE: there is no such slot.
static enum segments_state state_of(struct volume *volume, uint32_t slot, uint32_t *count) {
    pthread_mutex_lock(&volume->lock);
    *count = volume->pool.slot_count;
    enum segments_state state = slot < *count ? volume->pool.slots[slot].state : SEGMENTS_FREE;
    pthread_mutex_unlock(&volume->lock);
    return state;
}

static void leave_deleted(struct volume *volume, uint32_t slot, enum segments_state state) {
    if (state == SEGMENTS_CLOSED)
        abandon(volume, slot);
    else if (state == SEGMENTS_DRAINED) // what was carried over lies elsewhere
        leave_drained(volume, slot);
    else { // it is given up when its turn to be sealed comes
        pthread_mutex_lock(&volume->lock);
        volume->pool.slots[slot].is_doomed = true;
        pthread_mutex_unlock(&volume->lock);
    }
}

void reclaim_deleted(struct volume *volume) {
    close_deleted(volume);
    uint32_t count = 1;
    for (uint32_t slot = 0; slot < count; slot++) {
        enum segments_state state = state_of(volume, slot, &count);
        bool is_settled = state == SEGMENTS_CLOSING || state == SEGMENTS_CLOSED || state == SEGMENTS_DRAINED;
        if (is_settled && is_deleted(volume, slot))
            leave_deleted(volume, slot, state);
    }
}
