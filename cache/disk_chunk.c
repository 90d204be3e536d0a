// Chunks of large representations on disk.
#include "admin/check.h"
#include "cache/disk_own.h"

#include <errno.h>
#include <stdlib.h>

#define CRCS_BYTES (sizeof(uint32_t) * (RECORD_BODY_MAXIMUM / RECORD_CRC_BYTES))

static struct cache_key key_of_number(const struct disk_place *place, uint32_t number) {
    return key_of_chunk(place->key, place->generation, number);
}

struct chunk {
    const struct disk_place *place;
    struct volume *open;
    struct cache_key key;
    uint32_t number;
    bool may_wait;
};

static bool is_it(const struct chunk *chunk, const struct record *record) {
    return record->type == RECORD_CHUNK && key_equal(record->key, chunk->key) && record->head_bytes == 0 &&
           record->generation == chunk->place->generation && record->number == chunk->number;
}

// Which of the places has the most of it; `count`: none. 0 or -EAGAIN.
static int find_best(const struct chunk *chunk, const struct volume_place *places, unsigned count,
        unsigned *best, struct record *record) {
    *best = count;
    for (unsigned i = 0; i < count; i++) {
        struct record found;
        int error = disk_read_header(
                chunk->place->volume, chunk->open, chunk->key, &places[i], chunk->may_wait, &found);
        if (error == -EAGAIN)
            return error;
        if (error < 0 || !is_it(chunk, &found) || (*best < count && found.body_bytes <= record->body_bytes))
            continue;
        *best = i;
        *record = found;
    }
    return 0;
}

static int read_checked(const struct chunk *chunk, const struct volume_place *place,
        const struct record *record, uint32_t offset, void *out, uint32_t length) {
    unsigned char crcs[CRCS_BYTES];
    struct disk_volume *volume = chunk->place->volume;
    int error = disk_read(volume, place->segment, place->offset + RECORD_HEADER_BYTES, crcs,
            record_crcs_bytes(record->body_bytes), chunk->may_wait);
    if (error == 0)
        error = disk_read(volume, place->segment,
                place->offset + record_body_at(0, record->body_bytes) + offset, out, length, chunk->may_wait);
    if (error == 0 && !record_check_body(crcs, record->body_bytes, offset, out, length))
        error = -EBADMSG;
    return error;
}

static uint32_t length_from(const struct record *record, uint32_t offset, uint32_t room) {
    uint32_t left = offset < record->body_bytes ? record->body_bytes - offset : 0;
    return left < room ? left : room;
}

static void put_all(const struct volume_place *places, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        segment_put(places[i].segment);
}

int disk_read_chunk(const struct disk_place *place, uint32_t number, uint32_t offset, void *out,
        uint32_t room, bool may_wait, uint32_t *length, uint32_t *end) {
    struct volume_place places[TABLE_CANDIDATES_MAX];
    struct chunk chunk = {.place = place,
            .open = disk_volume_open(place->volume),
            .key = key_of_number(place, number),
            .number = number,
            .may_wait = may_wait};
    struct record record;
    unsigned best = 0;
    CHECK(offset % RECORD_CRC_BYTES == 0 && room % RECORD_CRC_BYTES == 0);
    *length = *end = 0;
    if (!chunk.open)
        return -ENODATA;
    unsigned count = volume_find(chunk.open, chunk.key, places);
    int error = find_best(&chunk, places, count, &best, &record);
    if (error == 0 && best == count)
        error = -ENODATA;
    if (error == 0) {
        *end = record.body_bytes;
        *length = length_from(&record, offset, room);
        error = *length ? read_checked(&chunk, &places[best], &record, offset, out, *length) : 0;
        if (error < 0 && error != -EAGAIN) {
            disk_drop_broken(chunk.open, chunk.key, &places[best], error);
            error = -ENODATA;
        }
    }
    put_all(places, count);
    if (error < 0)
        *length = *end = 0;
    return error;
}

// What lies on a slow disk is as good as not there.
bool disk_may_have_chunk(const struct disk_place *place, uint32_t number) {
    struct volume_place places[TABLE_CANDIDATES_MAX];
    bool is_slow = atomic_load_explicit(&place->volume->is_slow, memory_order_relaxed);
    struct volume *open = is_slow ? NULL : disk_volume_open(place->volume);
    unsigned count = open ? volume_find(open, key_of_number(place, number), places) : 0;
    put_all(places, count);
    return count > 0;
}

void disk_hit_chunk(const struct disk_place *place, uint32_t number) {
    struct volume_place places[TABLE_CANDIDATES_MAX];
    struct volume *open = disk_volume_open(place->volume);
    struct cache_key key = key_of_number(place, number);
    unsigned count = open ? volume_find(open, key, places) : 0;
    for (unsigned i = 0; i < count; i++)
        volume_hit(open, key, places[i].location);
    put_all(places, count);
}

static int write_chunk(const struct chunk *chunk, struct view content) {
    unsigned char crcs[CRCS_BYTES];
    uint32_t length = (uint32_t)content.length;
    struct record record = {.type = RECORD_CHUNK,
            .key = chunk->key,
            .generation = chunk->place->generation,
            .number = chunk->number,
            .body_bytes = length};
    struct iovec payload[] = {{crcs, record_crcs_bytes(length)}, {(void *)content.data, length}};
    record_set_head(&record, "", 0);
    record_write_crcs(content.data, length, crcs);
    return volume_put(chunk->open, &record, payload, 2);
}

int disk_put_chunk(const struct disk_place *place, uint32_t number, const struct iovec *content, int count) {
    struct volume_place places[TABLE_CANDIDATES_MAX];
    struct chunk chunk = {.place = place,
            .open = disk_volume_open(place->volume),
            .key = key_of_number(place, number),
            .number = number,
            .may_wait = true};
    struct record record;
    struct view all;
    unsigned char *copy;
    unsigned best;
    if (!chunk.open)
        return -EIO;
    int error = disk_gather(content, count, &all, &copy);
    if (error < 0)
        return error;
    unsigned found = volume_find(chunk.open, chunk.key, places);
    find_best(&chunk, places, found, &best, &record);
    if (all.length > 0 && (best == found || record.body_bytes < all.length)) {
        error = write_chunk(&chunk, all);
        if (error == 0 && best < found)
            volume_drop(chunk.open, chunk.key, places[best].location);
        else if (error < 0)
            disk_refused(place->volume, error);
    }
    put_all(places, found);
    free(copy);
    return error;
}
