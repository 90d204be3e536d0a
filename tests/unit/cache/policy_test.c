#include "cache/policy.h"
#include "cache/vary.h"
#include "tests/unit/cache/text.h"

#include <stdio.h>

#define NOW 784111777
#define MODIFIED "Last-Modified: Sun, 06 Nov 1994 08:48:37 GMT\n"
#define SIXTY "Cache-Control: max-age=60\n"
#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

static const struct policy_limits limits = {10, 1000};

struct arrived {
    struct text_head request, response;
    struct cache_response arrival;
    struct cache_control control;
    struct freshness freshness;
    bool vary_is_known;
};

static void arrive(struct arrived *arrived, const char *request_fields, int status, const char *fields,
        const struct cache_rules *rules) {
    char names[VARY_NAMES_BYTES];
    struct view vary;
    struct moment now = {NOW, NOW};
    text_request(&arrived->request, "GET", request_fields);
    arrived->arrival = (struct cache_response){.head = text_response(&arrived->response, status, fields),
            .content_length = 100,
            .request_at = now,
            .response_at = now,
            .rules = rules,
            .has_body = true};
    cache_control_parse(arrived->arrival.head, &arrived->control);
    freshness_of(&arrived->freshness, arrived->arrival.head, &arrived->control, now, now);
    arrived->vary_is_known = vary_names(arrived->arrival.head, names, &vary);
}

static struct policy_verdict judge(const struct arrived *arrived) {
    return policy_storable(&arrived->request.head, &arrived->arrival, &arrived->control, &arrived->freshness,
            arrived->vary_is_known, &limits);
}

struct storing {
    const char *section, *request;
    int status;
    const char *fields;
    const char *reason; // "stored", or an option's word: it may be
};

static void check_storing(
        const char *name, const struct storing *rows, size_t count, const struct cache_rules *rules) {
    for (size_t i = 0; i < count; i++) {
        struct arrived arrived;
        arrive(&arrived, rows[i].request, rows[i].status, rows[i].fields, rules);
        struct policy_verdict verdict = judge(&arrived);
        bool is_storable =
                strcmp(rows[i].reason, "stored") == 0 || rules_option(rows[i].reason) != REFRESH_OPTION_COUNT;
        if (strcmp(verdict.reason, rows[i].reason) != 0)
            printf("%s row %zu [%s]: %s\n%s", name, i, rows[i].section, verdict.reason, rows[i].fields);
        CU_ASSERT_STRING_EQUAL(verdict.reason, rows[i].reason);
        CU_ASSERT_EQUAL(verdict.is_storable, is_storable);
    }
}

#define BASIC "Authorization: Basic eA==\n"

