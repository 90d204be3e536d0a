// Several responses of one URL: which is selected, what is asked about them, which one a 304 means.
#include "cache/cache.h"
#include "tests/unit/cache/play.h"

#include <stdio.h>

#define FRESH "Cache-Control: max-age=60\n"
#define HOST "Host: host\n"
#define ENGLISH HOST "Accept-Language: en\n"
#define CZECH HOST "Accept-Language: cs\n"
#define GERMAN HOST "Accept-Language: de\n"
#define VARIED FRESH "Vary: Accept-Language\n"
#define NOW PLAY_NOW
#define LATER (NOW + 70)

static struct cache *cache;

static void begin(void) {
    struct cache_limits limits = {.memory_bytes = 1 << 20};
    cache = cache_new(&limits);
}

static uint64_t objects(void) {
    struct cache_stats stats;
    cache_stats(cache, &stats);
    return stats.objects;
}

// A whole exchange, whatever is stored already.
static void store(const char *request, const char *response, uint64_t bytes, int64_t now_s) {
    struct play play;
    char fields[256];
    snprintf(fields, sizeof fields, "%sCache-Control: no-cache\n", request);
    play_begin(&play, cache, "GET", "/a", fields, now_s);
    CU_ASSERT_PTR_NOT_NULL_FATAL(play.fill);
    CU_ASSERT_EQUAL(play_answer(&play, 200, response, (int64_t)bytes), FILL_STORE);
    play_send(&play, bytes);
    play_finish(&play);
    play_end(&play);
}

static int64_t length_for(const char *request, int64_t now_s) {
    struct play play;
    int64_t length = -1;
    if (play_begin(&play, cache, "GET", "/a", request, now_s) == LOOKUP_HIT) {
        CU_ASSERT_EQUAL(play_head(&play), READ_READY);
        length = play.head.content_length;
    }
    play_end(&play);
    return length;
}

// [RFC 9111 §4.1]
static void selected(void) {
    begin();
    store(ENGLISH, VARIED, 10, NOW);
    store(CZECH, VARIED, 20, NOW);
    store(GERMAN, FRESH, 30, NOW + 1); // a default, which forgets to say Vary
    CU_ASSERT_EQUAL(objects(), 3);
    CU_ASSERT_EQUAL(length_for(ENGLISH, NOW + 1), 10);
    CU_ASSERT_EQUAL(length_for(CZECH, NOW + 1), 20);
    CU_ASSERT_EQUAL(length_for(GERMAN, NOW + 1), 30);
    CU_ASSERT_EQUAL(length_for(HOST, NOW + 1), 30);
    // A newer answer to the same request takes the place of what it selected.
    store(ENGLISH, FRESH "Vary: Accept-Language, Cookie\n", 40, NOW + 2);
    CU_ASSERT_EQUAL(objects(), 3);
    CU_ASSERT_EQUAL(length_for(ENGLISH, NOW + 2), 40);
    CU_ASSERT_EQUAL(length_for(ENGLISH "Cookie: a\n", NOW + 2), 30);
    store(ENGLISH, FRESH, 50, NOW + 3);
    CU_ASSERT_EQUAL(objects(), 2);
    CU_ASSERT_EQUAL(length_for(ENGLISH, NOW + 3), 50);
    CU_ASSERT_EQUAL(length_for(CZECH, NOW + 3), 20);
    cache_free(cache);
}

static void most_recent_by_date(void) {
    begin();
    store(ENGLISH, VARIED "Date: Sun, 06 Nov 1994 08:49:37 GMT\n", 10, NOW);
    store(CZECH "Cookie: a\n", FRESH "Vary: Cookie\nDate: Sun, 06 Nov 1994 08:49:30 GMT\n", 20, NOW + 1);
    CU_ASSERT_EQUAL(objects(), 2);
    CU_ASSERT_EQUAL(length_for(ENGLISH "Cookie: a\n", NOW + 1), 10);
    CU_ASSERT_EQUAL(length_for(ENGLISH, NOW + 1), 10);
    CU_ASSERT_EQUAL(length_for(HOST "Cookie: a\n", NOW + 1), 20);
    cache_free(cache);
}

