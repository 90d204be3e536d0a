#include "cache/segment.h"

#include "admin/check.h"
#include "cache/file.h"
#include "cache/little.h"
#include "cache/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_BYTES RECORD_HEADER_BYTES
#define NAME_BYTES 24
#define FIRST_ENTRIES 64
#define CONTENTS_PIECE (256 << 10) // of a table of contents read at once

struct segment {
    _Atomic uint32_t references; // 0: in the pool
    int fd, directory;
    struct segment_label label;
    uint64_t bytes; // at most, with the table of contents
    _Atomic uint64_t used;
    uint64_t sequence, overhead;
    _Atomic bool sealed;
    bool closed; // takes no more
    bool broken;
    bool in_memory;
    struct segment_entry *entries; // NULL once sealed: they are on the disk
    uint64_t entry_count, entry_room;
    uint64_t held_bytes; // see segment_unlink
    _Atomic uint64_t *held;
    struct segment *next;
};

// ---- memory that is only reused: a stale pointer still points to a segment ----

static struct segment *pool;
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;

static struct segment *segment_new(int directory, const struct segment_label *label, uint64_t bytes) {
    pthread_mutex_lock(&pool_lock);
    struct segment *segment = pool;
    if (segment)
        pool = segment->next;
    pthread_mutex_unlock(&pool_lock);
    if (!segment) {
        segment = memory_new(sizeof *segment);
        atomic_init(&segment->references, 0);
        atomic_init(&segment->used, 0);
        atomic_init(&segment->sealed, false);
    }
    segment->fd = -1;
    segment->directory = directory;
    segment->label = *label;
    segment->bytes = bytes;
    atomic_store_explicit(&segment->used, LABEL_BYTES, memory_order_relaxed);
    atomic_store_explicit(&segment->sealed, false, memory_order_relaxed);
    segment->sequence = segment->overhead = 0;
    segment->closed = segment->broken = segment->in_memory = false;
    segment->entries = NULL;
    segment->entry_count = segment->entry_room = 0;
    segment->held_bytes = 0;
    segment->held = NULL;
    segment->next = NULL;
    atomic_store_explicit(&segment->references, 1, memory_order_release);
    return segment;
}

struct segment *segment_get(struct segment *segment) {
    CHECK(atomic_fetch_add_explicit(&segment->references, 1, memory_order_relaxed) > 0);
    return segment;
}

bool segment_try_get(struct segment *segment) {
    uint32_t references = atomic_load_explicit(&segment->references, memory_order_relaxed);
    while (references > 0)
        if (atomic_compare_exchange_weak_explicit(&segment->references, &references, references + 1,
                    memory_order_acquire, memory_order_relaxed))
            return true;
    return false;
}

static void forget_entries(struct segment *segment) {
    free(segment->entries);
    segment->entries = NULL;
    segment->entry_count = segment->entry_room = 0;
}

void segment_put(struct segment *segment) {
    uint32_t before = atomic_fetch_sub_explicit(&segment->references, 1, memory_order_acq_rel);
    CHECK(before > 0);
    if (before > 1)
        return;
    file_close(segment->fd);
    if (segment->held)
        atomic_fetch_sub(segment->held, segment->held_bytes);
    forget_entries(segment);
    pthread_mutex_lock(&pool_lock);
    segment->next = pool;
    pool = segment;
    pthread_mutex_unlock(&pool_lock);
}

// ---- what is asked of it ----

const struct segment_label *segment_label(const struct segment *segment) {
    return &segment->label;
}

uint64_t segment_used(const struct segment *segment) {
    return atomic_load_explicit(&segment->used, memory_order_acquire);
}

uint64_t segment_sequence(const struct segment *segment) {
    return segment->sequence;
}

uint64_t segment_overhead(const struct segment *segment) {
    return segment->overhead;
}

