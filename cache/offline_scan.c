// One segment file, byte by byte. What is broken costs itself alone: its length, when its header is right,
// the table of contents, when that is whole, or else a search for the next header says where to go on.
#include "cache/file.h"
#include "cache/head_record.h"
#include "cache/little.h"
#include "cache/memory.h"
#include "cache/offline_own.h"
#include "cache/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_BYTES (4 << 20)
#define UNREADABLE_BYTES 4096 // that are gone over after an error
#define LABEL_BYTES RECORD_HEADER_BYTES

static void tell(struct scan *scan, uint64_t offset, const char *what) {
    scan->problems++;
    scan->totals->problems++;
    if (scan->watch->tell)
        scan->watch->tell(scan->watch->context, scan->file, offset, what);
}

// `length` bytes at `at`, within the file and the window's size; NULL: they cannot be read.
static const unsigned char *look(struct scan *scan, uint64_t at, uint64_t length) {
    unsigned char *window = scan->offline->window;
    if (at >= scan->window_at && at + length <= scan->window_at + scan->window_bytes)
        return window + (at - scan->window_at);
    uint64_t most = scan->size - at < WINDOW_BYTES ? scan->size - at : WINDOW_BYTES;
    if (file_read(scan->fd, at, window, most) < 0 && file_read(scan->fd, at, window, most = length) < 0) {
        scan->window_bytes = 0;
        return NULL;
    }
    scan->window_at = at;
    scan->window_bytes = most;
    scan->totals->bytes += most;
    return window;
}

// ---- labels and the table of contents ----

static bool read_label(struct scan *scan, uint64_t at, struct record *label) {
    unsigned char bytes[LABEL_BYTES];
    if (at + LABEL_BYTES > scan->size || file_read(scan->fd, at, bytes, sizeof bytes) < 0 ||
            record_decode(bytes, label) != RECORD_OK || label->type != RECORD_CONTENTS || label->head_bytes ||
            label->body_bytes)
        return false;
    if (label->key.low != scan->offline->super.uuid[0] || label->key.high != scan->number) {
        scan->is_foreign = true;
        return false;
    }
    return true;
}

static void read_first_label(struct scan *scan) {
    struct record label;
    bool good = read_label(scan, 0, &label) && label.generation >> 8 == 0;
    if (good)
        scan->queue = (uint8_t)label.generation;
    else if (!scan->is_foreign)
        tell(scan, 0, "its first label is broken");
}

static uint64_t lines_bytes(uint64_t lines) {
    uint64_t bytes = lines * SEGMENT_ENTRY_BYTES;
    return (bytes + RECORD_ALIGNMENT - 1) / RECORD_ALIGNMENT * RECORD_ALIGNMENT;
}

static void read_contents(struct scan *scan, const struct record *label) {
    uint64_t bytes = lines_bytes(label->number);
    unsigned char *contents = memory_new(bytes + 1);
    if (file_read(scan->fd, scan->end, contents, bytes) == 0 &&
            record_crc(contents, bytes) == label->head_crc) {
        scan->contents = contents;
        scan->lines = label->number;
        return;
    }
    free(contents);
    tell(scan, scan->end, "its table of contents is broken");
}

static void read_last_label(struct scan *scan) {
    struct record label;
    uint64_t at = scan->size - LABEL_BYTES;
    scan->end = scan->size - scan->size % RECORD_ALIGNMENT;
    if (scan->size < 2 * LABEL_BYTES || scan->size % RECORD_ALIGNMENT || !read_label(scan, at, &label) ||
            label.generation >> 8 == 0)
        return;
    uint64_t end = (label.generation >> 8) * RECORD_ALIGNMENT;
    if (end < LABEL_BYTES || end > at || at - end != lines_bytes(label.number)) {
        tell(scan, at, "its last label says nonsense");
        return;
    }
    scan->is_sealed = true;
    scan->end = end;
    scan->last_sequence = label.sequence;
    if (scan->problems == 0 && (uint8_t)label.generation != scan->queue)
        tell(scan, at, "its labels name different queues");
    scan->queue = (uint8_t)label.generation;
    read_contents(scan, &label);
}

static uint64_t offset_of_line(const struct scan *scan, uint64_t line) {
    return (uint64_t)little_get32(scan->contents + line * SEGMENT_ENTRY_BYTES + 16) * RECORD_ALIGNMENT;
}

static void compare_line(struct scan *scan, uint64_t at, const struct record *record, uint64_t bytes) {
    while (scan->line < scan->lines && offset_of_line(scan, scan->line) < at)
        scan->line++;
    const unsigned char *line = scan->contents + scan->line * SEGMENT_ENTRY_BYTES;
    bool agrees = scan->line < scan->lines && offset_of_line(scan, scan->line) == at &&
                  little_get64(line) == record->key.low && little_get64(line + 8) == record->key.high &&
                  little_get32(line + 20) == bytes / RECORD_ALIGNMENT &&
                  little_get32(line + 24) == record->number &&
                  little_get32(line + 28) == (uint32_t)record->type;
    scan->agreed += agrees;
    if (!agrees)
        tell(scan, at, "the table of contents does not list this record");
}

// Where to go on behind what is no record.
static uint64_t next_after(struct scan *scan, uint64_t at) {
    if (!scan->contents)
        return at + RECORD_ALIGNMENT;
    while (scan->line < scan->lines && offset_of_line(scan, scan->line) <= at)
        scan->line++;
    return scan->line < scan->lines ? offset_of_line(scan, scan->line) : scan->end;
}

