// Writing response heads, and others for the same representation.
#include "admin/check.h"
#include "cache/disk_own.h"
#include "cache/vary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int disk_gather(const struct iovec *parts, int count, struct view *all, unsigned char **copy) {
    size_t bytes = 0;
    *copy = NULL;
    for (int i = 0; i < count; i++)
        bytes += parts[i].iov_len;
    CHECK(bytes <= RECORD_BODY_MAXIMUM);
    *all = (struct view){count ? parts[0].iov_base : "", bytes};
    if (count <= 1)
        return 0;
    unsigned char *end = *copy = malloc(bytes + 1);
    for (int i = 0; i < count && *copy; i++) {
        if (parts[i].iov_len)
            memcpy(end, parts[i].iov_base, parts[i].iov_len);
        end += parts[i].iov_len;
    }
    all->data = (const char *)*copy;
    return *copy ? 0 : -ENOMEM;
}

struct writing { // of one head, whole, in one piece
    struct record record;
    unsigned char *head; // malloc
    size_t head_bytes;
    const unsigned char *content;
    unsigned char crcs[sizeof(uint32_t) * (RECORD_SMALL_BYTES / RECORD_CRC_BYTES)];
};

// 0, -EINVAL or -ENOMEM. `content` stays the caller's.
static int writing_init(struct writing *writing, const struct head_record *record,
        const struct stored_head *head, const unsigned char *content, uint32_t content_bytes) {
    size_t bytes = record->destination.scope ? 0 : head_record_encode(record, head, NULL, 0);
    *writing = (struct writing){.content = content};
    if (bytes == 0)
        return -EINVAL;
    writing->head = malloc(bytes);
    if (!writing->head)
        return -ENOMEM;
    writing->head_bytes = head_record_encode(record, head, writing->head, bytes);
    CHECK(writing->head_bytes == bytes && content_bytes <= RECORD_SMALL_BYTES);
    writing->record.body_bytes = content_bytes;
    writing->record.generation = record->generation;
    record_set_head(&writing->record, writing->head, writing->head_bytes);
    record_write_crcs(content, content_bytes, writing->crcs);
    return 0;
}

struct settling { // what a put left in its volume
    const struct record *record;
    const struct stored_head *head;
    uint64_t gone; // this one is replaced in any case
    uint64_t location;
};

static bool is_of(const struct disk_look *look, const struct stored_head *head) {
    struct stored_head *stored = disk_look_decode(look);
    bool same = stored && vary_is_same(stored, head);
    free(stored);
    return same;
}

// Whether the record at the place, an earlier one, is replaced by the one that was put.
static bool is_replaced(
        struct disk_look *look, const struct settling *settling, const struct record *earlier) {
    if (look->place->location == settling->gone)
        return true;
    if (earlier->generation != settling->record->generation ||
            earlier->sequence >= settling->record->sequence || disk_look_read(look) < 0)
        return false;
    bool same = is_of(look, settling->head);
    free(look->bytes);
    return same;
}

static void settle(struct disk_volume *volume, struct volume *open, struct settling *settling) {
    struct volume_place places[TABLE_CANDIDATES_MAX];
    struct cache_key key = settling->record->key;
    unsigned count = volume_find(open, key, places);
    for (unsigned i = 0; i < count; i++) {
        struct disk_look look = {
                .volume = volume, .open = open, .key = key, .place = &places[i], .may_wait = true};
        struct record record;
        if (disk_read_header(volume, open, key, &places[i], true, &record) == 0 &&
                key_equal(record.key, key) && record.type != RECORD_CHUNK) {
            if (record.sequence == settling->record->sequence)
                settling->location = places[i].location;
            else if (is_replaced(&look, settling, &record))
                volume_drop(open, key, places[i].location);
        }
        segment_put(places[i].segment);
    }
}

static int write_head(struct disk_volume *volume, struct volume *open, struct writing *writing,
        const struct stored_head *head, uint64_t *location) {
    struct iovec payload[] = {{writing->head, writing->head_bytes},
            {writing->crcs, record_crcs_bytes(writing->record.body_bytes)},
            {(void *)writing->content, writing->record.body_bytes}};
    int error = volume_put(open, &writing->record, payload, writing->record.body_bytes ? 3 : 1);
    if (error < 0)
        return error;
    struct settling settling = {
            .record = &writing->record, .head = head, .gone = *location, .location = DISK_LOCATION_NONE};
    settle(volume, open, &settling);
    *location = settling.location;
    return 0;
}