bool segment_is_sealed(const struct segment *segment) {
    return atomic_load_explicit(&segment->sealed, memory_order_acquire);
}

bool segment_is_in_memory(const struct segment *segment) {
    return segment->in_memory;
}

bool segment_was_broken(const struct segment *segment) {
    return segment->broken;
}

int segment_descriptor(const struct segment *segment) {
    return segment->fd;
}

int segment_disk_bytes(const struct segment *segment, uint64_t *bytes) {
    return file_blocks(segment->fd, bytes);
}

// ---- names ----

static void name_of(uint64_t number, char name[static NAME_BYTES]) {
    snprintf(name, NAME_BYTES, "%08llx", (unsigned long long)number);
}

int segment_unlink(struct segment *segment, uint64_t bytes, _Atomic uint64_t *held) {
    char name[NAME_BYTES];
    CHECK(!segment->held);
    if (segment->in_memory)
        return 0;
    name_of(segment->label.number, name);
    int error = file_unlink(segment->directory, name);
    if (error < 0 && error != -ENOENT) // deleted underneath: just as well
        return error;
    atomic_fetch_add(held, bytes);
    segment->held_bytes = bytes;
    segment->held = held;
    return 0;
}

// ---- labels ----

static uint64_t round_up(uint64_t bytes) {
    return (bytes + RECORD_ALIGNMENT - 1) / RECORD_ALIGNMENT * RECORD_ALIGNMENT;
}

static uint64_t contents_bytes(uint64_t entries) {
    return round_up(entries * SEGMENT_ENTRY_BYTES) + LABEL_BYTES;
}

uint64_t segment_bytes_for(uint64_t record_bytes) {
    return LABEL_BYTES + record_bytes + contents_bytes(1);
}

// The last label has the table's place (never 0) where the first has 0.
static void encode_label(const struct segment *segment, uint64_t at, uint32_t crc, unsigned char *out) {
    struct record record = {.type = RECORD_CONTENTS,
            .key = {segment->label.volume, segment->label.number},
            .sequence = segment->sequence,
            .generation = at / RECORD_ALIGNMENT << 8 | segment->label.queue,
            .number = (uint32_t)segment->entry_count,
            .head_crc = crc};
    record_encode(&record, out);
}

static bool decode_label(const struct segment *segment, uint64_t at, struct record *record) {
    unsigned char bytes[LABEL_BYTES];
    return file_read(segment->fd, at, bytes, sizeof bytes) == 0 &&
           record_decode(bytes, record) == RECORD_OK && record->type == RECORD_CONTENTS &&
           record->key.low == segment->label.volume && record->key.high == segment->label.number;
}

static bool read_first_label(struct segment *segment) {
    struct record record;
    if (!decode_label(segment, 0, &record) || record.generation >> 8 != 0)
        return false;
    segment->label.queue = (uint8_t)record.generation;
    return true;
}

// The last label of a file of `size` bytes.
static bool read_last_label(struct segment *segment, uint64_t size, struct record *record) {
    if (size < LABEL_BYTES + contents_bytes(0) || size % RECORD_ALIGNMENT != 0 ||
            !decode_label(segment, size - LABEL_BYTES, record))
        return false;
    uint64_t at = (record->generation >> 8) * RECORD_ALIGNMENT;
    return at >= LABEL_BYTES && at + contents_bytes(record->number) == size;
}

// ---- appending ----

static int write_first_label(struct segment *segment) {
    unsigned char label[LABEL_BYTES];
    encode_label(segment, 0, 0, label);
    return file_write_bytes(segment->fd, 0, label, sizeof label);
}

