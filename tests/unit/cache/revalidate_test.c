// Stale objects: confirmed by a 304, replaced, or kept.
#include "cache/cache.h"
#include "tests/unit/cache/play.h"

#define FRESH "Cache-Control: max-age=60\n"
#define HOST "Host: host\n"
#define NOW PLAY_NOW
#define LATER (NOW + 100)
#define MODIFIED "Last-Modified: Sun, 06 Nov 1994 08:00:00 GMT\n"

static struct cache *cache;
static struct play stale; // the one that confirms

static void begin(const char *fields, uint64_t bytes) {
    struct cache_limits limits = {.memory_bytes = 1 << 20};
    cache = cache_new(&limits);
    play_store(cache, "/a", HOST, fields, bytes, NOW);
    CU_ASSERT_EQUAL(play_get(&stale, cache, "/a", LATER), LOOKUP_STALE);
    CU_ASSERT_STRING_EQUAL(stale.reason, "expired");
    CU_ASSERT_EQUAL(play_head(&stale), READ_WAIT);
}

static void end(void) {
    play_end(&stale);
    cache_free(cache);
}

static uint64_t objects(void) {
    struct cache_stats stats;
    cache_stats(cache, &stats);
    return stats.objects;
}

static void expect_body(struct play *play, uint64_t bytes) {
    CU_ASSERT_EQUAL(play_head(play), READ_READY);
    CU_ASSERT_EQUAL(play->head.content_length, (int64_t)bytes);
    CU_ASSERT_EQUAL(play_read(play, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(play->received, bytes);
}

static void validators(void) {
    begin(FRESH "ETag: W/\"x\"\n" MODIFIED, 100);
    CU_ASSERT_TRUE(view_equal(cache_fill_fields(stale.fill),
            VIEW("If-None-Match: W/\"x\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:00:00 GMT\r\n")));
    end();
    begin(FRESH MODIFIED, 100);
    CU_ASSERT_TRUE(view_equal(
            cache_fill_fields(stale.fill), VIEW("If-Modified-Since: Sun, 06 Nov 1994 08:00:00 GMT\r\n")));
    end();
}

static void no_validator(void) {
    struct cache_limits limits = {.memory_bytes = 1 << 20};
    cache = cache_new(&limits);
    play_store(cache, "/a", HOST, FRESH, 100, NOW);
    CU_ASSERT_EQUAL(play_get(&stale, cache, "/a", LATER), LOOKUP_MISS);
    CU_ASSERT_STRING_EQUAL(stale.reason, "expired");
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, LATER), LOOKUP_JOIN);
    play_end(&stale);
    // With a condition of its own, its fill is not for others; and a 304 confirms nothing.
    CU_ASSERT_EQUAL(
            play_begin(&stale, cache, "GET", "/a", HOST "If-None-Match: \"x\"\n", LATER), LOOKUP_MISS);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, LATER), LOOKUP_MISS);
    CU_ASSERT_EQUAL(play_answer(&stale, 304, "", -1), FILL_STREAM);
    play_finish(&stale);
    CU_ASSERT_EQUAL(objects(), 1);
    end();
}

static void confirmed(void) {
    struct play joiner, hit;
    begin(FRESH "ETag: \"x\"\nX: old\n", 100000);
    CU_ASSERT_EQUAL(play_get(&joiner, cache, "/a", LATER), LOOKUP_JOIN);
    CU_ASSERT_EQUAL(play_head(&joiner), READ_WAIT);
    CU_ASSERT_EQUAL(play_answer(&stale, 304, "ETag: \"x\"\nX: new\nCache-Control: max-age=30\n", -1),
            FILL_NOT_MODIFIED);
    CU_ASSERT_STRING_EQUAL(stale.reason, "confirmed");
    CU_ASSERT_EQUAL(joiner.wakes + stale.wakes, 2);
    expect_body(&stale, 100000);
    CU_ASSERT_EQUAL(stale.head.status, 200);
    CU_ASSERT_EQUAL(stale.head.age_s, 0);
    // Others have it at once, before the producer ends the fill.
    CU_ASSERT_EQUAL(play_get(&hit, cache, "/a", LATER + 29), LOOKUP_HIT);
    CU_ASSERT_EQUAL(play_head(&hit), READ_READY);
    CU_ASSERT_EQUAL(hit.head.age_s, 29);
    const struct http_field *x = &hit.head.head->fields[1];
    CU_ASSERT_TRUE(view_equal(x->name, VIEW("X")) && view_equal(x->value, VIEW("new")));
    play_end(&hit);
    play_finish(&stale);
    CU_ASSERT_EQUAL(objects(), 1);
    expect_body(&joiner, 100000);
    play_end(&joiner);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, LATER + 30), LOOKUP_STALE);
    end();
}

