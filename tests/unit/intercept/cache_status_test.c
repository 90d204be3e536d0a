#include "intercept/cache_status.h"

#include "tests/unit/unit.h"

#include <string.h>

#define KEY "; key=\"192.0.2.1:80\""

struct row {
    enum lookup lookup;
    enum cache_source source;
    const char *asked, *reason;
    bool is_stored;
    int origin_status;
    bool has_ttl;
    int64_t ttl_s;
    const char *member;
};

static const struct row rows[] = {
        // [RFC 9211 §2.1]: satisfied without going forward
        {LOOKUP_HIT, SOURCE_STORED, "fresh", "fresh", false, 0, true, 55, "weir; hit; ttl=55" KEY},
        {LOOKUP_HIT, SOURCE_STALE, "max-stale", "max-stale", false, 0, true, -5,
                "weir; hit; ttl=-5" KEY "; detail=max-stale"},
        {LOOKUP_HIT, SOURCE_STALE, "offline", "offline", false, 0, true, -86400,
                "weir; hit; ttl=-86400" KEY "; detail=offline"},
        // the background fetch is another request's matter: this one is a hit
        {LOOKUP_HIT, SOURCE_STALE, "stale-while-revalidate", "stale-while-revalidate", true, 200, true, -1,
                "weir; hit; ttl=-1" KEY "; detail=stale-while-revalidate"},
        // [§2.2]: each way forward
        {LOOKUP_MISS, SOURCE_ORIGIN, "absent", "stored", true, 200, true, 60,
                "weir; fwd=uri-miss; fwd-status=200; stored; ttl=60" KEY},
        {LOOKUP_MISS, SOURCE_ORIGIN, "absent", "private", false, 200, false, 0,
                "weir; fwd=uri-miss; fwd-status=200" KEY "; detail=private"},
        {LOOKUP_MISS, SOURCE_ORIGIN, "variant", "stored", true, 200, true, 60,
                "weir; fwd=vary-miss; fwd-status=200; stored; ttl=60" KEY},
        {LOOKUP_MISS, SOURCE_ORIGIN, "expired", "stored", true, 200, true, 9,
                "weir; fwd=stale; fwd-status=200; stored; ttl=9" KEY},
        {LOOKUP_MISS, SOURCE_ORIGIN, "no-cache", "stored", true, 200, true, 9,
                "weir; fwd=stale; fwd-status=200; stored; ttl=9" KEY "; detail=no-cache"},
        {LOOKUP_STALE, SOURCE_ORIGIN, "expired", "stored", true, 200, true, 9,
                "weir; fwd=stale; fwd-status=200; stored; ttl=9" KEY},
        {LOOKUP_STALE, SOURCE_ORIGIN, "expired", "no-store", false, 200, false, 0,
                "weir; fwd=stale; fwd-status=200" KEY "; detail=no-store"},
        {LOOKUP_STALE, SOURCE_ORIGIN, "expired", "trouble", false, 503, false, 0,
                "weir; fwd=stale; fwd-status=503" KEY "; detail=trouble"},
        {LOOKUP_STALE, SOURCE_ORIGIN, "request-no-cache", "stored", true, 200, true, 9,
                "weir; fwd=request; fwd-status=200; stored; ttl=9" KEY "; detail=request-no-cache"},
        {LOOKUP_STALE, SOURCE_ORIGIN, "request-max-age", "stored", true, 200, true, 9,
                "weir; fwd=request; fwd-status=200; stored; ttl=9" KEY "; detail=request-max-age"},
        {LOOKUP_PASS, SOURCE_ORIGIN, "method", "method", false, 201, false, 0,
                "weir; fwd=method; fwd-status=201"},
        {LOOKUP_PASS, SOURCE_ORIGIN, "method", "method", true, 200, true, 60,
                "weir; fwd=method; fwd-status=200; stored; ttl=60"},
        {LOOKUP_PASS, SOURCE_ORIGIN, "not-allowed", "not-allowed", false, 200, false, 0,
                "weir; fwd=bypass; fwd-status=200; detail=not-allowed"},
        {LOOKUP_PASS, SOURCE_ORIGIN, "no-store", "no-store", false, 200, false, 0,
                "weir; fwd=bypass; fwd-status=200; detail=no-store"},
        {LOOKUP_PASS, SOURCE_ORIGIN, "for-the-origin", "for-the-origin", false, 412, false, 0,
                "weir; fwd=bypass; fwd-status=412; detail=for-the-origin"},
        {LOOKUP_PASS, SOURCE_ORIGIN, "range-passed", "range-passed", false, 206, false, 0,
                "weir; fwd=partial; fwd-status=206" KEY "; detail=range-passed"},
        {LOOKUP_PASS, SOURCE_ORIGIN, "head", "head", false, 200, false, 0,
                "weir; fwd=miss; fwd-status=200" KEY "; detail=head"},
        // a word that the table does not have is still a miss
        {LOOKUP_PASS, SOURCE_ORIGIN, "unheard-of", "unheard-of", false, 200, false, 0,
                "weir; fwd=miss; fwd-status=200" KEY "; detail=unheard-of"},
        // [§2.3]: the origin's status is not the one sent
        {LOOKUP_STALE, SOURCE_CONFIRMED, "expired", "confirmed", false, 304, true, 60,
                "weir; fwd=stale; fwd-status=304; ttl=60" KEY},
        {LOOKUP_STALE, SOURCE_CONFIRMED, "request-no-cache", "confirmed", false, 304, true, 60,
                "weir; fwd=request; fwd-status=304; ttl=60" KEY "; detail=request-no-cache"},
        {LOOKUP_MISS, SOURCE_CONFIRMED, "variant", "confirmed", false, 304, true, 60,
                "weir; fwd=vary-miss; fwd-status=304; ttl=60" KEY},
        {LOOKUP_STALE, SOURCE_STALE, "expired", "stale-if-error", false, 503, true, -30,
                "weir; fwd=stale; fwd-status=503; ttl=-30" KEY "; detail=stale-if-error"},
        {LOOKUP_STALE, SOURCE_STALE, "request-max-age", "fresh", false, 0, true, 30,
                "weir; fwd=request; ttl=30" KEY "; detail=request-max-age"},
        {LOOKUP_STALE, SOURCE_STALE, "expired", "disconnected", false, 0, true, -30,
                "weir; fwd=stale; ttl=-30" KEY "; detail=disconnected"},
        // [§2.6]: without a request of its own
        {LOOKUP_JOIN, SOURCE_ORIGIN, "awaited", "awaited", false, 0, true, 60,
                "weir; fwd=miss; collapsed; ttl=60" KEY "; detail=awaited"},
        {LOOKUP_JOIN, SOURCE_ORIGIN, "arriving", "arriving", false, 0, true, 60,
                "weir; fwd=miss; collapsed; ttl=60" KEY "; detail=arriving"},
        {LOOKUP_JOIN, SOURCE_CONFIRMED, "awaited", "confirmed", false, 0, true, 60,
                "weir; fwd=stale; collapsed; ttl=60" KEY "; detail=awaited"},
        {LOOKUP_JOIN, SOURCE_STALE, "awaited", "stale-if-error", false, 0, true, -2,
                "weir; fwd=stale; collapsed; ttl=-2" KEY "; detail=stale-if-error"},
        // [RFC 8941 §3.3.1]: the largest integers there are
        {LOOKUP_HIT, SOURCE_STORED, "fresh", "fresh", false, 0, true, INT64_MAX,
                "weir; hit; ttl=999999999999999" KEY},
        {LOOKUP_HIT, SOURCE_STALE, "offline", "offline", false, 0, true, INT64_MIN,
                "weir; hit; ttl=-999999999999999" KEY "; detail=offline"},
};

