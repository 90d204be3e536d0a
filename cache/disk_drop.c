// Dropping a head, so that it does not come back after a crash.
#include "cache/disk_own.h"
#include "cache/vary.h"

#include <stdlib.h>

struct dropping {
    uint64_t location, sequence;
    struct stored_head *head; // of what is dropped
};

static int find_dropped(struct disk_look *look, void *context) {
    struct dropping *dropping = context;
    if (look->place->location == dropping->location) {
        dropping->sequence = look->record.sequence;
        dropping->head = disk_look_decode(look);
    }
    return 0;
}

// A tombstone is the key's: another variant is written again, behind it.
static int keep_other(struct disk_look *look, void *context) {
    const struct dropping *dropping = context;
    struct stored_head *head = disk_look_decode(look);
    if (head && look->record.sequence <= dropping->sequence && !vary_is_same(head, dropping->head)) {
        struct record record = look->record;
        struct iovec payload = {
                look->bytes + RECORD_HEADER_BYTES, record_body_at(record.head_bytes, record.body_bytes) +
                                                           record.body_bytes - RECORD_HEADER_BYTES};
        volume_put(look->open, &record, &payload, 1);
    }
    if (look->record.sequence <= dropping->sequence)
        volume_drop(look->open, look->key, look->place->location);
    free(head);
    return 0;
}

// When it does not lie there any more, all that lies under the key goes.
static void drop_for_good(const struct disk_place *place, struct volume *open, uint64_t location) {
    struct dropping dropping = {.location = location, .sequence = volume_sequence(open)};
    if (disk_volume_open(place->volume))
        disk_look_at_all(place->volume, open, place->key, true, find_dropped, &dropping);
    if (dropping.head)
        disk_look_at_all(place->volume, open, place->key, true, keep_other, &dropping);
    free(dropping.head);
    disk_purge_key(place->volume, place->key, dropping.sequence);
}

void disk_drop(const struct disk_place *place, uint64_t location, bool is_lasting) {
    struct volume *open = atomic_load(&place->volume->volume);
    if (is_lasting)
        drop_for_good(place, open, location);
    if (location != DISK_LOCATION_NONE)
        volume_drop(open, place->key, location);
}

void disk_drop_until(const struct disk_place *place, uint64_t sequence) {
    disk_purge_key(place->volume, place->key, sequence);
}

uint64_t disk_sequence(const struct disk_place *place) {
    return volume_sequence(atomic_load(&place->volume->volume));
}
