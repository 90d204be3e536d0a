#include "cache/freshness.h"
#include "tests/unit/cache/text.h"

#include <stdio.h>

// Sun, 06 Nov 1994 08:49:37 GMT
#define NOW 784111777
#define DATE "Date: Sun, 06 Nov 1994 08:49:37 GMT\n"

static void read_response(struct freshness *freshness, int status, const char *fields, int64_t delay_s) {
    struct text_head text;
    struct cache_control control;
    const struct http_head *head = text_response(&text, status, fields);
    cache_control_parse(head, &control);
    freshness_of(freshness, head, &control, (struct moment){NOW - delay_s, NOW - delay_s},
            (struct moment){NOW, NOW});
}

static void lifetimes(void) {
    static const struct {
        int status;
        const char *fields;
        int64_t lifetime_s;
        bool is_explicit;
    } rows[] = {
            {200, DATE "Cache-Control: max-age=60\n", 60, true},
            {200, DATE "Cache-Control: max-age=\"60\"\n", 60, true},
            {200, DATE "Cache-Control: max-age=60, s-maxage=5\n", 5, true},
            {200, DATE "Cache-Control: max-age=60\nExpires: Sun, 06 Nov 1994 09:49:37 GMT\n", 60, true},
            {200, DATE "Cache-Control: max-age=abc\n", 0, true},
            {200, DATE "Cache-Control: max-age=-1\n", 0, true},
            {200, DATE "Cache-Control: max-age=99999999999999999999\n", DELTA_MAXIMUM, true},
            {200, DATE "Expires: Sun, 06 Nov 1994 09:49:37 GMT\n", 3600, true},
            {200, "Expires: Sun, 06 Nov 1994 09:49:37 GMT\n", 3600, true}, // no Date: when it arrived
            {200, DATE "Expires: Sun, 06 Nov 1994 07:49:37 GMT\n", 0, true},
            {200, DATE "Expires: 0\n", 0, true},
            {200, DATE "Expires: Sun, 06 Nov 1994 09:49:37 GMT\nExpires: Sun, 06 Nov 1994 10:49:37 GMT\n", 0,
                    true},
            {200, DATE "Last-Modified: Sun, 06 Nov 1994 08:48:37 GMT\n", 6, false},
            {200, DATE "Last-Modified: Sun, 06 Nov 1904 08:49:37 GMT\n", 7 * 86400, false},
            {200, DATE "Last-Modified: Mon, 01 Jan 1990 00:00:00 GMT\n", 7 * 86400, false},
            {200, DATE "Last-Modified: Sun, 06 Nov 1994 08:50:37 GMT\n", 0, false},
            {200, DATE, 0, false},
            {404, DATE "Last-Modified: Sun, 06 Nov 1994 08:48:37 GMT\n", 6, false},
            {302, DATE "Last-Modified: Sun, 06 Nov 1994 08:48:37 GMT\n", 0, false},
            {302, DATE "Last-Modified: Sun, 06 Nov 1994 08:48:37 GMT\nCache-Control: public\n", 6, false},
            {302, DATE "Cache-Control: max-age=60\n", 60, true},
            {500, DATE "Last-Modified: Sun, 06 Nov 1994 08:48:37 GMT\n", 0, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct freshness freshness;
        read_response(&freshness, rows[i].status, rows[i].fields, 0);
        if (freshness.lifetime_s != rows[i].lifetime_s)
            printf("lifetimes row %zu: %lld\n", i, (long long)freshness.lifetime_s);
        CU_ASSERT_EQUAL(freshness.lifetime_s, rows[i].lifetime_s);
        CU_ASSERT_EQUAL(freshness.is_explicit, rows[i].is_explicit);
    }
}

// [RFC 9111 §4.2.3]
static void ages(void) {
    static const struct {
        const char *fields;
        int64_t delay_s, initial_age_s;
    } rows[] = {
            {DATE, 0, 0},
            {DATE, 4, 4},
            {DATE "Age: 10\n", 4, 14},
            {"Date: Sun, 06 Nov 1994 08:48:37 GMT\n", 4, 60},
            {"Date: Sun, 06 Nov 1994 08:48:37 GMT\nAge: 100\n", 4, 104},
            {"Date: Sun, 06 Nov 1994 08:50:37 GMT\n", 0, 0}, // a fast clock
            {DATE "Age: old\n", 0, 0},
            {DATE "Age: 99999999999\n", 0, DELTA_MAXIMUM},
            {"Age: 7\n", 0, 7},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct freshness freshness;
        read_response(&freshness, 200, rows[i].fields, rows[i].delay_s);
        CU_ASSERT_EQUAL(freshness.initial_age_s, rows[i].initial_age_s);
        CU_ASSERT_EQUAL(
                freshness_age(&freshness, (struct moment){NOW - 3600, NOW + 30}), rows[i].initial_age_s + 30);
    }
}

static void uses(void) {
    static const struct {
        const char *response, *request;
        int64_t after_s;
        bool usable;
        const char *reason;
    } rows[] = {
            {"Cache-Control: max-age=60\n", "", 59, true, "fresh"},
            {"Cache-Control: max-age=60\n", "", 60, false, "expired"},
            {"Cache-Control: max-age=60\nAge: 50\n", "", 10, false, "expired"},
            {"Cache-Control: max-age=0\n", "", 0, false, "expired"},
            {"Cache-Control: max-age=60, no-cache\n", "", 0, false, "no-cache"},
            {"Cache-Control: max-age=60, no-cache=\"set-cookie\"\n", "", 0, true, "fresh"},
            {"Pragma: no-cache\nExpires: Sun, 06 Nov 1994 09:49:37 GMT\n", "", 0, false, "no-cache"},
            {"Pragma: no-cache\nCache-Control: max-age=60\n", "", 0, true, "fresh"},
            {"Cache-Control: max-age=60\n", "Cache-Control: no-cache\n", 0, false, "request-no-cache"},
            {"Cache-Control: max-age=60\n", "Cache-Control: max-age=10\n", 10, true, "fresh"},
            {"Cache-Control: max-age=60\n", "Cache-Control: max-age=10\n", 11, false, "request-max-age"},
            {"Cache-Control: max-age=60\n", "Cache-Control: max-age=x\n", 1, false, "request-max-age"},
            {"Cache-Control: max-age=60\n", "Cache-Control: min-fresh=10\n", 50, true, "fresh"},
            {"Cache-Control: max-age=60\n", "Cache-Control: min-fresh=10\n", 51, false, "request-min-fresh"},
            {"Cache-Control: max-age=60\n", "Cache-Control: max-stale=10\n", 70, true, "max-stale"},
            {"Cache-Control: max-age=60\n", "Cache-Control: max-stale=10\n", 71, false, "expired"},
            {"Cache-Control: max-age=60\n", "Cache-Control: max-stale\n", 9999, true, "max-stale"},
            {"Cache-Control: max-age=60, must-revalidate\n", "Cache-Control: max-stale\n", 61, false,
                    "expired"},
            {"Cache-Control: max-age=60, proxy-revalidate\n", "Cache-Control: max-stale\n", 61, false,
                    "expired"},
            {"Cache-Control: s-maxage=60\n", "Cache-Control: max-stale\n", 61, false, "expired"},
            {"Cache-Control: max-age=60\n", "Cache-Control: max-stale, max-age=60\n", 61, false,
                    "request-max-age"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct text_head text;
        struct freshness freshness;
        struct cache_control request;
        const char *reason = "";
        read_response(&freshness, 200, rows[i].response, 0);
        cache_control_parse(text_request(&text, "GET", rows[i].request), &request);
        bool usable = freshness_usable(
                &freshness, &request, (struct moment){NOW + rows[i].after_s, NOW + rows[i].after_s}, &reason);
        if (usable != rows[i].usable || strcmp(reason, rows[i].reason))
            printf("uses row %zu: %d %s\n", i, usable, reason);
        CU_ASSERT_EQUAL(usable, rows[i].usable);
        CU_ASSERT_STRING_EQUAL(reason, rows[i].reason);
    }
}

SUITE(cache_freshness, CASE(lifetimes), CASE(ages), CASE(uses))
