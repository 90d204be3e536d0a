// Responses stored in part: a 206 and its ranges, parts joined, and what is left of a fill that broke off.
#include "cache/cache.h"
#include "cache/chunk.h"
#include "tests/unit/cache/play.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define HOST "Host: host\n"
#define DATE "Date: Sun, 06 Nov 1994 08:49:37 GMT\n"
#define FRESH "Cache-Control: max-age=60\nContent-Type: text/plain\n" DATE
#define STRONG "ETag: \"a\"\n"
#define NOW PLAY_NOW
#define SIZE 100000

static struct cache *new_cache(uint64_t memory_bytes) {
    struct cache_limits limits = {.memory_bytes = memory_bytes};
    return cache_new(&limits);
}

static struct cache_stats stats_of(struct cache *cache) {
    struct cache_stats stats;
    cache_stats(cache, &stats);
    return stats;
}

static const char *range_line(uint64_t first, uint64_t last, char text[static 128]) {
    snprintf(text, 128, HOST "Range: bytes=%ju-%ju\n", (uintmax_t)first, (uintmax_t)last);
    return text;
}

static enum lookup ask(struct play *play, struct cache *cache, uint64_t first, uint64_t last, int64_t now_s) {
    char text[128];
    enum lookup lookup = play_begin(play, cache, "GET", "/a", range_line(first, last, text), now_s);
    play->sent = play->received = first;
    return lookup;
}

static enum fill_kind answer_part(
        struct play *play, uint64_t first, uint64_t last, uint64_t size, const char *fields) {
    char text[512];
    snprintf(text, sizeof text, "%sContent-Range: bytes %ju-%ju/%ju\n", fields, (uintmax_t)first,
            (uintmax_t)last, (uintmax_t)size);
    play->sent = first;
    return play_answer(play, 206, text, (int64_t)(last - first + 1));
}

// Sends all of what was announced, read or not, and ends.
static void send_all(struct play *play, uint64_t end) {
    while (play->sent < end)
        CU_ASSERT_FATAL(play_send(play, end - play->sent) > 0);
    play_finish(play);
}

// What the store asks for in the client's place; false: nothing.
static bool asked_hole(const struct play *play, uint64_t size, uint64_t *first, uint64_t *last) {
    struct view fields = cache_fill_fields(play->fill);
    uintmax_t from, to;
    char text[256];
    snprintf(text, sizeof text, VIEW_FORMAT, VIEW_ARGUMENT(fields));
    int count = sscanf(text, "Range: bytes=%ju-%ju", &from, &to);
    *first = count > 0 ? from : 0;
    *last = count > 1 ? to : size - 1;
    return count > 0;
}

// Fills the reader's holes up to `end`, and reads to it.
static enum read read_on(struct play *play, uint64_t end, uint64_t size, const char *fields) {
    enum read read;
    uint64_t first, last;
    while ((read = play_read(play, end - play->received)) == READ_HOLE) {
        CU_ASSERT_PTR_NULL_FATAL(play->fill);
        play->fill = cache_reader_fill(&play->reader, &play->query, end);
        CU_ASSERT_PTR_NOT_NULL_FATAL(play->fill);
        CU_ASSERT_TRUE_FATAL(asked_hole(play, size, &first, &last));
        CU_ASSERT_EQUAL(answer_part(play, first, last, size, fields), FILL_STORE);
        send_all(play, last + 1);
    }
    return read;
}

// The origin answers what it is asked, as far as it has what it is asked about.
static enum fill_kind store_part(struct cache *cache, uint64_t first, uint64_t last, uint64_t size,
        const char *fields, unsigned seed, int64_t now_s) {
    struct play play;
    uint64_t from = first, to = last;
    enum lookup lookup = ask(&play, cache, first, last, now_s);
    CU_ASSERT_EQUAL_FATAL(lookup, LOOKUP_MISS);
    play.seed = seed;
    bool is_hole = asked_hole(&play, size, &from, &to);
    if (!is_hole) {
        from = first;
        to = last;
    }
    enum fill_kind kind = answer_part(&play, from, to, size, fields);
    if (kind == FILL_AGAIN) {
        is_hole = false;
        from = first;
        to = last;
        kind = answer_part(&play, from, to, size, fields);
    }
    send_all(&play, to + 1);
    CU_ASSERT_EQUAL(play_head(&play), READ_READY);
    CU_ASSERT_EQUAL(play.head.status, is_hole ? 200 : 206);
    CU_ASSERT_EQUAL(play.head.content_length, (int64_t)(is_hole ? size : last - first + 1));
    if (is_hole)
        CU_ASSERT_TRUE(cache_reader_seek(&play.reader, first));
    play.received = first;
    CU_ASSERT_EQUAL(read_on(&play, last + 1, size, fields), READ_READY);
    CU_ASSERT_EQUAL(play.received, last + 1);
    play_end(&play);
    return kind;
}

// A hit with exactly these bytes, or none.
static bool has_range(struct cache *cache, uint64_t first, uint64_t last, unsigned seed) {
    struct play play;
    bool is_hit = ask(&play, cache, first, last, NOW) == LOOKUP_HIT;
    play.seed = seed;
    if (is_hit) {
        CU_ASSERT_EQUAL(play_head(&play), READ_READY);
        CU_ASSERT_EQUAL(play.head.status, 200);
        CU_ASSERT_EQUAL(play.head.content_length, SIZE);
        CU_ASSERT_TRUE(cache_reader_seek(&play.reader, first));
        CU_ASSERT_EQUAL(play_read(&play, last - first + 1), READ_READY);
    }
    play_end(&play);
    return is_hit;
}

static bool has_whole(struct cache *cache, unsigned seed) {
    struct play play;
    bool is_hit = play_get(&play, cache, "/a", NOW) == LOOKUP_HIT;
    play.seed = seed;
    if (is_hit) {
        CU_ASSERT_EQUAL(play_head(&play), READ_READY);
        CU_ASSERT_EQUAL(play.head.status, 200);
        CU_ASSERT_EQUAL(play.head.content_length, SIZE);
        CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_END);
        CU_ASSERT_EQUAL(play.received, SIZE);
    }
    play_end(&play);
    return is_hit;
}

static void free_exactly(struct cache *cache, uint64_t before) {
    cache_purge_all(cache);
    CU_ASSERT_EQUAL(stats_of(cache).bytes, before);
    CU_ASSERT_EQUAL(stats_of(cache).objects, 0);
    cache_free(cache);
}

