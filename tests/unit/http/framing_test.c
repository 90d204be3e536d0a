#include "http/framing.h"

#include "tests/unit/http/message.h"
#include "tests/unit/unit.h"

#include <stdio.h>

struct framed {
    const char *fields;
    int status; // 0: accepted
    enum framing_kind kind;
    uint64_t length;
};

#define TE "Transfer-Encoding: "
#define CL "Content-Length: "

static const struct framed lengths[] = {
        {"", 0, FRAMING_NONE, 0},
        {CL "0\r\n", 0, FRAMING_LENGTH, 0},
        {CL "5\r\n", 0, FRAMING_LENGTH, 5},
        {CL "\t 5 \r\n", 0, FRAMING_LENGTH, 5},
        {CL "0005\r\n", 0, FRAMING_LENGTH, 5},
        {CL "5\r\n" CL "5\r\n", 0, FRAMING_LENGTH, 5},
        {CL "5, 5\r\n", 0, FRAMING_LENGTH, 5},
        {CL "5,5 ,\t5\r\ncontent-length: 5\r\n", 0, FRAMING_LENGTH, 5},
        {CL "9223372036854775807\r\n", 0, FRAMING_LENGTH, INT64_MAX},
        {CL "9223372036854775808\r\n", 400, 0, 0},
        {CL "18446744073709551616\r\n", 400, 0, 0},
        {CL "18446744073709551621\r\n", 400, 0, 0},
        {CL "99999999999999999999999999999\r\n", 400, 0, 0},
        {CL "\r\n", 400, 0, 0},
        {CL "5\r\n" CL "6\r\n", 400, 0, 0},
        {CL "5\r\n" CL "\r\n", 400, 0, 0},
        {CL "5, 6\r\n", 400, 0, 0},
        {CL "5, \r\n", 400, 0, 0},
        {CL ", 5\r\n", 400, 0, 0},
        {CL "5,,5\r\n", 400, 0, 0},
        {CL "+5\r\n", 400, 0, 0},
        {CL "-5\r\n", 400, 0, 0},
        {CL "-0\r\n", 400, 0, 0},
        {CL "5 5\r\n", 400, 0, 0},
        {CL "0x5\r\n", 400, 0, 0},
        {CL "5a\r\n", 400, 0, 0},
        {CL "5;a\r\n", 400, 0, 0},
        {CL "5.0\r\n", 400, 0, 0},
        {CL "5e1\r\n", 400, 0, 0},
        {CL "\"5\"\r\n", 400, 0, 0},
        {CL "\xd9\xa5\r\n", 400, 0, 0},
};

static const struct framed codings[] = {
        {TE "chunked\r\n", 0, FRAMING_CHUNKED, 0},
        {TE "Chunked \r\n", 0, FRAMING_CHUNKED, 0},
        {TE "chunked\r\n" CL "5\r\n", 400, 0, 0},
        {CL "5\r\n" TE "chunked\r\n", 400, 0, 0},
        {CL "x\r\n" TE "chunked\r\n", 400, 0, 0},
        {TE "chunked\r\nConnection: Content-Length\r\n" CL "5\r\n", 400, 0, 0},
        {TE "identity\r\n" CL "5\r\n", 400, 0, 0},
        {TE "\r\n", 400, 0, 0},
        {TE "\r\n" CL "5\r\n", 400, 0, 0},
        {TE "chunked, chunked\r\n", 400, 0, 0},
        {TE "chunked\r\n" TE "chunked\r\n", 400, 0, 0},
        {TE "chunked, identity\r\n", 400, 0, 0},
        {TE "chunked\r\n" TE "identity\r\n", 400, 0, 0},
        {TE "identity\r\n", 400, 0, 0},
        {TE "gzip\r\n", 400, 0, 0},
        {TE "xchunked\r\n", 400, 0, 0},
        {TE "x chunked\r\n", 400, 0, 0},
        {TE "chunked x\r\n", 400, 0, 0},
        {TE "chunkedx\r\n", 400, 0, 0},
        {TE "\"chunked\"\r\n", 400, 0, 0},
        {TE "'chunked'\r\n", 400, 0, 0},
        {TE "chunked;\r\n", 400, 0, 0},
        {TE "chunked;a=b\r\n", 400, 0, 0},
        {TE "chunked,\r\n", 400, 0, 0},
        {TE ",chunked\r\n", 400, 0, 0},
        {TE "chunked\x80\r\n", 400, 0, 0},
        {TE "chunked, gzip, chunked\r\n", 400, 0, 0},
        {TE "\xc4\xb0"
            "dentity, chunked\r\n",
                400, 0, 0},
        {TE "identity, chunked\r\n", 501, 0, 0},
        {TE "gzip, chunked\r\n", 501, 0, 0},
        {TE "gzip;q=1, chunked\r\n", 501, 0, 0},
        {TE "gzip\r\n" TE "chunked\r\n", 501, 0, 0},
        {TE "a, b, chunked\r\n", 501, 0, 0},
};

