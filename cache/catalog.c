#include "cache/catalog.h"

#include "cache/memory.h"
#include "cache/offline_purge.h"
#include "cache/segment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 1024

enum kind { RESPONSE = 1, CONTENT, CHUNK, GENERATION };

struct slot { // id 0: free
    uint64_t id, sequence;
    uint32_t segment; // its place in `segments`
    uint32_t offset;  // in units of RECORD_ALIGNMENT
    uint32_t bytes;   // of content; GENERATION: the highest number of a chunk
    uint32_t wall_s;  // of a response, until 2106; GENERATION: chunks
};

struct catalog {
    struct offline *offline;
    uint64_t seed;
    const struct offline_watch *watch;
    struct slot *slots; // a power of two, at most three of four taken
    uint64_t count, room;
    uint64_t *segments;
    uint32_t segment_count, segment_room;
    struct purge *purge;
    catalog_match *matches;
};

// ---- names of things ----

static uint64_t id_of(enum kind kind, struct cache_key key, uint64_t more) {
    uint64_t id = key_fold(key_of_chunk(key, more, kind));
    return id ? id : 1;
}

static uint64_t id_of_response(struct cache_key key, const struct stored_head *head) {
    static const struct endpoint nowhere;
    struct cache_key variant = key_of(0, &nowhere, head->vary, head->selectors);
    return id_of(RESPONSE, key, variant.low ^ variant.high);
}

// ---- the table ----

static struct slot *place_of(struct slot *slots, uint64_t room, uint64_t id) {
    uint64_t at = id & (room - 1);
    while (slots[at].id && slots[at].id != id)
        at = (at + 1) & (room - 1);
    return &slots[at];
}

static void grow(struct catalog *catalog) {
    uint64_t room = catalog->room ? catalog->room * 2 : FIRST_SLOTS;
    struct slot *slots = memory_new(room * sizeof *slots);
    memset(slots, 0, room * sizeof *slots);
    for (uint64_t i = 0; i < catalog->room; i++)
        if (catalog->slots[i].id)
            *place_of(slots, room, catalog->slots[i].id) = catalog->slots[i];
    free(catalog->slots);
    catalog->slots = slots;
    catalog->room = room;
}

// A new one is zeros.
static struct slot *enter(struct catalog *catalog, uint64_t id) {
    if (catalog->count >= catalog->room / 4 * 3)
        grow(catalog);
    struct slot *slot = place_of(catalog->slots, catalog->room, id);
    catalog->count += slot->id == 0;
    slot->id = id;
    return slot;
}

static const struct slot *find(const struct catalog *catalog, uint64_t id) {
    const struct slot *slot = catalog->room ? place_of(catalog->slots, catalog->room, id) : NULL;
    return slot && slot->id ? slot : NULL;
}

static uint32_t segment_place(struct catalog *catalog, uint64_t number) {
    uint32_t count = catalog->segment_count;
    if (count > 0 && catalog->segments[count - 1] == number)
        return count - 1;
    if (count == catalog->segment_room) {
        catalog->segment_room = count ? count * 2 : 256;
        uint64_t *segments = memory_new(catalog->segment_room * sizeof *segments);
        if (count)
            memcpy(segments, catalog->segments, count * sizeof *segments);
        free(catalog->segments);
        catalog->segments = segments;
    }
    catalog->segments[count] = number;
    return catalog->segment_count++;
}

static void note(struct catalog *catalog, struct slot *slot, const struct offline_record *found) {
    slot->sequence = found->record.sequence;
    slot->segment = segment_place(catalog, found->segment);
    slot->offset = (uint32_t)(found->offset / RECORD_ALIGNMENT);
    slot->bytes = found->record.body_bytes;
}

static bool is_at(
        const struct catalog *catalog, const struct slot *slot, const struct offline_record *found) {
    return slot && slot->offset == found->offset / RECORD_ALIGNMENT &&
           catalog->segments[slot->segment] == found->segment;
}

// ---- reading ----

static bool is_purged(
        const struct catalog *catalog, const struct record *record, const struct head_record *head) {
    struct purge_asked asked = {record->key, head->authority, head->path, record->sequence};
    return purge_matches(catalog->purge, &asked, catalog->matches, catalog->watch->context);
}

static void note_chunk(struct catalog *catalog, const struct offline_record *found) {
    const struct record *record = &found->record;
    static const struct cache_key none;
    struct slot *chunk = enter(catalog, id_of(CHUNK, record->key, record->generation));
    bool is_new = chunk->bytes == 0;
    if (chunk->bytes >= record->body_bytes)
        return;
    note(catalog, chunk, found);
    struct slot *all = enter(catalog, id_of(GENERATION, none, record->generation));
    all->wall_s += is_new;
    if (record->number > all->bytes)
        all->bytes = record->number;
}

static void note_head(struct catalog *catalog, const struct offline_record *found,
        const struct head_record *record, const struct stored_head *head) {
    if (found->record.body_bytes > 0) {
        struct slot *content = enter(catalog, id_of(CONTENT, found->record.key, record->generation));
        if (content->bytes == 0)
            note(catalog, content, found);
    }
    struct slot *slot = enter(catalog, id_of_response(found->record.key, head));
    int64_t wall_s = head->freshness.response_at.wall_s;
    if (slot->offset != 0 && slot->sequence >= found->record.sequence) // no record lies at 0
        return;
    note(catalog, slot, found);
    slot->wall_s = (uint32_t)(wall_s < 0 ? 0 : wall_s > UINT32_MAX ? UINT32_MAX : wall_s);
}

