#include "cache/record.h"

#include "admin/check.h"
#include "cache/little.h"

#include <isa-l/crc.h>
#include <string.h>

#define MAGIC "WEIR"
#define MAGIC_BYTES 4
#define CRC_AT 60
#define CRC_PIECE (1 << 30) // the library counts in int

enum { // where the parts of a header are
    TYPE_AT = 4,
    FORMAT_AT = 5,
    FLAGS_AT = 6,
    KEY_AT = 8,
    SEQUENCE_AT = 24,
    GENERATION_AT = 32,
    NUMBER_AT = 40,
    HEAD_BYTES_AT = 44,
    BODY_BYTES_AT = 48,
    HEAD_CRC_AT = 52,
    RESERVED_AT = 56,
};

// ---- lengths ----

static uint32_t crcs_count(uint32_t body_bytes) {
    return body_bytes / RECORD_CRC_BYTES + (body_bytes % RECORD_CRC_BYTES != 0);
}

uint32_t record_crcs_bytes(uint32_t body_bytes) {
    return crcs_count(body_bytes) * (uint32_t)sizeof(uint32_t);
}

uint64_t record_body_at(uint32_t head_bytes, uint32_t body_bytes) {
    return (uint64_t)RECORD_HEADER_BYTES + head_bytes + record_crcs_bytes(body_bytes);
}

uint64_t record_bytes(uint32_t head_bytes, uint32_t body_bytes) {
    uint64_t end = record_body_at(head_bytes, body_bytes) + body_bytes;
    return (end + RECORD_ALIGNMENT - 1) / RECORD_ALIGNMENT * RECORD_ALIGNMENT;
}

// ---- checksums ----

uint32_t record_crc(const void *data, size_t length) {
    unsigned char *at = (unsigned char *)data; // is not written to
    uint32_t crc = UINT32_MAX;
    while (length > 0) {
        size_t piece = length < CRC_PIECE ? length : CRC_PIECE;
        crc = crc32_iscsi(at, (int)piece, crc);
        at += piece;
        length -= piece;
    }
    return ~crc;
}

static uint32_t block_bytes(uint32_t left) {
    return left < RECORD_CRC_BYTES ? left : RECORD_CRC_BYTES;
}

void record_write_crcs(const void *body, uint32_t body_bytes, unsigned char *out) {
    const unsigned char *at = body;
    for (uint32_t i = 0; i < crcs_count(body_bytes); i++) {
        uint32_t start = i * RECORD_CRC_BYTES;
        little_put32(out + i * sizeof(uint32_t), record_crc(at + start, block_bytes(body_bytes - start)));
    }
}

bool record_check_body(
        const unsigned char *crcs, uint32_t body_bytes, uint32_t first, const void *data, uint32_t length) {
    const unsigned char *at = data;
    CHECK(first % RECORD_CRC_BYTES == 0 && first <= body_bytes && length <= body_bytes - first);
    CHECK(length % RECORD_CRC_BYTES == 0 || length == body_bytes - first);
    for (uint32_t done = 0; done < length; done += block_bytes(length - done)) {
        const unsigned char *crc = crcs + (first + done) / RECORD_CRC_BYTES * sizeof(uint32_t);
        if (little_get32(crc) != record_crc(at + done, block_bytes(length - done)))
            return false;
    }
    return true;
}

void record_set_head(struct record *record, const void *head, size_t head_bytes) {
    CHECK(head_bytes <= RECORD_HEAD_MAXIMUM);
    record->head_bytes = (uint32_t)head_bytes;
    record->head_crc = record_crc(head, head_bytes);
}

bool record_check_head(const struct record *record, const void *head) {
    return record_crc(head, record->head_bytes) == record->head_crc;
}

// ---- the header ----

static bool is_within_bounds(const struct record *record) {
    return record->type >= RECORD_HEAD && record->type <= RECORD_CONTENTS &&
           record->head_bytes <= RECORD_HEAD_MAXIMUM && record->body_bytes <= RECORD_BODY_MAXIMUM;
}

void record_encode(const struct record *record, unsigned char out[static RECORD_HEADER_BYTES]) {
    CHECK(is_within_bounds(record));
    memset(out, 0, RECORD_HEADER_BYTES);
    memcpy(out, MAGIC, MAGIC_BYTES);
    out[TYPE_AT] = (unsigned char)record->type;
    out[FORMAT_AT] = RECORD_FORMAT;
    little_put64(out + KEY_AT, record->key.low);
    little_put64(out + KEY_AT + 8, record->key.high);
    little_put64(out + SEQUENCE_AT, record->sequence);
    little_put64(out + GENERATION_AT, record->generation);
    little_put32(out + NUMBER_AT, record->number);
    little_put32(out + HEAD_BYTES_AT, record->head_bytes);
    little_put32(out + BODY_BYTES_AT, record->body_bytes);
    little_put32(out + HEAD_CRC_AT, record->head_crc);
    little_put32(out + CRC_AT, record_crc(out, CRC_AT));
}

static bool is_zeros(const unsigned char *header) {
    static const unsigned char zeros[RECORD_HEADER_BYTES];
    return memcmp(header, zeros, sizeof zeros) == 0;
}

// What a later format may have set is not ours to read.
static bool is_ours(const unsigned char *header) {
    return memcmp(header, MAGIC, MAGIC_BYTES) == 0 &&
           little_get32(header + CRC_AT) == record_crc(header, CRC_AT) &&
           header[FORMAT_AT] == RECORD_FORMAT && header[FLAGS_AT] == 0 && header[FLAGS_AT + 1] == 0 &&
           little_get32(header + RESERVED_AT) == 0;
}

enum record_decode record_decode(
        const unsigned char header[static RECORD_HEADER_BYTES], struct record *record) {
    *record = (struct record){0};
    if (!is_ours(header))
        return is_zeros(header) ? RECORD_NONE : RECORD_BROKEN;
    struct record found = {.type = header[TYPE_AT],
            .key = {little_get64(header + KEY_AT), little_get64(header + KEY_AT + 8)},
            .sequence = little_get64(header + SEQUENCE_AT),
            .generation = little_get64(header + GENERATION_AT),
            .number = little_get32(header + NUMBER_AT),
            .head_bytes = little_get32(header + HEAD_BYTES_AT),
            .body_bytes = little_get32(header + BODY_BYTES_AT),
            .head_crc = little_get32(header + HEAD_CRC_AT)};
    if (!is_within_bounds(&found))
        return RECORD_BROKEN;
    *record = found;
    return RECORD_OK;
}
