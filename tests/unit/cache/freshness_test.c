#include "cache/freshness.h"
#include "tests/unit/cache/text.h"

#include <stdio.h>

// Sun, 06 Nov 1994 08:49:37 GMT
#define NOW 784111777
#define DATE "Date: Sun, 06 Nov 1994 08:49:37 GMT\n"
#define LATER "Sun, 06 Nov 1994 09:49:37 GMT"      // by 3600 s
#define EARLIER "Sun, 06 Nov 1994 07:49:37 GMT"    // by 3600 s
#define MINUTE_AGO "Sun, 06 Nov 1994 08:48:37 GMT" // by 60 s
#define YEAR_AGO "Sat, 06 Nov 1993 08:49:37 GMT"
#define WEEK (7 * 86400)

static struct moment at(int64_t seconds) {
    return (struct moment){NOW + seconds, 1000000 + seconds};
}

static void read_response(struct freshness *freshness, int status, const char *fields, int64_t delay_s) {
    struct text_head text;
    struct cache_control control;
    const struct http_head *head = text_response(&text, status, fields);
    cache_control_parse(head, &control);
    freshness_of(freshness, head, &control, at(-delay_s), at(0));
}

static void lifetimes(void) {
    static const struct {
        const char *section; // of RFC 9111 where nothing else is said
        int status;
        const char *fields;
        int64_t lifetime_s;
        bool is_explicit;
    } rows[] = {
            {"4.2.1", 200, DATE "Cache-Control: max-age=60\n", 60, true},
            {"4.2.1", 200, DATE "Cache-Control: max-age=60, s-maxage=5\n", 5, true},
            {"4.2.1", 200, DATE "Cache-Control: s-maxage=3600, max-age=5\n", 3600, true},
            {"5.2.2.10", 200, DATE "Cache-Control: s-maxage=5\nExpires: " LATER "\n", 5, true},
            {"5.2.2.10", 200, DATE "Cache-Control: s-maxage=x, max-age=60\n", 0, true},
            {"5.3", 200, DATE "Cache-Control: max-age=60\nExpires: " LATER "\n", 60, true},
            {"5.3", 200, DATE "Cache-Control: max-age=60\nExpires: 0\n", 60, true},
            {"5.3", 200, DATE "Cache-Control: max-age=60\nExpires: " EARLIER "\n", 60, true},
            {"5.3", 200, DATE "Cache-Control: max-age=0\nExpires: " LATER "\n", 0, true},
            {"5.3", 200, DATE "Cache-Control: public\nExpires: " LATER "\n", 3600, true},
            // arguments
            {"5.2", 200, DATE "Cache-Control: max-age=\"60\"\n", 60, true},
            {"5.2", 200, DATE "cache-control: MAX-AGE=60\n", 60, true},
            {"5.2", 200, DATE "Cache-Control: foo=\"max-age=9\", max-age=60\n", 60, true},
            {"5.2", 200, DATE "Cache-Control: max-age=60, foo=\"max-age=9\"\n", 60, true},
            {"5.2.3", 200, DATE "Cache-Control: foo, bar=baz, max-age=60\n", 60, true},
            {"5.2", 200, DATE "Cache-Control: , ,max-age=60,,\n", 60, true},
            {"5.2", 200, DATE "Cache-Control: public\nCache-Control: max-age=60\n", 60, true},
            {"1.2.2", 200, DATE "Cache-Control: max-age=0060\n", 60, true},
            {"1.2.2", 200, DATE "Cache-Control: max-age=2147483647\n", 2147483647, true},
            {"1.2.2", 200, DATE "Cache-Control: max-age=2147483648\n", DELTA_MAXIMUM, true},
            {"1.2.2", 200, DATE "Cache-Control: max-age=4294967296\n", DELTA_MAXIMUM, true},
            {"1.2.2", 200, DATE "Cache-Control: max-age=9223372036854775808\n", DELTA_MAXIMUM, true},
            {"1.2.2", 200, DATE "Cache-Control: max-age=18446744073709551617\n", DELTA_MAXIMUM, true},
            {"1.2.2", 200, DATE "Cache-Control: max-age=99999999999999999999\n", DELTA_MAXIMUM, true},
            {"4.2.1", 200, DATE "Cache-Control: max-age=abc\n", 0, true},
            {"4.2.1", 200, DATE "Cache-Control: max-age=-1\n", 0, true},
            {"4.2.1", 200, DATE "Cache-Control: max-age=+60\n", 0, true},
            {"4.2.1", 200, DATE "Cache-Control: max-age=60.0\n", 0, true},
            {"4.2.1", 200, DATE "Cache-Control: max-age=60s\n", 0, true},
            {"4.2.1", 200, DATE "Cache-Control: max-age=s60\n", 0, true},
            {"4.2.1", 200, DATE "Cache-Control: max-age='60'\n", 0, true},
            {"4.2.1", 200, DATE "Cache-Control: max-age=\"60\n", 0, true},
            {"4.2.1", 200, DATE "Cache-Control: max-age=\" 60\"\n", 0, true},
            {"4.2.1", 200, DATE "Cache-Control: max-age\n", 0, true},
            {"4.2.1", 200, DATE "Cache-Control: max-age=\n", 0, true},
            {"4.2.1", 200, DATE "Cache-Control: max-age =60\n", 0, true},
            {"4.2.1", 200, DATE "Cache-Control: max-age= 60\n", 0, true},
            {"4.2.1", 200, DATE "Cache-Control: max-age:60\n", 0, true},
            {"4.2.1", 200, DATE "Cache-Control: max-age=60;public\n", 0, true},
            {"4.2.1", 200, DATE "Cache-Control: max-age=60, max-age=0\n", 60, true}, // the first stands
            {"4.2.1", 200, DATE "Cache-Control: max-age=0, max-age=60\n", 0, true},
            {"4.2.1", 200, DATE "Cache-Control: max-age=0\nCache-Control: max-age=60\n", 0, true},
            {"4.2.1", 200, DATE "Cache-Control: max-age=x, max-age=60\n", 0, true},
            // Expires
            {"5.3", 200, DATE "Expires: " LATER "\n", 3600, true},
            {"5.3", 200, DATE "Expires: Sunday, 06-Nov-94 09:49:37 GMT\n", 3600, true},
            {"5.3", 200, DATE "Expires: Sun Nov  6 09:49:37 1994\n", 3600, true},
            {"4.2", 200, DATE "Expires: sun, 06 nov 1994 09:49:37 gmt\n", 3600, true},
            {"4.2", 200, DATE "Expires: SUN, 06 NOV 1994 09:49:37 GMT\n", 3600, true},
            {"5.3", 200, DATE "Expires: Fri, 31 Dec 9999 23:59:59 GMT\n", 253402300799 - NOW, true},
            {"5.3", 200, DATE "Expires: Tue, 19 Jan 2038 03:14:08 GMT\n", 2147483648 - NOW, true},
            {"5.3", 200, "Expires: " LATER "\n", 3600, true}, // no Date: from the arrival
            {"9110 6.6.1", 200, "Date: yesterday\nExpires: " LATER "\n", 3600, true},
            {"5.3", 200, DATE "Expires: Sun, 06 Nov 1994 08:49:37 GMT\n", 0, true},
            {"5.3", 200, DATE "Expires: " EARLIER "\n", 0, true},
            {"5.3", 200, "Date: " LATER "\nExpires: Sun, 06 Nov 1994 10:49:37 GMT\n", 3600, true},
            {"5.3", 200, "Date: " EARLIER "\nExpires: Sun, 06 Nov 1994 08:49:37 GMT\n", 3600, true},
            {"5.3", 200, DATE "Expires: 0\n", 0, true},
            {"5.3", 200, DATE "Expires: -1\n", 0, true},
            {"5.3", 200, DATE "Expires:\n", 0, true},
            {"5.3", 200, DATE "Expires: never\n", 0, true},
            {"5.3", 200, DATE "Expires: 784115377\n", 0, true},
            {"4.2", 200, DATE "Expires: Sun, 06 Nov 1994 09:49:37 UTC\n", 0, true},
            {"4.2", 200, DATE "Expires: Sun, 06 Nov 1994 09:49:37 AEST\n", 0, true},
            {"4.2", 200, DATE "Expires: Sun, 06 Nov 1994 09:49:37 +0000\n", 0, true},
            {"9110 5.6.7", 200, DATE "Expires: Sun 06 Nov 1994 09:49:37 GMT\n", 0, true},
            {"9110 5.6.7", 200, DATE "Expires: Sun, 06 Nov 94 09:49:37 GMT\n", 0, true},
            {"9110 5.6.7", 200, DATE "Expires: Sun, 06 Nov 1994 9:49:37 GMT\n", 0, true},
            {"9110 5.6.7", 200, DATE "Expires: Sun, 06 Nov 1994 09:49 GMT\n", 0, true},
            {"9110 5.6.7", 200, DATE "Expires: Sun, 06  Nov 1994 09:49:37 GMT\n", 0, true},
            {"9110 5.6.7", 200, DATE "Expires: Sun, 06-Nov-1994 09:49:37 GMT\n", 0, true},
            {"9110 5.6.7", 200, DATE "Expires: Sun, 06 Nov 1994 09.49.37 GMT\n", 0, true},
            {"9110 5.6.7", 200, DATE "Expires: Sun, 06 Nov 1994 25:49:37 GMT\n", 0, true},
            {"9110 5.6.7", 200, DATE "Expires: \"" LATER "\"\n", 0, true},
            {"4.2.1", 200, DATE "Expires: " LATER "\nExpires: Sun, 06 Nov 1994 10:49:37 GMT\n", 0, true},
            {"4.2.1", 200, DATE "Expires: " LATER "\nExpires: 0\n", 0, true},
            {"4.2.1", 200, DATE "Expires: 0\nExpires: " LATER "\n", 0, true},
            {"4.2.1", 200, DATE "Expires: " LATER "\nExpires: " LATER "\n", 3600, true},
            {"4.2.1", 200, DATE "Expires: " LATER ", " LATER "\n", 0, true},
            // heuristics
            {"4.2.2", 200, DATE "Last-Modified: " MINUTE_AGO "\n", 6, false},
            {"4.2.2", 200, "Last-Modified: " MINUTE_AGO "\n", 6, false},
            {"4.2.2", 200, DATE "Last-Modified: " YEAR_AGO "\n", WEEK, false},
            {"4.2.2", 200, DATE "Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT\n", WEEK, false},
            {"4.2.2", 200, DATE "Last-Modified: Wed, 01 Jan 1902 00:00:00 GMT\n", WEEK, false},
            {"4.2.2", 200, DATE "Last-Modified: Sunday, 06-Nov-94 08:48:37 GMT\n", 6, false},
            {"4.2.2", 200, DATE "Last-Modified: " LATER "\n", 0, false},
            {"4.2.2", 200, DATE "Last-Modified: yesterday\n", 0, false},
            {"4.2.2", 200, DATE "Last-Modified: " MINUTE_AGO "\nLast-Modified: " YEAR_AGO "\n", 0, false},
            {"4.2.2", 200, DATE, 0, false},
            {"4.2.2", 200, DATE "ETag: \"a\"\n", 0, false},
            {"4.2.2", 200, DATE "Cache-Control: public\n", 0, false},
            {"9110 15.1", 203, DATE "Last-Modified: " MINUTE_AGO "\n", 6, false},
            {"9110 15.1", 204, DATE "Last-Modified: " MINUTE_AGO "\n", 6, false},
            {"9110 15.1", 206, DATE "Last-Modified: " MINUTE_AGO "\n", 6, false},
            {"9110 15.1", 300, DATE "Last-Modified: " MINUTE_AGO "\n", 6, false},
            {"9110 15.1", 301, DATE "Last-Modified: " MINUTE_AGO "\n", 6, false},
            {"9110 15.1", 308, DATE "Last-Modified: " MINUTE_AGO "\n", 6, false},
            {"9110 15.1", 404, DATE "Last-Modified: " MINUTE_AGO "\n", 6, false},
            {"9110 15.1", 405, DATE "Last-Modified: " MINUTE_AGO "\n", 6, false},
            {"9110 15.1", 410, DATE "Last-Modified: " MINUTE_AGO "\n", 6, false},
            {"9110 15.1", 414, DATE "Last-Modified: " MINUTE_AGO "\n", 6, false},
            {"9110 15.1", 501, DATE "Last-Modified: " MINUTE_AGO "\n", 6, false},
            {"9110 15.1", 201, DATE "Last-Modified: " MINUTE_AGO "\n", 0, false},
            {"9110 15.1", 202, DATE "Last-Modified: " MINUTE_AGO "\n", 0, false},
            {"9110 15.1", 302, DATE "Last-Modified: " MINUTE_AGO "\n", 0, false},
            {"9110 15.1", 303, DATE "Last-Modified: " MINUTE_AGO "\n", 0, false},
            {"9110 15.1", 307, DATE "Last-Modified: " MINUTE_AGO "\n", 0, false},
            {"9110 15.1", 403, DATE "Last-Modified: " MINUTE_AGO "\n", 0, false},
            {"9110 15.1", 500, DATE "Last-Modified: " MINUTE_AGO "\n", 0, false},
            {"9110 15.1", 502, DATE "Last-Modified: " MINUTE_AGO "\n", 0, false},
            {"9110 15.1", 503, DATE "Last-Modified: " MINUTE_AGO "\n", 0, false},
            {"9110 15.1", 504, DATE "Last-Modified: " MINUTE_AGO "\n", 0, false},
            {"9110 15.1", 599, DATE "Last-Modified: " MINUTE_AGO "\n", 0, false},
            {"5.2.2.9", 302, DATE "Last-Modified: " MINUTE_AGO "\nCache-Control: public\n", 6, false},
            {"5.2.2.9", 599, DATE "Last-Modified: " MINUTE_AGO "\nCache-Control: public\n", 6, false},
            {"3", 302, DATE "Cache-Control: max-age=60\n", 60, true},
            {"3", 500, DATE "Cache-Control: max-age=60\n", 60, true},
            {"3", 599, DATE "Expires: " LATER "\n", 3600, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct freshness freshness;
        read_response(&freshness, rows[i].status, rows[i].fields, 0);
        if (freshness.lifetime_s != rows[i].lifetime_s || freshness.is_explicit != rows[i].is_explicit)
            printf("lifetimes row %zu [%s]: %lld\n%s", i, rows[i].section, (long long)freshness.lifetime_s,
                    rows[i].fields);
        CU_ASSERT_EQUAL(freshness.lifetime_s, rows[i].lifetime_s);
        CU_ASSERT_EQUAL(freshness.is_explicit, rows[i].is_explicit);
        CU_ASSERT_EQUAL(freshness_lifetime(&freshness, NULL), rows[i].lifetime_s);
    }
}

static void ages(void) {
    static const struct {
        const char *section, *fields;
        int64_t delay_s, initial_age_s;
        bool has_age;
    } rows[] = {
            {"4.2.3", DATE, 0, 0, false},
            {"4.2.3", DATE, 4, 4, false}, // the delay of the answer
            {"4.2.3", DATE "Age: 10\n", 4, 14, true},
            {"4.2.3", "Date: " MINUTE_AGO "\n", 4, 60, false},
            {"4.2.3", "Date: " MINUTE_AGO "\nAge: 100\n", 4, 104, true},
            {"4.2.3", "Date: " MINUTE_AGO "\nAge: 10\n", 4, 60, true},
            {"4.2.3", "Date: " LATER "\n", 0, 0, false}, // a fast clock
            {"4.2.3", "Date: " LATER "\nAge: 10\n", 0, 10, true},
            {"4.2.3", "Date: Fri, 31 Dec 9999 23:59:59 GMT\n", 0, 0, false},
            {"4.2.3", "Date: Thu, 01 Jan 1970 00:00:00 GMT\n", 0, NOW, false},
            {"9110 6.6.1", "", 5, 5, false},
            {"9110 6.6.1", "Date: 0\n", 5, 5, false},
            {"9110 6.6.1", "Date: " MINUTE_AGO "\nDate: " MINUTE_AGO "\n", 0, 60, false},
            {"9110 6.6.1", "Date: " MINUTE_AGO "\nDate: " EARLIER "\n", 0, 0, false},
            {"5.1", "Age: 7\n", 0, 7, true},
            {"5.1", DATE "Age: 007\n", 0, 7, true},
            {"5.1", DATE "Age: 0\n", 0, 0, true},
            {"5.1", DATE "Age: 7, 100\n", 0, 7, true},
            {"5.1", DATE "Age: 100 , 7\n", 0, 100, true},
            {"5.1", DATE "Age: 7\nAge: 100\n", 0, 7, true},
            {"5.1", DATE "Age: 100\nAge: 7\n", 0, 100, true},
            {"5.1", DATE "Age: x, 100\n", 0, 0, false},
            {"5.1", DATE "Age: old\n", 0, 0, false},
            {"5.1", DATE "Age: -7\n", 0, 0, false},
            {"5.1", DATE "Age: +7\n", 0, 0, false},
            {"5.1", DATE "Age: 7.0\n", 0, 0, false},
            {"5.1", DATE "Age: 7s\n", 0, 0, false},
            {"5.1", DATE "Age: 7;foo=bar\n", 0, 0, false},
            {"5.1", DATE "Age: \"7\"\n", 0, 0, false},
            {"5.1", DATE "Age:\n", 0, 0, false},
            {"1.2.2", DATE "Age: 2147483647\n", 0, 2147483647, true},
            {"1.2.2", DATE "Age: 2147483648\n", 0, DELTA_MAXIMUM, true},
            {"1.2.2", DATE "Age: 99999999999\n", 0, DELTA_MAXIMUM, true},
            {"1.2.2", DATE "Age: 99999999999999999999999999\n", 9, DELTA_MAXIMUM + 9, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct freshness freshness;
        read_response(&freshness, 200, rows[i].fields, rows[i].delay_s);
        if (freshness.initial_age_s != rows[i].initial_age_s || freshness.has_age != rows[i].has_age)
            printf("ages row %zu [%s]: %lld\n%s", i, rows[i].section, (long long)freshness.initial_age_s,
                    rows[i].fields);
        CU_ASSERT_EQUAL(freshness.initial_age_s, rows[i].initial_age_s);
        CU_ASSERT_EQUAL(freshness.has_age, rows[i].has_age);
        // the wall clock steps, forth or back: it is the steady one that counts
        struct moment stepped = {NOW - 3600, at(30).steady_s};
        CU_ASSERT_EQUAL(freshness_age(&freshness, stepped), rows[i].initial_age_s + 30);
        stepped.wall_s = NOW + 999999;
        CU_ASSERT_EQUAL(freshness_age(&freshness, stepped), rows[i].initial_age_s + 30);
        CU_ASSERT_EQUAL(freshness_age(&freshness, at(-5)), rows[i].initial_age_s);
    }
}

struct use_row {
    const char *section, *response, *request;
    int64_t after_s;
    enum use use;
    const char *reason;
};

static void check_uses(
        const char *name, const struct use_row *rows, size_t count, const struct refresh_rule *rule) {
    for (size_t i = 0; i < count; i++) {
        struct text_head text;
        struct freshness freshness;
        struct cache_control request;
        const char *reason = "";
        read_response(&freshness, 200, rows[i].response, 0);
        cache_control_parse(text_request(&text, "GET", rows[i].request), &request);
        enum use use = freshness_use(&freshness, &request, rule, at(rows[i].after_s), &reason);
        if (use != rows[i].use || strcmp(reason, rows[i].reason) != 0)
            printf("%s row %zu [%s]: %d %s\n%s%s", name, i, rows[i].section, use, reason, rows[i].response,
                    rows[i].request);
        CU_ASSERT_EQUAL(use, rows[i].use);
        CU_ASSERT_STRING_EQUAL(reason, rows[i].reason);
    }
}

#define SIXTY "Cache-Control: max-age=60\n"
#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

static void uses(void) {
    static const struct use_row rows[] = {
            {"4.2", SIXTY, "", 59, USE_FRESH, "fresh"},
            {"4.2", SIXTY, "", 60, USE_NOT, "expired"},
            {"4.2", SIXTY "Age: 50\n", "", 9, USE_FRESH, "fresh"},
            {"4.2", SIXTY "Age: 50\n", "", 10, USE_NOT, "expired"},
            {"4.2", SIXTY "Age: 2147483648\n", "", 0, USE_NOT, "expired"},
            {"4.2", "Cache-Control: max-age=2147483648\nAge: 2147483647\n", "", 0, USE_FRESH, "fresh"},
            {"4.2", "Cache-Control: max-age=2147483648\nAge: 2147483648\n", "", 0, USE_NOT, "expired"},
            {"4.2", SIXTY "Date: " MINUTE_AGO "\n", "", 0, USE_NOT, "expired"},
            {"4.2", SIXTY "Date: " LATER "\n", "", 59, USE_FRESH, "fresh"},
            {"4.2", "Expires: " LATER "\nDate: " EARLIER "\n", "", 3599, USE_FRESH, "fresh"},
            {"4.2", "Expires: " LATER "\nDate: " EARLIER "\n", "", 3600, USE_NOT, "expired"},
            {"4.2", "Cache-Control: max-age=0\n", "", 0, USE_NOT, "expired"},
            {"4.2.2", "Last-Modified: " MINUTE_AGO "\n", "", 5, USE_FRESH, "fresh"},
            {"4.2.2", "Last-Modified: " MINUTE_AGO "\n", "", 6, USE_NOT, "expired"},
            // the response's word
            {"5.2.2.4", "Cache-Control: max-age=60, no-cache\n", "", 0, USE_NOT, "no-cache"},
            {"5.2.2.4", "Cache-Control: max-age=60, NO-CACHE\n", "", 0, USE_NOT, "no-cache"},
            {"5.2.2.4", "Cache-Control: max-age=60, no-cache\n", "Cache-Control: max-stale\n", 0, USE_NOT,
                    "no-cache"},
            {"5.2.2.4", "Cache-Control: max-age=60, no-cache=\"set-cookie\"\n", "", 0, USE_FRESH, "fresh"},
            {"5.2.2.4", "Cache-Control: max-age=60, no-cache=\"set-cookie, a b\"\n", "", 0, USE_NOT,
                    "no-cache"},
            {"5.2.2.2", "Cache-Control: max-age=60, must-revalidate\n", "", 59, USE_FRESH, "fresh"},
            {"5.4", "Pragma: no-cache\nExpires: " LATER "\n", "", 0, USE_NOT, "no-cache"},
            {"5.4", "Pragma: no-cache\n" SIXTY, "", 0, USE_FRESH, "fresh"},
            {"5.4", "Pragma: foo\nExpires: " LATER "\n", "", 0, USE_FRESH, "fresh"},
            // the request's
            {"5.2.1.4", SIXTY, "Cache-Control: no-cache\n", 0, USE_NOT, "request-no-cache"},
            {"5.2.1.4", SIXTY, "Cache-Control: No-Cache\n", 0, USE_NOT, "request-no-cache"},
            {"5.2.1.4", SIXTY, "Cache-Control: foo, no-cache\n", 0, USE_NOT, "request-no-cache"},
            {"5.2", SIXTY, "Cache-Control: foo=bar, baz\n", 0, USE_FRESH, "fresh"},
            {"5.2.1.7", SIXTY, "Cache-Control: only-if-cached\n", 0, USE_FRESH, "fresh"},
            {"5.2.1.7", SIXTY, "Cache-Control: only-if-cached\n", 60, USE_NOT, "expired"},
            {"5.2.1.1", SIXTY, "Cache-Control: max-age=10\n", 10, USE_FRESH, "fresh"},
            {"5.2.1.1", SIXTY, "Cache-Control: max-age=10\n", 11, USE_NOT, "request-max-age"},
            {"5.2.1.1", SIXTY, "Cache-Control: MAX-AGE=\"10\"\n", 11, USE_NOT, "request-max-age"},
            {"5.2.1.1", SIXTY "Age: 20\n", "Cache-Control: max-age=10\n", 0, USE_NOT, "request-max-age"},
            {"5.2.1.1", SIXTY, "Cache-Control: max-age=0\n", 0, USE_FRESH, "fresh"},
            {"5.2.1.1", SIXTY, "Cache-Control: max-age=0\n", 1, USE_NOT, "request-max-age"},
            {"5.2.1.1", SIXTY, "Cache-Control: max-age=x\n", 1, USE_NOT, "request-max-age"},
            {"5.2.1.1", SIXTY, "Cache-Control: max-age=9999\n", 61, USE_NOT, "expired"},
            {"5.2.1.3", SIXTY, "Cache-Control: min-fresh=10\n", 50, USE_FRESH, "fresh"},
            {"5.2.1.3", SIXTY, "Cache-Control: min-fresh=10\n", 51, USE_NOT, "request-min-fresh"},
            {"5.2.1.3", SIXTY, "Cache-Control: Min-Fresh=2147483649\n", 0, USE_NOT, "request-min-fresh"},
            {"5.2.1.3", SIXTY, "Cache-Control: min-fresh=x\n", 0, USE_NOT, "request-min-fresh"},
            {"5.2.1.2", SIXTY, "Cache-Control: max-stale=10\n", 59, USE_FRESH, "fresh"},
            {"5.2.1.2", SIXTY, "Cache-Control: max-stale=10\n", 70, USE_STALE, "max-stale"},
            {"5.2.1.2", SIXTY, "Cache-Control: max-stale=10\n", 71, USE_NOT, "expired"},
            {"5.2.1.2", SIXTY, "Cache-Control: MAX-STALE=\"10\"\n", 70, USE_STALE, "max-stale"},
            {"5.2.1.2", SIXTY, "Cache-Control: max-stale\n", 9999, USE_STALE, "max-stale"},
            {"5.2.1.2", SIXTY, "Cache-Control: max-stale=x\n", 61, USE_NOT, "expired"},
            {"5.2.1.2", SIXTY, "Cache-Control: max-stale=\n", 61, USE_NOT, "expired"},
            {"5.2.1.2", SIXTY, "Cache-Control: max-stale=-1\n", 61, USE_NOT, "expired"},
            {"5.2.1.1", SIXTY, "Cache-Control: max-stale=20, max-age=70\n", 65, USE_STALE, "max-stale"},
            {"5.2.1.1", SIXTY, "Cache-Control: max-stale, max-age=60\n", 61, USE_NOT, "request-max-age"},
            {"5.2.1.4", SIXTY, "Cache-Control: max-stale, no-cache\n", 1, USE_NOT, "request-no-cache"},
            {"5.2.2.2", "Cache-Control: max-age=60, must-revalidate\n", "Cache-Control: max-stale\n", 61,
                    USE_NOT, "expired"},
            {"5.2.2.8", "Cache-Control: max-age=60, proxy-revalidate\n", "Cache-Control: max-stale\n", 61,
                    USE_NOT, "expired"},
            {"5.2.2.10", "Cache-Control: s-maxage=60\n", "Cache-Control: max-stale\n", 61, USE_NOT,
                    "expired"},
    };
    check_uses("uses", rows, COUNT(rows), NULL);
}

#define WHILE "Cache-Control: max-age=60, stale-while-revalidate=30\n"
#define IMMUTABLE "Cache-Control: max-age=60, immutable\n"

static void extensions(void) {
    static const struct use_row rows[] = {
            {"5861 3", WHILE, "", 59, USE_FRESH, "fresh"},
            {"5861 3", WHILE, "", 60, USE_REFRESH, "stale-while-revalidate"},
            {"5861 3", WHILE, "", 90, USE_REFRESH, "stale-while-revalidate"},
            {"5861 3", WHILE, "", 91, USE_NOT, "expired"},
            {"5861 3", "Cache-Control: max-age=60, Stale-While-Revalidate=\"30\"\n", "", 61, USE_REFRESH,
                    "stale-while-revalidate"},
            {"5861 3", "Cache-Control: max-age=0, stale-while-revalidate=30\n", "", 0, USE_REFRESH,
                    "stale-while-revalidate"},
            {"5861 3", "Cache-Control: max-age=60, stale-while-revalidate\n", "", 60, USE_NOT, "expired"},
            {"5861 3", "Cache-Control: max-age=60, stale-while-revalidate=x\n", "", 60, USE_NOT, "expired"},
            {"5861 3", "Cache-Control: max-age=60, stale-while-revalidate=-1\n", "", 60, USE_NOT, "expired"},
            {"5861 3", "Cache-Control: max-age=60, stale-while-revalidate=99999999999\n", "", 99999,
                    USE_REFRESH, "stale-while-revalidate"},
            {"4.2.4", "Cache-Control: max-age=60, stale-while-revalidate=30, must-revalidate\n", "", 61,
                    USE_NOT, "expired"},
            {"4.2.4", "Cache-Control: max-age=60, stale-while-revalidate=30, proxy-revalidate\n", "", 61,
                    USE_NOT, "expired"},
            {"4.2.4", "Cache-Control: s-maxage=60, stale-while-revalidate=30\n", "", 61, USE_NOT, "expired"},
            {"4.2.4", "Cache-Control: max-age=60, stale-while-revalidate=30, no-cache\n", "", 61, USE_NOT,
                    "no-cache"},
            {"5.2.1.4", WHILE, "Cache-Control: no-cache\n", 61, USE_NOT, "request-no-cache"},
            {"5.2.1.1", WHILE, "Cache-Control: max-age=70\n", 61, USE_NOT, "expired"},
            {"5.2.1.1", WHILE, "Cache-Control: max-age=70, max-stale\n", 61, USE_REFRESH,
                    "stale-while-revalidate"},
            {"5.2.1.3", WHILE, "Cache-Control: min-fresh=0\n", 60, USE_NOT, "expired"},
            {"5.2.1.2", WHILE, "Cache-Control: max-stale=90\n", 100, USE_STALE, "max-stale"},
            // immutable
            {"8246 2", IMMUTABLE, "", 30, USE_FRESH, "fresh"},
            {"8246 2", IMMUTABLE, "Cache-Control: max-age=0\n", 30, USE_FRESH, "immutable"},
            {"8246 2", IMMUTABLE, "Cache-Control: max-age=0\n", 60, USE_NOT, "request-max-age"},
            {"8246 2", IMMUTABLE, "Cache-Control: no-cache\n", 30, USE_NOT, "request-no-cache"},
            {"8246 2", IMMUTABLE, "Cache-Control: no-cache, max-age=0\n", 30, USE_NOT, "request-no-cache"},
            {"8246 2", IMMUTABLE, "Cache-Control: max-age=10\n", 30, USE_NOT, "request-max-age"},
            {"8246 2", IMMUTABLE, "", 60, USE_NOT, "expired"},
            {"8246 2", "Cache-Control: immutable\n", "Cache-Control: max-age=0\n", 1, USE_NOT,
                    "request-max-age"},
            {"8246 2", "Cache-Control: max-age=60, immutable=x\n", "Cache-Control: max-age=0\n", 1, USE_FRESH,
                    "immutable"},
    };
    check_uses("extensions", rows, COUNT(rows), NULL);
}

// ---- the rules of an admin ----

static struct refresh_rule rule_of(int64_t min_s, unsigned percent, int64_t max_s) {
    return (struct refresh_rule){.min_s = min_s,
            .percent = percent,
            .max_s = max_s,
            .max_stale_s = -1,
            .reload_s = -1,
            .expire_s = -1,
            .redirect_s = -1};
}

static void rule_lifetimes(void) {
    static const struct {
        int status;
        const char *fields;
        int64_t min_s;
        unsigned percent;
        int64_t max_s;
        enum refresh_option option; // or the count: none
        int64_t lifetime_s;
    } rows[] = {
#define NONE REFRESH_OPTION_COUNT
#define EXPIRE REFRESH_OPTION_override_expire
#define LASTMOD REFRESH_OPTION_override_lastmod
            {200, DATE, 100, 20, 1000, NONE, 100},
            {200, DATE, 100, 20, 50, NONE, 50},
            {200, DATE, 0, 20, 1000, NONE, 0},
            {200, DATE "Last-Modified: " MINUTE_AGO "\n", 100, 20, 1000, NONE, 12},
            {200, DATE "Last-Modified: " EARLIER "\n", 0, 20, 1000, NONE, 720},
            {200, DATE "Last-Modified: " EARLIER "\n", 0, 20, 500, NONE, 500},
            {200, DATE "Last-Modified: " EARLIER "\n", 0, 200, 100000, NONE, 7200},
            {200, DATE "Last-Modified: " EARLIER "\n", 0, 0, 100000, NONE, 0},
            {200, DATE "Last-Modified: " YEAR_AGO "\n", 0, 100, 999999999, NONE, 31536000},
            {200, DATE "Last-Modified: " YEAR_AGO "\n", 0, 4294967295, INT64_MAX, NONE,
                    31536000 / 100 * 4294967295},
            {200, DATE "Last-Modified: " LATER "\n", 100, 20, 1000, NONE, 100},
            {200, DATE "Last-Modified: " MINUTE_AGO "\n", 100, 20, 1000, LASTMOD, 100},
            {200, DATE "Last-Modified: " MINUTE_AGO "\n", 100, 20, 50, LASTMOD, 50},
            {200, DATE "Last-Modified: " EARLIER "\n", 100, 20, 1000, LASTMOD, 720},
            {200, DATE "Cache-Control: must-revalidate\nLast-Modified: " MINUTE_AGO "\n", 100, 20, 1000,
                    LASTMOD, 12},
            {200, DATE SIXTY, 100, 20, 1000, NONE, 60},
            {200, DATE SIXTY, 100, 20, 10, NONE, 60}, // MAX is not for explicit ones
            {200, DATE SIXTY, 100, 20, 1000, LASTMOD, 60},
            {200, DATE SIXTY, 100, 20, 1000, EXPIRE, 100},
            {200, DATE SIXTY, 10, 20, 1000, EXPIRE, 60},
            {200, DATE "Expires: 0\n", 100, 20, 1000, EXPIRE, 100},
            {200, DATE "Cache-Control: max-age=60, must-revalidate\n", 100, 20, 1000, EXPIRE, 60},
            {200, DATE "Cache-Control: s-maxage=60\n", 100, 20, 1000, EXPIRE, 60},
            {200, DATE, 100, 20, 1000, EXPIRE, 100},
            {302, DATE, 100, 20, 1000, NONE, 0}, // no heuristic where there may be none
            {500, DATE "Last-Modified: " EARLIER "\n", 100, 20, 1000, EXPIRE, 0},
            {302, DATE "Cache-Control: public\n", 100, 20, 1000, NONE, 100},
            {404, DATE, 100, 20, 1000, NONE, 100},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct freshness freshness;
        struct refresh_rule rule = rule_of(rows[i].min_s, rows[i].percent, rows[i].max_s);
        if (rows[i].option != NONE)
            rule.options[rows[i].option] = true;
        read_response(&freshness, rows[i].status, rows[i].fields, 0);
        int64_t lifetime_s = freshness_lifetime(&freshness, &rule);
        if (lifetime_s != rows[i].lifetime_s)
            printf("rule_lifetimes row %zu: %lld\n", i, (long long)lifetime_s);
        CU_ASSERT_EQUAL(lifetime_s, rows[i].lifetime_s);
    }
}

static void rule_uses(void) {
    static const struct use_row override_expire[] = {
            {"", SIXTY, "", 59, USE_FRESH, "fresh"},
            {"", SIXTY, "", 60, USE_FRESH, "override-expire"},
            {"", SIXTY, "", 99, USE_FRESH, "override-expire"},
            {"", SIXTY, "", 100, USE_NOT, "expired"},
            {"", "Cache-Control: max-age=60, no-cache\n", "", 61, USE_NOT, "no-cache"},
            {"", SIXTY, "Cache-Control: no-cache\n", 61, USE_NOT, "request-no-cache"},
            {"", DATE, "", 99, USE_FRESH, "fresh"},
    };
    struct refresh_rule rule = rule_of(100, 20, 1000);
    rule.options[REFRESH_OPTION_override_expire] = true;
    check_uses("override-expire", override_expire, COUNT(override_expire), &rule);

    static const struct use_row override_lastmod[] = {
            {"", DATE "Last-Modified: " MINUTE_AGO "\n", "", 11, USE_FRESH, "fresh"},
            {"", DATE "Last-Modified: " MINUTE_AGO "\n", "", 12, USE_FRESH, "override-lastmod"},
            {"", DATE "Last-Modified: " MINUTE_AGO "\n", "", 100, USE_NOT, "expired"},
    };
    rule = rule_of(100, 20, 1000);
    rule.options[REFRESH_OPTION_override_lastmod] = true;
    check_uses("override-lastmod", override_lastmod, COUNT(override_lastmod), &rule);

    static const struct use_row ignore_reload[] = {
            {"", SIXTY, "Cache-Control: no-cache\n", 30, USE_FRESH, "ignore-reload"},
            {"", SIXTY, "Cache-Control: max-age=0\n", 30, USE_FRESH, "ignore-reload"},
            {"", SIXTY, "Cache-Control: max-age=10\n", 30, USE_NOT, "request-max-age"},
            {"", SIXTY, "Cache-Control: no-cache\n", 60, USE_NOT, "expired"},
            {"", SIXTY, "", 30, USE_FRESH, "fresh"},
            {"", WHILE, "Cache-Control: max-age=0\n", 61, USE_REFRESH, "stale-while-revalidate"},
    };
    rule = rule_of(0, 20, 1000);
    rule.options[REFRESH_OPTION_ignore_reload] = rule.options[REFRESH_OPTION_reload_into_ims] = true;
    check_uses("ignore-reload", ignore_reload, COUNT(ignore_reload), &rule);

    static const struct use_row reload_into_ims[] = {
            {"", SIXTY, "Cache-Control: no-cache\n", 30, USE_NOT, "reload-into-ims"},
            {"", SIXTY, "Cache-Control: max-age=0\n", 30, USE_NOT, "reload-into-ims"},
            {"", SIXTY, "Cache-Control: max-age=10\n", 30, USE_NOT, "request-max-age"},
            {"", IMMUTABLE, "Cache-Control: max-age=0\n", 30, USE_FRESH, "immutable"},
    };
    rule.options[REFRESH_OPTION_ignore_reload] = false;
    check_uses("reload-into-ims", reload_into_ims, COUNT(reload_into_ims), &rule);

    static const struct use_row smart_cache[] = {
            {"", SIXTY, "Cache-Control: no-cache\n", 19, USE_FRESH, "reload"},
            {"", SIXTY, "Cache-Control: no-cache\n", 20, USE_NOT, "request-no-cache"},
            {"", SIXTY, "", 59, USE_FRESH, "fresh"},
            {"", SIXTY, "", 60, USE_FRESH, "expire"},
            {"", SIXTY, "", 120, USE_NOT, "expired"},
            {"", "Cache-Control: max-age=60, must-revalidate\n", "", 60, USE_NOT, "expired"},
            {"", DATE, "", 10, USE_NOT, "expired"},
    };
    rule = rule_of(0, 20, 1000);
    rule.reload_s = 20;
    rule.expire_s = 120;
    check_uses("smart cache", smart_cache, COUNT(smart_cache), &rule);

    struct freshness freshness;
    rule.redirect_s = 300;
    read_response(&freshness, 302, DATE, 0);
    CU_ASSERT_EQUAL(freshness_lifetime(&freshness, &rule), 300);
    read_response(&freshness, 302, DATE SIXTY, 0);
    CU_ASSERT_EQUAL(freshness_lifetime(&freshness, &rule), 120);
    read_response(&freshness, 404, DATE, 0);
    CU_ASSERT_EQUAL(freshness_lifetime(&freshness, &rule), 0);
}

// ---- trouble ----

#define IF_ERROR "Cache-Control: max-age=60, stale-if-error=30\n"

static void troubles(void) {
    static const struct {
        const char *section, *response, *request;
        int64_t after_s, max_stale_s;
        bool on_error, on_disconnection;
        const char *error_reason, *disconnected_reason;
    } rows[] = {
            {"4.2.4", SIXTY, "", 61, -1, false, true, "expired", "disconnected"},
            {"4.2.4", SIXTY, "", 999999, -1, false, true, "expired", "disconnected"},
            {"5861 4", IF_ERROR, "", 61, -1, true, true, "stale-if-error", "stale-if-error"},
            {"5861 4", IF_ERROR, "", 90, -1, true, true, "stale-if-error", "stale-if-error"},
            {"5861 4", IF_ERROR, "", 91, -1, false, true, "expired", "disconnected"},
            {"5861 4", SIXTY, "Cache-Control: stale-if-error=30\n", 90, -1, true, true, "stale-if-error",
                    "stale-if-error"},
            {"5861 4", IF_ERROR, "Cache-Control: stale-if-error=5\n", 90, -1, true, true, "stale-if-error",
                    "stale-if-error"},
            {"5861 4", "Cache-Control: max-age=60, stale-if-error\n", "", 61, -1, false, true, "expired",
                    "disconnected"},
            {"5861 4", "Cache-Control: max-age=60, stale-if-error=x\n", "", 60, -1, false, true, "expired",
                    "disconnected"},
            {"5.2.2.2", "Cache-Control: max-age=60, stale-if-error=30, must-revalidate\n", "", 61, -1, false,
                    false, "must-revalidate", "must-revalidate"},
            {"5.2.2.8", "Cache-Control: max-age=60, stale-if-error=30, proxy-revalidate\n", "", 61, -1, false,
                    false, "must-revalidate", "must-revalidate"},
            {"5.2.2.10", "Cache-Control: s-maxage=60, stale-if-error=30\n", "", 61, -1, false, false,
                    "must-revalidate", "must-revalidate"},
            {"5.2.2.4", "Cache-Control: max-age=60, no-cache, stale-if-error=30\n", "", 1, -1, false, false,
                    "no-cache", "no-cache"},
            {"5.2.1.4", IF_ERROR, "Cache-Control: no-cache\n", 61, -1, false, false, "request-no-cache",
                    "request-no-cache"},
            {"4.2.4", "Cache-Control: max-age=60, must-revalidate\n", "Cache-Control: max-age=0\n", 30, -1,
                    true, true, "fresh", "fresh"},
            {"4.2.4", SIXTY, "Cache-Control: max-age=0\n", 30, -1, true, true, "fresh", "fresh"},
            {"squid max-stale", SIXTY, "", 70, 10, true, true, "refresh-max-stale", "refresh-max-stale"},
            {"squid max-stale", SIXTY, "", 71, 10, false, false, "refresh-max-stale", "refresh-max-stale"},
            {"squid max-stale", IF_ERROR, "", 71, 10, false, false, "refresh-max-stale", "refresh-max-stale"},
            {"squid max-stale", "Cache-Control: s-maxage=60\n", "", 61, 10, false, false, "must-revalidate",
                    "must-revalidate"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct text_head text;
        struct freshness freshness;
        struct cache_control request;
        struct refresh_rule rule = rule_of(0, 20, 1000);
        const char *error_reason = "", *disconnected_reason = "";
        rule.max_stale_s = rows[i].max_stale_s;
        read_response(&freshness, 200, rows[i].response, 0);
        cache_control_parse(text_request(&text, "GET", rows[i].request), &request);
        struct refresh_rule *used = rows[i].max_stale_s >= 0 ? &rule : NULL;
        struct moment now = at(rows[i].after_s);
        bool on_error = freshness_on_error(&freshness, &request, used, now, FRESHNESS_ERROR, &error_reason);
        bool on_disconnection = freshness_on_error(
                &freshness, &request, used, now, FRESHNESS_DISCONNECTED, &disconnected_reason);
        if (on_error != rows[i].on_error || on_disconnection != rows[i].on_disconnection)
            printf("troubles row %zu [%s]: %s, %s\n", i, rows[i].section, error_reason, disconnected_reason);
        CU_ASSERT_EQUAL(on_error, rows[i].on_error);
        CU_ASSERT_EQUAL(on_disconnection, rows[i].on_disconnection);
        CU_ASSERT_STRING_EQUAL(error_reason, rows[i].error_reason);
        CU_ASSERT_STRING_EQUAL(disconnected_reason, rows[i].disconnected_reason);
    }
    for (int status = 100; status < 600; status++)
        CU_ASSERT_EQUAL(freshness_status_is_error(status),
                status == 500 || status == 502 || status == 503 || status == 504);
}

SUITE(cache_freshness, CASE(lifetimes), CASE(ages), CASE(uses), CASE(extensions), CASE(rule_lifetimes),
        CASE(rule_uses), CASE(troubles))