static void every_combination(void) {
    struct endpoint destination = {.port = 80};
    CU_ASSERT_TRUE_FATAL(address_parse(VIEW("192.0.2.1"), &destination.address));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        struct cache_status status = {.lookup = row->lookup,
                .source = row->source,
                .asked = row->asked,
                .reason = row->reason,
                .is_stored = row->is_stored,
                .origin_status = row->origin_status,
                .has_ttl = row->has_ttl,
                .ttl_s = row->ttl_s,
                .destination = &destination};
        char bytes[CACHE_STATUS_BYTES + 1];
        bytes[cache_status_compose(&status, bytes)] = '\0';
        CU_ASSERT_STRING_EQUAL(bytes, row->member);
        CU_ASSERT_TRUE((strstr(bytes, "; hit") != NULL) != (strstr(bytes, "; fwd=") != NULL)); // [§2.2]
    }
}

static void the_longest_fits(void) {
    struct endpoint destination = {.port = 65535, .scope = UINT32_MAX};
    CU_ASSERT_TRUE_FATAL(
            address_parse(VIEW("fe80:1111:2222:3333:4444:5555:6666:7777"), &destination.address));
    struct cache_status status = {.lookup = LOOKUP_STALE,
            .source = SOURCE_STALE,
            .asked = "expired",
            .reason = "a-word-of-sixty-four-bytes-abcdefghijklmnopqrstuvwxyz-0123456789",
            .is_stored = true,
            .origin_status = 599,
            .has_ttl = true,
            .ttl_s = INT64_MIN,
            .destination = &destination};
    char bytes[CACHE_STATUS_BYTES];
    CU_ASSERT_EQUAL(strlen(status.reason), 64);
    CU_ASSERT_TRUE(cache_status_compose(&status, bytes) < CACHE_STATUS_BYTES);
}

SUITE(intercept_cache_status, CASE(every_combination), CASE(the_longest_fits))