static void expect_fields(const char *request, int64_t now_s, enum lookup lookup, const char *fields) {
    struct play play;
    CU_ASSERT_EQUAL(play_begin(&play, cache, "GET", "/a", request, now_s), lookup);
    CU_ASSERT_PTR_NOT_NULL_FATAL(play.fill);
    CU_ASSERT_TRUE(view_equal(cache_fill_fields(play.fill), view_of(fields)));
    play_end(&play);
}

#define DATE "Sun, 06 Nov 1994 08:00:00 GMT"

static void asked_about(void) {
    begin();
    store(ENGLISH, VARIED "ETag: \"en\"\nLast-Modified: " DATE "\n", 10, NOW);
    store(CZECH, VARIED "ETag: \"cs\"\n", 20, NOW);
    store(HOST "Accept-Language: fr\n", VARIED "ETag: \"en\"\n", 20, NOW);
    store(HOST "Accept-Language: pl\n", VARIED "Last-Modified: " DATE "\n", 20, NOW);
    store(HOST "Accept-Language: sk\n", VARIED, 20, NOW);
    expect_fields(
            ENGLISH, LATER, LOOKUP_STALE, "If-None-Match: \"en\", \"cs\"\r\nIf-Modified-Since: " DATE "\r\n");
    expect_fields(CZECH, LATER, LOOKUP_STALE, "If-None-Match: \"cs\", \"en\"\r\n");
    expect_fields(HOST "Accept-Language: pl\n", LATER, LOOKUP_STALE, "If-Modified-Since: " DATE "\r\n");
    expect_fields(HOST "Accept-Language: sk\n", LATER, LOOKUP_MISS, "If-None-Match: \"en\", \"cs\"\r\n");
    expect_fields(GERMAN, NOW, LOOKUP_MISS, "If-None-Match: \"en\", \"cs\"\r\n");
    cache_free(cache);
}

static void asking_is_bounded(void) {
    begin();
    for (int i = 0; i < 16; i++) {
        char request[64], response[1100];
        snprintf(request, sizeof request, HOST "Accept-Language: %d\n", i);
        snprintf(response, sizeof response, VARIED "ETag: \"%0900d\"\n", i);
        store(request, response, 10, NOW);
    }
    struct play play;
    play_begin(&play, cache, "GET", "/a", HOST, NOW);
    CU_ASSERT_TRUE(cache_fill_fields(play.fill).length > 3000);
    CU_ASSERT_TRUE(cache_fill_fields(play.fill).length < 5000);
    play_end(&play);
    cache_free(cache);
}

// A 304 that names another variant: that one is served, and found for these fields from now on.
static void confirmed_by_another(void) {
    struct play play;
    begin();
    store(ENGLISH, VARIED "ETag: \"en\"\nX: 1\n", 10, NOW);
    store(CZECH, VARIED "ETag: \"cs\"\n", 20, NOW);
    play_begin(&play, cache, "GET", "/a", GERMAN, LATER);
    CU_ASSERT_EQUAL(play.lookup, LOOKUP_MISS);
    CU_ASSERT_EQUAL(play_answer(&play, 304, VARIED "ETag: \"en\"\nX: 2\n", -1), FILL_NOT_MODIFIED);
    play_finish(&play);
    CU_ASSERT_EQUAL(play_head(&play), READ_READY);
    CU_ASSERT_EQUAL(play.head.status, 200);
    CU_ASSERT_EQUAL(play.head.source, SOURCE_CONFIRMED);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(play.received, 10);
    play_end(&play);
    CU_ASSERT_EQUAL(objects(), 3);
    CU_ASSERT_EQUAL(length_for(GERMAN, LATER + 1), 10);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", CZECH, LATER), LOOKUP_STALE);
    cache_free(cache);
}

