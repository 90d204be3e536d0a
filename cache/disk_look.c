// One record at a place that a volume has for a key: read, and checked, before anything of it counts.
#include "cache/disk_own.h"
#include "cache/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES (4 << 10) // read at once: most heads whole; the rest then goes where it stays

int disk_read(struct disk_volume *volume, struct segment *segment, uint64_t offset, void *out, size_t length,
        bool may_wait) {
    if (may_wait)
        return segment_read(segment, offset, out, length);
    int64_t since_ms = file_now_ms();
    int error = segment_try_read(segment, offset, out, length);
    int64_t took_ms = file_now_ms() - since_ms; // the kernel waited all the same
    if (took_ms > atomic_load_explicit(&volume->disk->slow_ms, memory_order_relaxed))
        disk_io_slow(volume, took_ms);
    return error;
}

void disk_drop_broken(
        struct volume *volume, struct cache_key key, const struct volume_place *place, int error) {
    volume_drop(volume, key, place->location);
    volume_complain(volume, error == -ENODATA ? -EBADMSG : error);
}

static uint64_t room_of(const struct volume_place *place) {
    uint64_t used = segment_used(place->segment);
    return place->offset < used ? used - place->offset : 0;
}

static int decode(const unsigned char *bytes, uint64_t room, struct record *record) {
    if (record_decode(bytes, record) != RECORD_OK || record->type == RECORD_CONTENTS ||
            record_bytes(record->head_bytes, record->body_bytes) > room)
        return -EBADMSG;
    return 0;
}

int disk_read_header(struct disk_volume *volume, struct volume *open, struct cache_key key,
        const struct volume_place *place, bool may_wait, struct record *record) {
    unsigned char bytes[RECORD_HEADER_BYTES];
    uint64_t room = room_of(place);
    int error = -EBADMSG;
    if (room >= sizeof bytes)
        error = disk_read(volume, place->segment, place->offset, bytes, sizeof bytes, may_wait);
    if (error == 0)
        error = decode(bytes, room, record);
    if (error < 0 && error != -EAGAIN)
        disk_drop_broken(open, key, place, error);
    return error;
}

// Header first, with what a usual record has before its content.
static int read_bytes(struct disk_look *look) {
    static __thread unsigned char start[FIRST_BYTES];
    const struct volume_place *place = look->place;
    uint64_t room = room_of(place), first = room < sizeof start ? room : sizeof start;
    if (first < RECORD_HEADER_BYTES)
        return -EBADMSG;
    int error = disk_read(look->volume, place->segment, place->offset, start, first, look->may_wait);
    if (error < 0 || (error = decode(start, room, &look->record)) < 0)
        return error;
    if (!key_equal(look->record.key, look->key) || look->record.type == RECORD_CHUNK)
        return -ENOENT;
    uint64_t bytes =
            record_body_at(look->record.head_bytes, look->record.body_bytes) + look->record.body_bytes;
    look->bytes = malloc(bytes);
    if (!look->bytes)
        return -ENOMEM;
    memcpy(look->bytes, start, bytes < first ? bytes : first);
    return bytes <= first ? 0
                          : disk_read(look->volume, place->segment, place->offset + first,
                                    look->bytes + first, bytes - first, look->may_wait);
}

const unsigned char *disk_look_content(const struct disk_look *look) {
    return look->bytes + record_body_at(look->record.head_bytes, look->record.body_bytes);
}

int disk_look_read(struct disk_look *look) {
    look->bytes = NULL;
    int error = read_bytes(look);
    if (error == 0) {
        const struct record *record = &look->record;
        const unsigned char *head = look->bytes + RECORD_HEADER_BYTES;
        if (!record_check_head(record, head) ||
                !record_check_body(head + record->head_bytes, record->body_bytes, 0, disk_look_content(look),
                        record->body_bytes))
            error = -EBADMSG;
    }
    if (error == 0)
        return 0;
    free(look->bytes);
    look->bytes = NULL;
    if (error != -ENOENT && error != -EAGAIN && error != -ENOMEM)
        disk_drop_broken(look->open, look->key, look->place, error);
    return error;
}

struct view disk_look_head(const struct disk_look *look) {
    return (struct view){(const char *)look->bytes + RECORD_HEADER_BYTES, look->record.head_bytes};
}

struct stored_head *disk_look_decode(const struct disk_look *look) {
    static const struct head_record_now now = {{0, 0}, 0};
    struct head_record record;
    return head_record_decode(disk_look_head(look), &now, &record);
}

int disk_look_at_all(struct disk_volume *volume, struct volume *open, struct cache_key key, bool may_wait,
        disk_look_visit *visit, void *context) {
    struct volume_place places[TABLE_CANDIDATES_MAX];
    unsigned count = volume_find(open, key, places);
    int error = 0;
    for (unsigned i = 0; i < count; i++) {
        struct disk_look look = {
                .volume = volume, .open = open, .key = key, .place = &places[i], .may_wait = may_wait};
        if (error == 0)
            error = disk_look_read(&look);
        if (error == 0 && look.bytes)
            error = visit(&look, context);
        free(look.bytes);
        segment_put(places[i].segment);
        if (error < 0 && error != -EAGAIN && error != -ENOMEM)
            error = 0; // it is left out
    }
    return error;
}
