// What lies in a segment file: records, each of a header, a head, checksums and content, at a multiple of
// RECORD_ALIGNMENT. Pure: bytes in, bytes out; nothing here reads a file. All numbers are little-endian.
//
//   0   magic (4), "WEIR"  type (1)  format (1), RECORD_FORMAT  flags (2), 0
//   8   key (16)
//  24   sequence (8)      write order in the volume; the later of two wins
//  32   generation (8)    of the representation: chunks and heads of another one never mix
//  40   number (4)        of the chunk
//  44   head_bytes (4)
//  48   body_bytes (4)
//  52   head CRC32C (4)
//  56   reserved (4), 0
//  60   header CRC32C (4), over the 60 bytes before
//  64   head_bytes of head, then a CRC32C for each 64 KiB of content, then body_bytes of content, then zeros
//
// The only door to ISA-L, whose CRC32C takes 1.2 µs for 64 KiB where a table of eight takes 48.
#pragma once

#include "cache/key.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_FORMAT 1 // of the header and of what cache/head_record.h puts into a head
#define RECORD_ALIGNMENT 64
#define RECORD_HEADER_BYTES 64
#define RECORD_HEAD_MAXIMUM (256 << 10)
#define RECORD_BODY_MAXIMUM (1 << 20)
#define RECORD_CHUNK_BYTES (1 << 20)   // of a large object; the last one may be shorter
#define RECORD_SMALL_BYTES (256 << 10) // a body up to this lies in one record with its head
#define RECORD_CRC_BYTES (64 << 10)    // of content that one checksum covers

enum record_type {
    RECORD_HEAD = 1, // a response head; with the whole body when that is small
    RECORD_CHUNK,    // RECORD_CHUNK_BYTES of a large body
    RECORD_UPDATE,   // a head in place of an earlier one of the same key and generation: a 304
    RECORD_CONTENTS, // no content: a label of a segment, at its beginning and after its table of contents;
                     // see cache/segment.h
};

struct record {
    enum record_type type;
    struct cache_key key;
    uint64_t sequence, generation;
    uint32_t number;
    uint32_t head_bytes, body_bytes;
    uint32_t head_crc;
};

// The whole length on disk, a multiple of RECORD_ALIGNMENT; what is not content or checksums by then is
// zeros.
uint64_t record_bytes(uint32_t head_bytes, uint32_t body_bytes);
// Where content begins in the record; and how many bytes its checksums take.
uint64_t record_body_at(uint32_t head_bytes, uint32_t body_bytes);
uint32_t record_crcs_bytes(uint32_t body_bytes);

// Sets head_bytes and head_crc for this head of at most RECORD_HEAD_MAXIMUM.
void record_set_head(struct record *record, const void *head, size_t head_bytes);
// Whether `head`, head_bytes long, is what it was.
bool record_check_head(const struct record *record, const void *head);

// The record has a type, and lengths within their bounds.
void record_encode(const struct record *record, unsigned char out[static RECORD_HEADER_BYTES]);

enum record_decode {
    RECORD_OK,
    RECORD_NONE,   // no record: zeros
    RECORD_BROKEN, // not what it was written as, or out of bounds: `record` is zeros
};
enum record_decode record_decode(
        const unsigned char header[static RECORD_HEADER_BYTES], struct record *record);

uint32_t record_crc(const void *data, size_t length); // CRC32C
// One CRC32C for each RECORD_CRC_BYTES of the content, record_crcs_bytes() in all.
void record_write_crcs(const void *body, uint32_t body_bytes, unsigned char *out);
// Whether the content from `first` (a multiple of RECORD_CRC_BYTES) on is what `crcs`, the record's whole
// list, says. `length` is a multiple of RECORD_CRC_BYTES, or goes to the end of the content.
bool record_check_body(
        const unsigned char *crcs, uint32_t body_bytes, uint32_t first, const void *data, uint32_t length);
