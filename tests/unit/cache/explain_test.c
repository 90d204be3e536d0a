#include "tests/unit/cache/play.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static struct cache *cache;
static struct cache_explanation told;

static void begin(void) {
    cache = cache_new(&(struct cache_limits){.memory_bytes = 4 << 20});
}

static void end(void) {
    cache_free(cache); // checks that nothing is charged any more
}

static void explain(const char *method, const char *path, const char *fields, int64_t now_s) {
    struct text_head request;
    struct cache_query query = {.head = text_request(&request, method, fields),
            .destination = {.address = {{[10] = 0xff, [11] = 0xff, 192, 0, 2, 1}}, .port = 80},
            .authority = VIEW("host"),
            .path = view_of(path),
            .now = {now_s, now_s},
            .store_allowed = true};
    memset(&told, 0xee, sizeof told);
    cache_explain(cache, &query, &told);
}

#define STORED "Date: Sun, 06 Nov 1994 08:49:37 GMT\nCache-Control: max-age=60\nETag: \"e\"\n"

// What it says is what a lookup then says.
static void it_says_what_the_lookup_says(void) {
    static const struct {
        const char *method, *fields;
        int64_t after_s;
    } rows[] = {
            {"GET", "Host: host\n", 5},
            {"GET", "Host: host\n", 60},
            {"GET", "Host: host\n", 61},
            {"GET", "Host: host\nCache-Control: no-cache\n", 5},
            {"GET", "Host: host\nCache-Control: max-age=1\n", 5},
            {"GET", "Host: host\nCache-Control: max-stale\n", 90},
            {"GET", "Host: host\nCache-Control: only-if-cached\n", 5},
            {"GET", "Host: host\nCache-Control: only-if-cached\n", 90},
            {"GET", "Host: host\nRange: bytes=0-1\n", 5},
            {"GET", "Host: host\nRange: bytes=0-1\n", 90},
            {"GET", "Host: host\nIf-Match: \"x\"\n", 5},
            {"HEAD", "Host: host\n", 5},
            {"HEAD", "Host: host\n", 90},
            {"POST", "Host: host\n", 5},
            {"GET", "Host: host\nAuthorization: Basic eDp5\n", 5},
    };
    begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int is_stored = 0; is_stored <= 1; is_stored++) {
            struct play play;
            cache_purge_all(cache);
            if (is_stored)
                play_store(cache, "/a", "Host: host\n", STORED, 100, PLAY_NOW);
            explain(rows[i].method, "/a", rows[i].fields, PLAY_NOW + rows[i].after_s);
            play_begin(&play, cache, rows[i].method, "/a", rows[i].fields, PLAY_NOW + rows[i].after_s);
            CU_ASSERT_EQUAL(told.lookup, play.lookup);
            CU_ASSERT_STRING_EQUAL(told.reason, play.reason);
            CU_ASSERT_EQUAL(told.is_unavailable, play.lookup == LOOKUP_PASS && !play.fill);
            CU_ASSERT_EQUAL(told.is_refreshed, play.lookup == LOOKUP_HIT && play.fill);
            struct view fields = play.fill ? cache_fill_fields(play.fill) : VIEW("");
            CU_ASSERT_TRUE(view_equal(view_of(told.fields), fields));
            CU_ASSERT_EQUAL(told.variant_count, is_stored);
            play_end(&play);
        }
    end();
}

static void it_tells_what_is_stored(void) {
    begin();
    play_store(cache, "/a", "Host: host\nAccept-Language: cs\n",
            STORED "Vary: Accept-Language\nContent-Type: text/plain\n", 100, PLAY_NOW);
    play_store(cache, "/a", "Host: host\nAccept-Language: en\n",
            STORED "Vary: Accept-Language\nLast-Modified: Sun, 06 Nov 1994 08:00:00 GMT\n", 300, PLAY_NOW);
    explain("GET", "/a", "Host: host\nAccept-Language: cs\n", PLAY_NOW + 20);
    CU_ASSERT_EQUAL(told.lookup, LOOKUP_HIT);
    CU_ASSERT_EQUAL_FATAL(told.variant_count, 2);
    for (unsigned i = 0; i < 2; i++) {
        const struct cache_variant *variant = &told.variants[i];
        bool is_czech = variant->content_bytes == 100;
        CU_ASSERT_EQUAL(variant->state, VARIANT_STORED);
        CU_ASSERT_EQUAL(variant->is_selected, is_czech);
        CU_ASSERT_EQUAL(variant->status, 200);
        CU_ASSERT_EQUAL(variant->age_s, 20);
        CU_ASSERT_EQUAL(variant->lifetime_s, 60);
        CU_ASSERT_EQUAL(variant->content_length, is_czech ? 100 : 300);
        CU_ASSERT_TRUE(variant->memory_bytes > variant->content_bytes);
        CU_ASSERT_STRING_EQUAL(variant->vary, "accept-language");
        CU_ASSERT_STRING_EQUAL(variant->etag, "\"e\"");
        CU_ASSERT_STRING_EQUAL(variant->content_type, is_czech ? "text/plain" : "");
        CU_ASSERT_STRING_EQUAL(variant->last_modified, is_czech ? "" : "Sun, 06 Nov 1994 08:00:00 GMT");
    }
    end();
}