static void check(const struct framed *one, const char *start, enum method_id method, int refusal) {
    char text[512];
    struct message message;
    struct framing framing = {.length = 77};
    struct http_error error = {0};
    snprintf(text, sizeof text, "%s\r\n%s\r\n", start, one->fields);
    bool is_response = text[0] == 'H';
    const struct http_head *head =
            is_response ? message_good_response(&message, text) : message_good_request(&message, text);
    enum parse parse = is_response ? framing_of_response(head, method, &framing, &error)
                                   : framing_of_request(head, &framing, &error);
    if ((parse == PARSE_BAD) != (refusal != 0) || error.status != refusal)
        printf("\n  framing %s %s: %d\n", start, one->fields, error.status);
    CU_ASSERT_EQUAL(parse, refusal ? PARSE_BAD : PARSE_DONE);
    CU_ASSERT_EQUAL(error.status, refusal);
    CU_ASSERT(refusal || framing.kind == one->kind);
    CU_ASSERT(refusal || framing.length == one->length);
}

static void requests(void) {
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        check(&lengths[i], "POST / HTTP/1.1", METHOD_POST, lengths[i].status);
        check(&lengths[i], "GET / HTTP/1.0", METHOD_GET, lengths[i].status);
    }
    for (size_t i = 0; i < sizeof codings / sizeof *codings; i++) {
        check(&codings[i], "POST / HTTP/1.1", METHOD_POST, codings[i].status);
        check(&codings[i], "POST / HTTP/1.0", METHOD_POST, 400);
    }
}

static void responses(void) {
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct framed one = lengths[i];
        if (one.kind == FRAMING_NONE)
            one.kind = FRAMING_CLOSE;
        check(&one, "HTTP/1.1 200 OK", METHOD_GET, one.status ? 502 : 0);
        check(&one, "HTTP/1.0 200 OK", METHOD_OTHER, one.status ? 502 : 0);
    }
    for (size_t i = 0; i < sizeof codings / sizeof *codings; i++) {
        check(&codings[i], "HTTP/1.1 200 OK", METHOD_GET, codings[i].status ? 502 : 0);
        check(&codings[i], "HTTP/1.0 200 OK", METHOD_GET, 502);
    }
}

static void no_body(void) {
    static const struct {
        const char *start;
        enum method_id method;
        enum framing_kind kind;
    } all[] = {{"HTTP/1.1 200 OK", METHOD_HEAD, FRAMING_NONE}, {"HTTP/1.1 404 x", METHOD_HEAD, FRAMING_NONE},
            {"HTTP/1.1 100 x", METHOD_POST, FRAMING_NONE}, {"HTTP/1.1 101 x", METHOD_GET, FRAMING_NONE},
            {"HTTP/1.1 103 x", METHOD_GET, FRAMING_NONE}, {"HTTP/1.1 199 x", METHOD_GET, FRAMING_NONE},
            {"HTTP/1.1 204 x", METHOD_GET, FRAMING_NONE}, {"HTTP/1.1 304 x", METHOD_GET, FRAMING_NONE},
            {"HTTP/1.1 205 x", METHOD_GET, FRAMING_LENGTH}, {"HTTP/1.1 206 x", METHOD_GET, FRAMING_LENGTH},
            {"HTTP/1.1 200 x", METHOD_CONNECT, FRAMING_NONE},
            {"HTTP/1.1 299 x", METHOD_CONNECT, FRAMING_NONE},
            {"HTTP/1.1 407 x", METHOD_CONNECT, FRAMING_LENGTH}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct framed one = {CL "7\r\n", 0, all[i].kind, all[i].kind == FRAMING_LENGTH ? 7 : 0};
        struct framed both = {CL "7\r\n" TE "chunked\r\n", 0, FRAMING_NONE, 0};
        bool is_tunnel = all[i].method == METHOD_CONNECT && all[i].kind == FRAMING_NONE;
        check(&one, all[i].start, all[i].method, 0);
        check(&both, all[i].start, all[i].method, is_tunnel ? 0 : 502);
    }
}

static void agreed_length(void) {
    struct message message;
    int64_t length = 7;
    CU_ASSERT(framing_content_length(message_good_response(&message, "HTTP/1.1 304 x\r\n\r\n"), &length));
    CU_ASSERT_EQUAL(length, -1);
    CU_ASSERT(framing_content_length(
            message_good_response(&message, "HTTP/1.1 304 x\r\n" CL "8\r\n\r\n"), &length));
    CU_ASSERT_EQUAL(length, 8);
    CU_ASSERT_FALSE(framing_content_length(
            message_good_response(&message, "HTTP/1.1 304 x\r\n" CL "8\r\n" CL "9\r\n\r\n"), &length));
}

SUITE(http_framing, CASE(requests), CASE(responses), CASE(no_body), CASE(agreed_length))
