// Stored responses on their way to another volume: a stream that depends on no volume's seed and segments.
// Pure: bytes come and go through functions. Whoever reads one trusts nothing in it. All little-endian.
//
//   beginning  magic "WEIRPARC" (8)  format (4)  zeros (16)  CRC32C of all before (4)
//   part       magic "PART" (4)  kind (4)  number (4)  head bytes (4)  content bytes (4)  CRC32C of the head
//              (4)  CRC32C of the content (4)  CRC32C of all before (4); then the head, then the content
//
// A response is a part PARCEL_HEAD, with its whole content or none of it, and then its chunks as they are
// there, in order. The last part is PARCEL_END, whose number is how many responses there were (its lower 32
// bits). A head is as cache/head_record.h has it.
#pragma once

#include "admin/view.h"
#include "cache/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PARCEL_FORMAT 1
#define PARCEL_BEGINNING_BYTES 32
#define PARCEL_PART_BYTES 32
#define PARCEL_CONTENT_MAXIMUM RECORD_CHUNK_BYTES

enum parcel_kind { PARCEL_HEAD = 1, PARCEL_CHUNK, PARCEL_END };

struct parcel_part {
    enum parcel_kind kind;
    uint32_t number; // of a chunk
    struct view head, content;
};

// ---- writing: 0, or what the function said ----

typedef int parcel_write(void *context, const void *data, size_t length); // all of it; 0 or -errno
int parcel_begin(parcel_write *write, void *context);
int parcel_put(const struct parcel_part *part, parcel_write *write, void *context);

// ---- reading ----

// Up to `length` bytes; 0: the end; -errno.
typedef int64_t parcel_read(void *context, void *out, size_t length);

struct parcel_reader {
    parcel_read *read;
    void *context;
    uint64_t offset;  // of what is read next; after a failure, of the part that is not whole
    const char *what; // is wrong, after -EBADMSG
    uint32_t responses, next_chunk;
    bool is_chunked; // chunks may follow
    unsigned char *buffer;
};

// 0; -EBADMSG; another -errno of reading. parcel_reader_fini in any case.
int parcel_reader_init(struct parcel_reader *reader, parcel_read *read, void *context);
void parcel_reader_fini(struct parcel_reader *reader);
// The next part, within its bounds and whole; its views last until the next call. A chunk comes after a head
// without content, with a number above the one before. 0; -EBADMSG: cut off or broken; another -errno. After
// PARCEL_END, which is given, nothing may be asked.
int parcel_next(struct parcel_reader *reader, struct parcel_part *part);