// The thread's own volume comes first, when it is among them: another one's disk is not this one's fault.
static void put_own_first(struct disk_volume **volumes, unsigned count) {
    const struct disk_volume *own = disk_io_own();
    for (unsigned i = 1; i < count; i++)
        if (volumes[i] == own) {
            struct disk_volume *volume = volumes[i];
            for (; i > 0; i--)
                volumes[i] = volumes[i - 1];
            volumes[0] = volume;
            return;
        }
}

static int put_somewhere(struct disk *disk, const struct disk_name *name, struct writing *writing,
        const struct stored_head *head, struct disk_place *place, uint64_t *location) {
    struct disk_volume *volumes[DISK_VOLUMES_MAX];
    unsigned count = disk_rank(disk, name, volumes);
    int error = -EIO;
    bool goes_on = true;
    put_own_first(volumes, count);
    for (unsigned i = 0; i < count; i++) {
        struct volume *open = goes_on ? disk_volume_open(volumes[i]) : NULL;
        if (open) {
            *location = DISK_LOCATION_NONE;
            writing->record.key = disk_key_of(open, name);
            error = write_head(volumes[i], open, writing, head, location);
            goes_on = error < 0 && disk_refused(volumes[i], error);
        }
        if (open && error == 0)
            *place = (struct disk_place){volumes[i], writing->record.key, writing->record.generation};
        else
            disk_volume_put(volumes[i]);
    }
    return error;
}

int disk_put_head(struct disk *disk, struct head_record *record, const struct stored_head *head,
        bool has_content, const struct iovec *content, int count, struct disk_place *place,
        uint64_t *location) {
    struct disk_name name = {&record->destination, record->authority, record->path};
    struct writing writing;
    struct view all;
    unsigned char *copy;
    CHECK(has_content || count == 0);
    int error = disk_gather(content, count, &all, &copy);
    if (error < 0)
        return error;
    if (record->generation == 0)
        record->generation = disk_new_generation(disk);
    if (has_content)
        record->body_length = (int64_t)all.length;
    error = writing_init(&writing, record, head, (const unsigned char *)all.data, (uint32_t)all.length);
    if (error == 0) {
        writing.record.type = RECORD_HEAD;
        error = put_somewhere(disk, &name, &writing, head, place, location);
    }
    free(writing.head);
    free(copy);
    return error;
}

// ---- updates ----

struct content { // of a representation, from whichever of its records has it
    uint64_t generation;
    const struct head_record *record;
    bool is_purged;
    unsigned char *bytes; // malloc
    uint32_t length;
};

static int find_content(struct disk_look *look, void *context) {
    struct content *content = context;
    if (content->bytes || look->record.generation != content->generation)
        return 0;
    content->is_purged =
            content->is_purged || volume_is_purged(look->open, look->key, content->record->authority,
                                          content->record->path, look->record.sequence);
    if (look->record.body_bytes == 0)
        return 0;
    content->bytes = malloc(look->record.body_bytes);
    if (!content->bytes)
        return -ENOMEM;
    memcpy(content->bytes, disk_look_content(look), look->record.body_bytes);
    content->length = look->record.body_bytes;
    return 0;
}

int disk_put_update(const struct disk_place *place, const struct head_record *record,
        const struct stored_head *head, uint64_t *location) {
    struct volume *open = disk_volume_open(place->volume);
    struct head_record own = *record;
    struct content content = {.generation = place->generation, .record = record};
    struct writing writing = {0};
    if (!open)
        return -EIO;
    own.generation = place->generation;
    int error = disk_look_at_all(place->volume, open, place->key, true, find_content, &content);
    if (content.bytes)
        own.body_length = content.length;
    if (error == 0 && content.is_purged)
        error = -ENODATA;
    if (error == 0)
        error = writing_init(&writing, &own, head, content.bytes, content.length);
    if (error == 0) {
        writing.record.key = place->key;
        writing.record.type = content.bytes ? RECORD_HEAD : RECORD_UPDATE;
        error = write_head(place->volume, open, &writing, head, location);
    }
    free(writing.head);
    free(content.bytes);
    return error;
}