// [RFC 9111 §3.3]: a part serves what lies wholly within it, and nothing else.
static void one_part(void) {
    static const struct {
        const char *method, *fields;
        bool is_hit;
    } rows[] = {
            {"GET", "Range: bytes=1000-1999\n", true},
            {"GET", "Range: bytes=1000-1000\n", true},
            {"GET", "Range: bytes=1500-1600,1800-1810\n", true},
            {"GET", "Range: bytes=1999-1999,1000-1001\n", true},
            {"GET", "Range: bytes=200000-\n", false}, // for the origin to say
            {"GET", "Range: bytes=-0\n", false},
            {"GET", "Range: bytes=1000-1999\nIf-Range: \"a\"\n", true},
            {"GET", "Range: bytes=1000-1999\nIf-Range: \"b\"\n", false},
            {"GET", "Range: bytes=1000-1999\nIf-Range: W/\"a\"\n", false},
            {"GET", "Range: bytes=999-1999\n", false},
            {"GET", "Range: bytes=1000-2000\n", false},
            {"GET", "Range: bytes=1500-1600,2800-2810\n", false},
            {"GET", "Range: bytes=-5\n", false},
            {"GET", "Range: bytes=1000-\n", false},
            {"GET", "Range: bytes=x\n", false},
            {"GET", "Range: items=1000-1999\n", false},
            {"GET", "", false},
            {"HEAD", "", false},
            {"HEAD", "Range: bytes=1000-1999\n", false},
            {"GET", "If-None-Match: \"a\"\n", false},
    };
    struct cache *cache = new_cache(1 << 20);
    uint64_t before = stats_of(cache).bytes;
    CU_ASSERT_EQUAL(store_part(cache, 1000, 1999, SIZE, FRESH STRONG, 0, NOW), FILL_STORE);
    CU_ASSERT_TRUE(has_range(cache, 1000, 1999, 0));
    CU_ASSERT_TRUE(has_range(cache, 1998, 1999, 0));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char fields[256];
        snprintf(fields, sizeof fields, HOST "%s", rows[i].fields);
        bool is_hit = play_probe(cache, rows[i].method, "/a", fields, NOW) == LOOKUP_HIT;
        if (is_hit != rows[i].is_hit)
            printf("\n  %s %s: hit %d\n", rows[i].method, rows[i].fields, is_hit);
        CU_ASSERT_EQUAL(is_hit, rows[i].is_hit);
    }
    free_exactly(cache, before);
}

// What a 206 must be to be stored.
static void not_stored(void) {
    static const struct {
        const char *request, *fields;
        int64_t length;
        enum fill_kind kind;
    } rows[] = {
            {"Range: bytes=0-9\n", FRESH "Content-Range: bytes 0-9/100\n", 10, FILL_STORE},
            {"Range: bytes=0-9\n", FRESH "Content-Range: bytes 0-9/100\n", -1, FILL_STORE},
            {"Range: bytes=-10\n", FRESH "Content-Range: bytes 90-99/100\n", 10, FILL_STORE},
            {"Range: bytes=0-9\n", FRESH STRONG "Content-Range: bytes 0-99/100\n", 100, FILL_STORE},
            {"Range: bytes=0-9\n", FRESH "Content-Range: bytes 0-9/*\n", 10, FILL_STREAM},
            {"Range: bytes=0-9\n", FRESH "Content-Range: bytes 0-9/100\n", 11, FILL_STREAM},
            {"Range: bytes=0-9\n", FRESH "Content-Range: bytes 10-19/100\n", 10, FILL_STREAM},
            {"Range: bytes=0-9\n", FRESH "Content-Range: nonsense\n", 10, FILL_STREAM},
            {"Range: bytes=0-9\n", FRESH, 10, FILL_STREAM},
            {"Range: bytes=0-9\n", "Content-Type: multipart/byteranges; boundary=x\n", 10, FILL_STREAM},
            {"Range: bytes=0-9\n", "Cache-Control: no-store\nContent-Range: bytes 0-9/100\n", 10,
                    FILL_STREAM},
            {"Range: bytes=0-9\n", "Cache-Control: private\nContent-Range: bytes 0-9/100\n", 10, FILL_STREAM},
            {"Range: bytes=0-9\n", FRESH "Cache-Control: must-understand\nContent-Range: bytes 0-9/100\n", 10,
                    FILL_STORE},
            {"Range: bytes=0-9\n", FRESH "Vary: *\nContent-Range: bytes 0-9/100\n", 10, FILL_STREAM},
            {"Range: bytes=0-9\nAuthorization: Basic eDp5\n", FRESH "Content-Range: bytes 0-9/100\n", 10,
                    FILL_STREAM},
            {"", FRESH "Content-Range: bytes 0-9/100\n", 10, FILL_STREAM},
    };
    struct cache *cache = new_cache(1 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct play play;
        char request[256];
        snprintf(request, sizeof request, HOST "%s", rows[i].request);
        play_begin(&play, cache, "GET", "/a", request, NOW);
        enum fill_kind kind = play_answer(&play, 206, rows[i].fields, rows[i].length);
        if (kind != rows[i].kind)
            printf("\n  %s%s: %d\n", rows[i].request, rows[i].fields, kind);
        CU_ASSERT_EQUAL(kind, rows[i].kind);
        CU_ASSERT_EQUAL(play_head(&play), READ_READY);
        CU_ASSERT_EQUAL(play.head.status, 206);
        play_end(&play);
        CU_ASSERT_EQUAL(stats_of(cache).objects, 0);
        cache_purge_all(cache); // the marker
    }
    cache_free(cache);
}

// A 416, whatever lifetime it has, is for its range alone.
static void unsatisfiable(void) {
    struct cache *cache = new_cache(1 << 20);
    struct play play;
    play_begin(&play, cache, "GET", "/a", HOST "Range: bytes=100-\n", NOW);
    CU_ASSERT_EQUAL(play_answer(&play, 416, FRESH "Content-Range: bytes */100\n", 0), FILL_STREAM);
    play_finish(&play);
    play_end(&play);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW), LOOKUP_MISS);
    cache_free(cache);
}

// The store against an array of what was stored, in every order, with overlaps.
static void joined_at_random(void) {
    struct cache *cache = new_cache(8 << 20);
    uint64_t before = stats_of(cache).bytes;
    for (unsigned seed = 0; seed < 30; seed++) {
        static bool has[SIZE];
        uint64_t held = 0;
        unsigned state = seed * 7919 + 1;
        memset(has, 0, sizeof has);
        while (held < SIZE) {
            uint64_t first = (uint64_t)rand_r(&state) % 40 * 2500, last = first + rand_r(&state) % 15000;
            last = last < SIZE ? last : SIZE - 1;
            bool is_held = true;
            for (uint64_t i = first; i <= last; i++)
                is_held &= has[i];
            CU_ASSERT_EQUAL(has_range(cache, first, last, seed), is_held);
            if (is_held)
                continue;
            store_part(cache, first, last, SIZE, FRESH STRONG, seed, NOW);
            for (uint64_t i = first; i <= last; i++) {
                held += !has[i];
                has[i] = true;
            }
            CU_ASSERT_EQUAL(has_whole(cache, seed), held == SIZE);
            CU_ASSERT_EQUAL(stats_of(cache).objects, 1);
        }
        cache_purge_all(cache);
        CU_ASSERT_EQUAL(stats_of(cache).bytes, before);
    }
    cache_free(cache);
}

