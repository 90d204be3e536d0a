#include "http/field.h"

#include "http/connection.h"
#include "http/list.h"
#include "http/octet.h"
#include "tests/unit/http/message.h"
#include "tests/unit/unit.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void ids(void) {
    static const char *const names[] = {
#define FIELD(id, name, flags) name,
#include "http/field.tbl"
    };
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        char text[40];
        size_t length = strlen(names[i]);
        CU_ASSERT_EQUAL(http_field_id(view_of(names[i])), i + 1);
        for (size_t j = 0; j <= length; j++)
            text[j] = (char)toupper(names[i][j]);
        CU_ASSERT_EQUAL(http_field_id(message_guarded((struct view){text, length})), i + 1);
        CU_ASSERT_NOT_EQUAL(http_field_id((struct view){text, length - 1}), i + 1);
        strcat(text, "x");
        CU_ASSERT_EQUAL(http_field_id(view_of(text)), FIELD_OTHER);
    }
    CU_ASSERT_EQUAL(http_field_id(VIEW("")), FIELD_OTHER);
    CU_ASSERT_EQUAL(http_field_id(VIEW("x")), FIELD_OTHER);
    CU_ASSERT_EQUAL(http_field_id(VIEW("Content_Length")), FIELD_OTHER);
    CU_ASSERT_EQUAL(http_field_id(VIEW("Content-Length\x80")), FIELD_OTHER);
    CU_ASSERT_EQUAL(field_flags(FIELD_TRANSFER_ENCODING), FIELD_HOP);
    CU_ASSERT_EQUAL(field_flags(FIELD_HOST), FIELD_SINGLE);
    CU_ASSERT_EQUAL(field_flags(FIELD_OTHER), 0);
}

static bool is_hop(const struct http_head *head, const char *name) {
    for (unsigned i = 0; i < head->field_count; i++)
        if (view_equal(head->fields[i].name, view_of(name)))
            return head->fields[i].hop;
    CU_FAIL("no such field");
    return false;
}

static void hop_by_hop(void) {
    struct message message;
    const struct http_head *head = message_good_request(&message,
            "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nx-b: 2\r\nX-C: 3\r\nX-D: 4\r\n"
            "Connection: x-a, host,Content-Length , ,close\r\nCONNECTION: X-B\r\nCache-Control: no-cache\r\n"
            "Connection: Cache-Control, authorization, \"x-d\"\r\nAuthorization: b\r\nContent-Length: 0\r\n"
            "TE: trailers\r\nKeep-Alive: 3\r\nProxy-Connection: close\r\nProxy-Authorization: x\r\n"
            "Transfer-Encoding: chunked\r\nUpgrade: h2c\r\nTrailer: X\r\n\r\n");
    static const char *const hop[] = {"X-A", "x-b", "Connection", "CONNECTION", "TE", "Keep-Alive",
            "Proxy-Connection", "Proxy-Authorization", "Transfer-Encoding", "Upgrade", "Trailer"};
    static const char *const end_to_end[] = {
            "Host", "X-C", "X-D", "Cache-Control", "Authorization", "Content-Length"};
    for (size_t i = 0; i < sizeof hop / sizeof *hop; i++)
        CU_ASSERT(is_hop(head, hop[i]));
    for (size_t i = 0; i < sizeof end_to_end / sizeof *end_to_end; i++)
        CU_ASSERT_FALSE(is_hop(head, end_to_end[i]));
}

// No field that weir looks at and that is end to end can be nominated away.
static void nominations_that_do_not_count(void) {
#define FIELD(id, name, flags)                                                                               \
    {                                                                                                        \
        struct message message;                                                                              \
        const struct http_head *head = message_good_response(                                                \
                &message, "HTTP/1.1 200 OK\r\n" name ": x\r\nConnection: " name "\r\n\r\n");                 \
        CU_ASSERT_EQUAL(head->fields[0].hop, ((flags)&FIELD_HOP) != 0);                                      \
    }
#include "http/field.tbl"
}

static void too_many_nominations(void) {
    for (int count = CONNECTION_OPTIONS_MAX; count <= CONNECTION_OPTIONS_MAX + 1; count++) {
        char text[512] = "GET / HTTP/1.1\r\nConnection: a";
        for (int i = 1; i < count; i++)
            strcat(text, ",a");
        strcat(text, "\r\n\r\n");
        struct message message;
        CU_ASSERT_EQUAL(message_request(&message, view_of(text), &message_limits),
                count > CONNECTION_OPTIONS_MAX ? PARSE_BAD : PARSE_DONE);
    }
}

