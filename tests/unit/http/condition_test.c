#include "http/condition.h"

#include "tests/unit/http/message.h"
#include "tests/unit/unit.h"

#include <stdio.h>

static void etags(void) {
    static const struct {
        const char *a, *b;
        bool weak, strong;
    } all[] = {{"\"a\"", "\"a\"", true, true}, {"W/\"a\"", "\"a\"", true, false},
            {"\"a\"", "W/\"a\"", true, false}, {"W/\"a\"", "W/\"a\"", true, false},
            {"\"a\"", "\"b\"", false, false}, {"\"\"", "\"\"", true, true},
            {"\"a\\\"", "\"a\\\"", true, true}, {"\"\x80\"", "\"\x80\"", true, true},
            {"\"a\"", "\"A\"", false, false}, {"a", "a", false, false}, {"", "", false, false},
            {"\"", "\"", false, false}, {"\"a", "\"a", false, false}, {"w/\"a\"", "w/\"a\"", false, false},
            {"W/", "W/", false, false}, {"\"a b\"", "\"a b\"", false, false},
            {"\"a\"b\"", "\"a\"b\"", false, false}, {"\"a\" ", "\"a\" ", false, false},
            {"*", "*", false, false}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct view a = message_guarded(view_of(all[i].a)), b = message_guarded(view_of(all[i].b));
        CU_ASSERT_EQUAL(etag_equal_weak(a, b), all[i].weak);
        CU_ASSERT_EQUAL(etag_equal_strong(a, b), all[i].strong);
    }
}

#define D1 "Sun, 06 Nov 1994 08:49:36 GMT"
#define D2 "Sun, 06 Nov 1994 08:49:37 GMT"
#define D3 "Sun, 06 Nov 1994 08:49:38 GMT"
#define NOW 1700000000
#define BOTH "ETag: \"a\"\r\nLast-Modified: " D2 "\r\nDate: " D3 "\r\n"
#define WEAK "ETag: W/\"a\"\r\n"
#define MATCH "If-Match: "
#define NONE_MATCH "If-None-Match: "
#define SINCE "If-Modified-Since: "
#define UNMODIFIED "If-Unmodified-Since: "
#define IF_RANGE "If-Range: "

struct conditional {
    const char *request, *response; // field lines
    int outcome;
};

static int judge(const struct conditional *one, bool is_range) {
    char request_text[512], response_text[512];
    struct message request, response;
    snprintf(request_text, sizeof request_text, "GET / HTTP/1.1\r\n%s\r\n", one->request);
    snprintf(response_text, sizeof response_text, "HTTP/1.1 200 OK\r\n%s\r\n", one->response);
    message_good_request(&request, request_text);
    message_good_response(&response, response_text);
    int outcome = is_range ? (int)condition_range_applies(&request.head, &response.head, NOW)
                           : (int)condition_evaluate(&request.head, &response.head, NOW);
    if (outcome != one->outcome)
        printf("\n  condition %s on %s: %d\n", one->request, one->response, outcome);
    return outcome;
}

