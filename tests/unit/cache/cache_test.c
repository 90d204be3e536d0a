// Looking up: what is found, joined, confirmed and dropped.
#include "cache/cache.h"
#include "tests/unit/cache/play.h"

#include <stdio.h>

#define FRESH "Cache-Control: max-age=60\n"
#define HOST "Host: host\n"
#define NOW PLAY_NOW

static struct cache *new_cache(uint64_t memory_bytes) {
    struct cache_limits limits = {.memory_bytes = memory_bytes};
    return cache_new(&limits);
}

static uint64_t bytes_of(struct cache *cache) {
    struct cache_stats stats;
    cache_stats(cache, &stats);
    return stats.bytes;
}

static uint64_t objects_of(struct cache *cache) {
    struct cache_stats stats;
    cache_stats(cache, &stats);
    return stats.objects;
}

static void miss_then_hit(void) {
    struct cache *cache = new_cache(1 << 20);
    struct play miss, hit;
    CU_ASSERT_EQUAL(play_get(&miss, cache, "/a", NOW), LOOKUP_MISS);
    CU_ASSERT_STRING_EQUAL(miss.reason, "absent");
    CU_ASSERT_EQUAL(play_head(&miss), READ_WAIT);
    CU_ASSERT_EQUAL(play_answer(&miss, 200, FRESH "ETag: \"x\"\nKeep-Alive: 5\n", 5000), FILL_STORE);
    CU_ASSERT_EQUAL(miss.wakes, 1);
    CU_ASSERT_EQUAL(play_head(&miss), READ_READY);
    CU_ASSERT_EQUAL(miss.head.age_s, -1);
    CU_ASSERT_EQUAL(miss.head.content_length, 5000);
    CU_ASSERT_EQUAL(play_read(&miss, 1), READ_WAIT);
    CU_ASSERT_EQUAL(play_send(&miss, 5000), 5000);
    CU_ASSERT_EQUAL(miss.wakes, 2);
    CU_ASSERT_EQUAL(play_read(&miss, 6000), READ_WAIT);
    play_finish(&miss);
    CU_ASSERT_EQUAL(miss.wakes, 3);
    CU_ASSERT_EQUAL(play_read(&miss, 1), READ_END);
    play_end(&miss);

    CU_ASSERT_EQUAL(play_get(&hit, cache, "/a", NOW + 7), LOOKUP_HIT);
    CU_ASSERT_STRING_EQUAL(hit.reason, "fresh");
    CU_ASSERT_PTR_NULL(hit.fill);
    CU_ASSERT_EQUAL(play_head(&hit), READ_READY);
    CU_ASSERT_EQUAL(hit.head.age_s, 7);
    CU_ASSERT_EQUAL(hit.head.status, 200);
    CU_ASSERT_PTR_NULL(http_field_find(hit.head.head, FIELD_KEEP_ALIVE, 0));
    CU_ASSERT_PTR_NOT_NULL(http_field_find(hit.head.head, FIELD_DATE, 0)); // there was none: added
    CU_ASSERT_EQUAL(play_read(&hit, 6000), READ_END);
    CU_ASSERT_EQUAL(hit.received, 5000);
    CU_ASSERT_TRUE(cache_reader_seek(&hit.reader, 4321));
    hit.received = 4321;
    CU_ASSERT_EQUAL(play_read(&hit, 6000), READ_END);
    CU_ASSERT_EQUAL(hit.received, 5000);
    CU_ASSERT_FALSE(cache_reader_seek(&hit.reader, 5001));
    play_end(&hit);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW + 60), LOOKUP_STALE);
    cache_free(cache);
}

// One small body of known length: head and content together go out in one piece each.
static void small_in_one_piece(void) {
    struct cache *cache = new_cache(1 << 20);
    struct play hit;
    struct iovec pieces[4];
    int used;
    play_store(cache, "/a", HOST, FRESH, 10000, NOW);
    play_get(&hit, cache, "/a", NOW);
    CU_ASSERT_EQUAL(cache_reader_peek(&hit.reader, pieces, 4, &used), READ_READY);
    CU_ASSERT_EQUAL(used, 1);
    CU_ASSERT_EQUAL(pieces[0].iov_len, 10000);
    play_end(&hit);
    cache_free(cache);
}

