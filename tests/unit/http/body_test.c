#include "http/body.h"

#include "tests/unit/http/message.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct outcome {
    enum body body;
    char content[4096];
    size_t length;
    size_t rest; // of the input, untaken
    char trailers[BODY_TRAILER_BYTES + 1];
    const char *error;
};

// Decodes `input` given in pieces of `step` bytes.
static void decode(struct view input, const struct framing *framing, size_t step, struct outcome *outcome) {
    struct body_decoder decoder;
    *outcome = (struct outcome){.body = BODY_MORE, .rest = input.length};
    body_decoder_init(&decoder, framing);
    while (outcome->body == BODY_MORE && outcome->rest > 0) {
        struct view all = view_take(view_skip(input, input.length - outcome->rest), step);
        struct view piece = message_guarded(all), content = {NULL, 0};
        while ((outcome->body = body_decode(&decoder, &piece, &content)) == BODY_DATA) {
            CU_ASSERT_FATAL(
                    content.length > 0 && outcome->length + content.length <= sizeof outcome->content);
            memcpy(outcome->content + outcome->length, content.data, content.length);
            outcome->length += content.length;
        }
        CU_ASSERT(piece.length == 0 || outcome->body != BODY_MORE);
        outcome->rest -= all.length - piece.length;
    }
    struct view trailers = body_trailers(&decoder);
    memcpy(outcome->trailers, trailers.data, trailers.length);
    outcome->error = decoder.error;
    CU_ASSERT_EQUAL(decoder.content, outcome->length);
    CU_ASSERT_EQUAL(outcome->body == BODY_BAD, outcome->error != NULL);
    body_decoder_fini(&decoder);
    body_decoder_fini(&decoder);
}

struct chunks {
    struct view text;
    enum body body;
    const char *content;
    size_t rest;
};

#define LAST "0\r\n\r\n"