static void responses(void) {
    static const struct storing rows[] = {
            {"3", "", 200, SIXTY, "stored"},
            {"3", "", 200, "Cache-Control: s-maxage=60\n", "stored"},
            {"3", "", 200, "Expires: Sun, 06 Nov 1994 09:48:37 GMT\n", "stored"},
            {"3", "", 200, "ETag: \"a\"\n", "stored"},
            {"3", "", 200, MODIFIED, "stored"},
            {"4.3.1", "", 200, "Last-Modified: yesterday\n", "no-lifetime"},
            {"3", "", 200, "", "no-lifetime"},
            {"3", "", 200, "Cache-Control: public\n", "no-lifetime"},
            {"4.2.1", "", 200, "Cache-Control: max-age=0\n", "no-lifetime"},
            {"4.2.1", "", 200, "Cache-Control: max-age=x\n", "no-lifetime"},
            {"4.2.1", "", 200, "Cache-Control: max-age=0\nETag: \"a\"\n", "stored"},
            {"4.2.1", "", 200, "Expires: 0\n" MODIFIED, "stored"},
            {"4.2.3", "", 200, SIXTY "Age: 59\n", "stored"},
            {"4.2.4", "", 200, SIXTY "Age: 60\n", "stored"}, // for max-stale, and for a lost origin
            {"5.2.2.2", "", 200, "Cache-Control: max-age=60, must-revalidate\nAge: 60\n", "no-lifetime"},
            {"5861 3", "", 200, "Cache-Control: max-age=0, stale-while-revalidate=60\n", "stored"},
            {"5861 4", "", 200, "Cache-Control: max-age=0, stale-if-error=60\n", "stored"},
            {"4.2.4", "", 200, "Cache-Control: s-maxage=0, stale-while-revalidate=60\n", "no-lifetime"},
            {"5.2.2.4", "", 200, "Cache-Control: no-cache\n", "no-cache"},
            {"5.2.2.4", "", 200, "Cache-Control: no-cache, max-age=60\n", "no-cache"},
            {"5.2.2.4", "", 200, "Cache-Control: no-cache\nETag: \"a\"\n", "stored"},
            {"5.2.2.4", "", 200, "Cache-Control: no-cache=\"x\", max-age=60\n", "stored"},
            {"5.2.2.5", "", 200, "Cache-Control: no-store, max-age=60\n", "no-store"},
            {"5.2.2.5", "", 200, "Cache-Control: No-Store, max-age=60\n", "no-store"},
            {"5.2.2.5", "", 200, "Cache-Control: max-age=60, no-store\n", "no-store"},
            {"5.2.2.5", "", 200, SIXTY "Cache-Control: no-store\n", "no-store"},
            {"5.2.2.5", "", 200, "Cache-Control: no-store=x, max-age=60\n", "no-store"},
            {"5.2.2.5", "", 200, "Cache-Control: x=\"no-store\", max-age=60\n", "stored"},
            {"5.2.2.5", "", 200, "Cache-Control: no-store, public, max-age=60\n", "no-store"},
            {"5.2.2.7", "", 200, "Cache-Control: private, max-age=60\n", "private"},
            {"5.2.2.7", "", 200, "Cache-Control: PRIVATE, s-maxage=60\n", "private"},
            {"5.2.2.7", "", 200, "Cache-Control: private, public, max-age=60\n", "private"},
            {"5.2.2.7", "", 200, "Cache-Control: private=\"x-user\", max-age=60\n", "stored"},
            {"5.2.2.7", "", 200, "Cache-Control: private=x-user, max-age=60\n", "stored"},
            {"5.2.2.7", "", 200, "Cache-Control: private=\"\", max-age=60\n", "private"},
            {"5.2.2.7", "", 200, "Cache-Control: private=\"x user\", max-age=60\n", "private"},
            {"5.2.2.7", "", 200, "Cache-Control: private=\"x-user, max-age=60\n", "private"},
            {"5.2.2.7", "", 200, "Cache-Control: private=\"x\", private, max-age=60\n", "private"},
            // which statuses
            {"3", "", 201, SIXTY, "stored"},
            {"3", "", 203, SIXTY, "stored"},
            {"3", "", 299, SIXTY, "stored"},
            {"3", "", 301, SIXTY, "stored"},
            {"3", "", 302, SIXTY, "stored"},
            {"3", "", 307, SIXTY, "stored"},
            {"3", "", 400, SIXTY, "stored"},
            {"3", "", 404, SIXTY, "stored"},
            {"3", "", 499, SIXTY, "stored"},
            {"3", "", 500, SIXTY, "stored"},
            {"3", "", 502, SIXTY, "stored"},
            {"3", "", 503, SIXTY, "stored"},
            {"3", "", 504, SIXTY, "stored"},
            {"3", "", 599, SIXTY, "stored"},
            {"9110 15", "", 600, SIXTY, "status"},
            {"9110 15.1", "", 302, "Location: /x\n", "status"},
            {"9110 15.1", "", 302, MODIFIED, "status"},
            {"9110 15.1", "", 500, "ETag: \"a\"\n", "status"},
            {"9110 15.1", "", 404, MODIFIED, "stored"},
            {"5.2.2.9", "", 500, "ETag: \"a\"\nCache-Control: public\n", "stored"},
            {"6585 3", "", 428, SIXTY, "status"},
            {"6585 4", "", 429, SIXTY, "status"},
            {"6585 5", "", 431, SIXTY, "status"},
            {"6585 6", "", 511, SIXTY, "status"},
            {"4.3.4", "", 304, SIXTY, "not-modified"},
            {"3.3", "", 206, SIXTY, "partial"},
            {"9110 14.4", "", 200, SIXTY "Content-Range: bytes 0-4/10\n", "stored"},
            {"9110 14.4", "Range: bytes=0-4\n", 200, SIXTY "Content-Range: bytes 0-4/10\n", "partial"},
            {"9110 14.2", "Range: bytes=0-4\n", 200, SIXTY, "stored"},
            {"9110 15.5.17", "Range: bytes=90-\n", 416, SIXTY, "partial"},
            {"9110 15.5.17", "", 416, SIXTY, "stored"},
            {"9110 15.5.13", "If-None-Match: \"a\"\n", 412, SIXTY, "partial"},
            // must-understand
            {"5.2.2.3", "", 200, "Cache-Control: max-age=60, must-understand\n", "stored"},
            {"5.2.2.3", "", 200, "Cache-Control: max-age=60, must-understand, no-store\n", "stored"},
            {"5.2.2.3", "", 404, "Cache-Control: no-store, Must-Understand, max-age=60\n", "stored"},
            {"5.2.2.3", "", 503, "Cache-Control: max-age=60, must-understand, no-store\n", "stored"},
            {"5.2.2.3", "", 299, "Cache-Control: max-age=60, must-understand\n", "not-understood"},
            {"5.2.2.3", "", 299, "Cache-Control: max-age=60, must-understand, no-store\n", "not-understood"},
            {"5.2.2.3", "", 599, "Cache-Control: max-age=60, must-understand\n", "not-understood"},
            {"5.2.2.3", "", 200, "Cache-Control: max-age=60, must-understand, private\n", "private"},
            // Vary
            {"4.1", "", 200, SIXTY "Vary: *\n", "vary-any"},
            {"4.1", "", 200, SIXTY "Vary: Accept, *\n", "vary-any"},
            {"4.1", "", 200, SIXTY "Vary: *, Accept\n", "vary-any"},
            {"4.1", "", 200, SIXTY "Vary: , *\n", "vary-any"},
            {"4.1", "", 200, SIXTY "Vary: Accept\nVary: *\n", "vary-any"},
            {"4.1", "", 200, SIXTY "Vary: Accept\n", "stored"},
            // cookies
            {"7.3", "", 200, SIXTY "Set-Cookie: a=b\n", "stored"},
            {"7.3", "", 200, "Cache-Control: s-maxage=60\nSet-Cookie: a=b\n", "stored"},
            {"7.3", "", 200, "Cache-Control: public\n" MODIFIED "Set-Cookie: a=b\n", "stored"},
            {"7.3", "", 200, MODIFIED "Set-Cookie: a=b\n", "set-cookie"},
            {"7.3", "", 200, "Expires: Sun, 06 Nov 1994 09:48:37 GMT\nSet-Cookie: a=b\n", "set-cookie"},
            {"7.3", "", 200, "Cache-Control: max-age=x\nETag: \"a\"\nSet-Cookie: a=b\n", "set-cookie"},
            {"5.2.2.4", "", 200, "Cache-Control: no-cache=\"Set-Cookie\"\n" MODIFIED "Set-Cookie: a=b\n",
                    "stored"},
            {"5.2.2.7", "", 200, "Cache-Control: private=set-cookie\n" MODIFIED "Set-Cookie: a=b\n",
                    "stored"},
            // credentials
            {"3.5", BASIC, 200, SIXTY, "authorization"},
            {"3.5", BASIC, 200, "Cache-Control: max-age=60, public\n", "stored"},
            {"3.5", BASIC, 200, "Cache-Control: s-maxage=60\n", "stored"},
            {"3.5", BASIC, 200, "Cache-Control: s-maxage=x\nETag: \"a\"\n", "authorization"},
            {"3.5", BASIC, 200, "Cache-Control: max-age=60, must-revalidate\n", "stored"},
            {"3.5", BASIC, 200, "Cache-Control: max-age=60, proxy-revalidate\n", "authorization"},
            {"3.5", BASIC, 200, "Cache-Control: max-age=60, private\n", "private"},
            {"3.5", "Proxy-Authorization: Basic eA==\n", 200, SIXTY, "stored"},
    };
    check_storing("responses", rows, COUNT(rows), NULL);
}

