// A segment: one file of a volume, appended to, sealed, read, and unlinked as a whole; never written in
// place, so that a reader's descriptor shows what it showed before (sendfile). These functions wait for the
// disk: a volume's own threads call them, workers call segment_try_read alone.
#pragma once

#include "cache/record.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct segment; // counted

struct segment_entry { // a line of the table of contents, 32 bytes on disk
    struct cache_key key;
    uint32_t offset; // in units of RECORD_ALIGNMENT
    uint32_t bytes;  // likewise, of the whole record
    uint32_t number;
    uint8_t type;
};

// Creates segment file `number` of at most `bytes` under `directory` (a descriptor), its blocks allocated.
// NULL, and *error is -errno.
struct segment *segment_create(int directory, uint64_t number, uint64_t bytes, int *error);
struct segment *segment_open(int directory, uint64_t number, int *error);
struct segment *segment_get(struct segment *segment);
void segment_put(struct segment *segment);    // the last one closes the descriptor
void segment_unlink(struct segment *segment); // the file goes when its last reader does
uint64_t segment_number(const struct segment *segment);
uint64_t segment_used(const struct segment *segment); // bytes of records, published
bool segment_is_sealed(const struct segment *segment);

// Writes one record at the end. `*offset` is in bytes. 0, -ENOSPC when the segment is full, another -errno:
// nothing of it is there then, and the segment takes no more.
int segment_append(struct segment *segment, const struct record *record, const struct iovec *payload,
        int count, uint64_t *offset);
// fdatasync, the table of contents, fdatasync. 0 or -errno.
int segment_seal(struct segment *segment);

// Reads `length` bytes at `offset`, all or -errno (-EIO for less).
int segment_read(struct segment *segment, uint64_t offset, void *out, size_t length);
// The same without waiting (RWF_NOWAIT, Linux >= 4.14): -EAGAIN when it would.
int segment_try_read(struct segment *segment, uint64_t offset, void *out, size_t length);

// Each record in order, by the table of contents or, without a valid one, record by record up to the first
// that is broken. `record` false ends it. 0 or -errno.
typedef bool segment_visit(void *context, const struct segment_entry *entry);
int segment_walk(struct segment *segment, segment_visit *visit, void *context);
