// Windows, limits and the budget.
#include "cache/cache.h"
#include "tests/unit/cache/play.h"

#include <stdio.h>

#define FRESH "Cache-Control: max-age=60\n"
#define HOST "Host: host\n"
#define NOW PLAY_NOW
#define WINDOW 65536

static struct cache *new_cache(uint64_t memory_bytes, uint64_t minimum, uint64_t maximum) {
    struct cache_limits limits = {
            .memory_bytes = memory_bytes, .minimum_object_bytes = minimum, .maximum_object_bytes = maximum};
    return cache_new(&limits);
}

static struct cache_stats stats_of(struct cache *cache) {
    struct cache_stats stats;
    cache_stats(cache, &stats);
    return stats;
}

static void begin_stream(struct play *play, struct cache *cache) {
    CU_ASSERT_EQUAL(play_begin(play, cache, "POST", "/a", HOST, NOW), LOOKUP_PASS);
    CU_ASSERT_EQUAL(play_answer(play, 200, FRESH, -1), FILL_STREAM);
}

static void window(void) {
    struct cache *cache = new_cache(1 << 20, 0, 0);
    struct play play;
    begin_stream(&play, cache);
    CU_ASSERT_EQUAL(play_send(&play, 1 << 20), WINDOW);
    CU_ASSERT_EQUAL(cache_fill_room(play.fill, play_room_wake, &play), 0);
    CU_ASSERT_EQUAL(play_read(&play, WINDOW / 4 - 1), READ_READY);
    CU_ASSERT_EQUAL(play.room_wakes, 0); // too little to be worth a wake
    CU_ASSERT_EQUAL(play_read(&play, 1), READ_READY);
    CU_ASSERT_EQUAL(play.room_wakes, 1);
    CU_ASSERT_EQUAL(cache_fill_room(play.fill, play_room_wake, &play), WINDOW / 4);
    for (int i = 0; i < 100; i++) {
        play_send(&play, 1 << 20);
        play_read(&play, 30000);
        CU_ASSERT_TRUE(stats_of(cache).stream_bytes < WINDOW + 3 * 17000 + 4096);
    }
    play_finish(&play);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(play.received, play.sent);
    play_end(&play);
    CU_ASSERT_EQUAL(stats_of(cache).stream_bytes, 0);
    cache_free(cache);
}

static void nobody_reads_a_stream(void) {
    struct cache *cache = new_cache(1 << 20, 0, 0);
    struct play play;
    begin_stream(&play, cache);
    CU_ASSERT_EQUAL(play_send(&play, 1 << 20), WINDOW);
    cache_reader_detach(&play.reader);
    CU_ASSERT_EQUAL(play.room_wakes, 1);
    CU_ASSERT_EQUAL(cache_fill_readers(play.fill), 0);
    CU_ASSERT_EQUAL(play_send(&play, 1 << 20), 1 << 20); // goes on, and is dropped
    CU_ASSERT_TRUE(stats_of(cache).stream_bytes < 2 * WINDOW);
    play_finish(&play);
    CU_ASSERT_EQUAL(stats_of(cache).stream_bytes, 0);
    cache_free(cache);
}

// What is about to be given up for want of readers is joined by nobody, with its head or without; one that is
// read is not given up.
static void left_by_all(void) {
    for (int has_head = 0; has_head < 2; has_head++) {
        struct cache *cache = new_cache(1 << 20, 0, 0);
        struct play play, late;
        play_get(&play, cache, "/a", NOW);
        if (has_head)
            CU_ASSERT_EQUAL(play_answer(&play, 200, FRESH, 1000), FILL_STORE);
        CU_ASSERT_FALSE(cache_fill_leave(play.fill));
        CU_ASSERT_EQUAL(play_get(&late, cache, "/a", NOW), LOOKUP_JOIN);
        cache_reader_detach(&play.reader);
        CU_ASSERT_FALSE(cache_fill_leave(play.fill)); // the late one reads it
        cache_reader_detach(&late.reader);
        CU_ASSERT_TRUE(cache_fill_leave(play.fill));
        CU_ASSERT_EQUAL(play_get(&late, cache, "/a", NOW), LOOKUP_MISS);
        cache_fill_abandon(play.fill);
        CU_ASSERT_EQUAL(play_answer(&late, 200, FRESH, 1000), FILL_STORE);
        play_send(&late, 1000);
        play_finish(&late);
        CU_ASSERT_EQUAL(play_read(&late, UINT64_MAX), READ_END);
        play_end(&late);
        CU_ASSERT_EQUAL(play_get(&play, cache, "/a", NOW), LOOKUP_HIT);
        cache_reader_detach(&play.reader);
        cache_free(cache);
    }
}