static void options(void) {
    static const struct storing none[] = {
            {"", "", 200, "Cache-Control: no-store, max-age=60\n", "no-store"},
            {"", "", 200, "Cache-Control: private, max-age=60\n", "private"},
            {"", "", 200, "", "no-lifetime"},
            {"", "", 302, "", "status"},
    };
    struct refresh_rule rule = {.max_s = 1000, .max_stale_s = -1, .reload_s = -1, .expire_s = -1};
    rule.redirect_s = -1;
    struct cache_rules rules = {.refresh = &rule};
    check_storing("no option", none, COUNT(none), &rules);

    static const struct storing all[] = {
            {"", "", 200, "Cache-Control: no-store, max-age=60\n", "ignore-no-store"},
            {"", "", 200, "Cache-Control: private, max-age=60\n", "ignore-private"},
            {"", "", 200, "", "store-stale"},
            {"", "", 200, "Cache-Control: max-age=0\n", "store-stale"},
            {"", "", 200, "Cache-Control: no-cache\n", "no-cache"},
            {"", "", 302, "", "status"},
            {"", "", 200, SIXTY, "stored"},
            {"", BASIC, 200, "Cache-Control: private, max-age=60\n", "authorization"},
    };
    rule.options[REFRESH_OPTION_ignore_no_store] = rule.options[REFRESH_OPTION_ignore_private] =
            rule.options[REFRESH_OPTION_store_stale] = true;
    check_storing("all options", all, COUNT(all), &rules);

    static const struct storing lifetimes[] = {
            {"", "", 200, "", "stored"}, // MIN
            {"", "", 302, "", "stored"}, // Smart Cache's REDIRECT
            {"", "", 302, "Set-Cookie: a=b\n", "set-cookie"},
            {"", "", 500, "", "status"},
    };
    rule = (struct refresh_rule){.min_s = 60, .max_s = 1000, .max_stale_s = -1, .redirect_s = 60};
    check_storing("lifetimes", lifetimes, COUNT(lifetimes), &rules);
}