static void scope(void) {
    struct cache *cache = new_cache(1 << 20);
    struct play play;
    play_store(cache, "/a", HOST, FRESH, 100, NOW);
    play_get(&play, cache, "/a", NOW);
    CU_ASSERT_EQUAL(play.lookup, LOOKUP_HIT);
    struct cache_query query = play.query;
    play_end(&play);
    for (int i = 0; i < 4; i++) {
        struct cache_query other = query;
        if (i == 0)
            other.destination.port = 8080;
        else if (i == 1)
            other.destination.address.bytes[15]++;
        else if (i == 2)
            other.authority = VIEW("hos");
        else
            other.path = VIEW("/a?");
        struct cache_reader reader = {.wake = play_wake};
        struct cache_fill *fill;
        const char *reason;
        CU_ASSERT_EQUAL(cache_lookup(cache, &other, &reader, &fill, &reason), LOOKUP_MISS);
        cache_reader_detach(&reader);
        cache_reader_detach(&reader); // idempotent
        cache_fill_abandon(fill);
    }
    cache_free(cache);
}

// [RFC 9111 §5.2.1.5]: of the answer to a request with no-store nothing is kept; what is there may answer it.
static void request_without_storing(void) {
    struct cache *cache = new_cache(1 << 20);
    const char *fields = HOST "Cache-Control: NO-STORE\n";
    play_store(cache, "/fresh", HOST, FRESH, 100, NOW);
    play_store(cache, "/stale", HOST, FRESH "Age: 60\nETag: \"x\"\n", 100, NOW);
    play_store(cache, "/refreshed", HOST, "Cache-Control: max-age=1, stale-while-revalidate=60\n", 100, NOW);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/fresh", fields, NOW), LOOKUP_HIT);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/stale", fields, NOW), LOOKUP_PASS);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/refreshed", fields, NOW + 10), LOOKUP_PASS);
    cache_free(cache);
}

static void passing(void) {
    static const struct {
        const char *method, *fields, *reason;
    } rows[] = {
            {"POST", HOST, "method"},
            {"HEAD", HOST, "head"},
            {"GET", HOST "Cache-Control: no-store\n", "no-store"},
    };
    struct cache *cache = new_cache(1 << 20);
    struct play play;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CU_ASSERT_EQUAL(play_begin(&play, cache, rows[i].method, "/a", rows[i].fields, NOW), LOOKUP_PASS);
        CU_ASSERT_STRING_EQUAL(play.reason, rows[i].reason);
        CU_ASSERT_EQUAL(play_answer(&play, 200, FRESH "Age: 3\n", 100), FILL_STREAM);
        CU_ASSERT_FALSE(cache_fill_stores(play.fill));
        CU_ASSERT_EQUAL(play_head(&play), READ_READY);
        CU_ASSERT_EQUAL(play.head.age_s, 3);
        play_send(&play, 100);
        play_finish(&play);
        CU_ASSERT_EQUAL(play_read(&play, 200), READ_END);
        play_end(&play);
    }
    CU_ASSERT_EQUAL(
            play_begin(&play, cache, "GET", "/a", HOST "Cache-Control: only-if-cached\n", NOW), LOOKUP_PASS);
    CU_ASSERT_STRING_EQUAL(play.reason, "only-if-cached");
    CU_ASSERT_PTR_NULL(play.fill);
    static const char *const alone[] = {"", "If-Match: \"x\"\n", "Range: bytes=0-1\n"};
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) {
        char fields[128];
        snprintf(fields, sizeof fields, HOST "Cache-Control: only-if-cached\n%s", alone[i]);
        CU_ASSERT_EQUAL(play_begin(&play, cache, i ? "GET" : "POST", "/a", fields, NOW), LOOKUP_PASS);
        CU_ASSERT_STRING_EQUAL(play.reason, "only-if-cached");
        CU_ASSERT_PTR_NULL(play.fill);
    }
    CU_ASSERT_EQUAL(objects_of(cache), 0);
    // With a stored whole, all but the first and the last have it.
    play_store(cache, "/a", HOST, FRESH, 100, NOW);
    CU_ASSERT_EQUAL(play_probe(cache, "HEAD", "/a", HOST, NOW), LOOKUP_HIT);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST "Range: bytes=0-1\n", NOW), LOOKUP_HIT);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST "If-None-Match: \"x\"\n", NOW), LOOKUP_HIT);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST "Cache-Control: only-if-cached\n", NOW), LOOKUP_HIT);
    CU_ASSERT_EQUAL(play_probe(cache, "POST", "/a", HOST, NOW), LOOKUP_PASS);
    CU_ASSERT_EQUAL(play_probe(cache, "HEAD", "/a", HOST, NOW + 61), LOOKUP_PASS);
    cache_free(cache);
}