static const struct chunks chunks[] = {
        {VIEW(LAST), BODY_END, "", 0},
        {VIEW("5\r\nhello\r\n" LAST), BODY_END, "hello", 0},
        {VIEW("5\r\nhello\r\n" LAST "GET"), BODY_END, "hello", 3},
        {VIEW("1\r\na\r\n2\r\nbc\r\n0a\r\n0123456789\r\n" LAST), BODY_END, "abc0123456789", 0},
        {VIEW("000000000000000000000000005\r\nhello\r\n" LAST), BODY_END, "hello", 0},
        {VIEW("A\r\n0123456789\r\n000\r\n\r\n"), BODY_END, "0123456789", 0},
        {VIEW("4\r\n\r\n\r\n\r\n" LAST), BODY_END, "\r\n\r\n", 0},
        {VIEW("5\r\nhello\r\n"), BODY_MORE, "hello", 0},
        {VIEW("5\r\nhel"), BODY_MORE, "hel", 0},
        {VIEW("0\r\n"), BODY_MORE, "", 0},
        {VIEW("0\r\n\r"), BODY_MORE, "", 0},
        // sizes
        {VIEW("\r\n"), BODY_BAD, "", 0},
        {VIEW("g\r\n"), BODY_BAD, "", 2},
        {VIEW("+5\r\nhello\r\n"), BODY_BAD, "", 0},
        {VIEW("-5\r\n"), BODY_BAD, "", 0},
        {VIEW(" 5\r\n"), BODY_BAD, "", 0},
        {VIEW("\t5\r\n"), BODY_BAD, "", 0},
        {VIEW("5 \r\nhello\r\n"), BODY_BAD, "", 0},
        {VIEW("5\t\r\nhello\r\n"), BODY_BAD, "", 0},
        {VIEW("5 5\r\n"), BODY_BAD, "", 0},
        {VIEW("0x5\r\nhello\r\n"), BODY_BAD, "", 0},
        {VIEW("5h\r\n"), BODY_BAD, "", 0},
        {VIEW("5,\r\n"), BODY_BAD, "", 0},
        {VIEW("5_0\r\n"), BODY_BAD, "", 0},
        {VIEW("5\0\r\n"), BODY_BAD, "", 0},
        {VIEW("\"5\"\r\n"), BODY_BAD, "", 0},
        {VIEW("5\nhello\r\n"), BODY_BAD, "", 0},
        {VIEW("5\rhello\r\n"), BODY_BAD, "", 0},
        {VIEW("5\r\r\nhello"), BODY_BAD, "", 0},
        {VIEW("7fffffffffffffff\r\n"), BODY_MORE, "", 0},
        {VIEW("1\r\na\r\n7fffffffffffffff\r\n"), BODY_BAD, "a", 0},
        {VIEW("8000000000000000\r\n"), BODY_BAD, "", 0},
        {VIEW("ffffffffffffffff\r\n"), BODY_BAD, "", 0},
        {VIEW("10000000000000000\r\n"), BODY_BAD, "", 0},
        {VIEW("10000000000000005\r\nhello\r\n"), BODY_BAD, "", 0},
        // what follows the data
        {VIEW("5\r\nhelloX\r\n"), BODY_BAD, "hello", 0},
        {VIEW("5\r\nhello\n"), BODY_BAD, "hello", 0},
        {VIEW("5\r\nhello\rX"), BODY_BAD, "hello", 0},
        {VIEW("5\r\nhello0\r\n\r\n"), BODY_BAD, "hello", 0},
        {VIEW("4\r\nhello\r\n"), BODY_BAD, "hell", 0},
        {VIEW("6\r\nhello\r\n" LAST), BODY_BAD, "hello\r", 0},
        // extensions
        {VIEW("5;a\r\nhello\r\n0;b\r\n\r\n"), BODY_END, "hello", 0},
        {VIEW("5;a=b;c=\"d\";e\r\nhello\r\n" LAST), BODY_END, "hello", 0},
        {VIEW("5 ; a = b ;\tc = \"d \t;\\\"\x80\" ;e\r\nhello\r\n" LAST), BODY_END, "hello", 0},
        {VIEW("5;a=\"\"\r\nhello\r\n" LAST), BODY_END, "hello", 0},
        {VIEW("5;\r\n"), BODY_BAD, "", 0},
        {VIEW("5;;a\r\n"), BODY_BAD, "", 0},
        {VIEW("5;a;\r\n"), BODY_BAD, "", 0},
        {VIEW("5; \r\n"), BODY_BAD, "", 0},
        {VIEW("5;=b\r\n"), BODY_BAD, "", 0},
        {VIEW("5;a=\r\n"), BODY_BAD, "", 0},
        {VIEW("5;a=;b\r\n"), BODY_BAD, "", 0},
        {VIEW("5;a \r\n"), BODY_BAD, "", 0},
        {VIEW("5;a=b \r\n"), BODY_BAD, "", 0},
        {VIEW("5;a b\r\n"), BODY_BAD, "", 0},
        {VIEW("5;a=b c\r\n"), BODY_BAD, "", 0},
        {VIEW("5;a=\"b\"c\r\n"), BODY_BAD, "", 0},
        {VIEW("5;a=\"b\r\n"), BODY_BAD, "", 0},
        {VIEW("5;a=\"b\\\r\n\"\r\n"), BODY_BAD, "", 0},
        {VIEW("5;a=\"b\nc\"\r\n"), BODY_BAD, "", 0},
        {VIEW("5;a=\"\0\"\r\n"), BODY_BAD, "", 0},
        {VIEW("5;a\nhello"), BODY_BAD, "", 0},
        {VIEW("5;a\rX"), BODY_BAD, "", 0},
        {VIEW("5;a=b\x7f\r\n"), BODY_BAD, "", 0},
        {VIEW("5;a\x80\r\n"), BODY_BAD, "", 0},
        {VIEW("0;\n\r\n"), BODY_BAD, "", 0},
        // the end
        {VIEW("0\r\n\n"), BODY_BAD, "", 0},
        {VIEW("0\r\n\rX"), BODY_BAD, "", 0},
        {VIEW("0\n\n"), BODY_BAD, "", 0},
        {VIEW("0\r\nX\r\n\r\n"), BODY_BAD, "", 0},
        {VIEW("0\r\nX: a\n\r\n"), BODY_BAD, "", 0},
        {VIEW("0\r\nX: a\rb\r\n\r\n"), BODY_BAD, "", 0},
        {VIEW("0\r\nX : a\r\n\r\n"), BODY_BAD, "", 0},
        {VIEW("0\r\nX: a\r\n b\r\n\r\n"), BODY_BAD, "", 0},
        {VIEW("0\r\n: a\r\n\r\n"), BODY_BAD, "", 0},
        {VIEW("0\r\nX: \0\r\n\r\n"), BODY_BAD, "", 0},
        {VIEW("0\r\nX: a\r\n\r\nGET /"), BODY_END, "", 5},
};

