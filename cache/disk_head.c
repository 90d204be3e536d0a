// Finding response heads: those of a name, in whichever volumes, each variant's and generation's latest.
#include "admin/check.h"
#include "cache/disk_own.h"
#include "cache/vary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_named(const struct head_record *record, const struct disk_name *name) {
    return endpoint_equal(&record->destination, name->destination) &&
           view_equal(record->authority, name->authority) && view_equal(record->path, name->path);
}

static void take_content(struct disk_head *found, struct disk_look *look, const struct head_record *record) {
    found->content_bytes = look->record.body_bytes;
    found->has_content = look->record.body_bytes > 0 || record->body_length == 0;
    if (look->record.body_bytes == 0)
        return;
    found->content = look->bytes + record_body_at(look->record.head_bytes, look->record.body_bytes);
    found->memory = look->bytes;
    look->bytes = NULL;
}

static struct disk_place place_of(const struct disk_look *look) {
    CHECK(disk_volume_try_get(look->volume));
    return (struct disk_place){look->volume, look->key, look->record.generation};
}

static void head_free(struct disk_head *head) {
    disk_place_put(&head->place);
    free(head->head);
    free(head->memory);
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
static int make_head(struct disk_look *look, const struct disk_name *name, const struct head_record_now *now,
        struct disk_head **out) {
    struct head_record record;
    if (!head_record_read(disk_look_head(look), &record))
        return -EBADMSG;
    if (!is_named(&record, name))
        return -ENOENT;
    if (volume_is_purged(look->open, look->key, record.authority, record.path, look->record.sequence)) {
        volume_drop(look->open, look->key, look->place->location);
        return -ENOENT;
    }
    struct stored_head *stored = head_record_decode(disk_look_head(look), now, &record);
    if (!stored || record.generation != look->record.generation ||
            (look->record.body_bytes > 0 && record.body_length != look->record.body_bytes)) {
        free(stored);
        return -EBADMSG;
    }
    struct disk_head *found = calloc(1, sizeof *found);
    if (!found) {
        free(stored);
        return -ENOMEM;
    }
    take_content(found, look, &record);
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

struct collect {
    const struct disk_name *name;
    const struct head_record_now *now;
    struct disk_head *list;
};

static int collect_one(struct disk_look *look, void *context) {
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
    return disk_look_at_all(volume, open, disk_key_of(open, collect->name), may_wait, collect_one, collect);
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

void disk_hit(const struct disk_place *place, uint64_t location) {
    struct volume *open = disk_volume_open(place->volume);
    if (open && location != DISK_LOCATION_NONE)
        volume_hit(open, place->key, location);
}