static void nothing_is_stored_without_memory(void) {
    struct cache *cache = new_cache(0);
    struct play play;
    CU_ASSERT_EQUAL(play_get(&play, cache, "/a", NOW), LOOKUP_PASS);
    CU_ASSERT_EQUAL(play_answer(&play, 200, FRESH, 100), FILL_STREAM);
    play_send(&play, 100);
    play_finish(&play);
    CU_ASSERT_EQUAL(play_read(&play, 200), READ_END);
    play_end(&play);
    cache_free(cache);
}

static void joining(void) {
    struct cache *cache = new_cache(1 << 20);
    struct play miss, early, late;
    play_get(&miss, cache, "/a", NOW);
    CU_ASSERT_EQUAL(play_get(&early, cache, "/a", NOW), LOOKUP_JOIN);
    CU_ASSERT_PTR_NULL(early.fill);
    CU_ASSERT_EQUAL(play_head(&early), READ_WAIT);
    CU_ASSERT_EQUAL(cache_fill_readers(miss.fill), 2);
    play_answer(&miss, 200, FRESH, -1);
    CU_ASSERT_EQUAL(early.wakes, 1);
    CU_ASSERT_EQUAL(play_head(&early), READ_READY);
    CU_ASSERT_EQUAL(early.head.age_s, 0);
    play_send(&miss, 3000);
    CU_ASSERT_EQUAL(play_get(&late, cache, "/a", NOW + 1), LOOKUP_JOIN);
    CU_ASSERT_STRING_EQUAL(late.reason, "arriving");
    CU_ASSERT_EQUAL(play_head(&late), READ_READY);
    CU_ASSERT_EQUAL(late.head.content_length, -1);
    CU_ASSERT_TRUE(cache_reader_seek(&late.reader, 10000));
    CU_ASSERT_EQUAL(play_read(&late, 1), READ_WAIT);
    CU_ASSERT_TRUE(cache_reader_seek(&late.reader, 0));
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST "Range: bytes=0-1\n", NOW), LOOKUP_MISS);
    CU_ASSERT_EQUAL(play_read(&late, 1 << 20), READ_WAIT);
    play_send(&miss, 200000);
    play_finish(&miss);
    CU_ASSERT_EQUAL(play_read(&early, 1 << 20), READ_END);
    CU_ASSERT_EQUAL(play_read(&late, 1 << 20), READ_END);
    CU_ASSERT_EQUAL(early.received + late.received, 2 * 203000);
    CU_ASSERT_EQUAL(play_head(&late), READ_READY);
    CU_ASSERT_EQUAL(late.head.content_length, 203000);
    play_end(&early);
    play_end(&late);
    CU_ASSERT_EQUAL(play_read(&miss, 1 << 20), READ_END); // the producer's own is as good as any
    play_end(&miss);
    cache_free(cache);
}