// Pieces of two versions are never combined [RFC 9111 §3.4]: the later one stands alone.
static void never_mixed(void) {
    static const struct {
        const char *first, *second;
        uint64_t second_size;
        bool is_joined;
    } rows[] = {
            {FRESH STRONG, FRESH STRONG, SIZE, true},
            {FRESH STRONG, FRESH STRONG "Last-Modified: Sun, 06 Nov 1994 08:49:00 GMT\n", SIZE, true},
            {FRESH STRONG, FRESH STRONG, SIZE + 1, false},
            {FRESH STRONG, FRESH "ETag: \"b\"\n", SIZE, false},
            {FRESH STRONG, FRESH "ETag: W/\"a\"\n", SIZE, false},
            {FRESH "ETag: W/\"a\"\n", FRESH "ETag: W/\"a\"\n", SIZE, false},
            {FRESH STRONG, FRESH, SIZE, false},
            {FRESH, FRESH, SIZE, false},
            {FRESH "Last-Modified: Sun, 06 Nov 1994 08:49:36 GMT\n",
                    FRESH "Last-Modified: Sun, 06 Nov 1994 08:49:36 GMT\n", SIZE, true},
            {FRESH "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\n", // not before Date: weak
                    FRESH "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\n", SIZE, false},
            {FRESH "Last-Modified: Sun, 06 Nov 1994 08:49:36 GMT\n",
                    FRESH "Last-Modified: Sun, 06 Nov 1994 08:49:35 GMT\n", SIZE, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cache *cache = new_cache(1 << 20);
        uint64_t before = stats_of(cache).bytes;
        store_part(cache, 0, 999, SIZE, rows[i].first, 0, NOW);
        store_part(cache, 1000, 1999, rows[i].second_size, rows[i].second, 0, NOW);
        if (rows[i].is_joined != has_range(cache, 500, 1500, 0))
            printf("\n  %s and %s\n", rows[i].first, rows[i].second);
        CU_ASSERT_EQUAL(has_range(cache, 500, 1500, 0), rows[i].is_joined);
        CU_ASSERT_EQUAL(has_range(cache, 0, 999, 0), rows[i].is_joined);
        CU_ASSERT_TRUE(rows[i].second_size != SIZE || has_range(cache, 1000, 1999, 0));
        free_exactly(cache, before);
    }
}

// What a fill leaves that broke off after 6000 bytes.
static void broken_off(void) {
    static const struct {
        const char *fields;
        int64_t length;
        bool is_kept;
    } rows[] = {
            {FRESH STRONG "Accept-Ranges: bytes\n", SIZE, true},
            {FRESH "Last-Modified: Sun, 06 Nov 1994 08:49:36 GMT\nAccept-Ranges: bytes\n", SIZE, true},
            {FRESH STRONG, SIZE, true}, // an origin need not say so [RFC 9110 §14.3]
            {FRESH STRONG "Accept-Ranges: none\n", SIZE, false},
            {FRESH "Accept-Ranges: bytes\n", SIZE, false},
            {FRESH "ETag: W/\"a\"\nAccept-Ranges: bytes\n", SIZE, false},
            {FRESH "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\nAccept-Ranges: bytes\n", SIZE, false},
            {FRESH STRONG "Accept-Ranges: bytes\n", -1, false}, // chunked, without its end
            {"Cache-Control: no-store\n" STRONG "Accept-Ranges: bytes\n", SIZE, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cache *cache = new_cache(1 << 20);
        uint64_t before = stats_of(cache).bytes;
        struct play play;
        play_get(&play, cache, "/a", NOW);
        play_answer(&play, 200, rows[i].fields, rows[i].length);
        play_send(&play, 6000);
        CU_ASSERT_EQUAL(play_head(&play), READ_READY);
        play_abandon(&play);
        bool can_go_on =
                rows[i].is_kept && strstr(rows[i].fields, "Accept-Ranges"); // at once, for this reader
        CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), can_go_on ? READ_HOLE : READ_BROKEN);
        CU_ASSERT_EQUAL(play.received, 6000);
        play_end(&play);
        if (rows[i].is_kept != has_range(cache, 0, 5999, 0))
            printf("\n  %s of %jd\n", rows[i].fields, (intmax_t)rows[i].length);
        CU_ASSERT_EQUAL(has_range(cache, 0, 5999, 0), rows[i].is_kept);
        CU_ASSERT_FALSE(has_range(cache, 0, 6000, 0));
        CU_ASSERT_EQUAL(stats_of(cache).objects, rows[i].is_kept);
        free_exactly(cache, before);
    }
}

static void break_off(struct cache *cache, uint64_t bytes) {
    struct play play;
    play_get(&play, cache, "/a", NOW);
    play_answer(&play, 200, FRESH STRONG "Accept-Ranges: bytes\nX-Old: 1\n", SIZE);
    play_send(&play, bytes);
    play_end(&play);
}

// A 206 that broke off keeps what has arrived, too.
static void broken_part(void) {
    struct cache *cache = new_cache(1 << 20);
    uint64_t before = stats_of(cache).bytes;
    struct play play;
    ask(&play, cache, 50000, 59999, NOW);
    answer_part(&play, 50000, 59999, SIZE, FRESH STRONG);
    play_send(&play, 5000);
    play_end(&play);
    CU_ASSERT_TRUE(has_range(cache, 50000, 54999, 0));
    CU_ASSERT_FALSE(has_range(cache, 50000, 55000, 0));
    free_exactly(cache, before);
}

// What breaks off does not push out a whole.
static void broken_refresh(void) {
    struct cache *cache = new_cache(1 << 20);
    play_store(cache, "/a", HOST, FRESH STRONG, SIZE, NOW);
    struct play play;
    CU_ASSERT_EQUAL(
            play_begin(&play, cache, "GET", "/a", HOST "Cache-Control: no-cache\n", NOW + 1), LOOKUP_STALE);
    play_answer(&play, 200, FRESH "ETag: \"b\"\nAccept-Ranges: bytes\n", SIZE);
    play_send(&play, 5000);
    play_end(&play);
    CU_ASSERT_TRUE(has_whole(cache, 0));
    cache_free(cache);
}

static bool says(const struct play *play, const char *fields) {
    struct view own = cache_fill_fields(play->fill);
    return view_equal(own, view_of(fields));
}

#define ASKS "Range: bytes=6000-\r\nIf-Range: \"a\"\r\n"