static void cookies(void) {
    static const struct {
        enum store_cookies cookies;
        const char *control;
        bool is_storable;
    } rows[] = {
            {STORE_COOKIES_EXPLICIT, "public, max-age=60", true},
            {STORE_COOKIES_EXPLICIT, "s-maxage=60", true}, {STORE_COOKIES_EXPLICIT, "max-age=60", true},
            {STORE_COOKIES_SHARED, "public, max-age=60", true}, {STORE_COOKIES_SHARED, "s-maxage=60", true},
            {STORE_COOKIES_SHARED, "max-age=60", false}, {STORE_COOKIES_OFF, "public, max-age=60", false},
            {STORE_COOKIES_OFF, "s-maxage=60", false},
            {STORE_COOKIES_OFF, "max-age=60, private=\"Set-Cookie\"", true}, // it is left out
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char fields[128];
        struct arrived arrived;
        struct cache_rules rules = {.cookies = rows[i].cookies};
        snprintf(fields, sizeof fields, "Cache-Control: %s\nSet-Cookie: a=b\n", rows[i].control);
        arrive(&arrived, "", 200, fields, &rules);
        CU_ASSERT_EQUAL(judge(&arrived).is_storable, rows[i].is_storable);
    }
}

static void response_rules(void) {
    static const struct response_rule list[] = {
            {VIEW("image/png"), 0, true},
            {VIEW("image/"), 0, false},
            {VIEW(""), 404, false},
            {VIEW("text/html"), 200, false},
    };
    static const struct storing rows[] = {
            {"", "", 200, SIXTY "Content-Type: image/png\n", "stored"},
            {"", "", 200, SIXTY "Content-Type: Image/PNG ; x=y\n", "stored"},
            {"", "", 404, SIXTY "Content-Type: image/png\n", "stored"}, // the first that matches
            {"", "", 200, SIXTY "Content-Type: image/gif\n", "response-rule"},
            {"", "", 200, SIXTY "Content-Type: images/gif\n", "stored"},
            {"", "", 404, SIXTY, "response-rule"},
            {"", "", 404, SIXTY "Content-Type: text/html\n", "response-rule"},
            {"", "", 200, SIXTY "Content-Type: text/html; charset=utf-8\n", "response-rule"},
            {"", "", 301, SIXTY "Content-Type: text/html\n", "stored"},
            {"", "", 200, SIXTY "Content-Type: text/html5\n", "stored"},
            {"", "", 200, SIXTY, "stored"},
    };
    struct cache_rules rules = {.responses = list, .response_count = COUNT(list)};
    check_storing("response_rules", rows, COUNT(rows), &rules);
}

