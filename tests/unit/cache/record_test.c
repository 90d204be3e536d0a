#include "cache/record.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))
#define KIB 1024u

// ---- CRC32C ----

// By the polynomial, a bit at a time.
static uint32_t crc_by_bits(const unsigned char *data, size_t length) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < length; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
    }
    return ~crc;
}

static void fill(unsigned char *data, size_t length, uint32_t seed) {
    for (size_t i = 0; i < length; i++) {
        seed = seed * 1664525 + 1013904223;
        data[i] = (unsigned char)(seed >> 24);
    }
}

static void crc_vectors(void) { // [RFC 3720 §B.4]
    unsigned char data[32];
    CU_ASSERT_EQUAL(record_crc("", 0), 0);
    CU_ASSERT_EQUAL(record_crc("123456789", 9), 0xe3069283);
    memset(data, 0, sizeof data);
    CU_ASSERT_EQUAL(record_crc(data, sizeof data), 0x8a9136aa);
    memset(data, 0xff, sizeof data);
    CU_ASSERT_EQUAL(record_crc(data, sizeof data), 0x62a8ab43);
    for (unsigned i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)i;
    CU_ASSERT_EQUAL(record_crc(data, sizeof data), 0x46dd794e);
    for (unsigned i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(31 - i);
    CU_ASSERT_EQUAL(record_crc(data, sizeof data), 0x113fdb5c);
}

// Every short length at every alignment, up to the first and the last byte of what may be read.
static void crc_keeps_within(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *pages = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *data = pages + page, *end = data + page;
    CU_ASSERT_FATAL(pages != MAP_FAILED);
    CU_ASSERT_EQUAL_FATAL(mprotect(data, page, PROT_READ | PROT_WRITE), 0);
    fill(data, page, 1);
    for (size_t length = 0; length < 600; length++)
        for (size_t shift = 0; shift < 9; shift++) {
            CU_ASSERT_EQUAL(record_crc(data + shift, length), crc_by_bits(data + shift, length));
            CU_ASSERT_EQUAL(
                    record_crc(end - shift - length, length), crc_by_bits(end - shift - length, length));
        }
    CU_ASSERT_EQUAL(record_crc(data, page), crc_by_bits(data, page));
    munmap(pages, 3 * page);
}

// ---- lengths ----

static void lengths(void) {
    static const struct {
        uint32_t head, body, crcs;
        uint64_t body_at, bytes;
    } rows[] = {
            {0, 0, 0, 64, 64}, {1, 0, 0, 65, 128}, {64, 0, 0, 128, 128}, {65, 0, 0, 129, 192},
            {0, 1, 4, 68, 128}, {0, 60, 4, 68, 128}, {0, 61, 4, 68, 192}, {300, 8 * KIB, 4, 368, 8576},
            {0, 64 * KIB - 1, 4, 68, 65664}, {0, 64 * KIB, 4, 68, 65664}, {0, 64 * KIB + 1, 8, 72, 65664},
            {100, RECORD_SMALL_BYTES, 16, 180, 262336}, {0, RECORD_BODY_MAXIMUM - 1, 64, 128, 1048704},
            {0, RECORD_BODY_MAXIMUM, 64, 128, 1048704},
            {RECORD_HEAD_MAXIMUM, RECORD_BODY_MAXIMUM, 64, 262272, 1310848},
            {UINT32_MAX, UINT32_MAX, 262144, 4295229503, 8590196800}, // nothing wraps
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CU_ASSERT_EQUAL(record_crcs_bytes(rows[i].body), rows[i].crcs);
        CU_ASSERT_EQUAL(record_body_at(rows[i].head, rows[i].body), rows[i].body_at);
        CU_ASSERT_EQUAL(record_bytes(rows[i].head, rows[i].body), rows[i].bytes);
        CU_ASSERT_EQUAL(rows[i].bytes % RECORD_ALIGNMENT, 0);
    }
}

// ---- headers ----

static const struct record sample = {.type = RECORD_HEAD,
        .key = {0x0123456789abcdef, 0xfedcba9876543210},
        .sequence = 0x1122334455667788,
        .generation = 0x99aabbccddeeff00,
        .number = 0x0badcafe,
        .head_bytes = 0x12345,
        .body_bytes = 0x23456,
        .head_crc = 0xdeadbeef};

static bool is_same(const struct record *a, const struct record *b) {
    return a->type == b->type && key_equal(a->key, b->key) && a->sequence == b->sequence &&
           a->generation == b->generation && a->number == b->number && a->head_bytes == b->head_bytes &&
           a->body_bytes == b->body_bytes && a->head_crc == b->head_crc;
}

static bool is_empty(const struct record *record) {
    static const struct record nothing;
    return is_same(record, &nothing);
}

// What is on a disk stays what it is, whatever machine reads it.
static void header_on_disk(void) {
    static const unsigned char expected[RECORD_HEADER_BYTES - 4] = {'W', 'E', 'I', 'R', 1, 1, 0, 0, 0xef,
            0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01, 0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe, 0x88,
            0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x00, 0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99, 0xfe,
            0xca, 0xad, 0x0b, 0x45, 0x23, 0x01, 0x00, 0x56, 0x34, 0x02, 0x00, 0xef, 0xbe, 0xad, 0xde};
    unsigned char header[RECORD_HEADER_BYTES];
    record_encode(&sample, header);
    CU_ASSERT_EQUAL(memcmp(header, expected, sizeof expected), 0);
    uint32_t crc = crc_by_bits(header, 60);
    for (int i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(header[60 + i], (unsigned char)(crc >> 8 * i));
}

static void header_round_trips(void) {
    static const struct record rows[] = {
            {.type = RECORD_HEAD, .head_bytes = 1},
            {.type = RECORD_HEAD, .head_bytes = RECORD_HEAD_MAXIMUM, .body_bytes = RECORD_SMALL_BYTES},
            {.type = RECORD_UPDATE, .head_bytes = 300, .sequence = UINT64_MAX},
            {.type = RECORD_CHUNK, .body_bytes = RECORD_BODY_MAXIMUM, .number = UINT32_MAX},
            {.type = RECORD_CHUNK, .body_bytes = 1, .generation = UINT64_MAX},
            {.type = RECORD_CONTENTS},
            {.type = RECORD_CONTENTS, .key = {UINT64_MAX, UINT64_MAX}, .head_crc = UINT32_MAX},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        unsigned char header[RECORD_HEADER_BYTES];
        struct record record;
        record_encode(&rows[i], header);
        CU_ASSERT_EQUAL(record_decode(header, &record), RECORD_OK);
        CU_ASSERT_TRUE(is_same(&record, &rows[i]));
    }
}

static void every_flipped_bit_of_a_header(void) {
    unsigned char header[RECORD_HEADER_BYTES];
    struct record record;
    record_encode(&sample, header);
    for (unsigned bit = 0; bit < 8 * sizeof header; bit++) {
        header[bit / 8] ^= (unsigned char)(1 << bit % 8);
        CU_ASSERT_EQUAL(record_decode(header, &record), RECORD_BROKEN);
        CU_ASSERT_TRUE(is_empty(&record));
        header[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    CU_ASSERT_EQUAL(record_decode(header, &record), RECORD_OK);
}

static void no_header(void) {
    unsigned char header[RECORD_HEADER_BYTES] = {0};
    struct record record = sample;
    CU_ASSERT_EQUAL(record_decode(header, &record), RECORD_NONE);
    CU_ASSERT_TRUE(is_empty(&record));
    for (unsigned i = 0; i < sizeof header; i++) {
        header[i] = 1;
        CU_ASSERT_EQUAL(record_decode(header, &record), RECORD_BROKEN);
        header[i] = 0;
    }
    memset(header, 0xff, sizeof header); // of erased flash
    CU_ASSERT_EQUAL(record_decode(header, &record), RECORD_BROKEN);
    // what was written in part, without its checksum: the rest is zeros
    for (unsigned length = 1; length <= 60; length++) {
        record_encode(&sample, header);
        memset(header + length, 0, sizeof header - length);
        CU_ASSERT_EQUAL(record_decode(header, &record), RECORD_BROKEN);
    }
}

static void put32(unsigned char *at, uint32_t number) {
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(number >> 8 * i);
}

// With a checksum that is right, so that only the meaning is wrong.
static void headers_that_mean_nothing(void) {
    static const struct {
        unsigned at;
        uint32_t value;
        enum record_decode expected;
    } rows[] = {
            {0, 0x52494557, RECORD_OK},           // the magic as it is
            {0, 0x52494558, RECORD_BROKEN},       // another
            {4, 0x0101, RECORD_OK},               // type, format, flags
            {4, 0x0104, RECORD_OK},               //
            {4, 0x0100, RECORD_BROKEN},           // no type
            {4, 0x0105, RECORD_BROKEN},           // a type to come
            {4, 0x01ff, RECORD_BROKEN},           //
            {4, 0x0001, RECORD_BROKEN},           // an older format
            {4, 0x0201, RECORD_BROKEN},           // a newer one
            {4, 0x00010101, RECORD_BROKEN},       // flags
            {4, 0x80000101, RECORD_BROKEN},       //
            {44, RECORD_HEAD_MAXIMUM, RECORD_OK}, // head_bytes
            {44, RECORD_HEAD_MAXIMUM + 1, RECORD_BROKEN},
            {44, UINT32_MAX, RECORD_BROKEN},
            {48, RECORD_BODY_MAXIMUM, RECORD_OK}, // body_bytes
            {48, RECORD_BODY_MAXIMUM + 1, RECORD_BROKEN},
            {48, UINT32_MAX, RECORD_BROKEN},
            {56, 1, RECORD_BROKEN}, // reserved
            {56, UINT32_MAX, RECORD_BROKEN},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        unsigned char header[RECORD_HEADER_BYTES];
        struct record record;
        record_encode(&sample, header);
        put32(header + rows[i].at, rows[i].value);
        put32(header + 60, record_crc(header, 60));
        CU_ASSERT_EQUAL(record_decode(header, &record), rows[i].expected);
        CU_ASSERT_EQUAL(is_empty(&record), rows[i].expected != RECORD_OK);
    }
}

// ---- heads and content ----

static void every_flipped_bit_of_a_head(void) {
    unsigned char head[300];
    struct record record = {.type = RECORD_HEAD};
    fill(head, sizeof head, 5);
    record_set_head(&record, head, sizeof head);
    CU_ASSERT_EQUAL(record.head_bytes, sizeof head);
    CU_ASSERT_TRUE(record_check_head(&record, head));
    for (unsigned bit = 0; bit < 8 * sizeof head; bit++) {
        head[bit / 8] ^= (unsigned char)(1 << bit % 8);
        CU_ASSERT_FALSE(record_check_head(&record, head));
        head[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (uint32_t length = 0; length < sizeof head; length++) {
        record.head_bytes = length;
        CU_ASSERT_FALSE(record_check_head(&record, head));
    }
}

static void content(void) {
    static const uint32_t lengths[] = {0, 1, 63, 64, 65, 8 * KIB, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1,
            128 * KIB - 1, 128 * KIB, RECORD_SMALL_BYTES, RECORD_SMALL_BYTES + 1, RECORD_BODY_MAXIMUM - 1,
            RECORD_BODY_MAXIMUM};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        uint32_t length = lengths[i];
        // of its own size, so that reading on is seen
        unsigned char *body = malloc(length + !length), *crcs = malloc(record_crcs_bytes(length) + 1);
        fill(body, length, (uint32_t)i);
        crcs[record_crcs_bytes(length)] = 0x5a;
        record_write_crcs(body, length, crcs);
        CU_ASSERT_EQUAL(crcs[record_crcs_bytes(length)], 0x5a);
        CU_ASSERT_TRUE(record_check_body(crcs, length, 0, body, length));
        for (uint32_t first = 0; first <= length; first += RECORD_CRC_BYTES) {
            uint32_t left = length - first, one = left < RECORD_CRC_BYTES ? left : RECORD_CRC_BYTES;
            CU_ASSERT_TRUE(record_check_body(crcs, length, first, body + first, left));
            CU_ASSERT_TRUE(record_check_body(crcs, length, first, body + first, one));
            CU_ASSERT_TRUE(record_check_body(crcs, length, first, body + first, 0));
        }
        free(body);
        free(crcs);
    }
}

// A bit anywhere spoils its own window and no other; one in the checksums does as well.
static void flipped_bits_of_content(void) {
    enum { LENGTH = 3 * RECORD_CRC_BYTES + 100 };
    static unsigned char body[LENGTH], crcs[16];
    fill(body, LENGTH, 9);
    record_write_crcs(body, LENGTH, crcs);
    for (uint32_t bit = 0; bit < 8 * LENGTH; bit += 4093) {
        uint32_t window = bit / 8 / RECORD_CRC_BYTES;
        body[bit / 8] ^= (unsigned char)(1 << bit % 8);
        CU_ASSERT_FALSE(record_check_body(crcs, LENGTH, 0, body, LENGTH));
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t first = i * RECORD_CRC_BYTES, length = i < 3 ? RECORD_CRC_BYTES : 100;
            CU_ASSERT_EQUAL(record_check_body(crcs, LENGTH, first, body + first, length), i != window);
        }
        body[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (uint32_t bit = 0; bit < 8 * sizeof crcs; bit++) {
        crcs[bit / 8] ^= (unsigned char)(1 << bit % 8);
        CU_ASSERT_FALSE(record_check_body(crcs, LENGTH, 0, body, LENGTH));
        crcs[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    CU_ASSERT_TRUE(record_check_body(crcs, LENGTH, 0, body, LENGTH));
}

// A hole in a file reads as zeros, in the content and in its checksums.
static void zeros_are_no_content(void) {
    static unsigned char body[RECORD_CRC_BYTES], crcs[4];
    CU_ASSERT_FALSE(record_check_body(crcs, 1, 0, body, 1));
    CU_ASSERT_FALSE(record_check_body(crcs, RECORD_CRC_BYTES, 0, body, RECORD_CRC_BYTES));
}

SUITE(cache_record, CASE(crc_vectors), CASE(crc_keeps_within), CASE(lengths), CASE(header_on_disk),
        CASE(header_round_trips), CASE(every_flipped_bit_of_a_header), CASE(no_header),
        CASE(headers_that_mean_nothing), CASE(every_flipped_bit_of_a_head), CASE(content),
        CASE(flipped_bits_of_content), CASE(zeros_are_no_content))