static void completed(void) {
    struct cache *cache = new_cache(1 << 20);
    uint64_t before = stats_of(cache).bytes;
    struct play play, joiner;
    break_off(cache, 6000);
    CU_ASSERT_EQUAL(play_get(&play, cache, "/a", NOW + 2), LOOKUP_MISS);
    CU_ASSERT_STRING_EQUAL(play.reason, "incomplete");
    CU_ASSERT_TRUE(says(&play, ASKS));
    CU_ASSERT_EQUAL(play_get(&joiner, cache, "/a", NOW + 2), LOOKUP_JOIN);
    CU_ASSERT_EQUAL(play_head(&play), READ_WAIT); // nothing before the origin has confirmed
    CU_ASSERT_EQUAL(answer_part(&play, 6000, SIZE - 1, SIZE, FRESH STRONG "X-New: 1\n"), FILL_STORE);
    CU_ASSERT_EQUAL(play_head(&play), READ_READY);
    CU_ASSERT_EQUAL(play_head(&joiner), READ_READY);
    CU_ASSERT_EQUAL(play.head.status, 200);
    CU_ASSERT_EQUAL(play.head.content_length, SIZE);
    bool has_old = false, has_new = false, has_range_field = false;
    for (unsigned i = 0; i < play.head.head->field_count; i++) {
        has_old |= view_equal(play.head.head->fields[i].name, VIEW("X-Old"));
        has_new |= view_equal(play.head.head->fields[i].name, VIEW("X-New"));
        has_range_field |= play.head.head->fields[i].id == FIELD_CONTENT_RANGE;
    }
    CU_ASSERT_TRUE(has_old && has_new && !has_range_field);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_WAIT);
    CU_ASSERT_EQUAL(play.received, 6000);
    play_send(&play, 40000);
    CU_ASSERT_EQUAL(play_read(&play, 1000), READ_READY);
    CU_ASSERT_EQUAL(play_read(&joiner, UINT64_MAX), READ_WAIT);
    CU_ASSERT_TRUE(cache_reader_seek(&joiner.reader, 3000)); // back into what was there
    joiner.received = 3000;
    CU_ASSERT_EQUAL(play_read(&joiner, 10000), READ_READY);
    send_all(&play, SIZE);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(play_read(&joiner, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(play.received, SIZE);
    CU_ASSERT_EQUAL(joiner.received, SIZE);
    CU_ASSERT_TRUE(has_whole(cache, 0));
    play_end(&play);
    play_end(&joiner);
    CU_ASSERT_TRUE(has_whole(cache, 0));
    free_exactly(cache, before);
}

// Again and again a little more; what it takes does not grow with the attempts.
static void completed_in_steps(void) {
    struct cache *cache = new_cache(2 << 20);
    uint64_t before = stats_of(cache).bytes, at = 1000;
    break_off(cache, at);
    for (unsigned i = 0; i < 200 && at < SIZE; i++) {
        struct play play;
        char fields[128];
        CU_ASSERT_EQUAL(play_get(&play, cache, "/a", NOW), LOOKUP_MISS);
        struct view own = cache_fill_fields(play.fill);
        uint64_t from = strtoull(own.data + strlen("Range: bytes="), NULL, 10);
        CU_ASSERT_EQUAL(from, at);
        snprintf(fields, sizeof fields, "Range: bytes=%ju-\r\nIf-Range: \"a\"\r\n", (uintmax_t)from);
        CU_ASSERT_TRUE(says(&play, fields));
        answer_part(&play, from, SIZE - 1, SIZE, FRESH STRONG);
        play_head(&play);
        uint64_t step = i < 20 ? 1000 : 10000;
        at += play_send(&play, SIZE - at < step ? SIZE - at : step);
        if (at == SIZE)
            play_finish(&play);
        play_read(&play, UINT64_MAX);
        CU_ASSERT_EQUAL(play.received, at);
        play_end(&play);
        CU_ASSERT_TRUE(stats_of(cache).bytes - before < at + at / 2 + 40000);
    }
    CU_ASSERT_TRUE(has_whole(cache, 0));
    free_exactly(cache, before);
}

// Answers that are not the rest: once more without, and right in the end.
static void not_completed(void) {
    static const struct {
        int status;
        const char *fields;
        int64_t length;
    } rows[] = {
            {206, FRESH "ETag: \"b\"\nContent-Range: bytes 6000-99999/100000\n", 94000},
            {206, FRESH "ETag: W/\"a\"\nContent-Range: bytes 6000-99999/100000\n", 94000},
            {206, FRESH "Content-Range: bytes 6000-99999/100000\n", 94000},
            {206, FRESH STRONG "Vary: Accept\nContent-Range: bytes 6000-99999/100000\n", 94000},
            {206, FRESH STRONG "Content-Range: bytes 6001-99999/100000\n", 93999},
            {206, FRESH STRONG "Content-Range: bytes 6000-99998/100000\n", 93999},
            {206, FRESH STRONG "Content-Range: bytes 6000-99999/*\n", 94000},
            {206, FRESH STRONG "Content-Range: bytes 6000-100000/100001\n", 94001},
            {206, FRESH STRONG "Content-Range: bytes 6000-99999/100000\n", 93999},
            {206, FRESH STRONG "Content-Type: multipart/byteranges; boundary=x\n", 94000},
            {416, FRESH "Content-Range: bytes */5000\n", 0},
            {304, FRESH STRONG, -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cache *cache = new_cache(1 << 20);
        uint64_t before = stats_of(cache).bytes;
        struct play play;
        break_off(cache, 6000);
        play_get(&play, cache, "/a", NOW);
        CU_ASSERT_TRUE(says(&play, ASKS));
        enum fill_kind kind = play_answer(&play, rows[i].status, rows[i].fields, rows[i].length);
        if (kind != FILL_AGAIN)
            printf("\n  %d %s: %d\n", rows[i].status, rows[i].fields, kind);
        CU_ASSERT_EQUAL(kind, FILL_AGAIN);
        CU_ASSERT_TRUE(says(&play, ""));
        CU_ASSERT_EQUAL(play_head(&play), READ_WAIT);
        play.seed = 7;
        CU_ASSERT_EQUAL(play_answer(&play, 200, FRESH "ETag: \"c\"\n", SIZE), FILL_STORE);
        play_head(&play);
        send_all(&play, SIZE);
        CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_END);
        play_end(&play);
        CU_ASSERT_TRUE(has_whole(cache, 7));
        free_exactly(cache, before);
    }
}

// A whole in place of the rest starts anew; an error leaves what there is.
static void answered_otherwise(void) {
    struct cache *cache = new_cache(1 << 20);
    struct play play;
    break_off(cache, 6000);
    play_get(&play, cache, "/a", NOW);
    CU_ASSERT_EQUAL(play_answer(&play, 503, DATE, 0), FILL_STREAM);
    play_finish(&play);
    play_end(&play);
    CU_ASSERT_TRUE(has_range(cache, 0, 5999, 0));
    play_get(&play, cache, "/a", NOW);
    CU_ASSERT_TRUE(says(&play, ASKS));
    play.seed = 3;
    CU_ASSERT_EQUAL(play_answer(&play, 200, FRESH "ETag: \"b\"\n", SIZE), FILL_STORE);
    play_head(&play);
    send_all(&play, SIZE);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_END);
    play_end(&play);
    CU_ASSERT_TRUE(has_whole(cache, 3));
    cache_free(cache);
}

// The rest may turn out not to be stored: the client has the whole all the same.
static void completed_as_a_stream(void) {
    struct cache *cache = new_cache(1 << 20);
    uint64_t before = stats_of(cache).bytes;
    struct play play;
    break_off(cache, 90000); // more than a window
    play_get(&play, cache, "/a", NOW);
    CU_ASSERT_EQUAL(
            answer_part(&play, 90000, SIZE - 1, SIZE, "Cache-Control: no-store\n" DATE STRONG), FILL_STREAM);
    play_head(&play);
    CU_ASSERT_EQUAL(play.head.status, 200);
    CU_ASSERT_EQUAL(play_read(&play, 80000), READ_READY);
    send_all(&play, SIZE);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(play.received, SIZE);
    play_end(&play);
    CU_ASSERT_FALSE(has_whole(cache, 0));
    free_exactly(cache, before);
}

// Past its lifetime it is confirmed like a whole.
static void confirmed(void) {
    struct cache *cache = new_cache(1 << 20);
    uint64_t before = stats_of(cache).bytes;
    struct play play;
    store_part(cache, 1000, 1999, SIZE, FRESH STRONG, 0, NOW - 100);
    CU_ASSERT_EQUAL(ask(&play, cache, 1000, 1500, NOW), LOOKUP_STALE);
    CU_ASSERT_TRUE(says(&play, "If-None-Match: \"a\"\r\n"));
    CU_ASSERT_EQUAL(play_answer(&play, 304, FRESH STRONG, -1), FILL_NOT_MODIFIED);
    play_finish(&play);
    CU_ASSERT_EQUAL(play_head(&play), READ_READY);
    CU_ASSERT_TRUE(cache_reader_seek(&play.reader, 1000));
    CU_ASSERT_EQUAL(play_read(&play, 501), READ_READY);
    play_end(&play);
    CU_ASSERT_TRUE(has_range(cache, 1000, 1999, 0));
    store_part(cache, 2000, 2999, SIZE, FRESH STRONG, 0, NOW);
    CU_ASSERT_TRUE(has_range(cache, 1500, 2500, 0));
    free_exactly(cache, before);
}

