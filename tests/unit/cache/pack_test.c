#include "cache/pack.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

static void numbers(void) {
    static const struct {
        uint64_t number;
        size_t length;
    } rows[] = {{0, 1}, {1, 1}, {0x7f, 1}, {0x80, 2}, {0x3fff, 2}, {0x4000, 3}, {UINT32_MAX, 5},
            {UINT64_C(1) << 62, 9}, {UINT64_C(1) << 63, 10}, {UINT64_MAX, PACK_NUMBER_BYTES}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        unsigned char bytes[PACK_NUMBER_BYTES];
        struct pack pack = {bytes, sizeof bytes, 0};
        pack_number(&pack, rows[i].number);
        CU_ASSERT_EQUAL(pack.length, rows[i].length);
        for (size_t length = 0; length <= pack.length; length++) {
            struct unpack in = unpack_from((struct view){(char *)bytes, length});
            bool is_whole = length == pack.length;
            CU_ASSERT_EQUAL(unpack_number(&in, UINT64_MAX), is_whole ? rows[i].number : 0);
            CU_ASSERT_EQUAL(in.is_broken, !is_whole);
            CU_ASSERT_EQUAL(in.left, 0);
        }
        struct unpack in = unpack_from((struct view){(char *)bytes, pack.length});
        CU_ASSERT_EQUAL(unpack_number(&in, rows[i].number), rows[i].number);
        CU_ASSERT_FALSE(in.is_broken);
        in = unpack_from((struct view){(char *)bytes, pack.length});
        if (rows[i].number > 0) {
            CU_ASSERT_EQUAL(unpack_number(&in, rows[i].number - 1), 0);
            CU_ASSERT_TRUE(in.is_broken);
        }
    }
}

static void signed_numbers(void) {
    static const struct {
        int64_t number;
        size_t length;
    } rows[] = {
            {0, 1}, {-1, 1}, {1, 1}, {63, 1}, {-64, 1}, {64, 2}, {-65, 2}, {INT64_MAX, 10}, {INT64_MIN, 10}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        unsigned char bytes[PACK_NUMBER_BYTES];
        struct pack pack = {bytes, sizeof bytes, 0};
        pack_signed(&pack, rows[i].number);
        struct unpack in = unpack_from((struct view){(char *)bytes, pack.length});
        CU_ASSERT_EQUAL(pack.length, rows[i].length);
        CU_ASSERT_EQUAL(unpack_signed(&in), rows[i].number);
        CU_ASSERT_FALSE(in.is_broken);
    }
}

static void other_forms_of_numbers(void) {
    static const struct {
        struct view bytes;
        bool is_broken;
    } rows[] = {
            {VIEW("\x00"), false}, {VIEW("\x80\x00"), true}, // 0 in two bytes
            {VIEW("\xff\x00"), true},                        // 127 in two
            {VIEW("\xff\x80\x00"), true}, {VIEW("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), false},
            {VIEW("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), true}, // 65 bits
            {VIEW("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x81\x00"), true},
            {VIEW("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), true}, // eleven bytes
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct unpack in = unpack_from(rows[i].bytes);
        unpack_number(&in, UINT64_MAX);
        CU_ASSERT_EQUAL(in.is_broken, rows[i].is_broken);
    }
}

static void texts(void) {
    char *exact = memcpy(malloc(4),
            "\x03"
            "abc",
            4);
    for (size_t length = 0; length < 4; length++) {
        char *cut = memcpy(malloc(length + !length), exact, length);
        struct unpack in = unpack_from((struct view){cut, length});
        CU_ASSERT_EQUAL(unpack_text(&in, 10).length, 0);
        CU_ASSERT_TRUE(in.is_broken);
        free(cut);
    }
    struct unpack in = unpack_from((struct view){exact, 4});
    CU_ASSERT_TRUE(view_equal(unpack_text(&in, 3), VIEW("abc")));
    CU_ASSERT_FALSE(in.is_broken);
    in = unpack_from((struct view){exact, 4});
    CU_ASSERT_EQUAL(unpack_text(&in, 2).length, 0); // longer than wanted
    CU_ASSERT_TRUE(in.is_broken);
    free(exact);
    in = unpack_from(VIEW("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
    CU_ASSERT_EQUAL(unpack_text(&in, SIZE_MAX).length, 0); // the longest there can be
    CU_ASSERT_TRUE(in.is_broken);
}

// Once broken, nothing more is read.
static void broken_stays_broken(void) {
    struct unpack in = unpack_from(VIEW("\x05"
                                        "ab\x01"));
    CU_ASSERT_EQUAL(unpack_text(&in, 10).length, 0);
    CU_ASSERT_EQUAL(unpack_number(&in, 10), 0);
    CU_ASSERT_EQUAL(unpack_signed(&in), 0);
    CU_ASSERT_EQUAL(unpack_bytes(&in, 1).length, 0);
    CU_ASSERT_TRUE(in.is_broken);
}

// What does not fit is counted, and nothing is written behind the room.
static void room(void) {
    for (size_t size = 0; size < 16; size++) {
        unsigned char *out = malloc(size + !size);
        struct pack pack = {size ? out : NULL, size, 0};
        pack_text(&pack, VIEW("abcdefg"));
        pack_number(&pack, 300);
        pack_bytes(&pack, "", 0);
        CU_ASSERT_EQUAL(pack.length, 10);
        if (size >= 10)
            CU_ASSERT_EQUAL(memcmp(out,
                                    "\x07"
                                    "abcdefg\xac\x02",
                                    10),
                    0);
        free(out);
    }
}

SUITE(cache_pack, CASE(numbers), CASE(signed_numbers), CASE(other_forms_of_numbers), CASE(texts),
        CASE(broken_stays_broken), CASE(room))
