#include "admin/json.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#define BYTES(literal)                                                                                       \
    { "" literal, sizeof(literal) - 1 }

static const struct {
    struct view text, escaped;
} cases[] = {
        {BYTES(""), BYTES("")},
        {BYTES("plain /?=&"), BYTES("plain /?=&")},
        {BYTES("\"\\\b\f\n\r\t"), BYTES("\\\"\\\\\\b\\f\\n\\r\\t")},
        {BYTES("\0\x01\x1f\x7f"), BYTES("\\u0000\\u0001\\u001f\\u007f")},
        {BYTES("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), BYTES("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80")},
        {BYTES("\xc2\x85\xc2\x9f\xc2\xa0"), BYTES("\\u0085\\u009f\xc2\xa0")}, // C1
        {BYTES("\xc3"), BYTES("\\ufffd")},                                    // cut short
        {BYTES("\xc0\xaf"), BYTES("\\ufffd\\ufffd")},                         // overlong
        {BYTES("\xe0\x80\xaf"), BYTES("\\ufffd\\ufffd\\ufffd")},              // overlong
        {BYTES("\xed\xa0\x80"), BYTES("\\ufffd\\ufffd\\ufffd")},              // surrogate
        {BYTES("\xf4\x90\x80\x80"), BYTES("\\ufffd\\ufffd\\ufffd\\ufffd")},   // above U+10FFFF
        {BYTES("\xe2\x82z"), BYTES("\\ufffd\\ufffdz")},
        {BYTES("\xff"
               "a"),
                BYTES("\\ufffda")},
};

static size_t escape(struct view text, char *out) {
    size_t used = 0, length;
    while (text.length) {
        text = view_skip(text, json_escape_one(text, out + used, &length));
        CU_ASSERT_TRUE_FATAL(length > 0 && length <= JSON_PIECE_BYTES);
        used += length;
    }
    return used;
}

static void escaping(void) {
    char out[64];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t length = escape(cases[i].text, out);
        CU_ASSERT_TRUE(view_equal((struct view){out, length}, cases[i].escaped));
    }
}

static void printing(void) {
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    json_print(VIEW("a\"\xff"), out);
    fclose(out);
    CU_ASSERT_STRING_EQUAL(text, "\"a\\\"\\ufffd\"");
    free(text);
}

SUITE(admin_json, CASE(escaping), CASE(printing))