// A fill that outgrows what may be stored: its readers get every byte, the slowest sets the pace.
static void outgrowing(void) {
    struct cache *cache = new_cache(4 << 20, 0, 300000);
    uint64_t before = stats_of(cache).bytes;
    struct play play, slow, undecided;
    play_get(&play, cache, "/a", NOW);
    play_get(&undecided, cache, "/a", NOW);
    CU_ASSERT_EQUAL(play_answer(&play, 200, FRESH, -1), FILL_STORE);
    CU_ASSERT_EQUAL(play_get(&slow, cache, "/a", NOW), LOOKUP_JOIN);
    CU_ASSERT_EQUAL(play_send(&play, 200000), 200000);
    CU_ASSERT_EQUAL(play_read(&play, 200000), READ_READY);
    CU_ASSERT_EQUAL(
            play_send(&play, 1 << 20), 100001); // one byte over: then it is a stream, and nobody has read on
    CU_ASSERT_FALSE(cache_fill_stores(play.fill));
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW), LOOKUP_MISS); // no new joiners
    CU_ASSERT_EQUAL(play_read(&play, 200000), READ_WAIT);
    CU_ASSERT_EQUAL(play_send(&play, 1), 0);            // the slow one is 300001 behind
    CU_ASSERT_EQUAL(play_head(&undecided), READ_READY); // decided by the head
    CU_ASSERT_EQUAL(play_read(&slow, 290000), READ_READY);
    CU_ASSERT_EQUAL(play.room_wakes, 0);
    CU_ASSERT_EQUAL(play_read(&undecided, 290000), READ_READY);
    CU_ASSERT_EQUAL(play.room_wakes, 1);
    CU_ASSERT_TRUE(stats_of(cache).bytes - before < 150000); // what all have read is freed
    while (play.sent < 500000) {
        uint64_t sent = play_send(&play, 500000 - play.sent);
        enum read read[] = {play_read(&slow, 50000), play_read(&undecided, 60000), play_read(&play, 70000)};
        CU_ASSERT_FATAL(sent > 0 || read[0] == READ_READY);
    }
    play_finish(&play);
    CU_ASSERT_EQUAL(play_read(&slow, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(play_read(&undecided, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(slow.received + undecided.received + play.received, 1500000);
    play_end(&slow);
    play_end(&undecided);
    play_end(&play);
    CU_ASSERT_EQUAL(stats_of(cache).objects, 0);
    cache_purge_all(cache); // the marker
    CU_ASSERT_EQUAL(stats_of(cache).bytes, before);
    cache_free(cache);
}

// A joiner that turns out to be of another variant does not hold the others up.
static void outgrowing_with_a_stranger(void) {
    struct cache *cache = new_cache(4 << 20, 0, 100000);
    struct play play, stranger;
    play_get(&play, cache, "/a", NOW);
    CU_ASSERT_EQUAL(play_begin(&stranger, cache, "GET", "/a", HOST "Accept: x\n", NOW), LOOKUP_JOIN);
    play_answer(&play, 200, FRESH "Vary: Accept\n", -1);
    CU_ASSERT_EQUAL(play_send(&play, 1 << 20), 100001);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_WAIT);
    CU_ASSERT_EQUAL(play_send(&play, 1), 0);
    CU_ASSERT_EQUAL(play_head(&stranger), READ_GONE);
    CU_ASSERT_EQUAL(play.room_wakes, 1);
    CU_ASSERT_EQUAL(play_send(&play, 1000), 1000);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_WAIT);
    play_end(&stranger);
    play_end(&play);
    cache_free(cache);
}

// A reader that stands still is cut off when another waits for what it holds up, and only then.
static void laggards_are_cut(void) {
    struct cache *cache = new_cache(4 << 20, 0, 100000);
    struct play play, still;
    play_get(&play, cache, "/a", NOW);
    CU_ASSERT_EQUAL(play_answer(&play, 200, FRESH, -1), FILL_STORE);
    CU_ASSERT_EQUAL(play_get(&still, cache, "/a", NOW), LOOKUP_JOIN);
    CU_ASSERT_EQUAL(play_head(&still), READ_READY);
    CU_ASSERT_EQUAL(play_send(&play, 1 << 20), 100001);
    CU_ASSERT_EQUAL(cache_fill_shed(play.fill), 0); // both have something to read
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_WAIT);
    CU_ASSERT_EQUAL(play_send(&play, 1), 0);
    CU_ASSERT_EQUAL(cache_fill_shed(play.fill), 1);
    CU_ASSERT_EQUAL(cache_fill_shed(play.fill), 0); // once
    CU_ASSERT_EQUAL(still.wakes, 1);
    CU_ASSERT_EQUAL(play_read(&still, 10), READ_BROKEN);
    CU_ASSERT_EQUAL(play_send(&play, 1), 0); // what it may still be sending stays
    play_end(&still);
    CU_ASSERT_EQUAL(play.room_wakes, 1);
    CU_ASSERT_TRUE(play_send(&play, 1000) == 1000);
    play_finish(&play);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_END);
    play_end(&play);
    cache_free(cache);
}