static void chunked_rules(void) {
    static const struct framing framing = {FRAMING_CHUNKED, 0};
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++)
        for (size_t step = 1; step < 80; step += step < 8 ? 1 : 13) {
            struct outcome outcome;
            decode(chunks[i].text, &framing, step, &outcome);
            if (outcome.body != chunks[i].body)
                printf("\n  chunks %zu in steps of %zu: %d " VIEW_FORMAT "\n", i, step, outcome.body,
                        VIEW_ARGUMENT(chunks[i].text));
            CU_ASSERT_EQUAL(outcome.body, chunks[i].body);
            CU_ASSERT_STRING_EQUAL(outcome.content, chunks[i].content);
            if (outcome.body == BODY_END)
                CU_ASSERT_EQUAL(outcome.rest, chunks[i].rest);
        }
}

static void trailers(void) {
    static const struct framing framing = {FRAMING_CHUNKED, 0};
    static const struct {
        const char *sent, *kept;
    } all[] = {{"X-A: 1\r\n", "X-A: 1\r\n"}, {"Digest: a\r\nX:\r\n", "Digest: a\r\nX:\r\n"},
            {"Content-Length: 5\r\n", ""}, {"transfer-encoding: chunked\r\n", ""},
            {"X: 1\r\nHost: b\r\nY: 2\r\n", "X: 1\r\nY: 2\r\n"},
            {"Authorization: b\r\nCookie: c\r\nSet-Cookie: d\r\nConnection: X\r\nX: y\r\n", "X: y\r\n"},
            {"Cache-Control: no-store\r\nVary: *\r\nContent-Encoding: gzip\r\nTE: x\r\nAge: 1\r\n", ""}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t step = 1; step < 200; step += 7) {
            char text[256];
            struct outcome outcome;
            snprintf(text, sizeof text, "3\r\nabc\r\n0\r\n%s\r\n", all[i].sent);
            decode(view_of(text), &framing, step, &outcome);
            CU_ASSERT_EQUAL(outcome.body, BODY_END);
            CU_ASSERT_STRING_EQUAL(outcome.trailers, all[i].kept);
        }
}

// A body that is "0\r\n" and a trailer section of `bytes` in lines of `line` bytes named `name`.
static enum body long_trailers(const char *name, size_t line, size_t bytes) {
    static const struct framing framing = {FRAMING_CHUNKED, 0};
    static char text[16384];
    struct outcome outcome;
    size_t length = (size_t)sprintf(text, "0\r\n"), end = length + bytes;
    while (length < end) {
        size_t room = end - length >= 2 * line ? line : end - length;
        memset(text + length, 'a', room);
        memcpy(text + length, name, strlen(name));
        memcpy(text + length + room - 2, "\r\n", 2);
        length += room;
    }
    memcpy(text + length, "\r\n", 2);
    decode((struct view){text, length + 2}, &framing, 1000, &outcome);
    return outcome.body;
}

static void bounds(void) {
    static const struct framing framing = {FRAMING_CHUNKED, 0};
    CU_ASSERT_EQUAL(long_trailers("X:", 100, BODY_TRAILER_BYTES), BODY_END);
    CU_ASSERT_EQUAL(long_trailers("X:", 100, BODY_TRAILER_BYTES + 1), BODY_BAD);
    CU_ASSERT_EQUAL(long_trailers("X:", 9000, BODY_TRAILER_BYTES), BODY_END);
    CU_ASSERT_EQUAL(long_trailers("X:", 9000, BODY_TRAILER_BYTES + 1), BODY_BAD);
    CU_ASSERT_EQUAL(long_trailers("Host:", 100, BODY_TRAILER_BYTES), BODY_END);
    CU_ASSERT_EQUAL(long_trailers("Host:", 100, BODY_TRAILER_BYTES + 1), BODY_BAD);
    for (size_t extra = 0; extra < 2; extra++) { // the chunk line counts with its CR
        char text[2048];
        struct outcome outcome;
        size_t length = BODY_CHUNK_LINE_BYTES + extra;
        memset(text, 'a', sizeof text);
        memcpy(text, "1;", 2);
        memcpy(text + length - 1, "\r\nX\r\n0\r\n\r\n", 11);
        decode((struct view){text, length + 9}, &framing, 100, &outcome);
        CU_ASSERT_EQUAL(outcome.body, extra ? BODY_BAD : BODY_END);
    }
}