static void it_tells_what_arrives(void) {
    struct play play;
    begin();
    play_get(&play, cache, "/a", PLAY_NOW);
    explain("GET", "/a", "Host: host\n", PLAY_NOW);
    CU_ASSERT_EQUAL(told.lookup, LOOKUP_JOIN);
    CU_ASSERT_EQUAL_FATAL(told.variant_count, 1);
    CU_ASSERT_EQUAL(told.variants[0].state, VARIANT_AWAITED);
    play_answer(&play, 200, STORED, 100);
    play_send(&play, 40);
    explain("GET", "/a", "Host: host\n", PLAY_NOW);
    CU_ASSERT_EQUAL(told.variants[0].state, VARIANT_ARRIVING);
    CU_ASSERT_EQUAL(told.variants[0].content_bytes, 40);
    CU_ASSERT_EQUAL(told.variants[0].content_length, 100);
    CU_ASSERT_EQUAL(cache_fill_readers(play.fill), 1); // nobody joined
    play_end(&play);
    end();
}

static void it_changes_nothing(void) {
    struct cache_stats before, after;
    begin();
    play_store(cache, "/a", "Host: host\n", STORED, 100, PLAY_NOW);
    cache_stats(cache, &before);
    for (int i = 0; i < 100; i++) {
        explain("GET", "/a", "Host: host\n", PLAY_NOW + 5);
        explain("GET", "/a", "Host: host\n", PLAY_NOW + 90);
        explain("GET", "/absent", "Host: host\n", PLAY_NOW);
    }
    cache_stats(cache, &after);
    CU_ASSERT_EQUAL(memcmp(&before, &after, sizeof before), 0);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/absent", "Host: host\n", PLAY_NOW), LOOKUP_MISS);
    end();
}

static void long_texts_are_cut(void) {
    char fields[2048];
    begin();
    snprintf(fields, sizeof fields, "Cache-Control: max-age=60\nETag: \"%0*d\"\n", 1000, 7);
    play_store(cache, "/a", "Host: host\n", fields, 10, PLAY_NOW);
    explain("GET", "/a", "Host: host\n", PLAY_NOW + 90);
    CU_ASSERT_EQUAL(strlen(told.variants[0].etag), EXPLAIN_TEXT_BYTES - 1);
    CU_ASSERT_STRING_EQUAL(told.variants[0].etag + EXPLAIN_TEXT_BYTES - 4, "...");
    CU_ASSERT_EQUAL(told.lookup, LOOKUP_STALE);
    CU_ASSERT_TRUE(strlen(told.fields) > 1000);
    end();
}

static void where_it_is_stored(void) {
    struct endpoint found[EXPLAIN_DESTINATIONS_MAX];
    begin();
    CU_ASSERT_EQUAL(cache_destinations(cache, VIEW("host"), VIEW("/a"), found), 0);
    play_store(cache, "/a", "Host: host\n", STORED, 10, PLAY_NOW);
    play_store(cache, "/b", "Host: host\n", STORED, 10, PLAY_NOW);
    CU_ASSERT_EQUAL(cache_destinations(cache, VIEW("host"), VIEW("/a"), found), 1);
    CU_ASSERT_EQUAL(found[0].port, 80);
    CU_ASSERT_EQUAL(cache_destinations(cache, VIEW("other"), VIEW("/a"), found), 0);
    end();
}

static _Atomic bool is_over;

static void *store_and_drop(void *context) {
    (void)context;
    for (int i = 0; !atomic_load(&is_over); i++) {
        struct play play;
        play_begin(&play, cache, "GET", "/a", "Host: host\n", PLAY_NOW + i * 40);
        if (play.fill && play_answer(&play, 200, STORED, 5000) != FILL_NOT_MODIFIED) {
            play_send(&play, 2500);
            play_send(&play, 2500);
        }
        if (play.fill && play.sent == 5000)
            play_finish(&play);
        play_end(&play);
        if (i % 7 == 0)
            cache_purge_all(cache);
    }
    return NULL;
}

// What it looks at changes under it.
static void beside_others(void) {
    pthread_t thread;
    struct endpoint found[EXPLAIN_DESTINATIONS_MAX];
    unsigned seen = 0, looks = 0;
    begin();
    atomic_store(&is_over, false);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, store_and_drop, NULL), 0);
    for (; looks < 500 || (seen == 0 && looks < 1000000); looks++) {
        explain("GET", "/a", "Host: host\n", PLAY_NOW);
        seen += told.variant_count;
        CU_ASSERT_TRUE(cache_destinations(cache, VIEW("host"), VIEW("/a"), found) <= 1);
    }
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    CU_ASSERT_TRUE(seen > 0);
    end();
}

SUITE(cache_explain, CASE(it_says_what_the_lookup_says), CASE(it_tells_what_is_stored),
        CASE(it_tells_what_arrives), CASE(it_changes_nothing), CASE(long_texts_are_cut),
        CASE(where_it_is_stored), CASE(beside_others))