// Over and over: the body is shared, and no chain of old heads grows behind it.
static void confirmed_again_and_again(void) {
    struct cache_stats before, after;
    begin(FRESH "ETag: \"x\"\n", 1000);
    play_answer(&stale, 304, FRESH, -1);
    play_finish(&stale);
    play_end(&stale);
    cache_stats(cache, &before);
    for (int i = 1; i < 20; i++) {
        CU_ASSERT_EQUAL(play_get(&stale, cache, "/a", LATER + i * 100), LOOKUP_STALE);
        CU_ASSERT_EQUAL(play_answer(&stale, 304, FRESH, -1), FILL_NOT_MODIFIED);
        play_finish(&stale);
        expect_body(&stale, 1000);
        play_end(&stale);
    }
    cache_stats(cache, &after);
    CU_ASSERT_EQUAL(before.bytes, after.bytes);
    end();
}

// A crowd at a response that must always be confirmed: one confirmation serves those who waited for it.
static void no_cache_is_confirmed_together(void) {
    struct play joiner;
    struct cache_limits limits = {.memory_bytes = 1 << 20};
    cache = cache_new(&limits);
    play_store(cache, "/a", HOST, "Cache-Control: no-cache\nETag: \"x\"\n", 100, NOW);
    CU_ASSERT_EQUAL(play_get(&stale, cache, "/a", NOW + 10), LOOKUP_STALE);
    CU_ASSERT_STRING_EQUAL(stale.reason, "no-cache");
    CU_ASSERT_EQUAL(play_get(&joiner, cache, "/a", NOW + 10), LOOKUP_JOIN);
    play_answer(&stale, 304, "ETag: \"x\"\n", -1);
    expect_body(&joiner, 100);
    expect_body(&stale, 100);
    play_end(&joiner);
    play_finish(&stale);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW + 10), LOOKUP_STALE);
    // A whole new one was made for its own request alone; and after it, each asks for itself.
    play_end(&stale);
    CU_ASSERT_EQUAL(play_get(&stale, cache, "/a", NOW + 20), LOOKUP_STALE);
    CU_ASSERT_EQUAL(play_get(&joiner, cache, "/a", NOW + 20), LOOKUP_JOIN);
    play_answer(&stale, 200, "Cache-Control: no-cache\nETag: \"y\"\n", 10);
    CU_ASSERT_EQUAL(play_head(&joiner), READ_GONE);
    play_end(&joiner);
    play_send(&stale, 10);
    play_finish(&stale);
    play_end(&stale);
    CU_ASSERT_EQUAL(play_get(&stale, cache, "/a", NOW + 21), LOOKUP_STALE);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW + 21), LOOKUP_STALE);
    end();
}

static void replaced(void) {
    struct play joiner;
    begin(FRESH "ETag: \"x\"\n", 100);
    CU_ASSERT_EQUAL(play_get(&joiner, cache, "/a", LATER), LOOKUP_JOIN);
    stale.seed = joiner.seed = 1;
    CU_ASSERT_EQUAL(play_answer(&stale, 200, FRESH "ETag: \"y\"\n", 200), FILL_STORE);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, LATER), LOOKUP_JOIN); // the arriving one
    play_send(&stale, 200);
    play_finish(&stale);
    expect_body(&joiner, 200);
    expect_body(&stale, 200);
    play_end(&joiner);
    CU_ASSERT_EQUAL(objects(), 1);
    end();
}