struct segment *segment_create(int directory, const struct segment_label *label, uint64_t bytes, int *error) {
    char name[NAME_BYTES];
    CHECK(bytes <= SEGMENT_BYTES_MAXIMUM);
    struct segment *segment = segment_new(directory, label, bytes);
    name_of(label->number, name);
    *error = file_open(directory, name, O_RDWR | O_CREAT | O_EXCL, &segment->fd);
    if (*error == 0 && (*error = file_allocate(segment->fd, bytes)) == 0)
        *error = write_first_label(segment);
    if (*error == 0)
        return segment;
    if (segment->fd >= 0)
        file_unlink(directory, name);
    segment_put(segment);
    return NULL;
}

struct segment *segment_create_in_memory(const struct segment_label *label, uint64_t bytes, int *error) {
    CHECK(bytes <= SEGMENT_BYTES_MAXIMUM);
    struct segment *segment = segment_new(-1, label, bytes);
    segment->in_memory = true;
    *error = file_open_memory(&segment->fd);
    if (*error == 0)
        *error = write_first_label(segment);
    if (*error == 0)
        return segment;
    segment_put(segment);
    return NULL;
}

static void note(struct segment *segment, uint64_t at, const struct record *record, uint64_t bytes) {
    if (segment->entry_count == segment->entry_room) {
        segment->entry_room = segment->entry_room ? segment->entry_room * 2 : FIRST_ENTRIES;
        struct segment_entry *entries =
                realloc(segment->entries, segment->entry_room * sizeof *segment->entries);
        CHECK(entries);
        segment->entries = entries;
    }
    segment->entries[segment->entry_count++] = (struct segment_entry){.key = record->key,
            .offset = (uint32_t)(at / RECORD_ALIGNMENT),
            .bytes = (uint32_t)(bytes / RECORD_ALIGNMENT),
            .number = record->number,
            .type = (uint8_t)record->type};
    if (record->sequence > segment->sequence)
        segment->sequence = record->sequence;
    atomic_store_explicit(&segment->used, at + bytes, memory_order_release);
}

int segment_append(struct segment *segment, const struct record *record, const struct iovec *payload,
        int count, uint64_t *offset) {
    static const unsigned char zeros[RECORD_ALIGNMENT];
    unsigned char header[RECORD_HEADER_BYTES];
    struct iovec parts[SEGMENT_PAYLOAD_PARTS_MAX + 2];
    uint64_t at = segment_used(segment), bytes = record_bytes(record->head_bytes, record->body_bytes);
    if (segment->closed || at + bytes + contents_bytes(segment->entry_count + 1) > segment->bytes)
        return -EFBIG;

    CHECK(count <= SEGMENT_PAYLOAD_PARTS_MAX && record->type != RECORD_CONTENTS);
    record_encode(record, header);
    parts[0] = (struct iovec){header, sizeof header};
    uint64_t length = sizeof header;
    for (int i = 0; i < count; i++) {
        parts[i + 1] = payload[i];
        length += payload[i].iov_len;
    }
    CHECK(length == record_body_at(record->head_bytes, record->body_bytes) + record->body_bytes);
    parts[count + 1] = (struct iovec){(void *)zeros, bytes - length};
    int error = file_write(segment->fd, at, parts, count + 2);
    if (error < 0) {
        segment->closed = true;
        return error;
    }
    note(segment, at, record, bytes);
    *offset = at;
    return 0;
}

// ---- the table of contents ----

static void encode_entry(const struct segment_entry *entry, unsigned char *out) {
    little_put64(out, entry->key.low);
    little_put64(out + 8, entry->key.high);
    little_put32(out + 16, entry->offset);
    little_put32(out + 20, entry->bytes);
    little_put32(out + 24, entry->number);
    little_put32(out + 28, entry->type);
}

static struct segment_entry decode_entry(const unsigned char *bytes) {
    return (struct segment_entry){.key = {little_get64(bytes), little_get64(bytes + 8)},
            .offset = little_get32(bytes + 16),
            .bytes = little_get32(bytes + 20),
            .number = little_get32(bytes + 24),
            .type = bytes[28]};
}

