// What serves although it is past its lifetime: while it is refreshed, when the origin fails, when nothing
// may go out.
#include "cache/cache.h"
#include "tests/unit/cache/play.h"

#include <string.h>

#define FRESH "Cache-Control: max-age=60\n"
#define REFRESHED "Cache-Control: max-age=60, stale-while-revalidate=30\nETag: \"x\"\n"
#define EXCUSED "Cache-Control: max-age=60, stale-if-error=30\nETag: \"x\"\n"
#define HOST "Host: host\n"
#define NOW PLAY_NOW
#define LATER (NOW + 70)

static struct cache *cache;

static void begin(const char *fields) {
    struct cache_limits limits = {.memory_bytes = 1 << 20};
    cache = cache_new(&limits);
    play_store(cache, "/a", HOST, fields, 100, NOW);
}

static void expect_stored(struct play *play, enum cache_source source, const char *reason) {
    CU_ASSERT_EQUAL(play_head(play), READ_READY);
    CU_ASSERT_EQUAL(play->head.status, 200);
    CU_ASSERT_EQUAL(play->head.source, source);
    CU_ASSERT_STRING_EQUAL(play->head.reason, reason);
    CU_ASSERT_EQUAL(play->head.lifetime_s, 60);
    CU_ASSERT_EQUAL(play_read(play, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(play->received, 100);
}

// ---- [RFC 5861 §3] ----

static void refreshed_once(void) {
    struct play first, second, strict;
    begin(REFRESHED);
    CU_ASSERT_EQUAL(play_get(&first, cache, "/a", LATER), LOOKUP_HIT);
    CU_ASSERT_STRING_EQUAL(first.reason, "stale-while-revalidate");
    CU_ASSERT_PTR_NOT_NULL_FATAL(first.fill);
    CU_ASSERT_TRUE(view_equal(cache_fill_fields(first.fill), VIEW("If-None-Match: \"x\"\r\n")));
    CU_ASSERT_EQUAL(cache_fill_readers(first.fill), 0);
    CU_ASSERT_TRUE(cache_fill_stores(first.fill));
    expect_stored(&first, SOURCE_STALE, "stale-while-revalidate");
    CU_ASSERT_EQUAL(first.head.age_s, 70);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(play_get(&second, cache, "/a", LATER), LOOKUP_HIT);
        CU_ASSERT_STRING_EQUAL(second.reason, "stale-while-revalidate");
        CU_ASSERT_PTR_NULL(second.fill);
        expect_stored(&second, SOURCE_STALE, "stale-while-revalidate");
        play_end(&second);
    }
    // Who wants it confirmed waits for what is asked already.
    CU_ASSERT_EQUAL(
            play_begin(&strict, cache, "GET", "/a", HOST "Cache-Control: max-age=5\n", LATER), LOOKUP_JOIN);
    cache_reader_detach(&first.reader); // the client leaves
    CU_ASSERT_EQUAL(play_answer(&first, 304, REFRESHED, -1), FILL_NOT_MODIFIED);
    play_finish(&first);
    expect_stored(&strict, SOURCE_CONFIRMED, "confirmed");
    play_end(&strict);
    CU_ASSERT_EQUAL(play_get(&second, cache, "/a", LATER + 59), LOOKUP_HIT);
    expect_stored(&second, SOURCE_STORED, "fresh");
    CU_ASSERT_EQUAL(second.head.age_s, 59);
    play_end(&second);
    cache_free(cache);
}

static void refreshed_by_a_new_one(void) {
    struct play first, second;
    begin(REFRESHED);
    CU_ASSERT_EQUAL(play_get(&first, cache, "/a", LATER), LOOKUP_HIT);
    first.seed = 0;
    expect_stored(&first, SOURCE_STALE, "stale-while-revalidate");
    cache_reader_detach(&first.reader);
    first.seed = 1;
    CU_ASSERT_EQUAL(play_answer(&first, 200, REFRESHED, 50), FILL_STORE);
    CU_ASSERT_EQUAL(play_send(&first, 50), 50);
    play_finish(&first);
    CU_ASSERT_EQUAL(play_get(&second, cache, "/a", LATER), LOOKUP_HIT);
    CU_ASSERT_STRING_EQUAL(second.reason, "fresh");
    second.seed = 1;
    CU_ASSERT_EQUAL(play_read(&second, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(second.received, 50);
    play_end(&second);
    cache_free(cache);
}

// One that failed leaves nothing behind: the next request begins another.
static void refresh_that_fails(void) {
    struct play play;
    begin(REFRESHED);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(play_get(&play, cache, "/a", LATER), LOOKUP_HIT);
        CU_ASSERT_PTR_NOT_NULL_FATAL(play.fill);
        if (i == 0)
            cache_fill_fail(play.fill);
        else if (i == 1)
            play_abandon(&play);
        else
            CU_ASSERT_EQUAL(play_answer(&play, 503, "", 0), FILL_STREAM);
        if (i < 2)
            play.fill = NULL;
        expect_stored(&play, SOURCE_STALE, "stale-while-revalidate");
        play_end(&play);
    }
    CU_ASSERT_EQUAL(play_get(&play, cache, "/a", LATER), LOOKUP_HIT);
    CU_ASSERT_PTR_NOT_NULL(play.fill);
    play_end(&play);
    cache_free(cache);
}

static void refreshed_by_whom(void) {
    static const struct {
        const char *response, *method, *request;
        int64_t after_s;
        enum lookup lookup;
    } rows[] = {
            {REFRESHED, "GET", "", 89, LOOKUP_HIT},
            {REFRESHED, "GET", "", 91, LOOKUP_STALE},
            {REFRESHED, "HEAD", "", 70, LOOKUP_HIT},
            {REFRESHED, "GET", "Range: bytes=0-1\n", 70, LOOKUP_HIT},
            {REFRESHED, "GET", "If-None-Match: \"x\"\n", 70, LOOKUP_HIT},
            {REFRESHED, "GET", "Cache-Control: no-cache\n", 70, LOOKUP_STALE},
            {REFRESHED, "GET", "Cache-Control: max-age=65\n", 70, LOOKUP_STALE},
            {REFRESHED, "GET", "Cache-Control: min-fresh=1\n", 70, LOOKUP_STALE},
            {REFRESHED "Cache-Control: must-revalidate\n", "GET", "", 70, LOOKUP_STALE},
            {REFRESHED "Cache-Control: proxy-revalidate\n", "GET", "", 70, LOOKUP_STALE},
            {REFRESHED "Cache-Control: no-cache\n", "GET", "", 70, LOOKUP_STALE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char fields[256] = HOST;
        struct play play;
        begin(rows[i].response);
        enum lookup lookup = play_begin(
                &play, cache, rows[i].method, "/a", strcat(fields, rows[i].request), NOW + rows[i].after_s);
        CU_ASSERT_EQUAL(lookup, rows[i].lookup);
        CU_ASSERT_PTR_NOT_NULL(play.fill);
        if (play.fill && lookup == LOOKUP_HIT) // what refreshes is a plain GET, which the 304 is good for
            CU_ASSERT_EQUAL(play_answer(&play, 304, "ETag: \"x\"\n", -1), FILL_NOT_MODIFIED);
        play_end(&play);
        cache_free(cache);
    }
}

// Who takes a stale response anyway needs no refresh, and who wants the origin left alone gets none.
static void not_refreshed(void) {
    struct play play;
    begin(REFRESHED);
    CU_ASSERT_EQUAL(
            play_begin(&play, cache, "GET", "/a", HOST "Cache-Control: max-stale\n", LATER), LOOKUP_HIT);
    CU_ASSERT_STRING_EQUAL(play.reason, "max-stale");
    CU_ASSERT_PTR_NULL(play.fill);
    expect_stored(&play, SOURCE_STALE, "max-stale");
    play_end(&play);
    CU_ASSERT_EQUAL(
            play_begin(&play, cache, "GET", "/a", HOST "Cache-Control: only-if-cached, max-stale\n", LATER),
            LOOKUP_HIT);
    CU_ASSERT_PTR_NULL(play.fill);
    play_end(&play);
    CU_ASSERT_EQUAL(play_begin(&play, cache, "GET", "/a", HOST "Cache-Control: only-if-cached\n", LATER),
            LOOKUP_PASS);
    CU_ASSERT_STRING_EQUAL(play.reason, "only-if-cached");
    CU_ASSERT_PTR_NULL(play.fill);
    play_end(&play);
    cache_free(cache);
}

// ---- [RFC 5861 §4], [RFC 9111 §4.2.4] ----

static void instead_of_an_error(void) {
    static const struct {
        const char *response, *method, *request;
        int status;
        bool stands_in;
    } rows[] = {
            {EXCUSED, "GET", "", 500, true},
            {EXCUSED, "GET", "", 502, true},
            {EXCUSED, "GET", "", 503, true},
            {EXCUSED, "GET", "", 504, true},
            {EXCUSED, "HEAD", "", 503, true},
            {EXCUSED, "GET", "Range: bytes=0-1\n", 503, true},
            {EXCUSED, "GET", "", 404, false},
            {FRESH, "GET", "", 503, false},
            {FRESH, "GET", "Cache-Control: stale-if-error=100\n", 503, true},
            {FRESH, "GET", "Cache-Control: stale-if-error=5\n", 503, false},
            {EXCUSED "Cache-Control: must-revalidate\n", "GET", "", 503, false},
            {EXCUSED "Cache-Control: s-maxage=60\n", "GET", "", 503, false},
            {EXCUSED, "GET", "Cache-Control: no-cache\n", 503, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char fields[256] = HOST;
        struct play play;
        begin(rows[i].response);
        play_begin(&play, cache, rows[i].method, "/a", strcat(fields, rows[i].request), LATER);
        CU_ASSERT_PTR_NOT_NULL_FATAL(play.fill);
        enum fill_kind kind = play_answer(&play, rows[i].status, "", 10);
        CU_ASSERT_EQUAL(kind, rows[i].stands_in ? FILL_STALE : FILL_STREAM);
        if (kind == FILL_STALE) {
            play_finish(&play);
            expect_stored(&play, SOURCE_STALE, "stale-if-error");
            CU_ASSERT_EQUAL(play.head.age_s, 70);
        } else {
            CU_ASSERT_EQUAL(play_head(&play), READ_READY);
            CU_ASSERT_EQUAL(play.head.source, SOURCE_ORIGIN);
            CU_ASSERT_EQUAL(play.head.status, rows[i].status);
        }
        play_end(&play);
        // No error is remembered.
        if (rows[i].status >= 500)
            CU_ASSERT_NOT_EQUAL(play_probe(cache, "GET", "/a", HOST, LATER), LOOKUP_PASS);
        cache_free(cache);
    }
}

static void instead_of_no_answer(void) {
    static const struct {
        const char *response, *method, *request;
        bool stands_in;
    } rows[] = {
            {FRESH, "GET", "", true},
            {FRESH, "HEAD", "", true},
            {FRESH, "GET", "Range: bytes=0-1\n", true},
            {FRESH "ETag: \"x\"\n", "GET", "", true},
            {FRESH "Cache-Control: must-revalidate\n", "GET", "", false},
            {FRESH "Cache-Control: proxy-revalidate\n", "GET", "", false},
            {"Cache-Control: s-maxage=60\n", "GET", "", false},
            {FRESH "ETag: \"x\"\nCache-Control: no-cache\n", "GET", "", false},
            {FRESH, "GET", "Cache-Control: no-cache\n", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char fields[256] = HOST;
        struct play play;
        begin(rows[i].response);
        play_begin(&play, cache, rows[i].method, "/a", strcat(fields, rows[i].request), LATER);
        CU_ASSERT_PTR_NOT_NULL_FATAL(play.fill);
        CU_ASSERT_EQUAL(cache_fill_fail(play.fill), rows[i].stands_in);
        play.fill = NULL;
        if (rows[i].stands_in)
            expect_stored(&play, SOURCE_STALE, "disconnected");
        else
            CU_ASSERT_EQUAL(play_head(&play), READ_BROKEN);
        play_end(&play);
        cache_free(cache);
    }
}

// Nothing stored: nothing stands in.
static void nothing_to_stand_in(void) {
    struct play play, joiner;
    struct cache_limits limits = {.memory_bytes = 1 << 20};
    cache = cache_new(&limits);
    play_get(&play, cache, "/a", NOW);
    play_get(&joiner, cache, "/a", NOW);
    CU_ASSERT_FALSE(cache_fill_fail(play.fill));
    play.fill = NULL;
    CU_ASSERT_EQUAL(play_head(&play), READ_BROKEN);
    CU_ASSERT_EQUAL(play_head(&joiner), READ_GONE);
    play_end(&play);
    play_end(&joiner);
    cache_free(cache);
}

// Who waits has it as well.
static void joiners(void) {
    struct play play, joiner;
    begin(EXCUSED);
    CU_ASSERT_EQUAL(play_get(&play, cache, "/a", LATER), LOOKUP_STALE);
    CU_ASSERT_EQUAL(play_get(&joiner, cache, "/a", LATER), LOOKUP_JOIN);
    CU_ASSERT_EQUAL(play_head(&joiner), READ_WAIT);
    CU_ASSERT_EQUAL(play_answer(&play, 503, "", 5), FILL_STALE);
    CU_ASSERT_EQUAL(joiner.wakes, 1);
    expect_stored(&joiner, SOURCE_STALE, "stale-if-error");
    expect_stored(&play, SOURCE_STALE, "stale-if-error");
    play_finish(&play);
    play_end(&joiner);
    play_end(&play);
    cache_free(cache);
}

static void drop(int how) {
    struct play post;
    struct text_head answer;
    if (how == 0) {
        cache_purge_url(cache, VIEW("host"), VIEW("/a"));
        return;
    }
    play_begin(&post, cache, "POST", "/a", HOST, LATER);
    cache_invalidate(cache, &post.query, text_response(&answer, 204, ""));
    play_end(&post);
}

// What an unsafe request has made invalid is not used without the origin's word, by nobody who had begun to
// ask for that either [RFC 9111 §4.4].
static void dropped_meanwhile(void) {
    static const char *const methods[] = {"GET", "HEAD"};
    for (int i = 0; i < 4; i++) {
        struct play play;
        begin(EXCUSED);
        play_begin(&play, cache, methods[i / 2], "/a", HOST, LATER);
        CU_ASSERT_PTR_NOT_NULL_FATAL(play.fill);
        drop(i % 2);
        CU_ASSERT_EQUAL(play_answer(&play, 503, "", 0), FILL_STREAM);
        CU_ASSERT_EQUAL(play_head(&play), READ_READY);
        CU_ASSERT_EQUAL(play.head.status, 503);
        play_end(&play);
        play_store(cache, "/a", HOST, EXCUSED, 100, NOW);
        play_begin(&play, cache, methods[i / 2], "/a", HOST, LATER);
        drop(i % 2);
        CU_ASSERT_FALSE(cache_fill_fail(play.fill));
        play.fill = NULL;
        CU_ASSERT_EQUAL(play_head(&play), READ_BROKEN);
        play_end(&play);
        cache_free(cache);
    }
}

// A new response that breaks off: only while nobody has begun with it.
static void broken_off(void) {
    for (int i = 0; i < 2; i++) {
        struct play play, joiner;
        begin(FRESH "ETag: \"x\"\n");
        play_get(&play, cache, "/a", LATER);
        play_get(&joiner, cache, "/a", LATER);
        CU_ASSERT_EQUAL(play_answer(&play, 200, FRESH "ETag: \"y\"\n", 200), FILL_STORE);
        play_send(&play, 100);
        if (i == 1)
            CU_ASSERT_EQUAL(play_head(&play), READ_READY);
        CU_ASSERT_EQUAL(cache_fill_fail(play.fill), i == 0);
        play.fill = NULL;
        if (i == 0) {
            expect_stored(&play, SOURCE_STALE, "disconnected");
            expect_stored(&joiner, SOURCE_STALE, "disconnected");
        } else {
            CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_BROKEN);
            CU_ASSERT_EQUAL(play_head(&joiner), READ_GONE);
        }
        play_end(&joiner);
        play_end(&play);
        CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, LATER), LOOKUP_STALE);
        cache_free(cache);
    }
}

// An error without anything stored is for its request alone.
static void errors_are_not_sticky(void) {
    struct play play, joiner;
    struct cache_limits limits = {.memory_bytes = 1 << 20};
    cache = cache_new(&limits);
    play_get(&play, cache, "/a", NOW);
    play_get(&joiner, cache, "/a", NOW);
    CU_ASSERT_EQUAL(play_answer(&play, 503, "", 5), FILL_STREAM);
    CU_ASSERT_EQUAL(play_head(&joiner), READ_GONE);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW), LOOKUP_MISS);
    play_end(&joiner);
    play_end(&play);
    cache_free(cache);
}