// Which of several a 304 means [RFC 9111 §4.3.4].
static void meant(void) {
    static const struct {
        const char *not_modified;
        int64_t length; // -1: none, everything stays
    } rows[] = {
            {"ETag: \"en\"\n", 10},
            {"ETag: \"cs\"\n", 20},
            {"ETag: W/\"de\"\n", 30},
            {"ETag: \"other\"\n", -1},
            {"ETag: W/\"other\"\n", -1},
            {"ETag: \"en\"\nLast-Modified: " DATE "\n", 10},
            {"Last-Modified: Sun, 06 Nov 1994 07:00:00 GMT\n", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct play play;
        begin();
        store(ENGLISH, VARIED "ETag: \"en\"\n", 10, NOW);
        store(CZECH, VARIED "ETag: \"cs\"\n", 20, NOW);
        store(GERMAN, VARIED "ETag: W/\"de\"\n", 30, NOW);
        play_begin(&play, cache, "GET", "/a", ENGLISH, LATER);
        enum fill_kind kind = play_answer(&play, 304, rows[i].not_modified, -1);
        CU_ASSERT_EQUAL(kind, rows[i].length < 0 ? FILL_AGAIN : FILL_NOT_MODIFIED);
        if (kind == FILL_NOT_MODIFIED) {
            CU_ASSERT_EQUAL(play_head(&play), READ_READY);
            CU_ASSERT_EQUAL(play.head.content_length, rows[i].length);
        }
        play_end(&play);
        CU_ASSERT_EQUAL(objects(), 3);
        cache_free(cache);
    }
}

// ---- HEAD ----

static void head(const char *request, int status, const char *fields, int64_t length, int64_t now_s) {
    struct text_head asked, answer;
    struct cache_query query = {.head = text_request(&asked, "HEAD", request),
            .destination = {.address = {{[10] = 0xff, [11] = 0xff, 192, 0, 2, 1}}, .port = 80},
            .authority = VIEW("host"),
            .path = VIEW("/a"),
            .now = {now_s, now_s},
            .store_allowed = true};
    struct cache_response response = {.head = text_response(&answer, status, fields),
            .content_length = length,
            .request_at = query.now,
            .response_at = query.now};
    cache_update_by_head(cache, &query, &response);
}

// [RFC 9111 §4.3.5]
static void updated_by_head(void) {
    static const struct {
        const char *fields;
        int64_t length;
        int status;
        enum lookup early, late; // fresh before, and past the first lifetime
    } rows[] = {
            {FRESH "ETag: \"x\"\n", 100, 200, LOOKUP_HIT, LOOKUP_HIT},
            {FRESH "ETag: \"x\"\n", -1, 200, LOOKUP_HIT, LOOKUP_HIT},
            {FRESH, 100, 200, LOOKUP_HIT, LOOKUP_HIT},
            {FRESH "ETag: \"y\"\n", 100, 200, LOOKUP_STALE, LOOKUP_STALE},
            {FRESH "ETag: \"x\"\nContent-Length: 99\n", 99, 200, LOOKUP_STALE, LOOKUP_STALE},
            {FRESH "ETag: \"x\"\nContent-Length: 100\n", 100, 200, LOOKUP_HIT, LOOKUP_HIT},
            {FRESH "ETag: \"x\"\nLast-Modified: " DATE "\n", 100, 200, LOOKUP_STALE, LOOKUP_STALE},
            {"ETag: \"y\"\n", 100, 404, LOOKUP_STALE, LOOKUP_STALE},
            {"ETag: \"y\"\n", 100, 403, LOOKUP_HIT, LOOKUP_STALE},
            {"ETag: \"y\"\n", 100, 503, LOOKUP_HIT, LOOKUP_STALE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin();
        store(HOST, FRESH "ETag: \"x\"\n", 100, NOW);
        head(HOST, rows[i].status, rows[i].fields, rows[i].length, NOW + 30);
        CU_ASSERT_EQUAL(objects(), 1);
        CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW + 59), rows[i].early);
        CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW + 61), rows[i].late);
        CU_ASSERT_EQUAL(
                play_probe(cache, "GET", "/a", HOST "Cache-Control: max-stale\n", NOW + 59), rows[i].early);
        cache_free(cache);
    }
}

static void updated_by_head_as_selected(void) {
    struct play play;
    begin();
    store(ENGLISH, VARIED "ETag: \"en\"\nX: 1\n", 10, NOW);
    store(CZECH, VARIED "ETag: \"cs\"\n", 20, NOW);
    head(ENGLISH, 200, VARIED "ETag: \"en\"\nX: 2\n", 10, NOW + 30);
    CU_ASSERT_EQUAL(objects(), 2);
    CU_ASSERT_EQUAL(play_begin(&play, cache, "GET", "/a", ENGLISH, NOW + 80), LOOKUP_HIT);
    CU_ASSERT_EQUAL(play_head(&play), READ_READY);
    CU_ASSERT_EQUAL(play.head.content_length, 10);
    CU_ASSERT_EQUAL(play.head.age_s, 50);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_END);
    play_end(&play);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", CZECH, NOW + 80), LOOKUP_STALE);
    head(CZECH, 200, VARIED "ETag: \"other\"\n", 20, NOW + 30);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", ENGLISH, NOW + 40), LOOKUP_HIT);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", CZECH, NOW + 40), LOOKUP_STALE);
    cache_free(cache);
}

