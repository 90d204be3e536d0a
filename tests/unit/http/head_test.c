#include "http/head.h"

#include "http/field.h"
#include "tests/unit/http/message.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define END "\r\n\r\n"
#define HOST "\r\nHost: a" END

struct refused {
    struct view text;
    int status; // 0: accepted, -1: not whole yet
};

static void check_outcome(
        enum parse parse, const struct message *message, const struct refused *one, const char *what) {
    int status = parse == PARSE_BAD ? message->error.status : parse == PARSE_MORE ? -1 : 0;
    if (status != one->status)
        printf("\n  %s: %d, not %d: " VIEW_FORMAT "\n", what, status, one->status, VIEW_ARGUMENT(one->text));
    CU_ASSERT_EQUAL(status, one->status);
    CU_ASSERT(parse != PARSE_BAD || message->error.why[0] != '\0');
}

static const struct refused requests[] = {
        {VIEW("GET / HTTP/1.1" HOST), 0},
        {VIEW("GET / HTTP/1.0" END), 0},
        {VIEW("GET / HTTP/1.1\r\nHost: a\r\n"), -1},
        {VIEW("GET / HTTP/1.1\r\nHost: a\r\n\r"), -1},
        {VIEW("GET"), -1},
        {VIEW("\r"), -1},
        {VIEW("\r\n\r\nGET / HTTP/1.1" HOST), 0},
        {VIEW("\r\n\r\n\r\nGET / HTTP/1.1" HOST), 400},
        {VIEW("\nGET / HTTP/1.1" HOST), 400},
        {VIEW("\r\n GET / HTTP/1.1" HOST), 400},
        {VIEW("\r\nA: b\r\n"), 400}, // a request line that looks like a field
        {VIEW("\r\n\r\nA: b\r\n"), 400},
        // the request line
        {VIEW("get / HTTP/1.1" HOST), 0},
        {VIEW("M-SEARCH * HTTP/1.1" HOST), 0},
        {VIEW("G(T / HTTP/1.1" HOST), 400},
        {VIEW("G\0T / HTTP/1.1" HOST), 400},
        {VIEW(" GET / HTTP/1.1" HOST), 400},
        {VIEW("GET  / HTTP/1.1" HOST), 400},
        {VIEW("GET\t/ HTTP/1.1" HOST), 400},
        {VIEW("GET / HTTP/1.1 " HOST), 400},
        {VIEW("GET /  HTTP/1.1" HOST), 400},
        {VIEW("GET /\tHTTP/1.1" HOST), 400},
        {VIEW("GET /a b HTTP/1.1" HOST), 400},
        {VIEW("GET /a\0b HTTP/1.1" HOST), 400},
        {VIEW("GET /a\x7f HTTP/1.1" HOST), 400},
        {VIEW("GET /a\x0b HTTP/1.1" HOST), 400},
        {VIEW("GET /\xc3\xa9 HTTP/1.1" HOST), 0},
        {VIEW("GET /a|{}\"<> HTTP/1.1" HOST), 0},
        {VIEW("GET /" HOST), 400},
        {VIEW("GET" HOST), 400},
        {VIEW("GET HTTP/1.1" HOST), 400},
        {VIEW("GET / HTTP/1.1\nHost: a\n\n"), 400},
        {VIEW("GET / HTTP/1.1\r\r\nHost: a" END), 400},
        {VIEW("GET /\rx HTTP/1.1" HOST), 400},
        {VIEW("GET / HTTP/1.1\rHost: a" END), 400},
        // the version
        {VIEW("GET / HTTP/1.2" HOST), 0},
        {VIEW("GET / HTTP/1.9" HOST), 0},
        {VIEW("GET / HTTP/2.0" HOST), 505},
        {VIEW("GET / HTTP/3.0" HOST), 505},
        {VIEW("GET / HTTP/0.9" HOST), 505},
        {VIEW("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 400},
        {VIEW("GET / HTTP/2" HOST), 400},
        {VIEW("GET / HTTP/1" HOST), 400},
        {VIEW("GET / HTTP/1." HOST), 400},
        {VIEW("GET / HTTP/1.1a" HOST), 400},
        {VIEW("GET / HTTP/1.10" HOST), 400},
        {VIEW("GET / HTTP/01.1" HOST), 400},
        {VIEW("GET / HTTP/1,1" HOST), 400},
        {VIEW("GET / HTTP/-1.1" HOST), 400},
        {VIEW("GET / HTTP/A.1" HOST), 400},
        {VIEW("GET / HTTP /1.1" HOST), 400},
        {VIEW("GET / http/1.1" HOST), 400},
        {VIEW("GET / HTTPS/1.1" HOST), 400},
        {VIEW("GET / ICAP/1.0" HOST), 400},
        // fields
        {VIEW("GET / HTTP/1.1\r\nHost:a" END), 0},
        {VIEW("GET / HTTP/1.1\r\nHost:  \t a \t " END), 0},
        {VIEW("GET / HTTP/1.1\r\nA:" END), 0},
        {VIEW("GET / HTTP/1.1\r\nA: \x80\xff" END), 0},
        {VIEW("GET / HTTP/1.1\r\nA: a\tb" END), 0},
        {VIEW("GET / HTTP/1.1\r\nHost : a" END), 400},
        {VIEW("GET / HTTP/1.1\r\nHost\t: a" END), 400},
        {VIEW("GET / HTTP/1.1\r\n Host: a" END), 400},
        {VIEW("GET / HTTP/1.1\r\nA: b\r\n c" END), 400},
        {VIEW("GET / HTTP/1.1\r\nA: b\r\n\tc" END), 400},
        {VIEW("GET / HTTP/1.1\r\nA: b\r\n " END), 400},
        {VIEW("GET / HTTP/1.1\r\n: b" END), 400},
        {VIEW("GET / HTTP/1.1\r\nHost" END), 400},
        {VIEW("GET / HTTP/1.1\r\nHo st: a" END), 400},
        {VIEW("GET / HTTP/1.1\r\nH\xc3\xb6st: a" END), 400},
        {VIEW("GET / HTTP/1.1\r\nHo\0st: a" END), 400},
        {VIEW("GET / HTTP/1.1\r\n(a): b" END), 400},
        {VIEW("GET / HTTP/1.1\r\nA: b\0c" END), 400},
        {VIEW("GET / HTTP/1.1\r\nA: \0" END), 400},
        {VIEW("GET / HTTP/1.1\r\nA: b\x01 and much more behind it" END), 400},
        {VIEW("GET / HTTP/1.1\r\nA: b\x0b" END), 400},
        {VIEW("GET / HTTP/1.1\r\nA: b\x0c" END), 400},
        {VIEW("GET / HTTP/1.1\r\nA: b\x7f" END), 400},
        {VIEW("GET / HTTP/1.1\r\nA: b\x1f" END), 400},
        {VIEW("GET / HTTP/1.1\r\nA: b\rc" END), 400},
        {VIEW("GET / HTTP/1.1\r\nA: b\r\r\n\r\n"), 400},
        {VIEW("GET / HTTP/1.1\r\nA: b\nC: d" END), 400},
        {VIEW("GET / HTTP/1.1\r\nA: b\n\n"), 400},
        {VIEW("GET / HTTP/1.1\r\nA: b\r\n\n"), 400},
        {VIEW("GET / HTTP/1.1\r\n\n"), 400},
        {VIEW("GET / HTTP/1.1\r\n\r\r\n\r\n"), 400},
};

static void request_rules(void) {
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct message message;
        check_outcome(message_request(&message, requests[i].text, &message_limits), &message, &requests[i],
                "request");
    }
}

static const struct refused responses[] = {
        {VIEW("HTTP/1.1 200 OK" END), 0},
        {VIEW("HTTP/1.0 200 OK" END), 0},
        {VIEW("HTTP/1.1 200 " END), 0},
        {VIEW("HTTP/1.1 200" END), 0},
        {VIEW("HTTP/1.1 200 a\tb \xc3\xa9" END), 0},
        {VIEW("HTTP/1.1 999 x" END), 0},
        {VIEW("HTTP/1.1 600 x" END), 0},
        {VIEW("HTTP/1.1 200 OK\r\nA: b" END), 0},
        {VIEW("HTTP/1.1 200 OK\r\nA: b\r\n"), -1},
        {VIEW("H"), -1},
        {VIEW("HTTP/1.1 099 x" END), 502},
        {VIEW("HTTP/1.1 000 x" END), 502},
        {VIEW("HTTP/1.1 20 x" END), 502},
        {VIEW("HTTP/1.1 2000 x" END), 502},
        {VIEW("HTTP/1.1 200x" END), 502},
        {VIEW("HTTP/1.1 20a x" END), 502},
        {VIEW("HTTP/1.1 -20 x" END), 502},
        {VIEW("HTTP/1.1 +20 x" END), 502},
        {VIEW("HTTP/1.1  200 x" END), 502},
        {VIEW("HTTP/1.1\t200 x" END), 502},
        {VIEW("HTTP/1.1 200\tOK" END), 502},
        {VIEW("HTTP/1.1" END), 502},
        {VIEW("HTTP/1.1 " END), 502},
        {VIEW("HTTP/1.1 200 O\0K" END), 502},
        {VIEW("HTTP/1.1 200 O\rK" END), 502},
        {VIEW("HTTP/1.1 200 O\x7fK" END), 502},
        {VIEW("HTTP/2.0 200 OK" END), 502},
        {VIEW("HTTP/0.9 200 OK" END), 502},
        {VIEW("HTTP/2 200" END), 502},
        {VIEW("http/1.1 200 OK" END), 502},
        {VIEW("ICY 200 OK" END), 502},
        {VIEW(" HTTP/1.1 200 OK" END), 502},
        {VIEW("\r\nHTTP/1.1 200 OK" END), 502},
        {VIEW("<html>hello</html>\r\n"), 502},
        {VIEW("HTTP/1.1 200 OK\n\n"), 502},
        {VIEW("HTTP/1.1 200 OK\r\nA : b" END), 502},
        {VIEW("HTTP/1.1 200 OK\r\nA: b\r\n c" END), 502},
        {VIEW("HTTP/1.1 200 OK\r\nA: b\nC: d" END), 502},
        {VIEW("HTTP/1.1 200 OK\r\nA: \0" END), 502},
};

static void response_rules(void) {
    for (size_t i = 0; i < sizeof responses / sizeof *responses; i++) {
        struct message message;
        check_outcome(message_response(&message, responses[i].text, &message_limits), &message, &responses[i],
                "response");
    }
}

static void what_is_read(void) {
    struct message message;
    struct view text = VIEW("\r\nPOST /a?b HTTP/1.3\r\nhOST:  a.b \r\nX-One: 1\r\nx-two:\r\n\r\nbody");
    CU_ASSERT_EQUAL_FATAL(message_request(&message, text, &message_limits), PARSE_DONE);
    const struct http_head *head = &message.head;
    CU_ASSERT(view_equal(head->method, VIEW("POST")));
    CU_ASSERT_EQUAL(head->method_id, METHOD_POST);
    CU_ASSERT(view_equal(head->target, VIEW("/a?b")));
    CU_ASSERT_EQUAL(head->minor_version, 1);
    CU_ASSERT_EQUAL(head->head_length, text.length - 4);
    CU_ASSERT_EQUAL(head->field_count, 3);
    CU_ASSERT(view_equal(head->fields[0].name, VIEW("hOST")));
    CU_ASSERT(view_equal(head->fields[0].value, VIEW("a.b")));
    CU_ASSERT_EQUAL(head->fields[0].id, FIELD_HOST);
    CU_ASSERT_EQUAL(head->fields[1].id, FIELD_OTHER);
    CU_ASSERT_EQUAL(head->fields[2].value.length, 0);
    CU_ASSERT_EQUAL(head->status, 0);
    CU_ASSERT_EQUAL_FATAL(
            message_response(&message, VIEW("HTTP/1.0 404 Not here" END), &message_limits), PARSE_DONE);
    CU_ASSERT_EQUAL(message.head.status, 404);
    CU_ASSERT_EQUAL(message.head.minor_version, 0);
    CU_ASSERT(view_equal(message.head.reason, VIEW("Not here")));
}

static void methods(void) {
    static const struct {
        const char *name;
        enum method_id id;
        bool is_safe, is_idempotent;
    } all[] = {{"GET", METHOD_GET, true, true}, {"HEAD", METHOD_HEAD, true, true},
            {"POST", METHOD_POST, false, false}, {"PUT", METHOD_PUT, false, true},
            {"DELETE", METHOD_DELETE, false, true}, {"CONNECT", METHOD_CONNECT, false, false},
            {"OPTIONS", METHOD_OPTIONS, true, true}, {"TRACE", METHOD_TRACE, true, true},
            {"PATCH", METHOD_PATCH, false, false}, {"get", METHOD_OTHER, false, false},
            {"GETS", METHOD_OTHER, false, false}, {"", METHOD_OTHER, false, false}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        CU_ASSERT_EQUAL(http_method_id(view_of(all[i].name)), all[i].id);
        CU_ASSERT_EQUAL(http_method_is_safe(all[i].id), all[i].is_safe);
        CU_ASSERT_EQUAL(http_method_is_idempotent(all[i].id), all[i].is_idempotent);
    }
}

// "METHOD /aaa... HTTP/1.1" and Host, with a target of `target_bytes`; freed by the caller.
static struct view request_of(const char *method, size_t target_bytes) {
    char *text = malloc(strlen(method) + target_bytes + 64);
    char *end = text + sprintf(text, "%s /", method);
    memset(end, 'a', target_bytes - 1);
    strcpy(end + target_bytes - 1, " HTTP/1.1\r\nHost: a\r\n\r\n");
    return view_of(text);
}

static void check_target(const char *method, size_t target_bytes, int status) {
    struct message message;
    struct refused one = {request_of(method, target_bytes), status};
    check_outcome(message_request(&message, one.text, &message_limits), &message, &one, "target");
    free((char *)one.text.data);
}

static void target_limit(void) {
    check_target("GET", 511, 0);
    check_target("GET", 512, 0);
    check_target("GET", 513, 414);
    check_target("GET", 600, 414);
    check_target("GET", 1900, 414);
    check_target("GET", 3000, 414);
    check_target("ABCDEFGHIJABCDEFGHIJABCDEFGHIJAB", 512, 0); // 32: the longest method
    check_target("ABCDEFGHIJABCDEFGHIJABCDEFGHIJABC", 20, 501);
    check_target("ABCDEFGHIJABCDEFGHIJABCDEFGHIJABC", 512, 414);
}

// A head of exactly `length` bytes.
static struct view head_of(size_t length) {
    static const char start[] = "GET / HTTP/1.1\r\nHost: a\r\nA: ";
    char *text = malloc(length + 1);
    memset(text, 'a', length);
    memcpy(text, start, sizeof start - 1);
    memcpy(text + length - 4, END, 5);
    return (struct view){text, length};
}

static void head_limit(void) {
    static const struct {
        size_t length, given;
        int status;
    } all[] = {{2047, 2047, 0}, {2048, 2048, 0}, {2049, 2049, 431}, {4000, 4000, 431}, {4000, 2047, -1},
            {4000, 2048, 431}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct message message;
        struct view text = head_of(all[i].length);
        struct refused one = {view_take(text, all[i].given), all[i].status};
        check_outcome(message_request(&message, one.text, &message_limits), &message, &one, "head");
        free((char *)text.data);
    }
}

static void field_limit(void) {
    for (unsigned count = 38; count <= 42; count++) {
        char text[1024] = "HTTP/1.1 200 OK\r\n";
        for (unsigned i = 0; i < count; i++)
            strcat(text, "A: b\r\n");
        strcat(text, "\r\n");
        struct message message;
        struct refused one = {view_of(text), count > 40 ? 502 : 0};
        check_outcome(message_response(&message, one.text, &message_limits), &message, &one, "fields");
    }
    // the caller's array is a limit too, whatever the configured one says
    struct http_field fields[2];
    struct http_head head = {.fields = fields, .field_capacity = 2};
    struct http_error error;
    CU_ASSERT_EQUAL(http_parse_request(VIEW("GET / HTTP/1.1\r\nA:1\r\nB:2\r\nC:3" END), 0, &message_limits,
                            &head, &error),
            PARSE_BAD);
    CU_ASSERT_EQUAL(error.status, 431);
}

// Two requests in one buffer: the second is not touched.
static void pipelined(void) {
    struct message message;
    struct view text = VIEW("GET /1 HTTP/1.1" HOST "\0\1\2 whatever \n\n");
    CU_ASSERT_EQUAL(message_request(&message, text, &message_limits), PARSE_DONE);
    CU_ASSERT_EQUAL(message.head.head_length, sizeof("GET /1 HTTP/1.1" HOST) - 1);
}

// What is wrong is told when its line ends, also to one that feeds slowly.
static void told_at_once(void) {
    struct view text = VIEW("GET / HTTP/1.1\r\nHost: a\r\nbad line\r\n");
    struct message message;
    CU_ASSERT_EQUAL(message_request(&message, text, &message_limits), PARSE_BAD);
    CU_ASSERT_EQUAL(message_request(&message, VIEW("GET /\r\n"), &message_limits), PARSE_BAD);
}

SUITE(http_head, CASE(request_rules), CASE(response_rules), CASE(what_is_read), CASE(methods),
        CASE(target_limit), CASE(head_limit), CASE(field_limit), CASE(pipelined), CASE(told_at_once))