static const char *judge_size(int status, int64_t content_length, bool has_body) {
    struct arrived arrived;
    arrive(&arrived, "", status, SIXTY, NULL);
    arrived.arrival.content_length = content_length;
    arrived.arrival.has_body = has_body;
    return judge(&arrived).reason;
}

static void sizes(void) {
    CU_ASSERT_STRING_EQUAL(judge_size(200, 9, true), "too-small");
    CU_ASSERT_STRING_EQUAL(judge_size(200, 10, true), "stored");
    CU_ASSERT_STRING_EQUAL(judge_size(200, 1000, true), "stored");
    CU_ASSERT_STRING_EQUAL(judge_size(200, 1001, true), "too-large");
    CU_ASSERT_STRING_EQUAL(judge_size(200, -1, true), "stored");
    CU_ASSERT_STRING_EQUAL(judge_size(204, -1, false), "too-small");
}

static bool is_general(const char *request, int status, const char *fields) {
    struct arrived arrived;
    arrive(&arrived, request, status, fields, NULL);
    CU_ASSERT_FALSE(judge(&arrived).is_storable);
    return judge(&arrived).is_general;
}

// What concerns one request alone must not keep the others from the store.
static void generality(void) {
    CU_ASSERT_TRUE(is_general("", 200, "Cache-Control: no-store\n"));
    CU_ASSERT_TRUE(is_general("", 200, ""));
    CU_ASSERT_FALSE(is_general("", 304, ""));
    CU_ASSERT_FALSE(is_general(BASIC, 200, SIXTY));
    CU_ASSERT_FALSE(is_general("Range: bytes=5-\n", 416, SIXTY));
    CU_ASSERT_FALSE(is_general("If-None-Match: \"a\"\n", 412, SIXTY));
}