static bool read_record(void *context, const struct offline_record *found) {
    static const struct head_record_now now = {{0, 0}, 0};
    struct catalog *catalog = context;
    struct head_record record;
    if (found->record.type == RECORD_CHUNK) {
        note_chunk(catalog, found);
        return true;
    }
    struct view bytes = {(const char *)found->bytes + RECORD_HEADER_BYTES, found->record.head_bytes};
    struct stored_head *head = head_record_decode(bytes, &now, &record);
    if (head && !is_purged(catalog, &found->record, &record))
        note_head(catalog, found, &record, head);
    free(head);
    return true;
}

struct telling { // the watcher's context is not the catalog's
    struct catalog *catalog;
    const struct offline_watch *watch;
};

static void pass_on(void *context, const char *file, uint64_t offset, const char *what) {
    const struct telling *telling = context;
    if (telling->watch->tell)
        telling->watch->tell(telling->watch->context, file, offset, what);
}

static bool read_one(void *context, const struct offline_record *found) {
    return read_record(((struct telling *)context)->catalog, found);
}

struct catalog *catalog_read(struct offline *offline, const struct offline_watch *watch,
        catalog_match *matches, struct offline_count *count, int *error) {
    struct catalog *catalog = memory_new(sizeof *catalog);
    bool is_good;
    *catalog = (struct catalog){
            .offline = offline, .seed = offline_super(offline)->seed, .watch = watch, .matches = matches};
    catalog->purge = offline_purges(offline, &is_good);
    struct telling telling = {catalog, watch};
    struct offline_watch own = {pass_on, read_one, &telling};
    *error = offline_walk(offline, &own, count);
    if (*error == 0)
        return catalog;
    catalog_free(catalog);
    return NULL;
}

void catalog_free(struct catalog *catalog) {
    if (!catalog)
        return;
    purge_free(catalog->purge);
    free(catalog->slots);
    free(catalog->segments);
    free(catalog);
}

// ---- going through it ----

struct walking {
    const struct catalog *catalog;
    const struct head_record_now *now;
    catalog_visit *visit;
    void *context;
};

static const struct slot *chunk_at(
        const struct catalog *catalog, struct cache_key key, uint64_t generation, uint64_t number) {
    return find(catalog, id_of(CHUNK, key_of_chunk(key, generation, (uint32_t)number), generation));
}

// What there is of it in chunks.
static uint64_t chunk_bytes(const struct catalog *catalog, struct cache_key key, uint64_t generation) {
    static const struct cache_key none;
    const struct slot *all = find(catalog, id_of(GENERATION, none, generation));
    uint64_t bytes = 0;
    for (uint64_t n = 0, left = all ? all->wall_s : 0; left > 0 && n <= all->bytes; n++) {
        const struct slot *chunk = chunk_at(catalog, key, generation, n);
        bytes += chunk ? chunk->bytes : 0;
        left -= chunk != NULL;
    }
    return bytes;
}

static uint64_t bytes_there(const struct catalog *catalog, const struct record *record) {
    const struct slot *content = find(catalog, id_of(CONTENT, record->key, record->generation));
    return content ? content->bytes : chunk_bytes(catalog, record->key, record->generation);
}

static bool show(void *context, const struct offline_record *found) {
    const struct walking *walking = context;
    const struct catalog *catalog = walking->catalog;
    struct head_record record;
    if (found->record.type == RECORD_CHUNK)
        return true;
    struct view bytes = {(const char *)found->bytes + RECORD_HEADER_BYTES, found->record.head_bytes};
    struct stored_head *head = head_record_decode(bytes, walking->now, &record);
    bool goes_on = true;
    if (head && is_at(catalog, find(catalog, id_of_response(found->record.key, head)), found)) {
        struct catalog_response response = {found, head, &record, bytes_there(catalog, &found->record)};
        goes_on = walking->visit(walking->context, &response);
    }
    free(head);
    return goes_on;
}

int catalog_walk(const struct catalog *catalog, const struct head_record_now *now, catalog_visit *visit,
        void *context) {
    struct walking walking = {catalog, now, visit, context};
    struct offline_watch watch = {.visit = show, .context = &walking};
    struct offline_count count;
    return offline_walk(catalog->offline, &watch, &count);
}

int64_t catalog_time(
        const struct catalog *catalog, const struct head_record *record, const struct stored_head *head) {
    struct cache_key key = key_of(catalog->seed, &record->destination, record->authority, record->path);
    const struct slot *slot = find(catalog, id_of_response(key, head));
    return slot ? (int64_t)slot->wall_s : -1;
}

static int read_content(
        const struct catalog *catalog, const struct slot *slot, unsigned char *buffer, struct view *content) {
    struct record record;
    if (!slot)
        return -ENODATA;
    int error = offline_read(catalog->offline, catalog->segments[slot->segment],
            (uint64_t)slot->offset * RECORD_ALIGNMENT, buffer, &record);
    if (error == 0)
        *content = (struct view){(const char *)buffer + record_body_at(record.head_bytes, record.body_bytes),
                record.body_bytes};
    return error;
}

int catalog_content(const struct catalog *catalog, const struct catalog_response *response,
        unsigned char *buffer, struct view *content) {
    const struct record *record = &response->found->record;
    return read_content(
            catalog, find(catalog, id_of(CONTENT, record->key, record->generation)), buffer, content);
}

int catalog_chunk(const struct catalog *catalog, const struct catalog_response *response, uint32_t *number,
        unsigned char *buffer, struct view *content) {
    static const struct cache_key none;
    const struct record *record = &response->found->record;
    const struct slot *all = find(catalog, id_of(GENERATION, none, record->generation));
    for (uint64_t n = *number; all && n <= all->bytes; n++) {
        const struct slot *chunk = chunk_at(catalog, record->key, record->generation, n);
        *number = (uint32_t)n;
        if (chunk && read_content(catalog, chunk, buffer, content) == 0)
            return 0;
    }
    return -ENODATA;
}