static void kept(void) {
    struct play joiner;
    begin(FRESH "ETag: \"x\"\n", 100);
    play_abandon(&stale);
    CU_ASSERT_EQUAL(play_head(&stale), READ_BROKEN);
    play_end(&stale);
    // cut short
    CU_ASSERT_EQUAL(play_get(&stale, cache, "/a", LATER), LOOKUP_STALE);
    play_answer(&stale, 200, FRESH, 100);
    play_send(&stale, 50);
    play_finish(&stale);
    play_end(&stale);
    // the origin in trouble
    CU_ASSERT_EQUAL(play_get(&stale, cache, "/a", LATER), LOOKUP_STALE);
    CU_ASSERT_EQUAL(play_get(&joiner, cache, "/a", LATER), LOOKUP_JOIN);
    CU_ASSERT_EQUAL(play_answer(&stale, 503, "", 10), FILL_STREAM);
    CU_ASSERT_STRING_EQUAL(stale.reason, "trouble");
    CU_ASSERT_EQUAL(play_head(&joiner), READ_GONE);
    CU_ASSERT_EQUAL(play_head(&stale), READ_READY);
    CU_ASSERT_EQUAL(stale.head.status, 503);
    play_end(&joiner);
    play_end(&stale);
    // and for who takes it stale
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST "Cache-Control: max-stale=100\n", LATER), LOOKUP_HIT);
    CU_ASSERT_EQUAL(play_get(&stale, cache, "/a", LATER), LOOKUP_STALE);
    play_answer(&stale, 304, FRESH, -1);
    play_finish(&stale);
    expect_body(&stale, 100);
    end();
}

// The origin has a new one that may not be stored: the old one is out of date for good.
static void outdated(void) {
    begin(FRESH "ETag: \"x\"\n", 100);
    CU_ASSERT_EQUAL(play_answer(&stale, 200, "Cache-Control: no-store\n", 10), FILL_STREAM);
    CU_ASSERT_EQUAL(objects(), 0);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, LATER), LOOKUP_MISS);
    end();
}

// A 304 with another validator than the one we asked about: nothing has changed, and the origin is asked
// again.
static void contradictory(void) {
    struct play joiner;
    begin(FRESH "ETag: \"x\"\n", 100);
    CU_ASSERT_EQUAL(play_get(&joiner, cache, "/a", LATER), LOOKUP_JOIN);
    CU_ASSERT_EQUAL(play_answer(&stale, 304, FRESH "ETag: \"y\"\n", -1), FILL_AGAIN);
    CU_ASSERT_STRING_EQUAL(stale.reason, "validator-differs");
    CU_ASSERT_EQUAL(cache_fill_fields(stale.fill).length, 0);
    CU_ASSERT_EQUAL(play_head(&stale), READ_WAIT);
    CU_ASSERT_EQUAL(objects(), 1);
    stale.seed = joiner.seed = 1;
    CU_ASSERT_EQUAL(play_answer(&stale, 200, FRESH "ETag: \"y\"\n", 200), FILL_STORE);
    play_send(&stale, 200);
    play_finish(&stale);
    expect_body(&stale, 200);
    expect_body(&joiner, 200);
    play_end(&joiner);
    CU_ASSERT_EQUAL(objects(), 1);
    end();
}

static void confirmed_but_not_storable_any_more(void) {
    begin(FRESH "ETag: \"x\"\n", 100);
    CU_ASSERT_EQUAL(play_answer(&stale, 304, "Cache-Control: no-store\n", -1), FILL_NOT_MODIFIED);
    play_finish(&stale);
    expect_body(&stale, 100);
    CU_ASSERT_EQUAL(objects(), 0);
    end();
}

static void purged_meanwhile(void) {
    begin(FRESH "ETag: \"x\"\n", 100);
    CU_ASSERT_EQUAL(cache_purge_all(cache), 1);
    CU_ASSERT_EQUAL(play_answer(&stale, 304, FRESH, -1), FILL_NOT_MODIFIED);
    play_finish(&stale);
    expect_body(&stale, 100);
    CU_ASSERT_EQUAL(objects(), 0);
    end();
}

// A slow reader of what a 304 has superseded reads on.
static void superseded_while_read(void) {
    struct play slow;
    struct cache_limits limits = {.memory_bytes = 1 << 20};
    cache = cache_new(&limits);
    play_store(cache, "/a", HOST, FRESH "ETag: \"x\"\n", 100000, NOW);
    play_get(&slow, cache, "/a", NOW);
    play_read(&slow, 1000);
    CU_ASSERT_EQUAL(play_get(&stale, cache, "/a", LATER), LOOKUP_STALE);
    play_answer(&stale, 304, FRESH, -1);
    play_finish(&stale);
    cache_purge_all(cache);
    expect_body(&slow, 100000);
    play_end(&slow);
    expect_body(&stale, 100000);
    end();
}

SUITE(cache_revalidate, CASE(validators), CASE(no_validator), CASE(confirmed),
        CASE(confirmed_again_and_again), CASE(no_cache_is_confirmed_together), CASE(replaced), CASE(kept),
        CASE(outdated), CASE(contradictory), CASE(confirmed_but_not_storable_any_more),
        CASE(purged_meanwhile), CASE(superseded_while_read))