static void finding(void) {
    struct message message;
    const struct http_head *head = message_good_response(
            &message, "HTTP/1.1 200 OK\r\nVia: 1.0 a\r\nAge: 1\r\nvia: 1.1 b, 1.1 \"c, d\"\r\n\r\n");
    const struct http_field *via = http_field_find(head, FIELD_VIA, 0);
    CU_ASSERT_PTR_EQUAL(via, &head->fields[0]);
    CU_ASSERT_PTR_EQUAL(http_field_find(head, FIELD_VIA, 1), &head->fields[2]);
    CU_ASSERT_PTR_NULL(http_field_find(head, FIELD_VIA, 3));
    CU_ASSERT_PTR_NULL(http_field_find(head, FIELD_DATE, 0));
    CU_ASSERT_EQUAL(http_field_total(head, FIELD_VIA), 2);
    CU_ASSERT(http_field_has_token(head, FIELD_VIA, VIEW("1.1 B")));
    CU_ASSERT_FALSE(http_field_has_token(head, FIELD_VIA, VIEW("d\"")));
    CU_ASSERT_FALSE(http_field_has_token(head, FIELD_VIA, VIEW("1.1")));
}

static void keep_alive(void) {
    static const struct {
        const char *text;
        bool keeps;
    } all[] = {{"GET / HTTP/1.1\r\n\r\n", true}, {"GET / HTTP/1.0\r\n\r\n", false},
            {"GET / HTTP/1.1\r\nConnection: Close\r\n\r\n", false},
            {"GET / HTTP/1.1\r\nConnection: a, close\r\n\r\n", false},
            {"GET / HTTP/1.1\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", false},
            {"GET / HTTP/1.1\r\nConnection: closed\r\n\r\n", true},
            {"GET / HTTP/1.1\r\nProxy-Connection: close\r\n\r\n", true},
            {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
            {"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", false},
            {"GET / HTTP/1.0\r\nProxy-Connection: keep-alive\r\n\r\n", false}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct message message;
        CU_ASSERT_EQUAL(http_keeps_alive(message_good_request(&message, all[i].text)), all[i].keeps);
    }
}

static void lists(void) {
    static const struct {
        const char *text, *members; // members joined by |
    } all[] = {{"", ""}, {" , ,\t", ""}, {"a", "a"}, {"a,b", "a|b"}, {" a , b\t,", "a|b"},
            {"\"a,b\",c", "\"a,b\"|c"}, {"x=\"a,\\\",b\",c", "x=\"a,\\\",b\"|c"}, {"\"a,b,c", "\"a|b|c"},
            {"a=\"b, no-store", "a=\"b|no-store"}, {"\"a\\", "\"a\\"}, {"\"\\\",\"b,c", "\"\\\",\"b|c"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char joined[64] = "";
        struct view member;
        struct list list = {.rest = message_guarded(view_of(all[i].text))};
        while (list_next(&list, &member)) {
            CU_ASSERT(member.length > 0);
            sprintf(joined + strlen(joined), "%s" VIEW_FORMAT, joined[0] ? "|" : "", VIEW_ARGUMENT(member));
        }
        CU_ASSERT_STRING_EQUAL(joined, all[i].members);
    }
}

static void octets(void) {
    for (int i = 0; i < 256; i++) {
        char octet = (char)i;
        bool is_visible = i > ' ' && i != 0x7f;
        bool is_alnum = i < 0x80 && isalnum(i);
        CU_ASSERT_EQUAL(
                octet_is(octet, OCTET_TOKEN), is_alnum || (i && i < 0x80 && strchr("!#$%&'*+-.^_`|~", i)));
        CU_ASSERT_EQUAL(octet_is(octet, OCTET_TEXT), is_visible || i == ' ' || i == '\t');
        CU_ASSERT_EQUAL(octet_is(octet, OCTET_TARGET), is_visible);
        CU_ASSERT_EQUAL(octet_is(octet, OCTET_ETAG), is_visible && i != '"');
        CU_ASSERT_EQUAL(octet_is(octet, OCTET_HOST), is_alnum || i == '-' || i == '.' || i == '_');
        CU_ASSERT_EQUAL(octet_is(octet, OCTET_HEX), i < 0x80 && isxdigit(i));
        // at every place of a word and beyond
        for (size_t place = 0; place < 20; place++) {
            char text[20];
            memset(text, i % 2 ? ' ' : 0xff, sizeof text);
            text[place] = octet;
            CU_ASSERT_EQUAL(octet_all_text(message_guarded((struct view){text, sizeof text})),
                    octet_is(octet, OCTET_TEXT));
        }
    }
    CU_ASSERT_EQUAL(octet_hex('0'), 0);
    CU_ASSERT_EQUAL(octet_hex('9'), 9);
    CU_ASSERT_EQUAL(octet_hex('a'), 10);
    CU_ASSERT_EQUAL(octet_hex('F'), 15);
}

SUITE(http_field, CASE(ids), CASE(hop_by_hop), CASE(nominations_that_do_not_count),
        CASE(too_many_nominations), CASE(finding), CASE(keep_alive), CASE(lists), CASE(octets))