// [RFC 9110 §9.3.3]
static void posts(void) {
    static const struct {
        const char *fields;
        bool is_for_target;
    } rows[] = {
            {SIXTY "Content-Location: /a?b\n", true},
            {SIXTY "Content-Location: http://host.example/a?b\n", true},
            {SIXTY "Content-Location: HTTP://HOST.example:80/a?b\n", true},
            {SIXTY "Content-Location: //host.example/a?b\n", true},
            {"Expires: Sun, 06 Nov 1994 09:48:37 GMT\nContent-Location: /a?b\n", true},
            {SIXTY, false},
            {"Content-Location: /a?b\n" MODIFIED, false},
            {"Cache-Control: public\nContent-Location: /a?b\n" MODIFIED, false},
            {"Cache-Control: max-age=0\nContent-Location: /a?b\n", false},
            {SIXTY "Content-Location: /a\n", false},
            {SIXTY "Content-Location: /A?b\n", false},
            {SIXTY "Content-Location: /a?b#c\n", false},
            {SIXTY "Content-Location: a?b\n", true},
            {SIXTY "Content-Location: ?b\n", true},
            {SIXTY "Content-Location:\n", false},
            {SIXTY "Content-Location: https://host.example/a?b\n", false},
            {SIXTY "Content-Location: http:/a?b\n", false},
            {SIXTY "Content-Location: http://host.example:81/a?b\n", false},
            {SIXTY "Content-Location: http://other.example/a?b\n", false},
            {SIXTY "Content-Location: http://x@host.example/a?b\n", false},
            {SIXTY "Content-Location: http://host.example\n", false},
            {SIXTY "Content-Location: /a?b\nContent-Location: /a?b\n", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arrived arrived;
        arrive(&arrived, "", 200, rows[i].fields, NULL);
        bool is_for_target =
                policy_post(arrived.arrival.head, &arrived.freshness, VIEW("host.example"), VIEW("/a?b"));
        if (is_for_target != rows[i].is_for_target)
            printf("posts row %zu: %d\n%s", i, is_for_target, rows[i].fields);
        CU_ASSERT_EQUAL(is_for_target, rows[i].is_for_target);
    }
}

// [RFC 9111 §4.3.3]
static void keeping(void) {
    static const struct {
        int status;
        const char *fields;
        bool is_kept;
    } rows[] = {{500, "", true}, {502, "", true}, {503, "Retry-After: 5\n", true}, {504, "", true},
            {599, "", true}, {408, "", true}, {425, "", true}, {429, "", true}, {503, SIXTY, false},
            {503, "Cache-Control: max-age=0\n", false}, {503, "Expires: 0\n", false}, {404, "", false},
            {410, "", false}, {200, "", false}, {403, "", false}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arrived arrived;
        arrive(&arrived, "", rows[i].status, rows[i].fields, NULL);
        CU_ASSERT_EQUAL(policy_keeps_stored(rows[i].status, &arrived.freshness), rows[i].is_kept);
    }
}

static void requests(void) {
    static const struct {
        const char *method, *fields, *reason; // NULL: looked up
        bool store_allowed;
    } rows[] = {
            {"GET", "Host: a\n", NULL, true},
            {"HEAD", "Host: a\n", NULL, true},
            {"POST", "Host: a\n", "method", true},
            {"OPTIONS", "Host: a\n", "method", true},
            {"BREW", "Host: a\n", "method", true},
            {"get", "Host: a\n", "method", true},
            {"GET", "Host: a\n", "not-allowed", false},
            {"GET", "Host: a\nCache-Control: no-store\n", NULL, true}, // what is there may answer it
            {"GET", "Host: a\nCache-Control: no-cache\n", NULL, true},
            {"GET", "Host: a\nCache-Control: foo=\"no-store\"\n", NULL, true},
            {"GET", "If-Match: \"a\"\n", "for-the-origin", true},
            {"GET", "If-Unmodified-Since: Sun, 06 Nov 1994 08:48:37 GMT\n", "for-the-origin", true},
            {"GET", "If-None-Match: \"a\"\n", NULL, true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct text_head text;
        struct cache_request request;
        const char *reason = NULL;
        bool looked_up = policy_read_request(text_request(&text, rows[i].method, rows[i].fields),
                rows[i].store_allowed, &request, &reason);
        CU_ASSERT_EQUAL(looked_up, rows[i].reason == NULL);
        if (rows[i].reason)
            CU_ASSERT_STRING_EQUAL(reason, rows[i].reason);
    }
}

// [RFC 9111 §5.4]
static void pragma(void) {
    static const struct {
        const char *fields;
        bool no_cache;
    } rows[] = {{"Pragma: no-cache\n", true}, {"Pragma: No-Cache\n", true}, {"Pragma: foo, no-cache\n", true},
            {"Pragma: foo\n", false}, {"Pragma: foo=\"no-cache\"\n", false}, {"", false},
            {"Pragma: no-cache\nCache-Control: max-age=5\n", false},
            {"Pragma: no-cache\nCache-Control: foo\n", false}, {"Pragma: no-cache\nCache-Control:\n", false},
            {"Pragma: no-cache\nCache-Control: no-cache\n", true}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct text_head text;
        struct cache_request request;
        const char *reason;
        CU_ASSERT_TRUE(
                policy_read_request(text_request(&text, "GET", rows[i].fields), true, &request, &reason));
        CU_ASSERT_EQUAL(request.control.no_cache, rows[i].no_cache);
    }
}

static void request_fields(void) {
    struct text_head text;
    struct cache_request request;
    const char *reason;
    policy_read_request(
            text_request(&text, "GET", "Range: bytes=0-1\nIf-None-Match: \"a\"\n"), true, &request, &reason);
    CU_ASSERT_TRUE(request.is_get && request.has_range && request.has_condition);
    CU_ASSERT_FALSE(request.has_authorization || request.has_modified_since);
    policy_read_request(text_request(&text, "HEAD", "If-Modified-Since: x\n" BASIC), true, &request, &reason);
    CU_ASSERT_FALSE(request.has_range || request.is_get);
    CU_ASSERT_TRUE(request.has_authorization && request.has_modified_since && request.has_condition);
}

static void refresh_ims(void) {
    struct arrived arrived;
    struct cache_request request;
    struct refresh_rule rule = {.max_stale_s = -1, .reload_s = -1, .expire_s = -1, .redirect_s = -1};
    struct moment now = {NOW + 30, NOW + 30};
    const char *reason;
    arrive(&arrived, "If-Modified-Since: Sun, 06 Nov 1994 08:48:37 GMT\n", 200, SIXTY, NULL);
    policy_read_request(&arrived.request.head, true, &request, &reason);
    CU_ASSERT_EQUAL(policy_use(&request, &arrived.freshness, NULL, now, &reason), USE_FRESH);
    CU_ASSERT_EQUAL(policy_use(&request, &arrived.freshness, &rule, now, &reason), USE_FRESH);
    rule.options[REFRESH_OPTION_refresh_ims] = true;
    CU_ASSERT_EQUAL(policy_use(&request, &arrived.freshness, &rule, now, &reason), USE_NOT);
    CU_ASSERT_STRING_EQUAL(reason, "refresh-ims");
    request.has_modified_since = false;
    CU_ASSERT_EQUAL(policy_use(&request, &arrived.freshness, &rule, now, &reason), USE_FRESH);
    CU_ASSERT_STRING_EQUAL(reason, "fresh");
}

static void words(void) {
    for (unsigned option = 0; option < REFRESH_OPTION_COUNT; option++)
        CU_ASSERT_EQUAL(rules_option(rules_option_word((enum refresh_option)option)), option);
    CU_ASSERT_EQUAL(rules_option("fresh"), REFRESH_OPTION_COUNT);
    CU_ASSERT_EQUAL(rules_option(""), REFRESH_OPTION_COUNT);
}

SUITE(cache_policy, CASE(responses), CASE(options), CASE(cookies), CASE(response_rules), CASE(sizes),
        CASE(generality), CASE(posts), CASE(keeping), CASE(requests), CASE(pragma), CASE(request_fields),
        CASE(refresh_ims), CASE(words))