// ---- records ----

static bool is_good_head(const struct scan *scan, const struct record *record, const unsigned char *bytes) {
    static const struct head_record_now now = {{0, 0}, 0};
    struct head_record head;
    struct view text = {(const char *)bytes + RECORD_HEADER_BYTES, record->head_bytes};
    struct stored_head *decoded = head_record_decode(text, &now, &head);
    free(decoded);
    return decoded && head.generation == record->generation &&
           key_equal(record->key,
                   key_of(scan->offline->super.seed, &head.destination, head.authority, head.path));
}

static bool is_zeros(const unsigned char *bytes, uint64_t length) {
    for (uint64_t i = 0; i < length; i++)
        if (bytes[i])
            return false;
    return true;
}

// NULL: it is good.
static const char *record_trouble(
        const struct scan *scan, const struct record *record, const unsigned char *bytes, uint64_t length) {
    uint64_t body_at = record_body_at(record->head_bytes, record->body_bytes);
    if (!record_check_head(record, bytes + RECORD_HEADER_BYTES))
        return "the checksum of its head is wrong";
    if (!record_check_body(bytes + RECORD_HEADER_BYTES + record->head_bytes, record->body_bytes, 0,
                bytes + body_at, record->body_bytes))
        return "a checksum of its content is wrong";
    if (!is_zeros(bytes + body_at + record->body_bytes, length - body_at - record->body_bytes))
        return "something stands behind its content";
    if (record->type == RECORD_CHUNK)
        return record->head_bytes == 0 && record->body_bytes > 0 ? NULL : "it is no whole chunk";
    return is_good_head(scan, record, bytes) ? NULL : "its head is not one that was stored here";
}

static void give(struct scan *scan, uint64_t at, const struct record *record, const unsigned char *bytes) {
    struct offline_record found = {.record = *record, .bytes = bytes, .segment = scan->number, .offset = at};
    scan->records++;
    scan->totals->records++;
    if (record->sequence > scan->sequence)
        scan->sequence = record->sequence;
    if (scan->watch->visit && !scan->watch->visit(scan->watch->context, &found))
        scan->is_over = true;
}

// A header that is right. Where to go on.
static uint64_t take_record(struct scan *scan, uint64_t at, const struct record *record) {
    uint64_t length = record_bytes(record->head_bytes, record->body_bytes);
    const unsigned char *bytes = look(scan, at, length);
    if (!bytes) {
        tell(scan, at, "it cannot be read");
        return at + length;
    }
    const char *trouble = record_trouble(scan, record, bytes, length);
    if (trouble) {
        tell(scan, at, trouble);
        return at + length;
    }
    if (scan->contents)
        compare_line(scan, at, record, length);
    give(scan, at, record, bytes);
    return at + length;
}

static void scan_records(struct scan *scan) {
    bool is_lost = false; // in something broken that was told already
    for (uint64_t at = LABEL_BYTES; at + RECORD_HEADER_BYTES <= scan->end && !scan->is_over;) {
        struct record record;
        const unsigned char *header = look(scan, at, RECORD_HEADER_BYTES);
        enum record_decode decoded = header ? record_decode(header, &record) : RECORD_BROKEN;
        if (decoded == RECORD_NONE && !scan->is_sealed) { // room that was not used
            at += RECORD_ALIGNMENT;
            continue;
        }
        if (decoded == RECORD_OK && record.type != RECORD_CONTENTS &&
                record_bytes(record.head_bytes, record.body_bytes) <= scan->end - at) {
            is_lost = false;
            at = take_record(scan, at, &record);
            continue;
        }
        if (!is_lost)
            tell(scan, at, header ? "here is no record, or its header is broken" : "it cannot be read");
        is_lost = true;
        at = header ? next_after(scan, at) : (at / UNREADABLE_BYTES + 1) * UNREADABLE_BYTES;
    }
}

static void check_end(struct scan *scan) {
    if (scan->problems || scan->is_over || !scan->is_sealed)
        return;
    if (scan->agreed != scan->lines)
        tell(scan, scan->end, "its table of contents lists what is not there");
    else if (scan->sequence != scan->last_sequence)
        tell(scan, scan->size - LABEL_BYTES, "its last label names another sequence");
}

int offline_scan(struct scan *scan) {
    offline_name(scan->number, scan->file);
    int error = file_open(scan->offline->directory, scan->file, O_RDONLY, &scan->fd);
    if (error == 0)
        error = file_size(scan->fd, &scan->size);
    if (error < 0) {
        tell(scan, 0, strerror(-error));
        file_close(scan->fd);
        return error;
    }
    if (scan->size > SEGMENT_BYTES_MAXIMUM) {
        tell(scan, SEGMENT_BYTES_MAXIMUM, "the file is longer than a segment can be");
        scan->size = SEGMENT_BYTES_MAXIMUM;
    }
    read_first_label(scan);
    read_last_label(scan);
    if (scan->is_foreign)
        tell(scan, 0, "it is a segment of another volume, or has another one's name");
    else {
        scan_records(scan);
        check_end(scan);
    }
    free(scan->contents);
    scan->contents = NULL;
    file_close(scan->fd);
    return 0;
}
