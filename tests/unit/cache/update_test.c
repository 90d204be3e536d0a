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

static void merging(void) {
    static const struct {
        const char *stored, *not_modified, *merged;
    } rows[] = {
            {"A: 1\nDate: x\n", "Date: y\n", "A: 1\nDate: y\n"},
            {"A: 1\nDate: x\n", "", "A: 1\n"}, // when it arrived is the date then
            {"A: 1\nA: 2\nB: 3\nDate: x\n", "Date: x\na: 4\na: 5\n", "B: 3\nDate: x\na: 4\na: 5\n"},
            {"Content-Length: 5\nContent-Encoding: gzip\nDate: x\n",
                    "Date: x\nContent-Length: 0\nContent-Encoding: br\n",
                    "Content-Length: 5\nContent-Encoding: gzip\nDate: x\n"},
            {"A: 1\nDate: x\n", "Date: x\nConnection: a\nA: 2\n", "A: 1\nDate: x\n"},
            {"Content-Type: a\nDate: x\n", "Date: x\nContent-Type: b\n", "Date: x\nContent-Type: b\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct text_head stored, not_modified;
        struct http_head merged;
        char text[1024];
        update_merge(&merged, text_response(&stored, 200, rows[i].stored),
                text_response(&not_modified, 304, rows[i].not_modified));
        print_fields(&merged, text, sizeof text);
        CU_ASSERT_STRING_EQUAL(text, rows[i].merged);
        CU_ASSERT_EQUAL(merged.status, 200);
        free(merged.fields);
    }
}

static void matching(void) {
    static const struct {
        const char *stored, *not_modified;
        bool matches;
    } rows[] = {
            {"ETag: \"a\"\n", "", true},
            {"ETag: \"a\"\n", "ETag: \"a\"\n", true},
            {"ETag: \"a\"\n", "ETag: W/\"a\"\n", true},
            {"ETag: \"a\"\n", "ETag: \"b\"\n", false},
            {"ETag: broken\n", "ETag: broken\n", true},
            {"Last-Modified: Sun, 06 Nov 1994 08:48:37 GMT\n",
                    "Last-Modified: Sun, 06 Nov 1994 08:48:38 GMT\n", false},
            {"", "ETag: \"b\"\n", false},
            {"ETag: \"a\"\nLast-Modified: x\n", "ETag: \"a\"\nLast-Modified: y\n", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct text_head stored, not_modified;
        CU_ASSERT_EQUAL(update_matches(text_response(&stored, 200, rows[i].stored),
                                text_response(&not_modified, 304, rows[i].not_modified)),
                rows[i].matches);
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
            .selectors = VIEW("=b\n"),
            .tail_bytes = 100};
    struct stored_head *head = stored_head_new(&source);
    memset(&text, 0xee, sizeof text); // points into nothing else
    memset(head->tail, 0xee, 100);
    print_fields(&head->http, out, sizeof out);
    CU_ASSERT_STRING_EQUAL(out, "Server: a\nX: 1\nx: 2\nDate: Sun, 06 Nov 1994 08:49:37 GMT\n");
    CU_ASSERT_EQUAL(head->http.status, 200);
    CU_ASSERT_TRUE(view_equal(head->http.reason, VIEW("Some reason")));
    CU_ASSERT_TRUE(view_equal(head->vary, VIEW("a")) && view_equal(head->selectors, VIEW("=b\n")));
    CU_ASSERT_EQUAL((uintptr_t)head->tail % 16, 0);
    CU_ASSERT_TRUE(head->tail + 100 <= (char *)head + head->bytes);
    free(head);
}

SUITE(cache_update, CASE(merging), CASE(matching), CASE(keeping))
