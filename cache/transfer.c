#include "cache/transfer.h"

#include "cache/memory.h"
#include "cache/segment.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define ATTEMPTS_MAX 100 // of a put, while the volume makes room

// ---- out ----

struct leaving {
    const struct catalog *catalog;
    transfer_wanted *wanted;
    parcel_write *write;
    void *context;
    struct transfer_count *count;
    unsigned char *buffer;
    int error;
};

static int write_chunks(struct leaving *leaving, const struct catalog_response *response) {
    struct parcel_part part = {.kind = PARCEL_CHUNK};
    int error = 0;
    while (error == 0 &&
            catalog_chunk(leaving->catalog, response, &part.number, leaving->buffer, &part.content) == 0) {
        error = parcel_put(&part, leaving->write, leaving->context);
        leaving->count->bytes += part.content.length;
        if (part.number++ == UINT32_MAX - 1)
            break;
    }
    return error;
}

static bool write_response(void *context, const struct catalog_response *response) {
    struct leaving *leaving = context;
    const struct record *record = &response->found->record;
    struct parcel_part part = {.kind = PARCEL_HEAD,
            .head = {(const char *)response->found->bytes + RECORD_HEADER_BYTES, record->head_bytes}};
    if (leaving->wanted && !leaving->wanted(leaving->context, response))
        return true;
    if (catalog_content(leaving->catalog, response, leaving->buffer, &part.content) < 0)
        part.content = (struct view){0};
    if (part.content.length > RECORD_SMALL_BYTES)
        return true; // nobody writes such a one
    leaving->error = parcel_put(&part, leaving->write, leaving->context);
    leaving->count->responses++;
    leaving->count->bytes += part.content.length;
    if (leaving->error == 0 && part.content.length == 0)
        leaving->error = write_chunks(leaving, response);
    return leaving->error == 0;
}

int transfer_export(const struct catalog *catalog, const struct head_record_now *now, transfer_wanted *wanted,
        parcel_write *write, void *context, struct transfer_count *count) {
    struct leaving leaving = {catalog, wanted, write, context, count, memory_new(SEGMENT_RECORD_MAXIMUM), 0};
    *count = (struct transfer_count){0};
    leaving.error = parcel_begin(write, context);
    if (leaving.error == 0) {
        int error = catalog_walk(catalog, now, write_response, &leaving);
        if (leaving.error == 0)
            leaving.error = error;
    }
    free(leaving.buffer);
    struct parcel_part end = {.kind = PARCEL_END, .number = (uint32_t)count->responses};
    return leaving.error == 0 ? parcel_put(&end, write, context) : leaving.error;
}

// ---- in ----

struct coming {
    struct volume *volume;
    const struct catalog *there;
    const struct head_record_now *now;
    struct transfer_count *count;
    uint64_t generation; // the last one given
    bool takes_chunks;
    struct cache_key key; // of the response that chunks belong to
    int64_t body_length;  // of it; -1: not known
};

static int put(struct coming *coming, struct record *record, const struct iovec *payload, int count) {
    int error = -EAGAIN;
    for (unsigned i = 0; i < ATTEMPTS_MAX && (error == -EAGAIN || error == -ENOSPC); i++) {
        if (i > 0)
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        record->sequence = 0;
        error = volume_put(coming->volume, record, payload, count);
    }
    return error;
}

static int put_with_content(
        struct coming *coming, struct record *record, struct view head, struct view content) {
    unsigned char crcs[sizeof(uint32_t) * (RECORD_BODY_MAXIMUM / RECORD_CRC_BYTES)];
    struct iovec payload[3];
    int count = 0;
    record->body_bytes = (uint32_t)content.length;
    record_write_crcs(content.data, record->body_bytes, crcs);
    if (head.length)
        payload[count++] = (struct iovec){(void *)head.data, head.length};
    if (content.length) {
        payload[count++] = (struct iovec){crcs, record_crcs_bytes(record->body_bytes)};
        payload[count++] = (struct iovec){(void *)content.data, content.length};
    }
    return put(coming, record, payload, count);
}

// Encodes it with the generation it gets here, and without times of another machine's clock.
static int put_head(struct coming *coming, struct head_record *head, const struct stored_head *stored,
        struct view content) {
    head->generation = ++coming->generation;
    head->boot = 0;
    size_t length = head->destination.scope ? 0 : head_record_encode(head, stored, NULL, 0);
    if (length == 0)
        return -EINVAL;
    unsigned char *bytes = memory_new(length);
    head_record_encode(head, stored, bytes, length);
    struct record record = {.type = RECORD_HEAD,
            .generation = head->generation,
            .key = key_of(volume_seed(coming->volume), &head->destination, head->authority, head->path)};
    record_set_head(&record, bytes, length);
    int error = put_with_content(coming, &record, (struct view){(char *)bytes, length}, content);
    free(bytes);
    coming->key = record.key;
    return error;
}

// What could not be put under these names may not come with this length either.
static bool fits(const struct head_record *head, struct view content) {
    return content.length == 0 || head->body_length == (int64_t)content.length;
}

static int take_head(struct coming *coming, const struct parcel_part *part) {
    struct head_record head;
    struct stored_head *stored = head_record_decode(part->head, coming->now, &head);
    coming->takes_chunks = false;
    if (!stored || !fits(&head, part->content)) {
        free(stored);
        coming->count->refused++;
        return 0;
    }
    bool is_old = coming->there &&
                  catalog_time(coming->there, &head, stored) >= stored->freshness.response_at.wall_s;
    int error = is_old ? 0 : put_head(coming, &head, stored, part->content);
    free(stored);
    coming->body_length = head.body_length;
    coming->takes_chunks = error == 0 && !is_old && part->content.length == 0;
    coming->count->skipped += is_old;
    coming->count->responses += error == 0 && !is_old;
    coming->count->bytes += error == 0 && !is_old ? part->content.length : 0;
    coming->count->refused += error == -EINVAL || error == -EFBIG;
    return error == -EINVAL || error == -EFBIG ? 0 : error;
}

static int take_chunk(struct coming *coming, const struct parcel_part *part) {
    uint64_t at = (uint64_t)part->number * RECORD_CHUNK_BYTES;
    if (!coming->takes_chunks ||
            (coming->body_length >= 0 && at + part->content.length > (uint64_t)coming->body_length))
        return 0;
    struct record record = {.type = RECORD_CHUNK,
            .key = key_of_chunk(coming->key, coming->generation, part->number),
            .generation = coming->generation,
            .number = part->number};
    record_set_head(&record, NULL, 0);
    int error = put_with_content(coming, &record, (struct view){0}, part->content);
    coming->count->bytes += error == 0 ? part->content.length : 0;
    return error == -EFBIG ? 0 : error; // a hole
}

static uint64_t first_generation(void) { // as those are that a running weir gives
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int transfer_import(struct volume *volume, const struct catalog *there, struct parcel_reader *reader,
        const struct head_record_now *now, struct transfer_count *count) {
    struct coming coming = {
            .volume = volume, .there = there, .now = now, .count = count, .generation = first_generation()};
    struct parcel_part part = {0};
    *count = (struct transfer_count){0};
    int error = 0;
    while (error == 0 && part.kind != PARCEL_END) {
        error = parcel_next(reader, &part);
        if (error == 0 && part.kind == PARCEL_HEAD)
            error = take_head(&coming, &part);
        else if (error == 0 && part.kind == PARCEL_CHUNK)
            error = take_chunk(&coming, &part);
    }
    return error;
}