// Ranges of what arrives: what is near is waited for, what is far is asked for.
static void arriving(void) {
    struct cache *cache = new_cache(64 << 20);
    struct play play, near, part, same;
    uint64_t size = 8 << 20;
    play_get(&play, cache, "/a", NOW);
    play_answer(&play, 200, FRESH STRONG, (int64_t)size);
    CU_ASSERT_EQUAL(ask(&near, cache, 500000, 500999, NOW), LOOKUP_JOIN);
    CU_ASSERT_EQUAL(play_head(&near), READ_READY);
    CU_ASSERT_TRUE(cache_reader_seek(&near.reader, 500000));
    CU_ASSERT_EQUAL(play_read(&near, 1), READ_WAIT);
    play_head(&play);
    play_send(&play, 400000);
    CU_ASSERT_EQUAL(near.wakes, 0); // not for what lies before
    play_send(&play, 100001);
    CU_ASSERT_EQUAL(near.wakes, 1);
    CU_ASSERT_EQUAL(play_read(&near, 1), READ_READY);
    CU_ASSERT_EQUAL(ask(&part, cache, 4000000, 4000999, NOW), LOOKUP_MISS);
    CU_ASSERT_EQUAL(ask(&same, cache, 4000000, 4000999, NOW), LOOKUP_JOIN);
    CU_ASSERT_STRING_EQUAL(same.reason, "awaited");
    CU_ASSERT_EQUAL(answer_part(&part, 4000000, 4000999, size, FRESH STRONG), FILL_STORE);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST "Range: bytes=4000100-4000200\n", NOW), LOOKUP_JOIN);
    play_head(&part);
    CU_ASSERT_EQUAL(play_head(&same), READ_READY);
    CU_ASSERT_EQUAL(same.head.status, 206);
    send_all(&part, 4001000);
    CU_ASSERT_EQUAL(play_read(&part, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(play_read(&same, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(same.received, 4001000);
    send_all(&play, size);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(play_read(&near, UINT64_MAX), READ_END);
    play_end(&near);
    play_end(&part);
    play_end(&same);
    play_end(&play);
    CU_ASSERT_EQUAL(stats_of(cache).objects, 1);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW), LOOKUP_HIT);
    cache_free(cache);
}

// Another range does not wait for a fill that asks for one, nor does who wants the whole.
static void not_joined(void) {
    struct cache *cache = new_cache(1 << 20);
    struct play play;
    ask(&play, cache, 0, 99, NOW);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW), LOOKUP_MISS);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST "Range: bytes=0-98\n", NOW), LOOKUP_MISS);
    CU_ASSERT_EQUAL(
            play_probe(cache, "GET", "/a", HOST "Range: bytes=0-99\nIf-Range: \"a\"\n", NOW), LOOKUP_MISS);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST "Range: bytes=0-99\n", NOW), LOOKUP_JOIN);
    answer_part(&play, 0, 99, SIZE, FRESH STRONG);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST, NOW), LOOKUP_MISS);
    CU_ASSERT_EQUAL(play_probe(cache, "GET", "/a", HOST "Range: bytes=0-100\n", NOW), LOOKUP_MISS);
    play_end(&play);
    cache_free(cache);
}

// A stream is read from a range on, and held up by nobody before it.
static void range_of_a_stream(void) {
    struct cache *cache = new_cache(1 << 20);
    struct play play;
    CU_ASSERT_EQUAL(play_begin(&play, cache, "GET", "/a",
                            HOST "Cache-Control: no-store\nRange: bytes=300000-\n", NOW),
            LOOKUP_PASS);
    CU_ASSERT_EQUAL(play_answer(&play, 200, FRESH, 1000000), FILL_STREAM);
    CU_ASSERT_EQUAL(play_head(&play), READ_READY);
    CU_ASSERT_TRUE(cache_reader_seek(&play.reader, 300000));
    CU_ASSERT_FALSE(cache_reader_seek(&play.reader, 299999));
    CU_ASSERT_EQUAL(play_read(&play, 1), READ_WAIT);
    while (play.sent < 300001)
        CU_ASSERT_FATAL(play_send(&play, 50000) > 0);
    play.received = 300000;
    CU_ASSERT_EQUAL(play.wakes, 1);
    CU_ASSERT_TRUE(stats_of(cache).stream_bytes < 200000);
    while (play.sent < 1000000) {
        play_send(&play, 1000000 - play.sent);
        CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_WAIT);
    }
    play_finish(&play);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(play.received, 1000000);
    play_end(&play);
    cache_free(cache);
}

// More pieces than are kept: the smallest go, what is left is right.
static void many_parts(void) {
    struct cache *cache = new_cache(4 << 20);
    uint64_t before = stats_of(cache).bytes;
    unsigned hits = 0;
    for (unsigned i = 0; i < 3 * CHUNK_SPANS_MAX; i++)
        store_part(cache, i * 520, i * 520 + 100 + i, SIZE, FRESH STRONG, 0, NOW);
    for (unsigned i = 0; i < 3 * CHUNK_SPANS_MAX; i++)
        hits += has_range(cache, i * 520, i * 520 + 100 + i, 0);
    CU_ASSERT_EQUAL(hits, CHUNK_SPANS_MAX);
    CU_ASSERT_TRUE(
            has_range(cache, (3 * CHUNK_SPANS_MAX - 1) * 520, (3 * CHUNK_SPANS_MAX - 1) * 520 + 100, 0));
    CU_ASSERT_TRUE(stats_of(cache).bytes - before < 3 * CHUNK_SPANS_MAX * 1500);
    free_exactly(cache, before);
}

// An origin that says it answers ranges, and gives the whole instead: its bytes fill the hole, and it is not
// asked for parts again.
static void whole_for_a_hole(void) {
    struct cache *cache = new_cache(1 << 20);
    struct play play, lying;
    break_off(cache, 6000);
    play_get(&play, cache, "/a", NOW);
    CU_ASSERT_EQUAL(answer_part(&play, 6000, SIZE - 1, SIZE, FRESH STRONG), FILL_STORE);
    CU_ASSERT_EQUAL(play_head(&play), READ_READY);
    play_send(&play, 1000);
    play_abandon(&play);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_HOLE);
    CU_ASSERT_EQUAL(play.received, 7000);
    play.fill = cache_reader_fill(&play.reader, &play.query, UINT64_MAX);
    CU_ASSERT_PTR_NOT_NULL_FATAL(play.fill);
    CU_ASSERT_EQUAL(play_answer(&play, 200, FRESH STRONG "Accept-Ranges: bytes\n", SIZE), FILL_STORE);
    play.sent = 0;
    play_send(&play, 50000);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_WAIT);
    CU_ASSERT_EQUAL(play.received, 50000);
    CU_ASSERT_PTR_NULL(cache_reader_fill(&play.reader, &play.query, UINT64_MAX));
    CU_ASSERT_EQUAL(ask(&lying, cache, 90000, 90999, NOW), LOOKUP_HIT); // it is about to come
    play_end(&lying);
    send_all(&play, SIZE);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(play.received, SIZE);
    play_end(&play);
    CU_ASSERT_TRUE(has_whole(cache, 0));
    cache_free(cache);
}

