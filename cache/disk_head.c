// Response heads on disk: finding and checking, and writing.
#include "admin/check.h"
#include "cache/disk_own.h"
#include "cache/file.h"
#include "cache/memory.h"
#include "cache/vary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES (32 << 10) // read at once: most responses whole

// ---- reading one record ----

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

struct look { // at one candidate
    struct disk_volume *volume;
    struct volume *open;
    struct cache_key key;
    const struct volume_place *place;
    bool may_wait;
    struct record record;
    unsigned char *bytes; // the whole record; malloc
};

// Header first, with as much of the rest as a usual record has.
static int read_bytes(struct look *look) {
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

static const unsigned char *content_of(const struct look *look) {
    return look->bytes + record_body_at(look->record.head_bytes, look->record.body_bytes);
}

// 0: all of it is what was written; -ENOENT: another one's; -EAGAIN; -ENOMEM; else it was dropped.
static int read_candidate(struct look *look) {
    look->bytes = NULL;
    int error = read_bytes(look);
    if (error == 0) {
        const struct record *record = &look->record;
        const unsigned char *head = look->bytes + RECORD_HEADER_BYTES;
        if (!record_check_head(record, head) ||
                !record_check_body(head + record->head_bytes, record->body_bytes, 0, content_of(look),
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

// ---- heads ----

static struct view head_of(const struct look *look) {
    return (struct view){(const char *)look->bytes + RECORD_HEADER_BYTES, look->record.head_bytes};
}

static bool is_named(const struct head_record *record, const struct disk_name *name) {
    return endpoint_equal(&record->destination, name->destination) &&
           view_equal(record->authority, name->authority) && view_equal(record->path, name->path);
}

static bool take_content(struct disk_head *found, const struct look *look, const struct head_record *record) {
    found->content_bytes = look->record.body_bytes;
    found->has_content = look->record.body_bytes > 0 || record->body_length == 0;
    if (look->record.body_bytes == 0)
        return true;
    found->content = malloc(look->record.body_bytes);
    if (found->content)
        memcpy(found->content, content_of(look), look->record.body_bytes);
    return found->content;
}

static struct disk_place place_of(const struct look *look) {
    CHECK(disk_volume_try_get(look->volume));
    return (struct disk_place){look->volume, look->key, look->record.generation};
}

static void head_free(struct disk_head *head) {
    disk_place_put(&head->place);
    free(head->head);
    free(head->content);
    free(head);
}

void disk_heads_free(struct disk_head *heads) {
    while (heads) {
        struct disk_head *head = heads;
        heads = head->next;
        head_free(head);
    }
}

// 0 and one found; -EBADMSG: it cannot have been written; -ENOENT: another URL's; -ENOMEM.
static int make_head(const struct look *look, const struct disk_name *name, const struct head_record_now *now,
        struct disk_head **out) {
    struct head_record record;
    if (!head_record_read(head_of(look), &record))
        return -EBADMSG;
    if (!is_named(&record, name))
        return -ENOENT;
    struct stored_head *stored = head_record_decode(head_of(look), now, 0, &record);
    if (!stored || record.generation != look->record.generation ||
            (look->record.body_bytes > 0 && record.body_length != look->record.body_bytes)) {
        free(stored);
        return -EBADMSG;
    }
    struct disk_head *found = calloc(1, sizeof *found);
    if (!found || !take_content(found, look, &record)) {
        free(found);
        free(stored);
        return -ENOMEM;
    }
    found->head = stored;
    found->place = place_of(look);
    found->location = look->place->location;
    found->sequence = look->record.sequence;
    found->body_length = record.body_length;
    found->gives_ranges = record.gives_ranges;
    found->is_contradicted = record.is_contradicted;
    *out = found;
    return 0;
}

static bool is_later(const struct disk_head *a, const struct disk_head *b) {
    if (a->place.volume == b->place.volume)
        return a->sequence > b->sequence;
    int64_t at_a = a->head->freshness.response_at.steady_s, at_b = b->head->freshness.response_at.steady_s;
    return at_a != at_b ? at_a > at_b : a->place.generation > b->place.generation;
}

static bool replaces(const struct disk_head *a, const struct disk_head *b) {
    return (a->place.volume != b->place.volume || a->place.generation == b->place.generation) &&
           vary_is_same(a->head, b->head);
}

static void drop_found(struct disk_head *head) {
    volume_drop(atomic_load(&head->place.volume->volume), head->place.key, head->location);
    head_free(head);
}

// Into the list, the latest first, in place of those that it replaces.
static void insert(struct disk_head **list, struct disk_head *head) {
    struct disk_head **at = list;
    for (; *at && is_later(*at, head); at = &(*at)->next)
        if (replaces(*at, head)) {
            drop_found(head);
            return;
        }
    head->next = *at;
    *at = head;
    for (struct disk_head **link = &head->next; *link;) {
        struct disk_head *other = *link;
        if (replaces(head, other)) {
            *link = other->next;
            drop_found(other);
        } else
            link = &other->next;
    }
}

// Each candidate's place, given back whatever `visit` says. A negative one ends it.
typedef int look_visit(struct look *look, void *context);
static int look_at_all(struct disk_volume *volume, struct volume *open, struct cache_key key, bool may_wait,
        look_visit *visit, void *context) {
    struct volume_place places[TABLE_CANDIDATES_MAX];
    unsigned count = volume_find(open, key, places);
    int error = 0;
    for (unsigned i = 0; i < count; i++) {
        struct look look = {
                .volume = volume, .open = open, .key = key, .place = &places[i], .may_wait = may_wait};
        if (error == 0)
            error = read_candidate(&look);
        if (error == 0 && look.bytes)
            error = visit(&look, context);
        free(look.bytes);
        segment_put(places[i].segment);
        if (error < 0 && error != -EAGAIN && error != -ENOMEM)
            error = 0; // it is left out
    }
    return error;
}

struct collect {
    const struct disk_name *name;
    const struct head_record_now *now;
    struct disk_head *list;
};

static int collect_one(struct look *look, void *context) {
    struct collect *collect = context;
    struct disk_head *found = NULL;
    int error = make_head(look, collect->name, collect->now, &found);
    if (error == -EBADMSG)
        disk_drop_broken(look->open, look->key, look->place, error);
    if (error == 0)
        insert(&collect->list, found);
    return error;
}

static int read_volume(struct disk_volume *volume, struct collect *collect, bool may_wait) {
    struct volume *open = disk_volume_open(volume);
    if (!open)
        return 0;
    return look_at_all(volume, open, disk_key_of(open, collect->name), may_wait, collect_one, collect);
}

int disk_read_heads(struct disk *disk, const struct disk_name *name, const struct head_record_now *now,
        bool may_wait, struct disk_head **heads) {
    struct disk_volume *volumes[DISK_VOLUMES_MAX];
    struct collect collect = {.name = name, .now = now};
    unsigned count = name->destination->scope ? 0 : disk_list(disk, volumes);
    int error = 0;
    for (unsigned i = 0; i < count; i++) {
        if (error == 0)
            error = read_volume(volumes[i], &collect, may_wait);
        disk_volume_put(volumes[i]);
    }
    if (error < 0) {
        disk_heads_free(collect.list);
        collect.list = NULL;
    }
    *heads = collect.list;
    return error;
}

// ---- writing ----

unsigned char *disk_gather(const struct iovec *parts, int count, uint32_t before, uint32_t *length) {
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += parts[i].iov_len;
    CHECK(bytes <= RECORD_BODY_MAXIMUM);
    unsigned char *all = malloc(before + bytes + 1), *end = all + before;
    for (int i = 0; i < count && all; i++) {
        if (parts[i].iov_len)
            memcpy(end, parts[i].iov_base, parts[i].iov_len);
        end += parts[i].iov_len;
    }
    *length = (uint32_t)bytes;
    return all;
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

static bool is_of(struct look *look, const struct stored_head *head) {
    static const struct head_record_now now = {{0, 0}, 0};
    struct head_record record;
    struct stored_head *stored = head_record_decode(head_of(look), &now, 0, &record);
    bool same = stored && vary_is_same(stored, head);
    free(stored);
    return same;
}

// Whether the record at the place, an earlier one, is replaced by the one that was put.
static bool is_replaced(struct look *look, const struct settling *settling, const struct record *earlier) {
    if (look->place->location == settling->gone)
        return true;
    if (earlier->generation != settling->record->generation ||
            earlier->sequence >= settling->record->sequence || read_candidate(look) < 0)
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
        struct look look = {
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
            memmove(volumes + 1, volumes, i * sizeof(*volumes));
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
    uint32_t content_bytes;
    CHECK(has_content || count == 0);
    unsigned char *all = disk_gather(content, count, 0, &content_bytes);
    if (record->generation == 0)
        record->generation = disk_new_generation(disk);
    if (has_content)
        record->body_length = content_bytes;
    int error = all ? writing_init(&writing, record, head, all, content_bytes) : -ENOMEM;
    if (error == 0) {
        writing.record.type = RECORD_HEAD;
        error = put_somewhere(disk, &name, &writing, head, place, location);
    }
    if (all)
        free(writing.head);
    free(all);
    return error;
}

// ---- updates ----

struct content { // of a representation, from whichever of its records has it
    uint64_t generation;
    unsigned char *bytes; // malloc
    uint32_t length;
};

static int find_content(struct look *look, void *context) {
    struct content *content = context;
    if (content->bytes || look->record.generation != content->generation || look->record.body_bytes == 0)
        return 0;
    content->bytes = malloc(look->record.body_bytes);
    if (!content->bytes)
        return -ENOMEM;
    memcpy(content->bytes, content_of(look), look->record.body_bytes);
    content->length = look->record.body_bytes;
    return 0;
}

int disk_put_update(const struct disk_place *place, const struct head_record *record,
        const struct stored_head *head, uint64_t *location) {
    struct volume *open = disk_volume_open(place->volume);
    struct head_record own = *record;
    struct content content = {.generation = place->generation};
    struct writing writing = {0};
    if (!open)
        return -EIO;
    own.generation = place->generation;
    int error = look_at_all(place->volume, open, place->key, true, find_content, &content);
    if (content.bytes)
        own.body_length = content.length;
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

// ---- hits and drops ----

void disk_hit(const struct disk_place *place, uint64_t location) {
    struct volume *open = disk_volume_open(place->volume);
    if (open && location != DISK_LOCATION_NONE)
        volume_hit(open, place->key, location);
}

void disk_drop(const struct disk_place *place, uint64_t location, bool is_lasting) {
    struct volume *open = atomic_load(&place->volume->volume);
    (void)is_lasting;
    if (location != DISK_LOCATION_NONE)
        volume_drop(open, place->key, location);
}