// Not storable: the joiner goes on its own, and for a while nobody queues.
static void marker(void) {
    struct cache *cache = new_cache(1 << 20);
    struct play miss, joiner;
    play_get(&miss, cache, "/a", NOW);
    play_get(&joiner, cache, "/a", NOW);
    CU_ASSERT_EQUAL(joiner.lookup, LOOKUP_JOIN);
    CU_ASSERT_EQUAL(play_answer(&miss, 200, "Cache-Control: no-store\n", 100), FILL_STREAM);
    CU_ASSERT_STRING_EQUAL(miss.reason, "no-store");
    CU_ASSERT_EQUAL(cache_fill_readers(miss.fill), 1);
    CU_ASSERT_EQUAL(play_head(&joiner), READ_GONE);
    CU_ASSERT_EQUAL(play_head(&joiner), READ_GONE);
    cache_stream(cache, &joiner.reader, &joiner.fill);
    CU_ASSERT_EQUAL(play_answer(&joiner, 200, FRESH, 10), FILL_STREAM);
    CU_ASSERT_EQUAL(play_head(&joiner), READ_READY);
    play_end(&joiner);
    CU_ASSERT_EQUAL(play_get(&joiner, cache, "/a", NOW + 4), LOOKUP_MISS);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW + 4), LOOKUP_MISS);
    play_end(&joiner);
    play_send(&miss, 100);
    play_finish(&miss);
    CU_ASSERT_EQUAL(play_read(&miss, 200), READ_END);
    play_end(&miss);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW + 5), LOOKUP_MISS);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW - 100), LOOKUP_MISS); // a clock that went back
    cache_free(cache);
}

static void marker_gives_way(void) {
    struct cache *cache = new_cache(1 << 20);
    struct play first, second;
    // Two fills at once: the requests are each for themselves.
    play_begin(&first, cache, "GET", "/a", HOST "Authorization: Basic eA==\n", NOW);
    CU_ASSERT_EQUAL(play_get(&second, cache, "/a", NOW), LOOKUP_MISS);
    CU_ASSERT_EQUAL(play_answer(&second, 200, "Cache-Control: no-store\n", 10), FILL_STREAM);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW), LOOKUP_MISS);
    CU_ASSERT_EQUAL(play_answer(&first, 200, FRESH "Cache-Control: public\n", 10), FILL_STORE);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW), LOOKUP_JOIN);
    play_send(&first, 10);
    play_finish(&first);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW), LOOKUP_HIT);
    cache_purge_all(cache);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW), LOOKUP_MISS);
    play_end(&first);
    play_end(&second);
    cache_free(cache);
}

// Any number of URLs that are not to be stored costs a bounded number of markers.
static void markers_are_bounded(void) {
    struct cache *cache = new_cache(16 << 20);
    uint64_t before = bytes_of(cache);
    for (int i = 0; i < 20000; i++) {
        struct play play;
        char path[32];
        snprintf(path, sizeof path, "/%d", i);
        play_get(&play, cache, path, NOW);
        play_answer(&play, 200, "Cache-Control: no-store\n", 0);
        play_finish(&play);
        play_end(&play);
    }
    CU_ASSERT_TRUE(bytes_of(cache) - before <= 64 * 64 * 256);
    CU_ASSERT_TRUE(bytes_of(cache) > before);
    cache_purge_all(cache);
    CU_ASSERT_EQUAL(bytes_of(cache), before);
    cache_free(cache);
}