// The end of a fill is the end of its wakes, even of one that waits for room.
static void no_wake_after_the_end(void) {
    struct cache *cache = new_cache(1 << 20, 0, 0);
    struct play play;
    begin_stream(&play, cache);
    play_send(&play, 1 << 20);
    CU_ASSERT_EQUAL(cache_fill_room(play.fill, play_room_wake, &play), 0);
    play_abandon(&play);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_BROKEN);
    CU_ASSERT_EQUAL(play.received, WINDOW);
    CU_ASSERT_EQUAL(play.room_wakes, 0);
    play_end(&play);
    CU_ASSERT_EQUAL(play.wakes, 0); // it never waited
    cache_free(cache);
}

static void limits_of_objects(void) {
    struct cache *cache = new_cache(4 << 20, 1000, 300000);
    struct play play;
    static const struct {
        int64_t announced;
        uint64_t bytes;
        enum fill_kind kind;
        bool stored;
    } rows[] = {
            {300001, 300001, FILL_STREAM, false},
            {300000, 300000, FILL_STORE, true},
            {-1, 300000, FILL_STORE, true},
            {-1, 300001, FILL_STORE, false},
            {999, 999, FILL_STREAM, false},
            {1000, 1000, FILL_STORE, true},
            {-1, 999, FILL_STORE, false},
            {-1, 1000, FILL_STORE, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        play_get(&play, cache, "/a", NOW);
        CU_ASSERT_EQUAL(play_answer(&play, 200, FRESH, rows[i].announced), rows[i].kind);
        while (play_send(&play, rows[i].bytes - play.sent))
            play_read(&play, UINT64_MAX);
        play_finish(&play);
        CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_END);
        CU_ASSERT_EQUAL(play.received, rows[i].bytes);
        play_end(&play);
        CU_ASSERT_EQUAL(stats_of(cache).objects, rows[i].stored);
        cache_purge_all(cache);
    }
    cache_free(cache);
}

static void in_small_steps(void) {
    struct cache *cache = new_cache(4 << 20, 0, 0);
    struct play play, hit;
    uint64_t before = stats_of(cache).bytes;
    play_get(&play, cache, "/a", NOW);
    play_answer(&play, 200, FRESH, -1);
    for (unsigned i = 1; play.sent < 200000; i++)
        CU_ASSERT_EQUAL(play_send(&play, i % 700), i % 700);
    play_finish(&play);
    play_end(&play);
    CU_ASSERT_TRUE(stats_of(cache).bytes - before < 200000 * 3 / 2);
    play_get(&hit, cache, "/a", NOW);
    for (unsigned i = 1; play_read(&hit, i % 1300) == READ_READY; i++)
        continue;
    CU_ASSERT_EQUAL(hit.received, play.sent);
    play_end(&hit);
    cache_free(cache);
}

// What is used never exceeds the limit, and the newest are there.
static void within_budget(void) {
    struct cache *cache = new_cache(1 << 20, 0, 0);
    uint64_t before = stats_of(cache).bytes;
    for (int i = 0; i < 500; i++) {
        char path[32];
        snprintf(path, sizeof path, "/%d", i);
        CU_ASSERT_EQUAL(play_store(cache, path, HOST, FRESH, 10000, NOW), FILL_STORE);
        CU_ASSERT_TRUE(stats_of(cache).bytes <= 1 << 20);
    }
    struct cache_stats stats = stats_of(cache);
    CU_ASSERT_TRUE(stats.objects > 80 && stats.objects < 105);
    CU_ASSERT_EQUAL(stats.evictions, 500 - stats.objects);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/499", HOST, NOW), LOOKUP_HIT);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/0", HOST, NOW), LOOKUP_MISS);
    struct cache_limits smaller = {.memory_bytes = 1 << 19};
    cache_set_limits(cache, &smaller);
    CU_ASSERT_TRUE(stats_of(cache).bytes <= 1 << 19);
    CU_ASSERT_TRUE(stats_of(cache).objects > 35);
    struct cache_limits larger = {.memory_bytes = 256 << 20}; // the index grows with it
    cache_set_limits(cache, &larger);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/499", HOST, NOW), LOOKUP_HIT);
    cache_set_limits(cache, &(struct cache_limits){.memory_bytes = 1 << 20});
    cache_purge_all(cache);
    CU_ASSERT_EQUAL(stats_of(cache).bytes, before);
    CU_ASSERT_EQUAL(stats_of(cache).objects, 0);
    cache_free(cache);
}