static int write_contents(struct segment *segment) {
    uint64_t at = segment_used(segment), bytes = contents_bytes(segment->entry_count);
    unsigned char *contents = memory_new(bytes);
    memset(contents, 0, bytes);
    for (uint64_t i = 0; i < segment->entry_count; i++)
        encode_entry(&segment->entries[i], contents + i * SEGMENT_ENTRY_BYTES);
    uint32_t crc = record_crc(contents, bytes - LABEL_BYTES);
    encode_label(segment, at, crc, contents + bytes - LABEL_BYTES);
    int error = file_write_bytes(segment->fd, at, contents, bytes);
    free(contents);
    return error < 0 ? error : file_truncate(segment->fd, at + bytes);
}

int segment_sync(struct segment *segment) {
    return file_sync_data(segment->fd);
}

int segment_seal(struct segment *segment) {
    CHECK(!segment_is_sealed(segment));
    segment->closed = true;
    if (segment->in_memory) // its entries stay where they are
        return 0;
    int error = file_sync_data(segment->fd);
    if (error == 0 && (error = write_contents(segment)) == 0)
        error = file_sync_data(segment->fd);
    if (error < 0)
        return error;
    segment->overhead = LABEL_BYTES + contents_bytes(segment->entry_count);
    forget_entries(segment);
    atomic_store_explicit(&segment->sealed, true, memory_order_release);
    return 0;
}

// ---- reading ----

int segment_read(struct segment *segment, uint64_t offset, void *out, size_t length) {
    return file_read(segment->fd, offset, out, length);
}

int segment_try_read(struct segment *segment, uint64_t offset, void *out, size_t length) {
    if (segment->in_memory)
        return file_read(segment->fd, offset, out, length);
    return file_try_read(segment->fd, offset, out, length);
}

static bool is_whole(const struct record *record, const unsigned char *bytes) {
    const unsigned char *crcs = bytes + RECORD_HEADER_BYTES + record->head_bytes;
    const unsigned char *body = bytes + record_body_at(record->head_bytes, record->body_bytes);
    return (record->head_bytes == 0 ||
                   record_crc(bytes + RECORD_HEADER_BYTES, record->head_bytes) == record->head_crc) &&
           record_check_body(crcs, record->body_bytes, 0, body, record->body_bytes);
}

// A record that ends by `end`.
static int read_record(
        struct segment *segment, uint64_t at, uint64_t end, unsigned char *out, struct record *record) {
    if (at + RECORD_HEADER_BYTES > end)
        return -ENODATA;
    int error = file_read(segment->fd, at, out, RECORD_HEADER_BYTES);
    if (error < 0)
        return error;
    enum record_decode decoded = record_decode(out, record);
    if (decoded != RECORD_OK)
        return decoded == RECORD_NONE ? -ENODATA : -EBADMSG;
    uint64_t bytes = record_bytes(record->head_bytes, record->body_bytes);
    if (record->type == RECORD_CONTENTS || bytes > end - at)
        return -EBADMSG;
    error = file_read(
            segment->fd, at + RECORD_HEADER_BYTES, out + RECORD_HEADER_BYTES, bytes - RECORD_HEADER_BYTES);
    return error < 0 ? error : is_whole(record, out) ? 0 : -EBADMSG;
}

int segment_read_record(struct segment *segment, uint64_t offset,
        unsigned char out[static SEGMENT_RECORD_MAXIMUM], struct record *record) {
    return read_record(segment, offset, segment_used(segment), out, record);
}

// ---- opening, and walking ----