// A condition of the client's own makes a fill whose 304 nobody else may get.
static void conditional_miss(void) {
    struct cache *cache = new_cache(1 << 20);
    struct play conditional, plain;
    play_begin(&conditional, cache, "GET", "/a", HOST "If-None-Match: \"x\"\n", NOW);
    CU_ASSERT_EQUAL(conditional.lookup, LOOKUP_MISS);
    CU_ASSERT_EQUAL(cache_fill_fields(conditional.fill).length, 0);
    CU_ASSERT_EQUAL(play_get(&plain, cache, "/a", NOW), LOOKUP_MISS);
    CU_ASSERT_EQUAL(play_answer(&conditional, 304, "ETag: \"x\"\n", -1), FILL_STREAM);
    CU_ASSERT_EQUAL(play_head(&conditional), READ_READY);
    CU_ASSERT_EQUAL(conditional.head.status, 304);
    play_finish(&conditional);
    CU_ASSERT_EQUAL(play_read(&conditional, 1), READ_END);
    play_end(&conditional);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW), LOOKUP_JOIN); // no marker came of it
    play_end(&plain);
    // Its 200 is stored like any other.
    play_begin(&conditional, cache, "GET", "/a", HOST "If-None-Match: \"x\"\n", NOW);
    CU_ASSERT_EQUAL(play_answer(&conditional, 200, FRESH "ETag: \"y\"\n", 10), FILL_STORE);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW), LOOKUP_JOIN);
    play_end(&conditional);
    cache_free(cache);
}

static void abandoning(void) {
    struct cache *cache = new_cache(1 << 20);
    struct play miss, joiner, reader;
    // before the head
    play_get(&miss, cache, "/a", NOW);
    play_get(&joiner, cache, "/a", NOW);
    CU_ASSERT_EQUAL(play_head(&joiner), READ_WAIT);
    CU_ASSERT_EQUAL(play_head(&miss), READ_WAIT);
    play_abandon(&miss);
    CU_ASSERT_EQUAL(joiner.wakes, 1);
    CU_ASSERT_EQUAL(play_head(&joiner), READ_GONE);
    CU_ASSERT_EQUAL(miss.wakes, 1);
    CU_ASSERT_EQUAL(play_head(&miss), READ_BROKEN);
    play_end(&joiner);
    play_end(&miss);
    // after it
    play_get(&miss, cache, "/a", NOW);
    play_get(&joiner, cache, "/a", NOW);
    play_answer(&miss, 200, FRESH, 1000);
    play_get(&reader, cache, "/a", NOW);
    CU_ASSERT_EQUAL(play_head(&reader), READ_READY);
    play_send(&miss, 400);
    play_abandon(&miss);
    CU_ASSERT_EQUAL(play_read(&reader, 1000), READ_BROKEN);
    CU_ASSERT_EQUAL(reader.received, 400);
    CU_ASSERT_EQUAL(play_head(&joiner), READ_GONE); // has delivered nothing yet
    CU_ASSERT_EQUAL(play_head(&miss), READ_READY);
    CU_ASSERT_EQUAL(play_read(&miss, 1000), READ_BROKEN);
    play_end(&reader);
    play_end(&joiner);
    play_end(&miss);
    CU_ASSERT_EQUAL(objects_of(cache), 0);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW), LOOKUP_MISS);
    cache_free(cache);
}

// Completeness is proven: a finish that does not match the announced length is an abandon.
static void cut_short_is_never_stored(void) {
    struct cache *cache = new_cache(1 << 20);
    static const int64_t sent[] = {0, 999, 1001};
    for (size_t i = 0; i < 3; i++) {
        struct play miss;
        play_get(&miss, cache, "/a", NOW);
        play_answer(&miss, 200, FRESH, 1000);
        play_send(&miss, (uint64_t)sent[i]);
        play_finish(&miss);
        CU_ASSERT_EQUAL(play_read(&miss, 2000), READ_BROKEN);
        play_end(&miss);
        CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW), LOOKUP_MISS);
    }
    struct play miss; // no head at all
    play_get(&miss, cache, "/a", NOW);
    play_finish(&miss);
    CU_ASSERT_EQUAL(play_head(&miss), READ_BROKEN);
    play_end(&miss);
    CU_ASSERT_EQUAL(objects_of(cache), 0);
    cache_free(cache);
}