// Objects that are being read cannot be evicted; when they fill the store, new fills go by as streams.
static void full_of_readers(void) {
    struct cache *cache = new_cache(1 << 20, 0, 0);
    static struct play readers[16];
    for (int i = 0; i < 16; i++) {
        char path[32];
        snprintf(path, sizeof path, "/%d", i);
        play_store(cache, path, HOST, FRESH, 60000, NOW);
        play_get(&readers[i], cache, path, NOW);
        CU_ASSERT_EQUAL(readers[i].lookup, LOOKUP_HIT);
    }
    struct play play;
    play_get(&play, cache, "/new", NOW);
    CU_ASSERT_EQUAL(play_answer(&play, 200, FRESH, 200000), FILL_STORE);
    CU_ASSERT_EQUAL(play_send(&play, 200000), WINDOW);
    CU_ASSERT_FALSE(cache_fill_stores(play.fill));
    CU_ASSERT_TRUE(stats_of(cache).bytes <= 1 << 20);
    do
        play_read(&play, UINT64_MAX);
    while (play_send(&play, 200000 - play.sent));
    play_finish(&play);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(play.received, 200000);
    play_end(&play);
    CU_ASSERT_EQUAL(stats_of(cache).objects, 16);
    for (int i = 0; i < 16; i++) {
        CU_ASSERT_EQUAL(play_read(&readers[i], UINT64_MAX), READ_END);
        play_end(&readers[i]);
    }
    // They were hit, and stay for a while; but the store is not stuck.
    CU_ASSERT_EQUAL(play_store(cache, "/new", HOST, FRESH, 200000, NOW), FILL_STORE);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/new", HOST, NOW), LOOKUP_HIT);
    cache_free(cache);
}

// One-hit wonders pass through the small queue and leave the ones that are asked for again.
static void scan_resistance(void) {
    struct cache *cache = new_cache(1 << 20, 0, 0);
    char path[32];
    for (int i = 0; i < 20; i++) {
        snprintf(path, sizeof path, "/hot/%d", i);
        play_store(cache, path, HOST, FRESH, 10000, NOW);
        CU_ASSERT_EQUAL(play_probe(cache, "GET", path, HOST, NOW), LOOKUP_HIT);
    }
    for (int i = 0; i < 1000; i++) {
        snprintf(path, sizeof path, "/scan/%d", i);
        play_store(cache, path, HOST, FRESH, 10000, NOW);
    }
    unsigned hits = 0;
    for (int i = 0; i < 20; i++) {
        snprintf(path, sizeof path, "/hot/%d", i);
        hits += play_probe(cache, "GET", path, HOST, NOW) == LOOKUP_HIT;
    }
    CU_ASSERT_EQUAL(hits, 20);
    cache_free(cache);
}

static void baseline(void) {
    struct cache *cache = new_cache(1 << 20, 0, 0);
    struct cache_stats before = stats_of(cache), after;
    struct play play;
    for (int round = 0; round < 3; round++) {
        play_store(cache, "/a", HOST, FRESH "ETag: \"x\"\n", 100000, NOW);
        play_get(&play, cache, "/a", NOW + 100);
        play_answer(&play, 304, FRESH, -1);
        play_finish(&play);
        play_end(&play);
        play_store(cache, "/b", HOST, FRESH, 5000, NOW);
        play_get(&play, cache, "/c", NOW);
        play_answer(&play, 200, FRESH, -1);
        play_send(&play, 70000);
        play_end(&play);
        begin_stream(&play, cache);
        play_send(&play, 30000);
        CU_ASSERT_TRUE(stats_of(cache).stream_bytes > 30000);
        CU_ASSERT_EQUAL(stats_of(cache).fills, 1);
        play_end(&play);
        CU_ASSERT_TRUE(stats_of(cache).bytes > before.bytes + 105000);
        CU_ASSERT_EQUAL(cache_purge_all(cache), 2);
    }
    after = stats_of(cache);
    CU_ASSERT_EQUAL(after.bytes, before.bytes);
    CU_ASSERT_EQUAL(after.stream_bytes, 0);
    CU_ASSERT_EQUAL(after.fills, 0);
    cache_free(cache);
}

SUITE(cache_fill, CASE(window), CASE(nobody_reads_a_stream), CASE(left_by_all), CASE(outgrowing),
        CASE(outgrowing_with_a_stranger), CASE(laggards_are_cut), CASE(no_wake_after_the_end),
        CASE(limits_of_objects), CASE(in_small_steps), CASE(within_budget), CASE(full_of_readers),
        CASE(scan_resistance), CASE(baseline))
