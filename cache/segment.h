// A segment: one file of a volume, appended to, sealed, read, and unlinked as a whole; never written in
// place, so that a reader's descriptor shows what it showed before (sendfile). These functions wait for the
// disk: a volume's own threads call them, workers call segment_try_read alone.
//
//   a label (a record of type RECORD_CONTENTS without content), the records, and, once sealed, the table of
//   contents: SEGMENT_ENTRY_BYTES a record, padded to RECORD_ALIGNMENT, and a last label that says where the
//   table begins and what its checksum is.
#pragma once

#include "cache/record.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct segment; // counted

#define SEGMENT_ENTRY_BYTES 32
#define SEGMENT_BYTES_MAXIMUM (UINT64_C(1) << 30)
#define SEGMENT_PAYLOAD_PARTS_MAX 12
// The longest record there is.
#define SEGMENT_RECORD_MAXIMUM                                                                               \
    (RECORD_HEADER_BYTES + RECORD_HEAD_MAXIMUM + 4 * (RECORD_BODY_MAXIMUM / RECORD_CRC_BYTES) +              \
            RECORD_BODY_MAXIMUM + RECORD_ALIGNMENT)

struct segment_entry { // a line of the table of contents
    struct cache_key key;
    uint32_t offset; // in units of RECORD_ALIGNMENT
    uint32_t bytes;  // likewise, of the whole record
    uint32_t number;
    uint8_t type;
};

struct segment_label { // whose it is; the file says it too
    uint64_t volume;   // a file of another volume is no segment of this one
    uint64_t number;   // its name; the higher the newer
    uint8_t queue;     // as the volume numbers them
};

// The least `bytes` of a segment that takes a record of so many bytes.
uint64_t segment_bytes_for(uint64_t record_bytes);

// Creates the segment's file, of at most `bytes`, under `directory` (a descriptor, which outlives the
// segment's name), its blocks allocated. NULL, and *error is -errno.
struct segment *segment_create(int directory, const struct segment_label *label, uint64_t bytes, int *error);
// Opens `number` of `volume`; it takes no more. -EBADMSG: not a segment of this volume.
struct segment *segment_open(int directory, uint64_t volume, uint64_t number, int *error);
// One that was opened and is not sealed: reads it record by record up to the first that is broken
// (segment_was_broken). Then seal it. 0 or -errno.
int segment_recover(struct segment *segment);

struct segment *segment_get(struct segment *segment);
// When the pointer may be out of date: true, and counted, unless it was given up meanwhile. The caller then
// looks whether it is still the one it meant. (The memory of segments is never given back, only reused.)
bool segment_try_get(struct segment *segment);
void segment_put(struct segment *segment); // the last one closes the descriptor
// The file goes when its last reader does; until then `bytes` are added to *held. 0 or -errno: it stays.
int segment_unlink(struct segment *segment, uint64_t bytes, _Atomic uint64_t *held);

const struct segment_label *segment_label(const struct segment *segment);
uint64_t segment_used(const struct segment *segment);     // bytes of records, published
uint64_t segment_sequence(const struct segment *segment); // the highest in it
uint64_t segment_overhead(const struct segment *segment); // bytes that labels and table take, once sealed
bool segment_is_sealed(const struct segment *segment);
bool segment_was_broken(const struct segment *segment); // a label, or a record that recovery met
int segment_descriptor(const struct segment *segment);  // for sendfile, as long as it is counted
int segment_disk_bytes(const struct segment *segment, uint64_t *bytes); // 0 or -errno

// Writes one record at the end. `payload` is all that follows the header: head, checksums
// (record_write_crcs) and content, at most SEGMENT_PAYLOAD_PARTS_MAX parts. `*offset` is in bytes. One caller
// at a time. 0, -EFBIG when it does not fit any more, another -errno: nothing of it is there then, and the
// segment takes no more.
int segment_append(struct segment *segment, const struct record *record, const struct iovec *payload,
        int count, uint64_t *offset);
int segment_sync(struct segment *segment); // fdatasync: all that was appended is safe then
// fdatasync, the table of contents, fdatasync. 0 or -errno: then what was written is not safe.
int segment_seal(struct segment *segment);

// Reads `length` bytes at `offset`, all or -errno (-EIO for less).
int segment_read(struct segment *segment, uint64_t offset, void *out, size_t length);
// The same without waiting (RWF_NOWAIT, Linux >= 4.14): -EAGAIN when it would.
int segment_try_read(struct segment *segment, uint64_t offset, void *out, size_t length);
// Reads a whole record, header first, and checks all of it. 0, -ENODATA (none there), -EBADMSG (not what was
// written), another -errno.
int segment_read_record(struct segment *segment, uint64_t offset,
        unsigned char out[static SEGMENT_RECORD_MAXIMUM], struct record *record);

// Each record in order, by the table of contents or, without a valid one, record by record up to the first
// that is broken (-EBADMSG after the good ones). `visit` false ends it. 0 or -errno.
typedef bool segment_visit(void *context, const struct segment_entry *entry);
int segment_walk(struct segment *segment, segment_visit *visit, void *context);