static void no_body(void) {
    struct cache *cache = new_cache(1 << 20);
    struct play play;
    play_get(&play, cache, "/a", NOW);
    CU_ASSERT_EQUAL(play_answer(&play, 204, FRESH, -1), FILL_STORE);
    play_finish(&play);
    play_end(&play);
    CU_ASSERT_EQUAL(play_get(&play, cache, "/a", NOW), LOOKUP_HIT);
    CU_ASSERT_EQUAL(play_head(&play), READ_READY);
    CU_ASSERT_FALSE(play.head.has_body);
    CU_ASSERT_EQUAL(play_read(&play, 1), READ_END);
    play_end(&play);
    play_store(cache, "/empty", HOST, FRESH, 0, NOW);
    CU_ASSERT_EQUAL(play_get(&play, cache, "/empty", NOW), LOOKUP_HIT);
    CU_ASSERT_EQUAL(play_head(&play), READ_READY);
    CU_ASSERT_EQUAL(play.head.content_length, 0);
    play_end(&play);
    cache_free(cache);
}

static void variants(void) {
    struct cache *cache = new_cache(1 << 20);
    struct play plain, gzip, joiner;
    static const char *const gzip_fields = HOST "Accept-Encoding: gzip\n";
    play_get(&plain, cache, "/a", NOW);
    play_begin(&gzip, cache, "GET", "/a", gzip_fields, NOW);
    CU_ASSERT_EQUAL(gzip.lookup, LOOKUP_JOIN); // nothing is known of Vary yet
    CU_ASSERT_EQUAL(play_answer(&plain, 200, FRESH "Vary: Accept-Encoding\n", 10), FILL_STORE);
    CU_ASSERT_EQUAL(play_head(&gzip), READ_GONE);
    play_end(&gzip);
    CU_ASSERT_EQUAL(play_begin(&gzip, cache, "GET", "/a", gzip_fields, NOW), LOOKUP_MISS);
    play_send(&plain, 10);
    play_finish(&plain);
    play_end(&plain);
    // Vary is known now: a request for another variant does not wait for this one.
    CU_ASSERT_EQUAL(play_begin(&joiner, cache, "GET", "/a", HOST "Accept-Encoding: br\n", NOW), LOOKUP_MISS);
    CU_ASSERT_STRING_EQUAL(joiner.reason, "variant");
    play_end(&joiner);
    CU_ASSERT_EQUAL(play_begin(&joiner, cache, "GET", "/a", gzip_fields, NOW), LOOKUP_JOIN);
    gzip.seed = joiner.seed = 1;
    play_answer(&gzip, 200, FRESH "Vary: accept-encoding\n", 20);
    play_send(&gzip, 20);
    play_finish(&gzip);
    CU_ASSERT_EQUAL(play_head(&joiner), READ_READY);
    CU_ASSERT_EQUAL(play_read(&joiner, 30), READ_END);
    play_end(&joiner);
    play_end(&gzip);
    CU_ASSERT_EQUAL(objects_of(cache), 2);
    CU_ASSERT_EQUAL(play_begin(&gzip, cache, "GET", "/a", gzip_fields, NOW), LOOKUP_HIT);
    gzip.seed = 1;
    CU_ASSERT_EQUAL(play_read(&gzip, 30), READ_END);
    CU_ASSERT_EQUAL(gzip.received, 20);
    play_end(&gzip);
    CU_ASSERT_EQUAL(play_get(&plain, cache, "/a", NOW), LOOKUP_HIT);
    CU_ASSERT_EQUAL(play_read(&plain, 30), READ_END);
    CU_ASSERT_EQUAL(plain.received, 10);
    play_end(&plain);
    // Another Vary: what the request would have selected before is gone with it, and no more.
    play_store(cache, "/a", HOST "Cache-Control: no-cache\n", FRESH "Vary: Cookie\n", 30, NOW);
    CU_ASSERT_EQUAL(objects_of(cache), 2);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", gzip_fields, NOW), LOOKUP_HIT);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST "Cookie: a\n", NOW), LOOKUP_MISS);
    cache_free(cache);
}

static void variants_are_bounded(void) {
    struct cache *cache = new_cache(1 << 20);
    for (int i = 0; i < 100; i++) {
        char fields[64];
        snprintf(fields, sizeof fields, HOST "Cookie: %d\n", i);
        play_store(cache, "/a", fields, FRESH "Vary: Cookie\n", 10, NOW);
    }
    CU_ASSERT_EQUAL(objects_of(cache), 16);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST "Cookie: 99\n", NOW), LOOKUP_HIT);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST "Cookie: 0\n", NOW), LOOKUP_MISS);
    cache_free(cache);
}