// One who asks for no range is not given the 206 that another one's range got.
static void part_for_nobody_else(void) {
    struct cache *cache = new_cache(1 << 20);
    struct play play, plain;
    break_off(cache, 6000);
    CU_ASSERT_EQUAL(ask(&play, cache, 50000, 59999, NOW), LOOKUP_MISS);
    CU_ASSERT_EQUAL(play_get(&plain, cache, "/a", NOW), LOOKUP_JOIN);
    CU_ASSERT_EQUAL(play_answer(&play, 200, FRESH "ETag: \"b\"\n", SIZE), FILL_AGAIN);
    CU_ASSERT_EQUAL(answer_part(&play, 50000, 59999, SIZE, FRESH "ETag: \"b\"\n"), FILL_STORE);
    CU_ASSERT_EQUAL(play_head(&plain), READ_GONE);
    CU_ASSERT_EQUAL(play_head(&play), READ_READY);
    CU_ASSERT_EQUAL(play.head.status, 206);
    play_end(&plain);
    play_end(&play);
    cache_free(cache);
}

// Parts are evicted as wholes are, and purged; the budget is exact.
static void evicted(void) {
    struct cache *cache = new_cache(1 << 20);
    for (unsigned i = 0; i < 300; i++) {
        char path[16], text[128];
        struct play play;
        snprintf(path, sizeof path, "/%u", i % 50);
        uint64_t first = i / 50 * 10000;
        if (play_begin(&play, cache, "GET", path, range_line(first, first + 9999, text), NOW) ==
                LOOKUP_MISS) {
            answer_part(&play, first, first + 9999, SIZE, FRESH STRONG);
            send_all(&play, first + 10000);
        }
        play_end(&play);
        CU_ASSERT_TRUE(stats_of(cache).bytes <= 1 << 20);
    }
    CU_ASSERT_TRUE(stats_of(cache).evictions > 0 && stats_of(cache).objects > 10);
    cache_free(cache);
}

// ---- on several threads ----

#define THREADS 4
#define ROUNDS 300

struct worker {
    struct cache *cache;
    unsigned seed;
    pthread_t thread;
};

// Reads while it sends: a purge makes a stream of any fill.
static void send_by_the_way(struct play *play, uint64_t until, uint64_t end, uint64_t first) {
    if (play_head(play) != READ_READY)
        CU_FAIL("the producer's own reader has no head");
    play->received = play->head.status == 206 ? first : 0;
    for (unsigned i = 0; play->sent < until && i < 100000; i++) {
        play_send(play, until - play->sent);
        play_read(play, UINT64_MAX);
        sched_yield();
    }
    if (play->sent == end)
        play_finish(play);
}

static void take_turn(struct cache *cache, unsigned *state) {
    struct play play;
    uint64_t first = (uint64_t)rand_r(state) % 10 * 10000, last = first + rand_r(state) % 30000;
    last = last < SIZE ? last : SIZE - 1;
    bool is_plain = rand_r(state) % 4 == 0;
    if (is_plain)
        play_get(&play, cache, "/a", NOW);
    else
        ask(&play, cache, first, last, NOW);
    bool is_own = play.fill;
    if (is_own) {
        uint64_t from, to, end = is_plain ? SIZE : last + 1;
        if (asked_hole(&play, SIZE, &from, &to)) {
            answer_part(&play, from, to, SIZE, FRESH STRONG);
            first = from;
            end = to + 1;
        } else if (is_plain) {
            play_answer(&play, 200, FRESH STRONG "Accept-Ranges: bytes\n", SIZE);
        } else {
            answer_part(&play, first, last, SIZE, FRESH STRONG);
        }
        send_by_the_way(&play, rand_r(state) % 3 ? end : (end + play.sent) / 2, end, first);
    }
    if (play.lookup == LOOKUP_HIT && !is_plain) {
        if (play_head(&play) != READ_READY)
            CU_FAIL("a hit without a head");
        CU_ASSERT_TRUE(cache_reader_seek(&play.reader, first));
        play.received = first;
        enum read read = play_read(&play, last - first + 1); // what comes for another may break off
        CU_ASSERT_TRUE(read == READ_READY || read == READ_WAIT || read == READ_HOLE);
    } else if (!is_own && play_head(&play) == READ_READY) {
        play.received = play.head.status == 206 ? first : 0; // of another's 206, that lies somewhere in it
        CU_ASSERT_TRUE(cache_reader_seek(&play.reader, play.received));
        play_read(&play, UINT64_MAX);
    }
    play_end(&play);
}

static void *work(void *argument) {
    struct worker *worker = argument;
    unsigned state = worker->seed;
    for (unsigned i = 0; i < ROUNDS; i++) {
        take_turn(worker->cache, &state);
        if (rand_r(&state) % 50 == 0)
            cache_purge_all(worker->cache);
    }
    return NULL;
}

static void threads(void) {
    struct worker workers[THREADS];
    struct cache *cache = new_cache(4 << 20);
    uint64_t before = stats_of(cache).bytes;
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.cache = cache, .seed = i + 1};
        CU_ASSERT_EQUAL_FATAL(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    free_exactly(cache, before);
}

// ---- large objects ----

#define MIB (UINT64_C(1) << 20)
#define LARGE (64 * MIB)
#ifdef __SANITIZE_THREAD__ // every byte is looked at: the rest of the sizes is for the other builds
#define RANGED (8 * MIB)
#define RANGES 60
#define MOST (4 * MIB)
#else
#define RANGED LARGE
#define RANGES 500
#define MOST (16 * MIB)
#endif
#define LARGE_HEAD FRESH STRONG "Accept-Ranges: bytes\n"

struct origin { // what it was asked for
    uint64_t bytes;
    unsigned requests;
};

// Answers the range that is asked for, its client's own without any of the store's.
static void serve_fill(
        struct play *play, uint64_t first, uint64_t last, uint64_t size, struct origin *origin) {
    uint64_t from = first, to = last;
    if (!asked_hole(play, size, &from, &to)) {
        from = first;
        to = last;
    }
    CU_ASSERT_EQUAL(answer_part(play, from, to, size, LARGE_HEAD), FILL_STORE);
    send_all(play, to + 1);
    origin->bytes += to - from + 1;
    origin->requests++;
}

static void read_range(
        struct cache *cache, uint64_t first, uint64_t last, uint64_t size, struct origin *origin) {
    struct play play;
    enum read read;
    ask(&play, cache, first, last, NOW);
    if (play.fill)
        serve_fill(&play, first, last, size, origin);
    CU_ASSERT_EQUAL_FATAL(play_head(&play), READ_READY);
    CU_ASSERT_TRUE(cache_reader_seek(&play.reader, first));
    play.received = first;
    while ((read = play_read(&play, last + 1 - play.received)) == READ_HOLE) {
        play.fill = cache_reader_fill(&play.reader, &play.query, last + 1);
        CU_ASSERT_PTR_NOT_NULL_FATAL(play.fill);
        serve_fill(&play, first, last, size, origin);
    }
    CU_ASSERT_EQUAL_FATAL(read, READ_READY);
    play_end(&play);
}

// Every other MiB and a half of it.
static void fill_half(struct cache *cache, struct origin *origin) {
    for (uint64_t at = 0; at < RANGED; at += 3 * MIB)
        read_range(cache, at, at + 3 * MIB / 2 < RANGED ? at + 3 * MIB / 2 - 1 : RANGED - 1, RANGED, origin);
}

