#include "cache/stored_head.h"
#include "cache/update.h"
#include "tests/unit/cache/text.h"

#include <stdio.h>
#include <stdlib.h>

static void print_fields(const struct http_head *head, char *out, size_t size) {
    size_t used = 0;
    out[0] = 0;
    for (unsigned i = 0; i < head->field_count; i++)
        used += (size_t)snprintf(out + used, size - used, VIEW_FORMAT ": " VIEW_FORMAT "\n",
                VIEW_ARGUMENT(head->fields[i].name), VIEW_ARGUMENT(head->fields[i].value));
}

// [RFC 9111 §3.2]
static void merging(void) {
    static const struct {
        const char *stored, *not_modified, *merged;
    } rows[] = {
            {"A: 1\nDate: x\n", "Date: y\n", "A: 1\nDate: y\n"},
            {"A: 1\nDate: x\n", "", "A: 1\n"}, // when it arrived is the date then
            {"A: 1\nA: 2\nB: 3\nDate: x\n", "Date: x\na: 4\na: 5\n", "B: 3\nDate: x\na: 4\na: 5\n"},
            {"A: 1\n", "B: 2\nDate: x\n", "A: 1\nB: 2\nDate: x\n"},
            {"A: 1\n", "A:\nDate: x\n", "A: \nDate: x\n"},
            {"Cache-Control: max-age=1\n", "Cache-Control: max-age=9\nDate: x\n",
                    "Cache-Control: max-age=9\nDate: x\n"},
            {"Expires: x\nSet-Cookie: a\nSet-Cookie: b\n", "Set-Cookie: c\nExpires: y\nDate: x\n",
                    "Set-Cookie: c\nExpires: y\nDate: x\n"},
            {"Vary: a\n", "Vary: b\nDate: x\n", "Vary: b\nDate: x\n"},
            {"Age: 1\n", "Age: 5\nDate: x\n", "Age: 5\nDate: x\n"},
            {"Content-Type: a\nDate: x\n", "Date: x\nContent-Type: b\n", "Date: x\nContent-Type: b\n"},
            {"Content-Location: a\nContent-Foo: a\n", "Content-Location: b\nContent-Foo: b\nDate: x\n",
                    "Content-Location: b\nContent-Foo: b\nDate: x\n"},
            // what describes the stored bytes
            {"Content-Length: 5\nContent-Encoding: gzip\nDate: x\n",
                    "Date: x\nContent-Length: 0\nContent-Encoding: br\n",
                    "Content-Length: 5\nContent-Encoding: gzip\nDate: x\n"},
            {"A: 1\n", "Content-Encoding: br\nContent-Range: bytes 0-1/2\nDate: x\n", "A: 1\nDate: x\n"},
            {"Content-Range: bytes 0-1/9\n", "Content-Range: bytes 2-3/9\nDate: x\n",
                    "Content-Range: bytes 0-1/9\nDate: x\n"},
            {"A: 1\n", "Transfer-Encoding: chunked\nDate: x\n", "A: 1\nDate: x\n"},
            {"ETag: \"a\"\nLast-Modified: x\n", "ETag: W/\"a\"\nLast-Modified: y\nDate: x\n",
                    "ETag: \"a\"\nLast-Modified: x\nDate: x\n"},
            {"Last-Modified: x\n", "ETag: \"a\"\nLast-Modified: x\nDate: x\n",
                    "Last-Modified: x\nETag: \"a\"\nDate: x\n"},
            // hop-by-hop
            {"A: 1\nDate: x\n", "Date: x\nConnection: a\nA: 2\n", "A: 1\nDate: x\n"},
            {"A: 1\n",
                    "Keep-Alive: x\nProxy-Authenticate: x\nProxy-Authentication-Info: x\nProxy-Connection: "
                    "x\n"
                    "TE: x\nTrailer: x\nUpgrade: x\nDate: x\n",
                    "A: 1\nDate: x\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct text_head stored, not_modified;
        struct http_head merged;
        char text[1024];
        update_merge(&merged, text_response(&stored, 200, rows[i].stored),
                text_response(&not_modified, 304, rows[i].not_modified));
        print_fields(&merged, text, sizeof text);
        if (strcmp(text, rows[i].merged) != 0)
            printf("merging row %zu:\n%s", i, text);
        CU_ASSERT_STRING_EQUAL(text, rows[i].merged);
        CU_ASSERT_EQUAL(merged.status, 200);
        free(merged.fields);
    }
}

#define D1 "Sun, 06 Nov 1994 08:48:37 GMT"
#define D2 "Sun, 06 Nov 1994 08:48:38 GMT"
#define MODIFIED "Last-Modified: " D1 "\n"

// [RFC 9111 §4.3.4]
static void matching(void) {
    static const struct {
        const char *stored, *not_modified;
        enum update_match match;
    } rows[] = {
            {"ETag: \"a\"\n", "", UPDATE_BARE},
            {MODIFIED, "", UPDATE_BARE},
            {"", "", UPDATE_BARE},
            {"ETag: \"a\"\n", "ETag: \"a\"\n", UPDATE_STRONG},
            {"ETag: \"a\"\n", "ETag: W/\"a\"\n", UPDATE_WEAK},
            {"ETag: W/\"a\"\n", "ETag: \"a\"\n", UPDATE_WEAK},
            {"ETag: W/\"a\"\n", "ETag: W/\"a\"\n", UPDATE_WEAK},
            {"ETag: \"a\"\n", "ETag: \"b\"\n", UPDATE_NONE},
            {"ETag: \"a\"\n", "ETag: \"A\"\n", UPDATE_NONE},
            {"ETag: \"a\"\n" MODIFIED, "ETag: \"b\"\n" MODIFIED, UPDATE_NONE},
            {"ETag: \"a\"\n" MODIFIED, "ETag: \"a\"\nLast-Modified: " D2 "\n", UPDATE_STRONG},
            {"ETag: broken\n", "ETag: broken\n", UPDATE_WEAK},
            {"ETag: broken\n", "ETag: \"broken\"\n", UPDATE_NONE},
            {MODIFIED, MODIFIED, UPDATE_DATED},
            {MODIFIED, "Last-Modified: " D2 "\n", UPDATE_NONE},
            {"ETag: \"a\"\n" MODIFIED, MODIFIED, UPDATE_DATED},
            {"ETag: \"a\"\n" MODIFIED, "Last-Modified: " D2 "\n", UPDATE_NONE},
            {MODIFIED, "ETag: \"a\"\n" MODIFIED, UPDATE_NONE},
            {MODIFIED "Date: Sun, 06 Nov 1994 08:48:37 GMT\n", "ETag: \"a\"\n" MODIFIED, UPDATE_NONE},
            {MODIFIED "Date: Sun, 06 Nov 1994 08:48:38 GMT\n", "ETag: \"a\"\n" MODIFIED, UPDATE_DATED},
            {MODIFIED, "ETag: W/\"a\"\n" MODIFIED, UPDATE_DATED},
            {MODIFIED, "ETag: \"a\"\n", UPDATE_NONE},
            {"ETag: \"a\"\n", MODIFIED, UPDATE_NONE},
            {"", "ETag: \"b\"\n", UPDATE_NONE},
            {"", MODIFIED, UPDATE_NONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct text_head stored, not_modified;
        enum update_match match = update_match(text_response(&stored, 200, rows[i].stored),
                text_response(&not_modified, 304, rows[i].not_modified));
        if (match != rows[i].match)
            printf("matching row %zu: %d\n", i, match);
        CU_ASSERT_EQUAL(match, rows[i].match);
    }
}

#define STORED_MAX 4

static void choosing(void) {
    static const struct {
        const char *stored[STORED_MAX];
        const char *not_modified;
        int chosen;
    } rows[] = {
            {{"ETag: \"a\"\n"}, "ETag: \"a\"\n", 0},
            {{"ETag: \"a\"\n"}, "ETag: \"b\"\n", -1},
            {{"ETag: \"a\"\n"}, "", 0},
            {{MODIFIED}, "", 0},
            {{""}, "", 0},
            {{""}, "ETag: \"a\"\n", -1},
            {{"ETag: \"a\"\n", "ETag: \"b\"\n"}, "ETag: \"b\"\n", 1},
            {{"ETag: \"a\"\n", "ETag: \"b\"\n"}, "ETag: \"c\"\n", -1},
            {{"ETag: \"a\"\n", "ETag: \"b\"\n"}, "", -1},
            {{"ETag: \"a\"\n", ""}, "", 1},
            {{"", ""}, "", -1},
            {{"", "ETag: \"a\"\n", MODIFIED}, "", 0},
            {{"ETag: W/\"a\"\n", "ETag: \"a\"\n"}, "ETag: \"a\"\n", 1},
            {{"ETag: \"a\"\n", "ETag: W/\"a\"\n"}, "ETag: \"a\"\n", 0},
            {{MODIFIED, "ETag: \"a\"\n" MODIFIED}, "ETag: \"a\"\n" MODIFIED, 1},
            {{MODIFIED, "ETag: \"a\"\n"}, MODIFIED, 0},
            {{"Last-Modified: " D2 "\n", MODIFIED}, MODIFIED, 1},
            // several: the most recent, which is the last here
            {{"ETag: \"a\"\n", "ETag: \"a\"\n", "ETag: \"b\"\n"}, "ETag: \"a\"\n", 1},
            {{MODIFIED, MODIFIED, MODIFIED}, MODIFIED, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct stored_head *heads[STORED_MAX];
        struct text_head text;
        unsigned count = 0;
        for (; count < STORED_MAX && rows[i].stored[count]; count++) {
            struct stored_head_source source = {
                    .head = text_response(&text, 200, rows[i].stored[count]), .date_s = -1};
            heads[count] = stored_head_new(&source);
            heads[count]->freshness.date_s = count;
        }
        int chosen = update_choose((const struct stored_head *const *)heads, count,
                text_response(&text, 304, rows[i].not_modified));
        if (chosen != rows[i].chosen)
            printf("choosing row %zu: %d\n", i, chosen);
        CU_ASSERT_EQUAL(chosen, rows[i].chosen);
        while (count > 0)
            free(heads[--count]);
    }
}

// [RFC 9111 §4.3.5]
static void heads(void) {
    static const struct {
        int stored_status;
        const char *stored;
        int64_t length;
        int status;
        const char *answer;
        enum update_by_head means;
    } rows[] = {
            {200, "ETag: \"a\"\n", 5, 200, "ETag: \"a\"\nContent-Length: 5\n", UPDATE_BY_HEAD_FRESHENS},
            {200, "ETag: \"a\"\n" MODIFIED, 5, 200, "ETag: \"a\"\n" MODIFIED, UPDATE_BY_HEAD_FRESHENS},
            {200, "ETag: \"a\"\n", 5, 200, "", UPDATE_BY_HEAD_FRESHENS},
            {200, "", 5, 200, "X: 1\n", UPDATE_BY_HEAD_FRESHENS},
            {200, "ETag: \"a\"\n", -1, 200, "Content-Length: 5\n", UPDATE_BY_HEAD_FRESHENS},
            {200, "ETag: \"a\"\n", 5, 200, "ETag: \"b\"\n", UPDATE_BY_HEAD_STALE},
            {200, "ETag: \"a\"\n", 5, 200, "ETag: W/\"a\"\n", UPDATE_BY_HEAD_STALE},
            {200, "ETag: \"a\"\n", 5, 200, "ETag: \"a\"\nContent-Length: 6\n", UPDATE_BY_HEAD_STALE},
            {200, "", 5, 200, "Content-Length: 6\n", UPDATE_BY_HEAD_STALE},
            {200, "", 0, 200, "Content-Length: 0\n", UPDATE_BY_HEAD_FRESHENS},
            {200, "", 5, 200, "ETag: \"a\"\n", UPDATE_BY_HEAD_STALE},
            {200, MODIFIED, 5, 200, "Last-Modified: " D2 "\n", UPDATE_BY_HEAD_STALE},
            {200, "ETag: \"a\"\n" MODIFIED, 5, 200, "ETag: \"a\"\nLast-Modified: " D2 "\n",
                    UPDATE_BY_HEAD_STALE},
            {404, "", 5, 200, "", UPDATE_BY_HEAD_STALE},
            {200, "", 5, 404, "", UPDATE_BY_HEAD_STALE},
            {200, "", 5, 410, "", UPDATE_BY_HEAD_STALE},
            {410, "", 5, 410, "", UPDATE_BY_HEAD_NOTHING},
            {200, "", 5, 403, "", UPDATE_BY_HEAD_NOTHING},
            {200, "", 5, 304, "", UPDATE_BY_HEAD_NOTHING},
            {200, "", 5, 503, "ETag: \"b\"\n", UPDATE_BY_HEAD_NOTHING},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct text_head stored, answer;
        enum update_by_head means =
                update_by_head(text_response(&stored, rows[i].stored_status, rows[i].stored), rows[i].length,
                        text_response(&answer, rows[i].status, rows[i].answer));
        if (means != rows[i].means)
            printf("heads row %zu: %d\n", i, means);
        CU_ASSERT_EQUAL(means, rows[i].means);
    }
}

static void keeping(void) {
    struct text_head text;
    char out[1024];
    struct stored_head_source source = {
            .head = text_response(&text, 200,
                    "Server: a\nConnection: close, x-hop\nX-Hop: 1\nX: 1\nAge: 5\nx: 2\n"
                    "Transfer-Encoding: chunked\nTrailer: Y\n"),
            .date_s = 784111777,
            .vary = VIEW("a"),
            .selectors = VIEW("=b\n")};
    struct stored_head *head = stored_head_new(&source);
    memset(&text, 0xee, sizeof text); // points into nothing else
    print_fields(&head->http, out, sizeof out);
    CU_ASSERT_STRING_EQUAL(out, "Server: a\nX: 1\nx: 2\nDate: Sun, 06 Nov 1994 08:49:37 GMT\n");
    CU_ASSERT_EQUAL(head->http.status, 200);
    CU_ASSERT_TRUE(view_equal(head->http.reason, VIEW("Some reason")));
    CU_ASSERT_TRUE(view_equal(head->vary, VIEW("a")) && view_equal(head->selectors, VIEW("=b\n")));
    free(head);
}

// [RFC 9111 §3.1, §5.2.2.4, §5.2.2.7]: the client it was fetched for gets all of it, the others do not.
static void leaving_out(void) {
    static const struct {
        const char *control, *kept, *first; // NULL: the same
    } rows[] = {
            {"max-age=60", "B: 2\na: 3\nC: 4\nA: 5\n", NULL},
            {"private=\"A\"", "B: 2\nC: 4\n", "B: 2\nC: 4\na: 3\nA: 5\n"},
            {"no-cache=\"a, c\"", "B: 2\n", "B: 2\na: 3\nC: 4\nA: 5\n"},
            {"no-cache=b, private=\"C\"", "a: 3\nA: 5\n", "a: 3\nA: 5\nB: 2\nC: 4\n"},
            {"private=\"x\"", "B: 2\na: 3\nC: 4\nA: 5\n", NULL},
            {"no-cache=\"a b\"", "B: 2\na: 3\nC: 4\nA: 5\n", NULL}, // it means the whole
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct text_head text;
        struct cache_control control;
        char fields[256], out[1024];
        snprintf(fields, sizeof fields, "Connection: D\nCache-Control: %s\nB: 2\na: 3\nD: 1\nC: 4\nA: 5\n",
                rows[i].control);
        struct stored_head_source source = {
                .head = text_response(&text, 200, fields), .control = &control, .date_s = -1};
        cache_control_parse(source.head, &control);
        struct stored_head *head = stored_head_new(&source);
        memset(&text, 0xee, sizeof text);
        print_fields(&head->http, out, sizeof out);
        char *rest = strchr(out, '\n') + 1; // after Cache-Control
        CU_ASSERT_STRING_EQUAL(rest, rows[i].kept);
        CU_ASSERT_EQUAL(head->first != NULL, rows[i].first != NULL);
        if (head->first) {
            CU_ASSERT_EQUAL(head->first->status, 200);
            print_fields(head->first, out, sizeof out);
            CU_ASSERT_STRING_EQUAL(strchr(out, '\n') + 1, rows[i].first);
        }
        free(head);
    }
}

SUITE(cache_update, CASE(merging), CASE(matching), CASE(choosing), CASE(heads), CASE(keeping),
        CASE(leaving_out))