static void replacing(void) {
    struct cache *cache = new_cache(1 << 20);
    struct play old, new;
    play_store(cache, "/a", HOST, FRESH, 100000, NOW);
    play_get(&old, cache, "/a", NOW);
    play_read(&old, 10);
    CU_ASSERT_EQUAL(
            play_begin(&new, cache, "GET", "/a", HOST "Cache-Control: no-cache\n", NOW + 1), LOOKUP_MISS);
    new.seed = 1;
    play_answer(&new, 200, FRESH, 50);
    play_send(&new, 50);
    play_finish(&new);
    play_end(&new);
    CU_ASSERT_EQUAL(play_read(&old, 200000), READ_END); // usable for its reader
    CU_ASSERT_EQUAL(old.received, 100000);
    CU_ASSERT_TRUE(bytes_of(cache) > 100000); // and counted until it is released
    play_end(&old);
    CU_ASSERT_TRUE(bytes_of(cache) < 100000);
    CU_ASSERT_EQUAL(objects_of(cache), 1);
    play_get(&new, cache, "/a", NOW);
    new.seed = 1;
    CU_ASSERT_EQUAL(play_read(&new, 100), READ_END);
    play_end(&new);
    cache_free(cache);
}

// Of two fills for one URL the response that arrived first must not replace the later one.
static void older_does_not_replace_newer(void) {
    struct cache *cache = new_cache(1 << 20);
    struct play slow, fast, hit;
    play_begin(&slow, cache, "GET", "/a", HOST "If-None-Match: \"x\"\n", NOW);
    play_answer(&slow, 200, FRESH, 10);
    play_begin(&fast, cache, "GET", "/a", HOST "Cache-Control: no-cache\n", NOW + 10);
    CU_ASSERT_EQUAL(fast.lookup, LOOKUP_MISS);
    fast.seed = 1;
    play_answer(&fast, 200, FRESH, 10);
    play_send(&fast, 10);
    play_finish(&fast);
    play_send(&slow, 10);
    play_finish(&slow);
    CU_ASSERT_EQUAL(play_get(&hit, cache, "/a", NOW + 10), LOOKUP_HIT);
    hit.seed = 1;
    CU_ASSERT_EQUAL(play_read(&hit, 20), READ_END);
    play_end(&hit);
    play_end(&slow);
    play_end(&fast);
    cache_free(cache);
}

static bool ends_in_b(void *context, struct view authority, struct view path) {
    ++*(unsigned *)context;
    return view_equal(authority, VIEW("host")) && path.data[path.length - 1] == 'b';
}

static void purging_by_pattern(void) {
    struct cache *cache = new_cache(1 << 20);
    unsigned asked = 0;
    static const char *const paths[] = {"/a/a", "/a/b", "/a", "/b/b", "/c"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        play_store(cache, paths[i], HOST, FRESH, 100, NOW);
    CU_ASSERT_EQUAL(cache_purge_prefix(cache, VIEW("other"), VIEW("/")), 0);
    CU_ASSERT_EQUAL(cache_purge_prefix(cache, VIEW("host"), VIEW("/a/")), 2);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW), LOOKUP_HIT);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a/a", HOST, NOW), LOOKUP_MISS);
    CU_ASSERT_EQUAL(cache_purge_mask(cache, ends_in_b, &asked, VIEW("*b")), 1);
    CU_ASSERT_EQUAL(asked, 3);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/c", HOST, NOW), LOOKUP_HIT);
    CU_ASSERT_EQUAL(cache_purge_prefix(cache, VIEW("host"), VIEW("/")), 2);
    CU_ASSERT_EQUAL(objects_of(cache), 0);
    cache_free(cache);
}