static void lengths(void) {
    for (size_t step = 1; step < 9; step++) {
        struct outcome outcome;
        struct framing framing = {FRAMING_LENGTH, 5};
        decode(VIEW("helloGET"), &framing, step, &outcome);
        CU_ASSERT_EQUAL(outcome.body, BODY_END);
        CU_ASSERT_STRING_EQUAL(outcome.content, "hello");
        CU_ASSERT_EQUAL(outcome.rest, 3);
        framing = (struct framing){FRAMING_CLOSE, 0};
        decode(VIEW("helloGET"), &framing, step, &outcome);
        CU_ASSERT_EQUAL(outcome.body, BODY_MORE);
        CU_ASSERT_STRING_EQUAL(outcome.content, "helloGET");
        framing = (struct framing){FRAMING_NONE, 0};
        decode(VIEW("helloGET"), &framing, step, &outcome);
        CU_ASSERT_EQUAL(outcome.body, BODY_END);
        CU_ASSERT_EQUAL(outcome.rest, 8);
    }
}

struct closing {
    struct framing framing;
    struct view input;
    enum body close;
    int64_t left; // before the close
};

static void closed(void) {
    static const struct closing all[] = {
            {{FRAMING_NONE, 0}, VIEW(""), BODY_END, 0},
            {{FRAMING_CLOSE, 0}, VIEW(""), BODY_END, -1},
            {{FRAMING_CLOSE, 0}, VIEW("abc"), BODY_END, -1},
            {{FRAMING_LENGTH, 0}, VIEW(""), BODY_END, 0},
            {{FRAMING_LENGTH, 3}, VIEW("abc"), BODY_END, 0},
            {{FRAMING_LENGTH, 3}, VIEW("ab"), BODY_BAD, 1},
            {{FRAMING_LENGTH, 3}, VIEW(""), BODY_BAD, 3},
            {{FRAMING_CHUNKED, 0}, VIEW(""), BODY_BAD, -1},
            {{FRAMING_CHUNKED, 0}, VIEW("3\r\nabc\r\n"), BODY_BAD, -1},
            {{FRAMING_CHUNKED, 0}, VIEW("0\r\n"), BODY_BAD, -1},
            {{FRAMING_CHUNKED, 0}, VIEW("0\r\nX: a\r\n"), BODY_BAD, -1},
            {{FRAMING_CHUNKED, 0}, VIEW("0\r\n\r\n"), BODY_END, -1},
            {{FRAMING_CHUNKED, 0}, VIEW("x"), BODY_BAD, -1},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct body_decoder decoder;
        struct view input = all[i].input, content;
        body_decoder_init(&decoder, &all[i].framing);
        while (body_decode(&decoder, &input, &content) == BODY_DATA)
            CU_ASSERT(content.length > 0);
        CU_ASSERT_EQUAL(body_left(&decoder), all[i].left);
        CU_ASSERT_EQUAL(body_decode_close(&decoder), all[i].close);
        CU_ASSERT_EQUAL(decoder.error != NULL, all[i].close == BODY_BAD);
        CU_ASSERT_EQUAL(body_trailers(&decoder).length, 0);
        input = VIEW("");
        CU_ASSERT_EQUAL(body_decode(&decoder, &input, &content), all[i].close);
        body_decoder_fini(&decoder);
    }
}

static void chunk_heads(void) {
    static const struct {
        uint64_t size;
        const char *head;
    } all[] = {{1, "1\r\n"}, {15, "f\r\n"}, {16, "10\r\n"}, {65536, "10000\r\n"},
            {UINT64_MAX, "ffffffffffffffff\r\n"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char out[BODY_CHUNK_HEAD_BYTES];
        size_t length = body_chunk_head(all[i].size, out);
        CU_ASSERT(view_equal((struct view){out, length}, view_of(all[i].head)));
    }
}

SUITE(http_body, CASE(chunked_rules), CASE(trailers), CASE(bounds), CASE(lengths), CASE(closed),
        CASE(chunk_heads))