// Cold, half filled and full: the origin sends hardly more than there is, whatever the ranges.
static void random_ranges_of_a_large_object(void) {
    unsigned state = 1;
    for (unsigned start = 0; start < 3; start++) {
        struct cache *cache =
                cache_new(&(struct cache_limits){.memory_bytes = 128 * MIB, .maximum_object_bytes = RANGED});
        uint64_t before = stats_of(cache).bytes;
        struct origin origin = {0};
        if (start == 1)
            fill_half(cache, &origin);
        if (start == 2)
            read_range(cache, 0, RANGED - 1, RANGED, &origin);
        CU_ASSERT_TRUE(start < 2 || origin.bytes == RANGED);
        for (unsigned i = 0; i < RANGES; i++) {
            uint64_t first = (uint64_t)rand_r(&state) % RANGED,
                     length = (uint64_t)rand_r(&state) % (i % 5 ? 200000 : 3 * MIB);
            read_range(cache, first, first + length < RANGED ? first + length : RANGED - 1, RANGED, &origin);
        }
        CU_ASSERT_TRUE(origin.bytes <= RANGED + RANGED / 10);
        CU_ASSERT_TRUE(start < 2 || origin.bytes == RANGED);
        free_exactly(cache, before);
    }
}

// Where there is not room for all, chunks go one by one, and come back one by one.
static void chunks_are_evicted_one_by_one(void) {
    struct cache *cache =
            cache_new(&(struct cache_limits){.memory_bytes = MOST, .maximum_object_bytes = MOST});
    uint64_t before = stats_of(cache).bytes;
    struct origin origin = {0};
    unsigned state = 7;
    read_range(cache, 0, MOST - 1, MOST, &origin);
    CU_ASSERT_TRUE(origin.bytes >= MOST); // what is evicted before it is read is asked for again
    CU_ASSERT_TRUE(stats_of(cache).bytes <= MOST);
    CU_ASSERT_EQUAL(stats_of(cache).objects, 1);
    for (unsigned i = 0; i < RANGES / 5; i++) {
        uint64_t first = (uint64_t)rand_r(&state) % (MOST - 1000), was = origin.bytes;
        read_range(cache, first, first + 999, MOST, &origin);
        uint64_t chunks = (first + 999) / MIB - first / MIB + 1;
        CU_ASSERT_TRUE(origin.bytes - was <= chunks * MIB);
        was = origin.bytes;
        read_range(cache, first, first + 999, MOST, &origin); // it is there now
        CU_ASSERT_EQUAL(origin.bytes, was);
        CU_ASSERT_TRUE(stats_of(cache).bytes <= MOST);
        CU_ASSERT_EQUAL(stats_of(cache).objects, 1);
    }
    CU_ASSERT_TRUE(origin.bytes > MOST);
    free_exactly(cache, before);
}

// All that is missing ahead of a reader can be asked for at once, as far as CACHE_AHEAD_BYTES.
static void several_holes_at_once(void) {
    struct cache *cache =
            cache_new(&(struct cache_limits){.memory_bytes = 128 * MIB, .maximum_object_bytes = LARGE});
    uint64_t before = stats_of(cache).bytes, end = 0, first, last;
    struct origin origin = {0};
    struct cache_fill *fills[20];
    struct play play;
    unsigned count = 0;
    for (uint64_t at = 0; at < LARGE; at += 2 * MIB)
        read_range(cache, at, at + 999, LARGE, &origin);
    uint64_t there = origin.bytes;
    CU_ASSERT_EQUAL(there, 1000 + 31 * MIB); // the first as it was asked for, what follows in chunks
    read_range(cache, 0, 0, LARGE, &origin);
    CU_ASSERT_EQUAL(play_get(&play, cache, "/a", NOW), LOOKUP_MISS);
    CU_ASSERT_EQUAL(play_head(&play), READ_WAIT);
    serve_fill(&play, 0, LARGE - 1, LARGE, &origin);
    CU_ASSERT_EQUAL(play_head(&play), READ_READY);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_HOLE);
    while (count < 20 && (fills[count] = cache_reader_fill(&play.reader, &play.query, UINT64_MAX))) {
        struct play other = {.fill = fills[count++]};
        CU_ASSERT_TRUE(asked_hole(&other, LARGE, &first, &last));
        CU_ASSERT_TRUE(first >= end);
        CU_ASSERT_EQUAL(last % MIB, MIB - 1);
        end = last + 1;
    }
    CU_ASSERT_TRUE(count >= 7 && count <= 9);
    CU_ASSERT_TRUE(end <= play.received + CACHE_AHEAD_BYTES + MIB);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_WAIT);
    while (count) { // the furthest first
        play.fill = fills[--count];
        serve_fill(&play, 0, 0, LARGE, &origin);
    }
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_HOLE);
    CU_ASSERT_TRUE(play.received >= end);
    play_end(&play);
    free_exactly(cache, before);
}

// The ranges of one request may go back and forth within a chunk: what lies before a run is not there because
// the run is.
static void seeks_back_to_a_hole(void) {
    struct cache *cache = new_cache(1 << 20);
    uint64_t before = stats_of(cache).bytes;
    struct play play;
    store_part(cache, 5000, 5999, SIZE, FRESH STRONG, 0, NOW);
    CU_ASSERT_EQUAL(ask(&play, cache, 5000, 5999, NOW), LOOKUP_HIT);
    CU_ASSERT_EQUAL(play_head(&play), READ_READY);
    CU_ASSERT_TRUE(cache_reader_seek(&play.reader, 5500));
    play.received = 5500;
    CU_ASSERT_EQUAL(play_read(&play, 10), READ_READY);
    CU_ASSERT_TRUE(cache_reader_seek(&play.reader, 4999));
    play.received = 4999;
    CU_ASSERT_EQUAL(play_read(&play, 1), READ_HOLE);
    CU_ASSERT_TRUE(cache_reader_seek(&play.reader, 5000));
    play.received = 5000;
    CU_ASSERT_EQUAL(play_read(&play, 1000), READ_READY);
    play_end(&play);
    free_exactly(cache, before);
}