static void purging(void) {
    struct cache *cache = new_cache(1 << 20);
    uint64_t before = bytes_of(cache);
    struct play fill, pending, reader;
    play_store(cache, "/a", HOST, FRESH, 100, NOW);
    play_store(cache, "/b", HOST, FRESH, 100, NOW);
    play_get(&fill, cache, "/c", NOW);
    play_answer(&fill, 200, FRESH, 200);
    play_send(&fill, 100);
    play_get(&reader, cache, "/c", NOW);
    play_get(&pending, cache, "/d", NOW);
    CU_ASSERT_EQUAL(cache_purge_url(cache, VIEW("host"), VIEW("/a")), 1);
    CU_ASSERT_EQUAL(cache_purge_url(cache, VIEW("host"), VIEW("/a")), 0);
    CU_ASSERT_EQUAL(cache_purge_host(cache, VIEW("other")), 0);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/b", HOST, NOW), LOOKUP_HIT);
    CU_ASSERT_EQUAL(cache_purge_host(cache, VIEW("host")), 1);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/c", HOST, NOW), LOOKUP_MISS);
    CU_ASSERT_FALSE(cache_fill_stores(fill.fill));
    CU_ASSERT_EQUAL(play_send(&fill, 100), 100); // who reads it goes on
    play_finish(&fill);
    CU_ASSERT_EQUAL(play_read(&reader, 300), READ_END);
    CU_ASSERT_EQUAL(reader.received, 200);
    CU_ASSERT_EQUAL(play_answer(&pending, 200, FRESH, 10), FILL_STREAM);
    CU_ASSERT_STRING_EQUAL(pending.reason, "purged");
    play_end(&reader);
    play_end(&pending);
    play_end(&fill);
    CU_ASSERT_EQUAL(objects_of(cache), 0);
    CU_ASSERT_EQUAL(bytes_of(cache), before);
    cache_free(cache);
}

static void invalidating(void) {
    struct cache *cache = new_cache(1 << 20);
    struct play post;
    play_store(cache, "/a", HOST, FRESH, 100, NOW);
    play_store(cache, "/b", HOST, FRESH, 100, NOW);
    play_begin(&post, cache, "POST", "/a", HOST, NOW);
    struct text_head answer;
    cache_invalidate(cache, &post.query, text_response(&answer, 200, ""));
    play_end(&post);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW), LOOKUP_MISS);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/b", HOST, NOW), LOOKUP_HIT);
    cache_free(cache);
}

// Whatever its status, a stored response knows its length.
static void lengths_of_other_statuses(void) {
    static const int rows[] = {200, 203, 301, 404, 410};
    struct cache *cache = cache_new(&(struct cache_limits){.memory_bytes = 1 << 20});
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct play play;
        cache_purge_all(cache);
        play_get(&play, cache, "/a", PLAY_NOW);
        CU_ASSERT_EQUAL(play_answer(&play, rows[i], "Cache-Control: max-age=60\n", 10), FILL_STORE);
        play_send(&play, 10);
        play_finish(&play);
        play_end(&play);
        CU_ASSERT_EQUAL(play_get(&play, cache, "/a", PLAY_NOW), LOOKUP_HIT);
        CU_ASSERT_EQUAL(play_head(&play), READ_READY);
        CU_ASSERT_EQUAL(play.head.content_length, 10);
        CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_END);
        CU_ASSERT_EQUAL(play.received, 10);
        play_end(&play);
    }
    cache_free(cache);
}

SUITE(cache, CASE(miss_then_hit), CASE(small_in_one_piece), CASE(scope), CASE(passing),
        CASE(request_without_storing), CASE(nothing_is_stored_without_memory), CASE(joining), CASE(marker),
        CASE(marker_gives_way), CASE(markers_are_bounded), CASE(conditional_miss), CASE(abandoning),
        CASE(cut_short_is_never_stored), CASE(no_body), CASE(variants), CASE(variants_are_bounded),
        CASE(replacing), CASE(older_does_not_replace_newer), CASE(purging_by_pattern), CASE(purging),
        CASE(invalidating), CASE(lengths_of_other_statuses))
