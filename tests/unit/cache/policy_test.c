#include "cache/policy.h"
#include "cache/vary.h"
#include "tests/unit/cache/text.h"

#include <stdio.h>

#define NOW 784111777

static struct policy_verdict judge(
        const char *request_fields, int status, const char *fields, int64_t content_length, bool has_body) {
    struct text_head request, response;
    struct cache_response arrival = {.head = text_response(&response, status, fields),
            .content_length = content_length,
            .request_at = {NOW, NOW},
            .response_at = {NOW, NOW},
            .has_body = has_body};
    struct cache_control control;
    struct freshness freshness;
    char names[VARY_NAMES_BYTES];
    struct view vary;
    cache_control_parse(arrival.head, &control);
    freshness_of(&freshness, arrival.head, &control, (struct moment){NOW, NOW}, (struct moment){NOW, NOW});
    struct policy_limits limits = {10, 1000};
    return policy_storable(text_request(&request, "GET", request_fields), &arrival, &control, &freshness,
            vary_names(arrival.head, names, &vary), &limits);
}

static void responses(void) {
    static const struct {
        const char *request;
        int status;
        const char *fields;
        const char *reason; // "stored": it may be
    } rows[] = {
            {"", 200, "Cache-Control: max-age=60\n", "stored"},
            {"", 200, "ETag: \"a\"\n", "stored"},
            {"", 200, "Last-Modified: Sun, 06 Nov 1994 08:48:37 GMT\n", "stored"},
            {"", 200, "Last-Modified: yesterday\n", "no-lifetime"},
            {"", 200, "", "no-lifetime"},
            {"", 200, "Cache-Control: max-age=0\n", "no-lifetime"},
            {"", 200, "Cache-Control: max-age=0\nETag: \"a\"\n", "stored"},
            {"", 200, "Cache-Control: max-age=60\nAge: 60\n", "no-lifetime"},
            {"", 200, "Cache-Control: no-cache\n", "no-cache"},
            {"", 200, "Cache-Control: no-cache\nETag: \"a\"\n", "stored"},
            {"", 200, "Cache-Control: no-store, max-age=60\n", "no-store"},
            {"", 200, "Cache-Control: max-age=60\nCache-Control: no-store\n", "no-store"},
            {"", 200, "Cache-Control: private, max-age=60\n", "private"},
            {"", 200, "Cache-Control: private=\"x-user\", max-age=60\n", "stored"},
            {"", 206, "Cache-Control: max-age=60\n", "partial"},
            {"", 200, "Cache-Control: max-age=60\nContent-Range: bytes 0-4/10\n", "stored"},
            {"Range: bytes=0-4\n", 200, "Cache-Control: max-age=60\nContent-Range: bytes 0-4/10\n",
                    "partial"},
            {"", 304, "Cache-Control: max-age=60\n", "not-modified"},
            {"", 200, "Cache-Control: max-age=60\nVary: *\n", "vary-any"},
            {"", 200, "Cache-Control: max-age=60\nVary: Accept, *\n", "vary-any"},
            {"", 200, "Cache-Control: max-age=60\nVary: Accept\n", "stored"},
            {"", 200, "Cache-Control: max-age=60\nSet-Cookie: a=b\n", "stored"},
            {"", 200, "Cache-Control: max-age=60, public\nSet-Cookie: a=b\n", "stored"},
            {"", 200, "Cache-Control: s-maxage=60\nSet-Cookie: a=b\n", "stored"},
            {"", 302, "Location: /x\n", "status"},
            {"", 302, "Location: /x\nCache-Control: max-age=60\n", "stored"},
            {"", 500, "ETag: \"a\"\n", "status"},
            {"", 503, "Cache-Control: max-age=60\n", "stored"},
            {"", 404, "Cache-Control: max-age=60\n", "stored"},
            {"", 299, "Cache-Control: max-age=60\n", "stored"},
            {"", 299, "Cache-Control: max-age=60, must-understand\n", "not-understood"},
            {"", 200, "Cache-Control: max-age=60, must-understand\n", "stored"},
            {"Authorization: Basic eA==\n", 200, "Cache-Control: max-age=60\n", "authorization"},
            {"Authorization: Basic eA==\n", 200, "Cache-Control: max-age=60, public\n", "stored"},
            {"Authorization: Basic eA==\n", 200, "Cache-Control: s-maxage=60\n", "stored"},
            {"Authorization: Basic eA==\n", 200, "Cache-Control: max-age=60, must-revalidate\n", "stored"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct policy_verdict verdict = judge(rows[i].request, rows[i].status, rows[i].fields, 100, true);
        if (strcmp(verdict.reason, rows[i].reason))
            printf("responses row %zu: %s\n", i, verdict.reason);
        CU_ASSERT_STRING_EQUAL(verdict.reason, rows[i].reason);
        CU_ASSERT_EQUAL(verdict.is_storable, strcmp(rows[i].reason, "stored") == 0);
    }
}

static void sizes(void) {
    static const char fields[] = "Cache-Control: max-age=60\n";
    CU_ASSERT_STRING_EQUAL(judge("", 200, fields, 9, true).reason, "too-small");
    CU_ASSERT_STRING_EQUAL(judge("", 200, fields, 10, true).reason, "stored");
    CU_ASSERT_STRING_EQUAL(judge("", 200, fields, 1000, true).reason, "stored");
    CU_ASSERT_STRING_EQUAL(judge("", 200, fields, 1001, true).reason, "too-large");
    CU_ASSERT_STRING_EQUAL(judge("", 200, fields, -1, true).reason, "stored");
    CU_ASSERT_STRING_EQUAL(judge("", 204, fields, -1, false).reason, "too-small");
}

// What concerns one request alone must not keep the others from the store.
static void generality(void) {
    CU_ASSERT_TRUE(judge("", 200, "Cache-Control: no-store\n", 100, true).is_general);
    CU_ASSERT_TRUE(judge("", 200, "Cache-Control: max-age=60\n", 5000, true).is_general);
    CU_ASSERT_FALSE(judge("", 304, "", -1, false).is_general);
    CU_ASSERT_FALSE(
            judge("Authorization: Basic eA==\n", 200, "Cache-Control: max-age=60\n", 100, true).is_general);
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
            {"GET", "Host: a\n", "not-allowed", false},
            {"GET", "Host: a\nCache-Control: no-store\n", "no-store", true},
            {"GET", "Host: a\nCache-Control: no-cache\n", NULL, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
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

static void request_fields(void) {
    struct text_head text;
    struct cache_request request;
    const char *reason;
    policy_read_request(
            text_request(&text, "GET", "Pragma: no-cache\nRange: bytes=0-1\nIf-None-Match: \"a\"\n"), true,
            &request, &reason);
    CU_ASSERT_TRUE(request.control.no_cache && request.has_range && request.has_condition);
    CU_ASSERT_FALSE(request.has_authorization);
    policy_read_request(text_request(&text, "HEAD",
                                "Pragma: no-cache\nCache-Control: max-age=5\nAuthorization: Basic eA==\n"),
            true, &request, &reason);
    CU_ASSERT_FALSE(request.control.no_cache || request.has_range || request.has_condition || request.is_get);
    CU_ASSERT_TRUE(request.has_authorization);
    CU_ASSERT_FALSE(
            policy_read_request(text_request(&text, "GET", "If-Match: \"a\"\n"), true, &request, &reason));
    CU_ASSERT_STRING_EQUAL(reason, "for-the-origin");
    CU_ASSERT_FALSE(policy_read_request(
            text_request(&text, "GET", "If-Unmodified-Since: Sun, 06 Nov 1994 08:48:37 GMT\n"), true,
            &request, &reason));
}

SUITE(cache_policy, CASE(responses), CASE(sizes), CASE(generality), CASE(requests), CASE(request_fields))