// Record by record until there is none, one is broken, or `end` says so.
static int scan_records(struct segment *segment, uint64_t end, segment_visit *visit, void *context) {
    unsigned char *buffer = memory_new(SEGMENT_RECORD_MAXIMUM);
    int error = 0;
    for (uint64_t at = LABEL_BYTES; error == 0;) {
        struct record record;
        error = read_record(segment, at, end, buffer, &record);
        if (error < 0)
            break;
        uint64_t bytes = record_bytes(record.head_bytes, record.body_bytes);
        struct segment_entry entry = {.key = record.key,
                .offset = (uint32_t)(at / RECORD_ALIGNMENT),
                .bytes = (uint32_t)(bytes / RECORD_ALIGNMENT),
                .number = record.number,
                .type = (uint8_t)record.type};
        if (!visit) // recovery
            note(segment, at, &record, bytes);
        else if (!visit(context, &entry))
            break;
        at += bytes;
    }
    free(buffer);
    return error == -ENODATA ? 0 : error;
}

static bool read_contents_whole(
        struct segment *segment, uint64_t at, uint64_t bytes, uint32_t crc, unsigned char *contents) {
    for (uint64_t done = 0; done < bytes;) {
        uint64_t piece = bytes - done < CONTENTS_PIECE ? bytes - done : CONTENTS_PIECE;
        if (file_read(segment->fd, at + done, contents + done, piece) < 0)
            return false;
        done += piece;
    }
    return record_crc(contents, bytes) == crc;
}

// The table as it lies on the disk, NULL when it is not what was written. Freed by the caller.
static unsigned char *read_contents(struct segment *segment, uint64_t *count) {
    uint64_t size;
    struct record last;
    if (file_size(segment->fd, &size) < 0 || !read_last_label(segment, size, &last))
        return NULL;
    uint64_t bytes = contents_bytes(last.number) - LABEL_BYTES;
    unsigned char *contents = memory_new(bytes + 1);
    *count = last.number;
    if (read_contents_whole(segment, size - LABEL_BYTES - bytes, bytes, last.head_crc, contents))
        return contents;
    free(contents);
    return NULL;
}

int segment_walk(struct segment *segment, segment_visit *visit, void *context) {
    uint64_t count = 0;
    if (!segment_is_sealed(segment)) {
        for (uint64_t i = 0; i < segment->entry_count; i++)
            if (!visit(context, &segment->entries[i]))
                break;
        return 0;
    }
    unsigned char *contents = read_contents(segment, &count);
    if (!contents) {
        int error = scan_records(segment, segment_used(segment), visit, context);
        return error < 0 ? error : -EBADMSG;
    }
    for (uint64_t i = 0; i < count; i++) {
        struct segment_entry entry = decode_entry(contents + i * SEGMENT_ENTRY_BYTES);
        if (!visit(context, &entry))
            break;
    }
    free(contents);
    return 0;
}

static int open_content(struct segment *segment) {
    uint64_t size;
    struct record last;
    int error = file_size(segment->fd, &size);
    if (error < 0)
        return error;
    bool labelled = read_first_label(segment);
    segment->closed = true;
    if (read_last_label(segment, size, &last)) {
        segment->label.queue = (uint8_t)last.generation;
        segment->sequence = last.sequence;
        atomic_store(&segment->used, (last.generation >> 8) * RECORD_ALIGNMENT);
        atomic_store(&segment->sealed, true);
        segment->broken = !labelled;
        return 0;
    }
    segment->bytes = size;
    return labelled ? 0 : -EBADMSG;
}

int segment_recover(struct segment *segment) {
    CHECK(!segment_is_sealed(segment) && segment->entry_count == 0);
    int error = scan_records(segment, segment->bytes, NULL, NULL);
    segment->broken = error == -EBADMSG;
    return error == -EBADMSG ? 0 : error;
}

struct segment *segment_open(int directory, uint64_t volume, uint64_t number, int *error) {
    char name[NAME_BYTES];
    struct segment *segment =
            segment_new(directory, &(struct segment_label){.volume = volume, .number = number}, 0);
    name_of(number, name);
    *error = file_open(directory, name, O_RDWR, &segment->fd);
    if (*error == 0)
        *error = open_content(segment);
    if (*error == 0)
        return segment;
    segment_put(segment);
    return NULL;
}
