#include "http/range.h"

#include "tests/unit/http/message.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

// "FIRST-LAST,..." of a list, "none" or "unsatisfiable".
static const char *print(enum ranges outcome, const struct range_list *list, char *out, size_t size) {
    if (outcome != RANGES_SOME)
        return outcome == RANGES_NONE ? "none" : "unsatisfiable";
    size_t used = 0;
    for (unsigned i = 0; i < list->count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%ju-%ju", i ? "," : "",
                (uintmax_t)list->all[i].first, (uintmax_t)list->all[i].last);
    return out;
}

static void ranges(void) {
    static const struct {
        const char *value;
        uint64_t size;
        const char *expected;
    } all[] = {
            // one [RFC 9110 §14.1.2]
            {"bytes=0-0", 10, "0-0"},
            {"bytes=0-9", 10, "0-9"},
            {"bytes=2-5", 10, "2-5"},
            {"bytes=9-", 10, "9-9"},
            {"bytes=0-", 10, "0-9"},
            {"bytes=5-99", 10, "5-9"},
            {"Bytes= 2-5 ", 10, "2-5"},
            {"bytes=5-99999999999999999999999", 10, "5-9"},
            {"bytes=-1", 10, "9-9"},
            {"bytes=-10", 10, "0-9"},
            {"bytes=-11", 10, "0-9"},
            {"bytes=-99999999999999999999999", 10, "0-9"},
            {"bytes=0-18446744073709551615", UINT64_MAX, "0-18446744073709551614"},
            {"bytes=10-", 10, "unsatisfiable"},
            {"bytes=10-20", 10, "unsatisfiable"},
            {"bytes=99999999999999999999999-", 10, "unsatisfiable"},
            {"bytes=-0", 10, "unsatisfiable"},
            {"bytes=0-", 0, "unsatisfiable"},
            {"bytes=-5", 0, "none"},
            {"bytes=0-,-5", 0, "none"},
            // malformed, or another unit [§14.2]
            {"", 10, "none"},
            {"bytes", 10, "none"},
            {"bytes=", 10, "none"},
            {"bytes=,", 10, "none"},
            {"bytes=-", 10, "none"},
            {"bytes=5", 10, "none"},
            {"bytes=5-4", 10, "none"},
            {"bytes=50-40", 10, "none"},
            {"bytes=a-b", 10, "none"},
            {"bytes=0-b", 10, "none"},
            {"bytes=0 - 1", 10, "none"},
            {"bytes=0--1", 10, "none"},
            {"bytes=--1", 10, "none"},
            {"bytes=+0-1", 10, "none"},
            {"bytes=0x0-1", 10, "none"},
            {"bytes 0-1", 10, "none"},
            {"bytes =0-1", 10, "none"},
            {"items=0-1", 10, "none"},
            {"bytes=0-1,x", 10, "none"},
            {"bytes=0-1 2-3", 10, "none"},
            {"bytes=0-1;2-3", 10, "none"},
            {"bytes=0-1,5-4", 10, "none"},
            {"bytes=\"0-1\"", 10, "none"},
            // several, as lists are [§5.6.1]
            {"bytes=0-1,200-201", 1000, "0-1,200-201"},
            {"bytes=, 0-1 ,\t,200-201,, ", 1000, "0-1,200-201"},
            {"bytes=200-201,0-1", 1000, "200-201,0-1"},
            {"bytes=500-,0-1,-3", 1000, "500-999,0-1"},
            {"bytes=-3,0-1", 1000, "997-999,0-1"},
            {"bytes=0-1,2000-", 1000, "0-1"},
            {"bytes=2000-,-0", 1000, "unsatisfiable"},
            {"bytes=2000-,-0,0-0", 1000, "0-0"},
            // coalesced [§15.3.7.2]: overlapping, adjacent, hardly apart; in the place of the first
            {"bytes=0-10,5-20", 1000, "0-20"},
            {"bytes=5-20,0-10", 1000, "0-20"},
            {"bytes=0-10,11-20", 1000, "0-20"},
            {"bytes=11-20,0-10", 1000, "0-20"},
            {"bytes=0-99,10-20", 1000, "0-99"},
            {"bytes=10-20,0-99", 1000, "0-99"},
            {"bytes=0-10,74-80", 1000, "0-80"},
            {"bytes=0-10,75-80", 1000, "0-10,75-80"},
            {"bytes=74-80,0-10", 1000, "0-80"},
            {"bytes=75-80,0-10", 1000, "75-80,0-10"},
            {"bytes=500-510,0-10,505-520", 1000, "500-520,0-10"},
            {"bytes=0-0,900-900,100-100,0-999", 1000, "0-999"},
            {"bytes=800-,0-10,400-410,5-405", 1000, "800-999,0-410"},
            {"bytes=0-,0-,0-,0-,0-", 1000, "0-999"},
            {"bytes=0-0,18446744073709551614-", UINT64_MAX, "0-0,18446744073709551614-18446744073709551614"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct range_list list;
        char text[256];
        enum ranges outcome = range_parse(message_guarded(view_of(all[i].value)), all[i].size, &list);
        const char *got = print(outcome, &list, text, sizeof text);
        if (strcmp(got, all[i].expected) != 0)
            printf("\n  range %s of %ju: %s\n", all[i].value, (uintmax_t)all[i].size, got);
        CU_ASSERT_STRING_EQUAL(got, all[i].expected);
    }
}

// As many as are allowed, and one more.
static void many_ranges(void) {
    char text[4096] = "bytes=";
    struct range_list list;
    for (unsigned i = 0; i <= RANGES_MAX; i++) {
        CU_ASSERT_EQUAL(
                range_parse(message_guarded(view_of(text)), 1000000, &list), i ? RANGES_SOME : RANGES_NONE);
        CU_ASSERT_EQUAL(list.count, i);
        for (unsigned j = 0; j < list.count; j++)
            CU_ASSERT(list.all[j].first == 1000 * (i - j) && list.all[j].last == 1000 * (i - j) + 9);
        char before[4096]; // in descending order
        strcpy(before, text + strlen("bytes="));
        snprintf(text, sizeof text, "bytes=%u-%u,%.4000s", 1000 * (i + 1), 1000 * (i + 1) + 9, before);
    }
    CU_ASSERT_EQUAL(range_parse(message_guarded(view_of(text)), 1000000, &list), RANGES_NONE);
    CU_ASSERT_EQUAL(range_parse(message_guarded(view_of(text)), 10, &list), RANGES_NONE);
}

static void sorted_ranges(void) {
    struct range_list list;
    char text[256];
    enum ranges outcome = range_parse(VIEW("bytes=500-510,-3,0-1,700-710,200-"), 1000, &list);
    CU_ASSERT_STRING_EQUAL(print(outcome, &list, text, sizeof text), "200-999,0-1");
    outcome = range_parse(VIEW("bytes=500-510,-3,0-1,700-710,200-201"), 1000, &list);
    range_sort(&list);
    CU_ASSERT_STRING_EQUAL(print(outcome, &list, text, sizeof text), "0-1,200-201,500-510,700-710,997-999");
}

static void ranges_of_requests(void) {
    static const struct {
        const char *request;
        enum ranges expected;
    } all[] = {{"GET / HTTP/1.1\r\n\r\n", RANGES_NONE},
            {"GET / HTTP/1.1\r\nRange: bytes=0-1\r\n\r\n", RANGES_SOME},
            {"GET / HTTP/1.1\r\nRange: bytes=10-\r\n\r\n", RANGES_UNSATISFIABLE},
            {"GET / HTTP/1.1\r\nRange: bytes=0-1\r\nRange: bytes=2-3\r\n\r\n", RANGES_NONE},
            {"HEAD / HTTP/1.1\r\nRange: bytes=0-1\r\n\r\n", RANGES_NONE}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct message request;
        struct range_list list;
        message_good_request(&request, all[i].request);
        CU_ASSERT_EQUAL(range_of_request(&request.head, 10, &list), all[i].expected);
    }
}

static void content_ranges(void) {
    static const struct {
        const char *value;
        const char *expected; // "first-last/size", "*/size"; "bad"
    } all[] = {
            {"bytes 0-0/1", "0-0/1"},
            {"bytes 0-499/1234", "0-499/1234"},
            {"Bytes 734-1233/1234", "734-1233/1234"},
            {"bytes  0-1/2", "0-1/2"},
            {"bytes 0-499/*", "0-499/*"},
            {"bytes */1234", "*/1234"},
            {"bytes */0", "*/0"},
            {"bytes 0-18446744073709551614/18446744073709551615",
                    "0-18446744073709551614/18446744073709551615"},
            {"bytes */*", "bad"},
            {"bytes 0-1", "bad"},
            {"bytes 0-1/", "bad"},
            {"bytes /2", "bad"},
            {"bytes 0-/2", "bad"},
            {"bytes -1/2", "bad"},
            {"bytes 0/2", "bad"},
            {"bytes 1-0/2", "bad"},
            {"bytes 0-2/2", "bad"},
            {"bytes 0-0/0", "bad"},
            {"bytes 0-18446744073709551615/*", "bad"},
            {"bytes 0-18446744073709551616/*", "bad"},
            {"bytes 0-1/18446744073709551616", "bad"},
            {"bytes 0 -1/2", "bad"},
            {"bytes 0-1 /2", "bad"},
            {"bytes 0-1/2 3", "bad"},
            {"bytes=0-1/2", "bad"},
            {"bytes0-1/2", "bad"},
            {"items 0-1/2", "bad"},
            {"0-1/2", "bad"},
            {"", "bad"},
            {"bytes", "bad"},
            {"bytes ", "bad"},
            {"bytes a-b/c", "bad"},
            {"bytes 0-1/2, bytes 0-1/2", "bad"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct content_range range;
        char text[128] = "bad", size[32] = "*";
        if (content_range_parse(message_guarded(view_of(all[i].value)), &range)) {
            if (range.has_size)
                snprintf(size, sizeof size, "%ju", (uintmax_t)range.size);
            if (range.is_unsatisfied)
                snprintf(text, sizeof text, "*/%s", size);
            else
                snprintf(text, sizeof text, "%ju-%ju/%s", (uintmax_t)range.range.first,
                        (uintmax_t)range.range.last, size);
        }
        if (strcmp(text, all[i].expected) != 0)
            printf("\n  content range %s: %s\n", all[i].value, text);
        CU_ASSERT_STRING_EQUAL(text, all[i].expected);
    }
}

// What a 206 is to the request it answers [RFC 9110 §15.3.7].
static void judged(void) {
    static const struct {
        const char *range, *fields;
        int64_t content_length;
        enum range_answer expected;
    } all[] = {
            {"bytes=0-9", "Content-Range: bytes 0-9/100\r\n", 10, RANGE_ANSWER_GOOD},
            {"bytes=0-9", "Content-Range: bytes 0-9/100\r\n", -1, RANGE_ANSWER_GOOD},
            {"bytes=90-", "Content-Range: bytes 90-99/100\r\n", 10, RANGE_ANSWER_GOOD},
            {"bytes=-10", "Content-Range: bytes 90-99/100\r\n", 10, RANGE_ANSWER_GOOD},
            {"bytes=-10", "Content-Range: bytes 90-99/*\r\n", 10, RANGE_ANSWER_GOOD},
            {"bytes=50-149", "Content-Range: bytes 50-99/100\r\n", 50, RANGE_ANSWER_GOOD},
            {"bytes=0-9", "Content-Range: bytes 0-9/*\r\n", 10, RANGE_ANSWER_GOOD},
            {"bytes=0-9", "Content-Range: bytes 0-4/100\r\n", 5, RANGE_ANSWER_GOOD},    // a subset
            {"bytes=5-9", "Content-Range: bytes 0-99/100\r\n", 100, RANGE_ANSWER_GOOD}, // more around
            {"bytes=5-9", "Content-Range: bytes 0-9/100\r\n", 10, RANGE_ANSWER_GOOD},
            {"bytes=0-9", "Content-Range: bytes 10-19/100\r\n", 10, RANGE_ANSWER_BAD},
            {"bytes=0-9", "Content-Range: bytes 5-14/100\r\n", 10, RANGE_ANSWER_BAD},
            {"bytes=-10", "Content-Range: bytes 0-9/100\r\n", 10, RANGE_ANSWER_BAD},
            {"bytes=5-9", "Content-Range: bytes 0-9/*\r\n", 10, RANGE_ANSWER_BAD},
            {"bytes=0-9", "Content-Range: bytes 0-9/100\r\n", 9, RANGE_ANSWER_BAD},
            {"bytes=0-9", "Content-Range: bytes 0-9/100\r\n", 11, RANGE_ANSWER_BAD},
            {"bytes=0-9", "Content-Range: bytes 0-9/5\r\n", 10, RANGE_ANSWER_BAD},
            {"bytes=0-9", "Content-Range: bytes */100\r\n", 10, RANGE_ANSWER_BAD},
            {"bytes=0-9", "Content-Range: nonsense\r\n", 10, RANGE_ANSWER_BAD},
            {"bytes=0-9", "Content-Range: bytes 0-9/100\r\nContent-Range: bytes 0-9/100\r\n", 10,
                    RANGE_ANSWER_BAD},
            {"bytes=0-9", "Content-Type: text/plain\r\n", 10, RANGE_ANSWER_BAD},
            {"bytes=0-9", "Content-Type: multipart/byteranges; boundary=x\r\n", 10, RANGE_ANSWER_OTHER},
            {"bytes=0-9,20-29", "Content-Range: bytes 50-59/100\r\n", 10, RANGE_ANSWER_BAD},
            {"bytes=0-9,20-29", "Content-Range: bytes 20-29/100\r\n", 10, RANGE_ANSWER_GOOD},
            {"bytes=0-9,20-29", "Content-Range: bytes 0-29/100\r\n", 30, RANGE_ANSWER_GOOD},
            {"bytes=0-9,20-29", "Content-Type: text/plain\r\n", 10, RANGE_ANSWER_BAD},
            {"bytes=0-9,20-29", "Content-Type: multipart/byteranges; boundary=x\r\n", 10, RANGE_ANSWER_OTHER},
            {"bytes=x", "Content-Range: bytes 50-59/100\r\n", 10, RANGE_ANSWER_OTHER},
            {"items=0-9", "Content-Range: items 50-59/100\r\n", 10, RANGE_ANSWER_OTHER},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char request_text[256], response_text[256];
        struct message request, response;
        snprintf(request_text, sizeof request_text, "GET / HTTP/1.1\r\nRange: %s\r\n\r\n", all[i].range);
        snprintf(response_text, sizeof response_text, "HTTP/1.1 206 P\r\n%s\r\n", all[i].fields);
        message_good_request(&request, request_text);
        message_good_response(&response, response_text);
        enum range_answer answer = range_judge(&request.head, &response.head, all[i].content_length);
        if (answer != all[i].expected)
            printf("\n  %s answered by %s: %d\n", all[i].range, all[i].fields, answer);
        CU_ASSERT_EQUAL(answer, all[i].expected);
    }
}

SUITE(http_range, CASE(ranges), CASE(many_ranges), CASE(sorted_ranges), CASE(ranges_of_requests),
        CASE(content_ranges), CASE(judged))