static void conditions(void) {
    static const struct conditional all[] = {
            {"", BOTH, CONDITION_NONE},
            {NONE_MATCH "\"a\"\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {NONE_MATCH "W/\"a\"\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {NONE_MATCH "\"a\"\r\n", WEAK, CONDITION_NOT_MODIFIED},
            {NONE_MATCH "*\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {NONE_MATCH "\"b\"\r\n", BOTH, CONDITION_NONE},
            {NONE_MATCH "\"b\", \"a\"\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {NONE_MATCH "\"b\",,W/\"c\" ,\t\"a\"\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {NONE_MATCH "\"b\"\r\n" NONE_MATCH "\"a\"\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {NONE_MATCH "\"x,\"a\"\r\n", BOTH, CONDITION_NONE},
            {NONE_MATCH "\"b\" \"a\"\r\n", BOTH, CONDITION_NONE},
            {NONE_MATCH "b, \"a\"\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {NONE_MATCH "\"a\"\r\n", "Date: " D3 "\r\n", CONDITION_NONE},
            {NONE_MATCH "a\r\n", "ETag: a\r\n", CONDITION_NOT_MODIFIED},
            {NONE_MATCH "\"A\"\r\n", BOTH, CONDITION_NONE},
            {NONE_MATCH "\"a\", \"b\", \"c\"\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {NONE_MATCH "\"c\", \"a\", \"b\"\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {NONE_MATCH "\"c\",\"b\",\"a\"\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {NONE_MATCH "\"b\"\r\n" NONE_MATCH "*\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {NONE_MATCH "*\r\n", "", CONDITION_NOT_MODIFIED}, // there is a representation
            {NONE_MATCH "\"*\"\r\n", BOTH, CONDITION_NONE},
            {NONE_MATCH "\r\n", BOTH, CONDITION_NONE},
            {NONE_MATCH ",\r\n", "ETag:\r\n", CONDITION_NONE},
            {NONE_MATCH "\"\"\r\n", "ETag: \"\"\r\n", CONDITION_NOT_MODIFIED},
            {NONE_MATCH "\"\"\r\n", "ETag:\r\n", CONDITION_NONE},
            {NONE_MATCH "\"a,b\"\r\n", "ETag: \"a,b\"\r\n", CONDITION_NOT_MODIFIED},
            {NONE_MATCH "\"a,b\"\r\n", "ETag: \"a\"\r\n", CONDITION_NONE},
            {NONE_MATCH "\"a\\\", \"b\"\r\n", "ETag: \"b\"\r\n", CONDITION_NOT_MODIFIED}, // no escapes
            {NONE_MATCH "\"a\\b\"\r\n", "ETag: \"a\\b\"\r\n", CONDITION_NOT_MODIFIED},
            {NONE_MATCH "\"\xc3\xa4\"\r\n", "ETag: \"\xc3\xa4\"\r\n", CONDITION_NOT_MODIFIED},
            // tags of old [RFC 9110 §8.8.3]
            {NONE_MATCH "w/\"a\"\r\n", WEAK, CONDITION_NOT_MODIFIED},
            {NONE_MATCH "w/\"a\"\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {NONE_MATCH "w/\"b\"\r\n", BOTH, CONDITION_NONE},
            {NONE_MATCH "a\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {NONE_MATCH "b\r\n", BOTH, CONDITION_NONE},
            {NONE_MATCH "A\r\n", BOTH, CONDITION_NONE},
            {NONE_MATCH "b, a\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {NONE_MATCH "\"a\"\r\n", "ETag: a\r\n", CONDITION_NOT_MODIFIED},
            {NONE_MATCH "W/a\r\n", "ETag: W/a\r\n", CONDITION_NOT_MODIFIED},
            {NONE_MATCH "W\"a\"\r\n", WEAK, CONDITION_NONE},
            {NONE_MATCH "\"a\r\n", BOTH, CONDITION_NONE},
            {NONE_MATCH "\"a b\"\r\n", "ETag: \"a b\"\r\n", CONDITION_NOT_MODIFIED},
            // If-None-Match goes before If-Modified-Since
            {NONE_MATCH "\"b\"\r\n" SINCE D3 "\r\n", BOTH, CONDITION_NONE},
            {NONE_MATCH "\"a\"\r\n" SINCE D1 "\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {SINCE D1 "\r\n", BOTH, CONDITION_NONE},
            {SINCE D2 "\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {SINCE D3 "\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {SINCE "Sunday, 06-Nov-94 08:49:37 GMT\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {SINCE "yesterday\r\n", BOTH, CONDITION_NONE},
            {NONE_MATCH "\"b\"\r\n" SINCE D2 "\r\n", "Last-Modified: " D2 "\r\n", CONDITION_NONE},
            {NONE_MATCH "\r\n" SINCE D2 "\r\n", BOTH, CONDITION_NONE},
            {SINCE "sun, 06 nov 1994 08:49:37 gmt\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {SINCE "Sun Nov  6 08:49:37 1994\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {SINCE "Fri, 31 Dec 9999 23:59:59 GMT\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {SINCE "0\r\n", BOTH, CONDITION_NONE},
            {SINCE D3 ", " D3 "\r\n", BOTH, CONDITION_NONE},
            {SINCE "Sun, 06 Nov 1994 08:49:38 UTC\r\n", BOTH, CONDITION_NONE},
            {SINCE D3 "\r\n" SINCE D3 "\r\n", BOTH, CONDITION_NONE},
            {SINCE D3 "\r\n", WEAK, CONDITION_NONE},
            {SINCE D3 "\r\n", "Date: " D2 "\r\n", CONDITION_NOT_MODIFIED},
            {SINCE D1 "\r\n", "Date: " D2 "\r\n", CONDITION_NONE},
            {SINCE D3 "\r\n", "Date: " D2 "\r\nLast-Modified: x\r\n", CONDITION_NONE},
            // the preconditions go first
            {MATCH "\"a\"\r\n", BOTH, CONDITION_NONE},
            {MATCH "*\r\n", BOTH, CONDITION_NONE},
            {MATCH "a\r\n", BOTH, CONDITION_FAILED}, // here a strict reading is the safe one
            {MATCH "x, \"a\"\r\n", BOTH, CONDITION_NONE},
            {MATCH "\"b\", \"a\"\r\n", BOTH, CONDITION_NONE},
            {MATCH "\"b\"\r\n", BOTH, CONDITION_FAILED},
            {MATCH "W/\"a\"\r\n", BOTH, CONDITION_FAILED},
            {MATCH "\"a\"\r\n", WEAK, CONDITION_FAILED},
            {MATCH "\"b\"\r\n" NONE_MATCH "\"a\"\r\n", BOTH, CONDITION_FAILED},
            {MATCH "\"a\"\r\n" NONE_MATCH "\"a\"\r\n", BOTH, CONDITION_NOT_MODIFIED},
            {MATCH "\"a\"\r\n" UNMODIFIED D1 "\r\n", BOTH, CONDITION_NONE},
            {UNMODIFIED D1 "\r\n", BOTH, CONDITION_FAILED},
            {UNMODIFIED D2 "\r\n", BOTH, CONDITION_NONE},
            {UNMODIFIED "x\r\n", BOTH, CONDITION_NONE},
            {UNMODIFIED D1 "\r\n", WEAK, CONDITION_NONE},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CU_ASSERT_EQUAL(judge(&all[i], false), all[i].outcome);
}

static void if_range(void) {
    static const struct conditional all[] = {
            {"", BOTH, true}, {IF_RANGE "\"a\"\r\n", BOTH, true}, {IF_RANGE "\"b\"\r\n", BOTH, false},
            {IF_RANGE "W/\"a\"\r\n", BOTH, false}, {IF_RANGE "\"a\"\r\n", WEAK, false},
            {IF_RANGE "W/\"a\"\r\n", WEAK, false}, {IF_RANGE "\"a\"\r\n", "", false},
            {IF_RANGE "\"a\", \"b\"\r\n", BOTH, false}, {IF_RANGE "*\r\n", BOTH, false},
            {IF_RANGE "\r\n", BOTH, false}, {IF_RANGE "\"a\"\r\n" IF_RANGE "\"a\"\r\n", BOTH, false},
            {IF_RANGE D2 "\r\n", BOTH, true}, {IF_RANGE "Sunday, 06-Nov-94 08:49:37 GMT\r\n", BOTH, true},
            {IF_RANGE D1 "\r\n", BOTH, false}, {IF_RANGE D3 "\r\n", BOTH, false},
            {IF_RANGE "x\r\n", BOTH, false}, {IF_RANGE "x\r\n", "Last-Modified: x\r\n", false},
            {IF_RANGE D2 "\r\n", "Last-Modified: " D2 "\r\n", false},                 // made when?
            {IF_RANGE D2 "\r\n", "Last-Modified: " D2 "\r\nDate: " D2 "\r\n", false}, // within the second
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CU_ASSERT_EQUAL(judge(&all[i], true), all[i].outcome);
}

static void strong_dates(void) {
    static const struct conditional all[] = {
            {"", "Last-Modified: " D1 "\r\nDate: " D2 "\r\n", true},
            {"", "Last-Modified: Sun Nov  6 08:49:36 1994\r\nDate: " D2 "\r\n", true},
            {"", "Last-Modified: " D2 "\r\nDate: " D2 "\r\n", false},
            {"", "Last-Modified: " D3 "\r\nDate: " D2 "\r\n", false},
            {"", "Last-Modified: " D1 "\r\n", false},
            {"", "Date: " D2 "\r\n", false},
            {"", "Last-Modified: x\r\nDate: " D2 "\r\n", false},
            {"", "Last-Modified: " D1 "\r\nLast-Modified: " D2 "\r\nDate: " D3 "\r\n", false},
            {"", "Last-Modified: Monday, 30-Nov-26 10:00:00 GMT\r\nDate: Mon, 30 Nov 2026 10:00:00 GMT\r\n",
                    false},
            {"", "Last-Modified: " D1 "\r\nDate: Sunday, 06-Nov-94 08:49:37 GMT\r\n", false},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[512];
        struct message response;
        snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\n%s\r\n", all[i].response);
        message_good_response(&response, text);
        if (condition_has_strong_date(&response.head) != all[i].outcome)
            printf("strong dates row %zu\n", i);
        CU_ASSERT_EQUAL(condition_has_strong_date(&response.head), all[i].outcome);
    }
}

SUITE(http_condition, CASE(etags), CASE(conditions), CASE(if_range), CASE(strong_dates))