// ---- POST ----

// [RFC 9110 §9.3.3]
static void answers_to_post(void) {
    static const struct {
        const char *method, *request, *response;
        bool is_stored;
    } rows[] = {
            {"POST", "", FRESH "Content-Location: /a\n", true},
            {"PATCH", "", FRESH "Content-Location: /a\n", false},
            {"POST", "", FRESH "Content-Location: http://host/a\n", true},
            {"POST", "", FRESH "Content-Location: /b\n", false},
            {"POST", "", FRESH "Content-Location: http://other/a\n", false},
            {"POST", "", FRESH, false},
            {"POST", "", "Content-Location: /a\nLast-Modified: " DATE "\n", false},
            {"POST", "", "Cache-Control: no-store\nContent-Location: /a\n", false},
            {"POST", "Cache-Control: no-store\n", FRESH "Content-Location: /a\n", false},
            {"PUT", "", FRESH "Content-Location: /a\n", false},
            {"FOO", "", FRESH "Content-Location: /a\n", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct play play;
        struct text_head answer;
        char fields[128];
        begin();
        store(HOST, FRESH "ETag: \"x\"\n", 10, NOW);
        snprintf(fields, sizeof fields, HOST "%s", rows[i].request);
        CU_ASSERT_EQUAL(play_begin(&play, cache, rows[i].method, "/a", fields, NOW), LOOKUP_PASS);
        cache_invalidate(cache, &play.query, text_response(&answer, 200, rows[i].response));
        CU_ASSERT_EQUAL(
                play_answer(&play, 200, rows[i].response, 20), rows[i].is_stored ? FILL_STORE : FILL_STREAM);
        CU_ASSERT_EQUAL(play_head(&play), READ_READY);
        play_send(&play, 20);
        play_finish(&play);
        CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_END);
        CU_ASSERT_EQUAL(play.received, 20);
        play_end(&play);
        CU_ASSERT_EQUAL(length_for(HOST, NOW), rows[i].is_stored ? 20 : -1);
        cache_free(cache);
    }
}

// ---- invalidation [RFC 9111 §4.4] ----

static void invalidated(void) {
    static const struct {
        const char *method;
        int status;
        const char *fields;
        bool a, b; // whether they are there afterwards
    } rows[] = {
            {"POST", 200, "", false, true},
            {"PUT", 204, "", false, true},
            {"DELETE", 200, "", false, true},
            {"PATCH", 200, "", false, true},
            {"FOO", 200, "", false, true},
            {"POST", 303, "Location: /b\n", false, false},
            {"POST", 201, "Location: b\n", false, false},
            {"POST", 200, "Content-Location: http://host/b\n", false, false},
            {"POST", 200, "Content-Location: //HOST:80/x/../b\n", false, false},
            {"POST", 200, "Location: http://other/b\n", false, true},
            {"POST", 200, "Location: https://host/b\n", false, true},
            {"POST", 200, "Location: http://host:8080/b\n", false, true},
            {"POST", 200, "Location: /x\nContent-Location: /b\n", false, false},
            {"POST", 404, "Location: /b\n", true, true},
            {"POST", 500, "Location: /b\n", true, true},
            {"GET", 200, "Location: /b\n", true, true},
            {"HEAD", 200, "Location: /b\n", true, true},
            {"OPTIONS", 200, "Location: /b\n", true, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct play play;
        struct text_head answer;
        begin();
        play_store(cache, "/a", HOST, FRESH, 10, NOW);
        play_store(cache, "/b", HOST, FRESH, 10, NOW);
        play_begin(&play, cache, rows[i].method, "/a", HOST, NOW);
        cache_invalidate(cache, &play.query, text_response(&answer, rows[i].status, rows[i].fields));
        play_end(&play);
        CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW), rows[i].a ? LOOKUP_HIT : LOOKUP_MISS);
        CU_ASSERT_EQUAL(play_probe(cache, "GET", "/b", HOST, NOW), rows[i].b ? LOOKUP_HIT : LOOKUP_MISS);
        cache_free(cache);
    }
}