// ---- nothing may go out ----

static enum lookup look_offline(struct play *play, const char *method, const char *path, const char *fields) {
    play_begin(play, cache, method, path, fields, LATER);
    play_end(play); // looked up as if online, for the query
    play->query.is_offline = true;
    return play->lookup = cache_lookup(cache, &play->query, &play->reader, &play->fill, &play->reason);
}

static void offline(void) {
    static const char *const stored[] = {FRESH, FRESH "ETag: \"x\"\n", "Cache-Control: s-maxage=60\n"};
    struct play play;
    for (size_t i = 0; i < sizeof stored / sizeof *stored; i++) {
        begin(stored[i]);
        CU_ASSERT_EQUAL(look_offline(&play, "GET", "/a", HOST), LOOKUP_HIT);
        CU_ASSERT_STRING_EQUAL(play.reason, "offline");
        CU_ASSERT_PTR_NULL(play.fill);
        expect_stored(&play, SOURCE_STALE, "offline");
        CU_ASSERT_EQUAL(play.head.age_s, 70);
        play_end(&play);
        cache_free(cache);
    }
    static const struct {
        const char *method, *path, *fields;
        enum lookup lookup;
    } rows[] = {
            {"HEAD", "/a", HOST, LOOKUP_HIT},
            {"GET", "/a", HOST "Range: bytes=0-1\n", LOOKUP_HIT},
            {"GET", "/a", HOST "Cache-Control: no-cache\n", LOOKUP_HIT},
            {"GET", "/a", HOST "Cache-Control: no-store\n", LOOKUP_HIT},
            {"GET", "/b", HOST, LOOKUP_PASS},
            {"GET", "/b", HOST "Range: bytes=0-1\n", LOOKUP_PASS},
            {"HEAD", "/b", HOST, LOOKUP_PASS},
            {"POST", "/a", HOST, LOOKUP_PASS},
            {"GET", "/a", HOST "If-Match: \"x\"\n", LOOKUP_PASS},
    };
    begin(REFRESHED); // and what might be refreshed is not
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CU_ASSERT_EQUAL(look_offline(&play, rows[i].method, rows[i].path, rows[i].fields), rows[i].lookup);
        CU_ASSERT_PTR_NULL(play.fill);
        CU_ASSERT_STRING_EQUAL(play.reason, "offline");
        play_end(&play);
    }
    cache_free(cache);
}

SUITE(cache_stale, CASE(refreshed_once), CASE(refreshed_by_a_new_one), CASE(refresh_that_fails),
        CASE(refreshed_by_whom), CASE(not_refreshed), CASE(instead_of_an_error), CASE(instead_of_no_answer),
        CASE(nothing_to_stand_in), CASE(joiners), CASE(dropped_meanwhile), CASE(broken_off),
        CASE(errors_are_not_sticky), CASE(offline))