// A purge in mid-flight makes a stream of what arrives; a hole of it that is asked for still comes.
static void a_hole_of_what_becomes_a_stream(void) {
    struct cache *cache = cache_new(&(struct cache_limits){.memory_bytes = 32 * MIB});
    uint64_t before = stats_of(cache).bytes, size = 6 * MIB, first, last;
    struct play fetch, play;
    struct cache_fill *hole;
    play_get(&fetch, cache, "/a", NOW);
    play_answer(&fetch, 200, LARGE_HEAD, (int64_t)size);
    play_send(&fetch, MIB / 2);
    CU_ASSERT_EQUAL(play_get(&play, cache, "/a", NOW), LOOKUP_JOIN);
    CU_ASSERT_EQUAL(play_head(&play), READ_READY);
    CU_ASSERT_TRUE(cache_reader_seek(&play.reader, 4 * MIB));
    play.received = 4 * MIB;
    CU_ASSERT_EQUAL(play_read(&play, 1), READ_HOLE); // too far ahead to wait for
    hole = cache_reader_fill(&play.reader, &play.query, 4 * MIB + 10);
    CU_ASSERT_PTR_NOT_NULL_FATAL(hole);
    cache_purge_all(cache);
    CU_ASSERT_EQUAL(play_head(&fetch), READ_READY);
    for (int i = 0; i < 40; i++) { // becomes a stream, paced by its slowest
        play_send(&fetch, MIB / 10);
        play_read(&fetch, UINT64_MAX);
    }
    struct play other = {.fill = hole};
    CU_ASSERT_TRUE(asked_hole(&other, size, &first, &last));
    CU_ASSERT_EQUAL(first, 4 * MIB);
    CU_ASSERT_EQUAL(last, 5 * MIB - 1);
    answer_part(&other, first, last, size, LARGE_HEAD);
    play_send(&other, MIB / 2);
    CU_ASSERT_EQUAL(play_read(&play, MIB / 2), READ_READY);
    CU_ASSERT_EQUAL(play.received, 4 * MIB + MIB / 2);
    play_end(&play); // the reader goes, the hole's bytes still come
    while (fetch.sent < size) {
        play_send(&fetch, size - fetch.sent);
        play_read(&fetch, UINT64_MAX);
    }
    play_send(&other, MIB / 2);
    cache_fill_finish(other.fill);
    play_finish(&fetch);
    CU_ASSERT_EQUAL(play_read(&fetch, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(fetch.received, size);
    play_end(&fetch);
    CU_ASSERT_EQUAL(stats_of(cache).stream_bytes, 0);
    free_exactly(cache, before);
}

#define CHUNKS (UINT64_C(4) << 20) // in several chunks
#define ROOMY (UINT64_C(32) << 20)

static void set_memory(struct cache *cache, uint64_t memory_bytes) {
    struct cache_limits limits = {.memory_bytes = memory_bytes};
    cache_set_limits(cache, &limits);
}

// Sends and reads by turns to the end, and ends.
static void send_and_read(struct play *play, uint64_t end) {
    while (play->sent < end) {
        CU_ASSERT_FATAL(play_send(play, end - play->sent) > 0);
        CU_ASSERT_EQUAL_FATAL(play_read(play, UINT64_MAX), READ_WAIT);
    }
    play_finish(play);
}

// What a reader was behind of has gone when the fill gives up its place: it asks for it, and the fill waits.
static void behind_one_given_up(void) {
    struct cache *cache = new_cache(ROOMY);
    uint64_t before = stats_of(cache).bytes;
    struct play play;
    play_get(&play, cache, "/a", NOW);
    play_answer(&play, 200, FRESH STRONG "Accept-Ranges: bytes\n", CHUNKS);
    CU_ASSERT_EQUAL(play_head(&play), READ_READY);
    CU_ASSERT_EQUAL(play_send(&play, CHUNKS - 500000), CHUNKS - 500000);
    set_memory(cache, 1);
    set_memory(cache, ROOMY);
    cache_purge_all(cache);
    CU_ASSERT_EQUAL(play_send(&play, 1), 0);
    struct cache_fill *fill = play.fill;
    play.fill = NULL;
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_HOLE);
    CU_ASSERT_EQUAL(play.received, 0);
    CU_ASSERT_EQUAL(read_on(&play, CHUNKS - 500000, CHUNKS, FRESH STRONG), READ_READY);
    CU_ASSERT_EQUAL(play.room_wakes, 1);
    play.fill = fill;
    play.sent = CHUNKS - 500000;
    send_and_read(&play, CHUNKS);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(play.received, CHUNKS);
    play_end(&play);
    CU_ASSERT_FALSE(has_whole(cache, 0));
    free_exactly(cache, before);
}

// One who holds up another is left behind where it can ask for what it misses, and is not cut off.
static void left_behind(void) {
    struct cache *cache = new_cache(ROOMY);
    uint64_t before = stats_of(cache).bytes;
    struct play play, slow;
    play_get(&play, cache, "/a", NOW);
    play_answer(&play, 200, FRESH STRONG "Accept-Ranges: bytes\n", CHUNKS);
    CU_ASSERT_EQUAL(play_get(&slow, cache, "/a", NOW), LOOKUP_JOIN);
    CU_ASSERT_EQUAL(play_head(&slow), READ_READY);
    CU_ASSERT_EQUAL(play_read(&slow, 1), READ_WAIT);
    play_send(&play, 2 << 20);
    CU_ASSERT_EQUAL(play_read(&slow, 1000), READ_READY);
    cache_purge_all(cache);
    CU_ASSERT_EQUAL(play_send(&play, 1), 0);
    CU_ASSERT_EQUAL(cache_fill_shed(play.fill), 0);
    CU_ASSERT_EQUAL(play.room_wakes, 0); // nobody waits for more
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_WAIT);
    CU_ASSERT_EQUAL(cache_fill_shed(play.fill), 0);
    CU_ASSERT_EQUAL(play.room_wakes, 1);
    send_and_read(&play, CHUNKS);
    CU_ASSERT_EQUAL(play_read(&play, UINT64_MAX), READ_END);
    set_memory(cache, 1);
    set_memory(cache, ROOMY);
    CU_ASSERT_EQUAL(read_on(&slow, CHUNKS, CHUNKS, FRESH STRONG), READ_READY);
    CU_ASSERT_EQUAL(play_read(&slow, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(slow.received, CHUNKS);
    play_end(&slow);
    play_end(&play);
    free_exactly(cache, before);
}

// The whole has arrived before the answer to a request for a part of it comes: that is not kept a second
// time.
static void after_its_whole(void) {
    struct cache *cache = new_cache(1 << 20);
    struct play whole, part;
    play_begin(&whole, cache, "GET", "/a", HOST, NOW);
    CU_ASSERT_EQUAL(ask(&part, cache, SIZE / 2, SIZE - 1, NOW), LOOKUP_MISS);
    play_answer(&whole, 200, FRESH STRONG, SIZE);
    play_send(&whole, SIZE);
    play_read(&whole, UINT64_MAX);
    uint64_t before = stats_of(cache).bytes;
    char fields[256];
    snprintf(fields, sizeof fields, FRESH STRONG "Content-Range: bytes %d-%d/%d\n", SIZE / 2, SIZE - 1, SIZE);
    play_answer(&part, 206, fields, SIZE / 2);
    play_send(&part, SIZE / 2);
    play_finish(&part);
    CU_ASSERT_TRUE(stats_of(cache).bytes < before + SIZE / 4);
    CU_ASSERT_EQUAL(play_read(&part, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(part.received, SIZE);
    play_end(&part);
    play_finish(&whole);
    play_end(&whole);
    CU_ASSERT_EQUAL(play_get(&whole, cache, "/a", NOW), LOOKUP_HIT);
    CU_ASSERT_EQUAL(play_read(&whole, UINT64_MAX), READ_END);
    CU_ASSERT_EQUAL(whole.received, SIZE);
    play_end(&whole);
    cache_free(cache);
}

SUITE(cache_partial, CASE(whole_for_a_hole), CASE(part_for_nobody_else), CASE(one_part), CASE(not_stored),
        CASE(unsatisfiable), CASE(joined_at_random), CASE(never_mixed), CASE(broken_off), CASE(broken_part),
        CASE(broken_refresh), CASE(completed), CASE(completed_in_steps), CASE(not_completed),
        CASE(answered_otherwise), CASE(completed_as_a_stream), CASE(confirmed), CASE(arriving),
        CASE(not_joined), CASE(range_of_a_stream), CASE(many_parts), CASE(evicted), CASE(threads),
        CASE(random_ranges_of_a_large_object), CASE(chunks_are_evicted_one_by_one),
        CASE(several_holes_at_once), CASE(seeks_back_to_a_hole), CASE(a_hole_of_what_becomes_a_stream),
        CASE(behind_one_given_up), CASE(left_behind), CASE(after_its_whole))