// What was asked for before must not come back afterwards.
static void invalidated_while_it_arrives(void) {
    struct play slow, post;
    struct text_head answer;
    begin();
    play_get(&slow, cache, "/a", NOW);
    play_begin(&post, cache, "POST", "/a", HOST, NOW);
    cache_invalidate(cache, &post.query, text_response(&answer, 200, ""));
    play_end(&post);
    CU_ASSERT_EQUAL(play_answer(&slow, 200, FRESH, 10), FILL_STREAM);
    play_send(&slow, 10);
    play_finish(&slow);
    play_end(&slow);
    CU_ASSERT_EQUAL(objects(), 0);
    cache_free(cache);
}

// ---- collapsing ----

// Who waits for another variant goes on at once, on its own and beside the others.
static void waiting_for_another_variant(void) {
    struct play first, czech, german;
    begin();
    play_begin(&first, cache, "GET", "/a", ENGLISH, NOW);
    CU_ASSERT_EQUAL(play_begin(&czech, cache, "GET", "/a", CZECH, NOW), LOOKUP_JOIN);
    CU_ASSERT_EQUAL(play_begin(&german, cache, "GET", "/a", GERMAN, NOW), LOOKUP_JOIN);
    play_answer(&first, 200, VARIED, 10);
    CU_ASSERT_EQUAL(play_head(&czech), READ_GONE);
    CU_ASSERT_EQUAL(play_head(&german), READ_GONE);
    play_end(&czech);
    play_end(&german);
    // The answer is not stored yet, but its Vary is known.
    CU_ASSERT_EQUAL(play_begin(&czech, cache, "GET", "/a", CZECH, NOW), LOOKUP_MISS);
    CU_ASSERT_EQUAL(play_begin(&german, cache, "GET", "/a", GERMAN, NOW), LOOKUP_MISS);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", GERMAN, NOW), LOOKUP_JOIN);
    play_end(&czech);
    play_end(&german);
    play_end(&first);
    cache_free(cache);
}

// After a wait in vain a request begins its own fetch, which others may join.
static void not_twice(void) {
    struct play first, again, third;
    begin();
    play_get(&first, cache, "/a", NOW);
    play_get(&again, cache, "/a", NOW);
    CU_ASSERT_EQUAL(again.lookup, LOOKUP_JOIN);
    cache_reader_detach(&again.reader);
    again.query.is_again = true;
    CU_ASSERT_EQUAL(
            cache_lookup(cache, &again.query, &again.reader, &again.fill, &again.reason), LOOKUP_MISS);
    play_end(&first);
    CU_ASSERT_EQUAL(play_get(&third, cache, "/a", NOW), LOOKUP_JOIN);
    play_end(&third);
    play_end(&again);
    cache_free(cache);
}

static void conditional_joins(void) {
    struct play first, conditional, authorized;
    begin();
    play_get(&first, cache, "/a", NOW);
    CU_ASSERT_EQUAL(
            play_begin(&conditional, cache, "GET", "/a", HOST "If-None-Match: \"x\"\n", NOW), LOOKUP_JOIN);
    CU_ASSERT_EQUAL(play_begin(&authorized, cache, "GET", "/a", HOST "Authorization: Basic eA==\n", NOW),
            LOOKUP_JOIN);
    play_answer(&first, 200, FRESH "ETag: \"x\"\n", 10);
    CU_ASSERT_EQUAL(play_head(&conditional), READ_READY);
    CU_ASSERT_EQUAL(conditional.head.source, SOURCE_ORIGIN);
    CU_ASSERT_STRING_EQUAL(conditional.head.reason, "awaited");
    CU_ASSERT_EQUAL(play_head(&authorized), READ_READY);
    CU_ASSERT_EQUAL(play_head(&first), READ_READY);
    CU_ASSERT_STRING_EQUAL(first.head.reason, "stored");
    play_end(&conditional);
    play_end(&authorized);
    play_end(&first);
    cache_free(cache);
}

SUITE(cache_variants, CASE(selected), CASE(most_recent_by_date), CASE(asked_about), CASE(asking_is_bounded),
        CASE(confirmed_by_another), CASE(meant), CASE(updated_by_head), CASE(updated_by_head_as_selected),
        CASE(answers_to_post), CASE(invalidated), CASE(invalidated_while_it_arrives),
        CASE(waiting_for_another_variant), CASE(not_twice), CASE(conditional_joins))
