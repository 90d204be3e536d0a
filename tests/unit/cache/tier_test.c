// The memory tier over volumes: what is stored comes back from the disk, after an eviction and after a start,
// whole, in parts and in variants; what was dropped does not.
#include "cache/cache.h"
#include "cache/disk.h"
#include "cache/file.h"
#include "tests/unit/cache/disk.h"
#include "tests/unit/cache/play.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>

#define HOST "Host: host\n"
#define FRESH "Cache-Control: max-age=600\nContent-Type: text/plain\nDate: Sun, 06 Nov 1994 08:49:37 GMT\n"
#define STRONG "ETag: \"a\"\n"
#define NOW PLAY_NOW
#define MIB (UINT64_C(1) << 20)
#define KIB (UINT64_C(1) << 10)

struct tiers {
    char *path;
    struct volume_settings volume;
    struct disk_settings settings;
    struct disk *disk;
    struct cache *cache;
};

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static bool is_ready(struct tiers *tiers) {
    struct disk_volume_stats stats[DISK_VOLUMES_MAX];
    return disk_stats(tiers->disk, stats) == 1 && stats[0].state == DISK_READY;
}

static void start(struct tiers *tiers, uint64_t memory_bytes) {
    struct cache_limits limits = {
            .memory_bytes = memory_bytes, .maximum_object_bytes = 64 * MIB, .has_disk = true};
    tiers->volume = (struct volume_settings){.path = tiers->path, .bytes = 256 * MIB, .objects = 20000};
    tiers->settings = (struct disk_settings){.volumes = &tiers->volume, .count = 1};
    tiers->disk = disk_new(&tiers->settings);
    tiers->cache = cache_new(&limits);
    cache_use_disk(tiers->cache, tiers->disk, 7);
    for (unsigned i = 0; i < 5000 && !is_ready(tiers); i++)
        nap();
    CU_ASSERT_TRUE_FATAL(is_ready(tiers));
}

static void stop(struct tiers *tiers) {
    cache_free(tiers->cache);
    disk_free(tiers->disk);
}

static void restart(struct tiers *tiers, uint64_t memory_bytes) {
    stop(tiers);
    start(tiers, memory_bytes);
}

// Everything out of memory, and written before.
static void forget_memory(struct tiers *tiers) {
    struct cache_limits none = {.memory_bytes = 1, .has_disk = true, .maximum_object_bytes = 64 * MIB};
    struct cache_limits some = {.memory_bytes = 8 * MIB, .has_disk = true, .maximum_object_bytes = 64 * MIB};
    struct cache_stats stats = {.objects = 1};
    for (unsigned i = 0; i < 5000 && stats.objects; i++) {
        cache_set_limits(tiers->cache, &none);
        cache_stats(tiers->cache, &stats);
        nap();
    }
    CU_ASSERT_EQUAL(stats.objects, 0);
    cache_set_limits(tiers->cache, &some);
}

// Looks up, and once more for as long as the disk has to be waited for.
static enum lookup get(struct play *play, struct cache *cache, const char *path, const char *fields) {
    enum lookup lookup = play_begin(play, cache, "GET", path, fields, NOW);
    for (unsigned i = 0; i < 5000 && lookup == LOOKUP_WAIT; i++) {
        while (atomic_load(&play->wakes) == 0)
            nap();
        cache_reader_detach(&play->reader);
        lookup = play_begin(play, cache, "GET", path, fields, NOW);
    }
    return lookup;
}

static enum read read_all(struct play *play, uint64_t most) {
    enum read read;
    unsigned wakes = 0;
    while ((read = play_read(play, most - play->received)) == READ_WAIT) {
        for (unsigned i = 0; i < 5000 && atomic_load(&play->wakes) == wakes; i++)
            nap();
        wakes = atomic_load(&play->wakes);
    }
    return read;
}

// A hit with all of it from the store, byte for byte.
static bool has(struct cache *cache, const char *path, const char *fields, uint64_t bytes, unsigned seed) {
    struct play play;
    bool is_hit = get(&play, cache, path, fields) == LOOKUP_HIT;
    play.seed = seed;
    if (is_hit) {
        CU_ASSERT_EQUAL(play_head(&play), READ_READY);
        CU_ASSERT_EQUAL(play.head.content_length, (int64_t)bytes);
        CU_ASSERT_EQUAL(read_all(&play, UINT64_MAX), READ_END);
        CU_ASSERT_EQUAL(play.received, bytes);
    }
    play_end(&play);
    return is_hit;
}

static void put(struct cache *cache, const char *path, const char *request, const char *fields,
        uint64_t bytes, unsigned seed) {
    struct play play;
    get(&play, cache, path, request);
    CU_ASSERT_PTR_NOT_NULL_FATAL(play.fill);
    play.seed = seed;
    CU_ASSERT_EQUAL(play_answer(&play, 200, fields, (int64_t)bytes), FILL_STORE);
    while (play.sent < bytes)
        if (play_send(&play, bytes - play.sent) == 0)
            nap(); // the disk is behind
    play_finish(&play);
    play_end(&play);
}

static void sizes_come_back(void) {
    static const uint64_t sizes[] = {
            0, 1, 16384, 16385, 256 * KIB, 256 * KIB + 1, MIB - 1, MIB, MIB + 1, 5 * MIB + 77};
    struct tiers tiers = {.path = scratch_new()};
    start(&tiers, 8 * MIB);
    char path[32];
    for (unsigned i = 0; i < 10; i++) {
        snprintf(path, sizeof path, "/%u", i);
        put(tiers.cache, path, HOST, FRESH STRONG, sizes[i], i);
    }
    for (unsigned round = 0; round < 3; round++) {
        if (round == 1)
            forget_memory(&tiers);
        if (round == 2)
            restart(&tiers, 8 * MIB);
        for (unsigned i = 0; i < 10; i++) {
            snprintf(path, sizeof path, "/%u", i);
            CU_ASSERT_TRUE(has(tiers.cache, path, HOST, sizes[i], i));
        }
    }
    stop(&tiers);
    scratch_free(tiers.path);
}

// Of unknown length until its end; larger than the memory, too.
static void unknown_sizes_come_back(void) {
    static const uint64_t sizes[] = {0, 100, 300 * KIB, 3 * MIB + 5, 20 * MIB};
    struct tiers tiers = {.path = scratch_new()};
    start(&tiers, 8 * MIB);
    char path[32];
    for (unsigned i = 0; i < 5; i++) {
        struct play play;
        snprintf(path, sizeof path, "/%u", i);
        get(&play, tiers.cache, path, HOST);
        play_answer(&play, 200, FRESH, -1);
        while (play.sent < sizes[i])
            if (play_send(&play, sizes[i] - play.sent) == 0)
                nap();
        play_finish(&play);
        play_end(&play);
    }
    restart(&tiers, 8 * MIB);
    for (unsigned i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "/%u", i);
        CU_ASSERT_TRUE(has(tiers.cache, path, HOST, sizes[i], 0));
    }
    stop(&tiers);
    scratch_free(tiers.path);
}

static void variants_come_back(void) {
    struct tiers tiers = {.path = scratch_new()};
    start(&tiers, 8 * MIB);
    put(tiers.cache, "/v", HOST "Accept-Language: de\n", FRESH "ETag: \"d\"\nVary: Accept-Language\n", 1000,
            1);
    put(tiers.cache, "/v", HOST "Accept-Language: fr\n", FRESH "ETag: \"f\"\nVary: Accept-Language\n", 700000,
            2);
    for (unsigned round = 0; round < 3; round++) {
        if (round == 1)
            forget_memory(&tiers);
        if (round == 2)
            restart(&tiers, 8 * MIB);
        CU_ASSERT_TRUE(has(tiers.cache, "/v", HOST "Accept-Language: de\n", 1000, 1));
        CU_ASSERT_TRUE(has(tiers.cache, "/v", HOST "Accept-Language: fr\n", 700000, 2));
        CU_ASSERT_FALSE(has(tiers.cache, "/v", HOST "Accept-Language: it\n", 1000, 1));
    }
    stop(&tiers);
    scratch_free(tiers.path);
}

// The later of two, and what a 304 made of one.
static void successors_come_back(void) {
    struct tiers tiers = {.path = scratch_new()};
    struct play play;
    start(&tiers, 8 * MIB);
    put(tiers.cache, "/a", HOST, FRESH STRONG, 1000, 1);
    put(tiers.cache, "/b", HOST, FRESH STRONG, 600000, 1);
    CU_ASSERT_EQUAL(get(&play, tiers.cache, "/a", HOST "Cache-Control: no-cache\n"), LOOKUP_STALE);
    play.seed = 2;
    CU_ASSERT_EQUAL(play_answer(&play, 200, FRESH "ETag: \"b\"\n", 2000), FILL_STORE);
    play_send(&play, 2000);
    play_finish(&play);
    play_end(&play);
    CU_ASSERT_EQUAL(get(&play, tiers.cache, "/b", HOST "Cache-Control: no-cache\n"), LOOKUP_STALE);
    CU_ASSERT_EQUAL(play_answer(&play, 304, FRESH STRONG "X-New: 1\n", -1), FILL_NOT_MODIFIED);
    play_finish(&play);
    play_end(&play);
    for (unsigned round = 0; round < 3; round++) {
        if (round == 1)
            forget_memory(&tiers);
        if (round == 2)
            restart(&tiers, 8 * MIB);
        CU_ASSERT_TRUE(has(tiers.cache, "/a", HOST, 2000, 2));
        CU_ASSERT_TRUE(has(tiers.cache, "/b", HOST, 600000, 1));
        get(&play, tiers.cache, "/b", HOST);
        CU_ASSERT_EQUAL(play_head(&play), READ_READY);
        bool has_new = false;
        for (unsigned i = 0; i < play.head.head->field_count; i++)
            has_new |= view_equal(play.head.head->fields[i].name, VIEW("X-New"));
        CU_ASSERT_TRUE(has_new);
        play_end(&play);
    }
    stop(&tiers);
    scratch_free(tiers.path);
}

static void cut_short(struct cache *cache, uint64_t bytes) {
    struct play play;
    get(&play, cache, "/a", HOST);
    play_answer(&play, 200, FRESH STRONG "Accept-Ranges: bytes\n", 6 * MIB);
    while (play.sent < bytes)
        if (play_send(&play, bytes - play.sent) == 0)
            nap();
    play_abandon(&play);
    play_end(&play);
}

// The origin's answer to what the fill asks for. Returns how many bytes that were.
static uint64_t answer_hole(struct play *play, uint64_t size) {
    struct view fields = cache_fill_fields(play->fill);
    uintmax_t from = 0, to = size - 1;
    char text[256];
    snprintf(text, sizeof text, VIEW_FORMAT, VIEW_ARGUMENT(fields));
    CU_ASSERT_TRUE(sscanf(text, "Range: bytes=%ju-%ju", &from, &to) >= 1);
    snprintf(text, sizeof text, FRESH STRONG "Content-Range: bytes %ju-%ju/%ju\n", from, to, (uintmax_t)size);
    CU_ASSERT_EQUAL(play_answer(play, 206, text, (int64_t)(to - from + 1)), FILL_STORE);
    play->sent = from;
    while (play->sent <= to)
        if (play_send(play, to + 1 - play->sent) == 0)
            nap();
    play_finish(play);
    return to - from + 1;
}

// What broke off goes on where it stopped, after a start as well, and no byte is asked for twice.
static void broken_off_goes_on(void) {
    struct tiers tiers = {.path = scratch_new()};
    struct play play;
    enum read read;
    start(&tiers, 16 * MIB);
    cut_short(tiers.cache, 3 * MIB + 1000);
    restart(&tiers, 16 * MIB);
    CU_ASSERT_EQUAL(get(&play, tiers.cache, "/a", HOST), LOOKUP_MISS);
    CU_ASSERT_STRING_EQUAL(play.reason, "incomplete");
    uint64_t asked = answer_hole(&play, 6 * MIB);
    CU_ASSERT_EQUAL(play_head(&play), READ_READY);
    while ((read = read_all(&play, UINT64_MAX)) == READ_HOLE) {
        play.fill = cache_reader_fill(&play.reader, &play.query, UINT64_MAX);
        CU_ASSERT_PTR_NOT_NULL_FATAL(play.fill);
        asked += answer_hole(&play, 6 * MIB);
    }
    CU_ASSERT_EQUAL(read, READ_END);
    CU_ASSERT_EQUAL(play.received, 6 * MIB);
    CU_ASSERT_EQUAL(asked, 3 * MIB - 1000);
    play_end(&play);
    restart(&tiers, 16 * MIB);
    CU_ASSERT_TRUE(has(tiers.cache, "/a", HOST, 6 * MIB, 0));
    stop(&tiers);
    scratch_free(tiers.path);
}

// Where the origin does not answer ranges, a part of a chunk is of no use, and is not taken for the whole.
static void a_part_that_cannot_go_on(void) {
    struct tiers tiers = {.path = scratch_new()};
    struct play play;
    start(&tiers, 16 * MIB);
    get(&play, tiers.cache, "/a", HOST);
    play_answer(&play, 200, FRESH STRONG, 900000);
    while (play.sent < 300000)
        play_send(&play, 300000 - play.sent);
    play_abandon(&play);
    play_end(&play);
    restart(&tiers, 16 * MIB);
    CU_ASSERT_EQUAL(get(&play, tiers.cache, "/a", HOST), LOOKUP_MISS);
    play_end(&play);
    stop(&tiers);
    scratch_free(tiers.path);
}

// What was purged, invalidated or replaced by what may not be stored does not come back.
static void dropped_stays_dropped(void) {
    struct tiers tiers = {.path = scratch_new()};
    struct play play;
    start(&tiers, 8 * MIB);
    for (unsigned round = 0; round < 2; round++) { // in memory as well as on disk, and on disk alone
        put(tiers.cache, "/purged", HOST, FRESH STRONG, 1000, 1);
        put(tiers.cache, "/large", HOST, FRESH STRONG, 900000, 1);
        put(tiers.cache, "/posted", HOST, FRESH STRONG, 1000, 1);
        put(tiers.cache, "/private", HOST, FRESH STRONG, 1000, 1);
        put(tiers.cache, "/kept", HOST, FRESH STRONG, 1000, 1);
        if (round == 1)
            forget_memory(&tiers);
        cache_purge_url(tiers.cache, VIEW("host"), VIEW("/purged"));
        cache_purge_prefix(tiers.cache, VIEW("host"), VIEW("/la"));
        play_begin(&play, tiers.cache, "POST", "/posted", HOST, NOW);
        play_answer(&play, 204, FRESH, -1);
        struct text_head text;
        cache_invalidate(tiers.cache, &play.query, text_response(&text, 204, FRESH));
        play_end(&play);
        get(&play, tiers.cache, "/private", HOST "Cache-Control: no-cache\n");
        play_answer(&play, 200, "Cache-Control: private\n", 10);
        play_send(&play, 10);
        play_finish(&play);
        play_end(&play);
        restart(&tiers, 8 * MIB);
        CU_ASSERT_FALSE(has(tiers.cache, "/purged", HOST, 1000, 1));
        CU_ASSERT_FALSE(has(tiers.cache, "/large", HOST, 900000, 1));
        CU_ASSERT_FALSE(has(tiers.cache, "/posted", HOST, 1000, 1));
        CU_ASSERT_FALSE(has(tiers.cache, "/private", HOST, 1000, 1));
        CU_ASSERT_TRUE(has(tiers.cache, "/kept", HOST, 1000, 1));
        cache_purge_all(tiers.cache);
        CU_ASSERT_FALSE(has(tiers.cache, "/kept", HOST, 1000, 1));
    }
    stop(&tiers);
    scratch_free(tiers.path);
}

static void send_all(struct play *play, uint64_t bytes) {
    while (play->sent < bytes)
        if (play_send(play, bytes - play->sent) == 0)
            nap();
    play_finish(play);
}

// An earlier response that ends last is not stored, and does not stand before the later one on disk.
static void outdated_at_its_end(void) {
    struct tiers tiers = {.path = scratch_new()};
    struct play older, newer;
    start(&tiers, 16 * MIB);
    play_begin(&older, tiers.cache, "GET", "/a", HOST "Cache-Control: no-cache\n", NOW - 5);
    older.seed = 1;
    CU_ASSERT_EQUAL(play_answer(&older, 200, FRESH STRONG, (int64_t)(2 * MIB)), FILL_STORE);
    play_begin(&newer, tiers.cache, "GET", "/a", HOST "Cache-Control: no-cache\n", NOW);
    newer.seed = 2;
    CU_ASSERT_EQUAL(play_answer(&newer, 200, FRESH "ETag: \"b\"\n", (int64_t)(3 * MIB)), FILL_STORE);
    send_all(&newer, 3 * MIB);
    play_end(&newer);
    for (unsigned i = 0; i < 100; i++)
        nap(); // its head is written
    send_all(&older, 2 * MIB);
    play_end(&older);
    forget_memory(&tiers);
    CU_ASSERT_TRUE(has(tiers.cache, "/a", HOST, 3 * MIB, 2));
    stop(&tiers);
    scratch_free(tiers.path);
}

// ---- while the writer is busy ----

struct busy {
    struct disk_job job;
    pthread_mutex_t *gate;
};

static void wait_at_gate(struct disk_job *job) {
    struct busy *busy = (struct busy *)job;
    pthread_mutex_lock(busy->gate);
    pthread_mutex_unlock(busy->gate);
}

static void go_on(struct disk_job *job) {
    (void)job;
}

static void invalidate(struct cache *cache, const char *path) {
    struct play play;
    struct text_head text;
    play_begin(&play, cache, "POST", path, HOST, NOW);
    play_answer(&play, 204, FRESH, -1);
    cache_invalidate(cache, &play.query, text_response(&text, 204, FRESH));
    play_end(&play);
}

// On disk, and there alone: what the disk was too busy for is put again.
static void put_on_disk(struct tiers *tiers, const char *path) {
    bool is_there = false;
    for (unsigned i = 0; i < 20 && !is_there; i++) {
        put(tiers->cache, path, HOST, FRESH STRONG, 1000, 1);
        forget_memory(tiers);
        is_there = has(tiers->cache, path, HOST, 1000, 1);
    }
    CU_ASSERT_TRUE(is_there);
    forget_memory(tiers);
}

// Neither a purge nor an invalidation waits for what is to be written, with room in the queue or without.
static void dropped_at_once(void) {
    struct tiers tiers = {.path = scratch_new()};
    static struct busy busy[DISK_QUEUE_MAX + 1];
    struct endpoint any = {.port = 80};
    struct disk_name name = {&any, VIEW("host"), VIEW("/")};
    start(&tiers, 8 * MIB);
    tiers.settings.slow_ms = 60000;
    disk_apply(tiers.disk, &tiers.settings);
    put_on_disk(&tiers, "/purged");
    put_on_disk(&tiers, "/kept");
    for (unsigned round = 0; round < 2; round++) {
        pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
        unsigned count = 0, most = round == 0 ? 1 : DISK_QUEUE_MAX + 1;
        put_on_disk(&tiers, "/posted");
        pthread_mutex_lock(&gate);
        for (; count < most; count++) {
            busy[count] = (struct busy){
                    .job = {.run = wait_at_gate, .give_up = go_on, .done = go_on}, .gate = &gate};
            if (!disk_submit(disk_volume_for(tiers.disk, &name), DISK_WRITE, &busy[count].job))
                break;
        }
        invalidate(tiers.cache, "/posted");
        if (round == 1)
            cache_purge_url(tiers.cache, VIEW("host"), VIEW("/purged"));
        CU_ASSERT_FALSE(has(tiers.cache, "/posted", HOST, 1000, 1));
        CU_ASSERT_EQUAL(has(tiers.cache, "/purged", HOST, 1000, 1), round == 0);
        CU_ASSERT_TRUE(has(tiers.cache, "/kept", HOST, 1000, 1));
        pthread_mutex_unlock(&gate);
        restart(&tiers, 8 * MIB);
        tiers.settings.slow_ms = 60000;
        disk_apply(tiers.disk, &tiers.settings);
        CU_ASSERT_FALSE(has(tiers.cache, "/posted", HOST, 1000, 1));
        CU_ASSERT_TRUE(has(tiers.cache, "/kept", HOST, 1000, 1));
    }
    stop(&tiers);
    scratch_free(tiers.path);
}

// What a 304 has confirmed, and a response that may not be stored has replaced before that was written, does
// not come back as it was before the 304.
static void confirmed_and_replaced(void) {
    struct tiers tiers = {.path = scratch_new()};
    static struct busy busy;
    struct play play;
    struct endpoint any = {.port = 80};
    struct disk_name name = {&any, VIEW("host"), VIEW("/")};
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    start(&tiers, 8 * MIB);
    tiers.settings.slow_ms = 60000;
    disk_apply(tiers.disk, &tiers.settings);
    put_on_disk(&tiers, "/a");
    pthread_mutex_lock(&gate);
    busy = (struct busy){.job = {.run = wait_at_gate, .give_up = go_on, .done = go_on}, .gate = &gate};
    CU_ASSERT_TRUE(disk_submit(disk_volume_for(tiers.disk, &name), DISK_WRITE, &busy.job));
    CU_ASSERT_EQUAL(get(&play, tiers.cache, "/a", HOST "Cache-Control: no-cache\n"), LOOKUP_STALE);
    CU_ASSERT_EQUAL(play_answer(&play, 304, FRESH STRONG, -1), FILL_NOT_MODIFIED);
    play_finish(&play);
    play_end(&play);
    CU_ASSERT_EQUAL(get(&play, tiers.cache, "/a", HOST "Cache-Control: no-cache\n"), LOOKUP_STALE);
    CU_ASSERT_EQUAL(play_answer(&play, 200, "Cache-Control: no-store\n", 10), FILL_STREAM);
    play_send(&play, 10);
    play_finish(&play);
    play_end(&play);
    CU_ASSERT_FALSE(has(tiers.cache, "/a", HOST, 1000, 1));
    pthread_mutex_unlock(&gate);
    restart(&tiers, 8 * MIB);
    CU_ASSERT_FALSE(has(tiers.cache, "/a", HOST, 1000, 1));
    stop(&tiers);
    scratch_free(tiers.path);
}

// What the answer to a HEAD has said of it is known after a start, too.
static void contradicted_stays_so(void) {
    struct tiers tiers = {.path = scratch_new()};
    struct play play;
    struct text_head text;
    start(&tiers, 8 * MIB);
    put_on_disk(&tiers, "/a");
    CU_ASSERT_TRUE(has(tiers.cache, "/a", HOST, 1000, 1));
    play_begin(&play, tiers.cache, "HEAD", "/a", HOST "Cache-Control: no-cache\n", NOW);
    struct cache_response response = {
            .head = text_response(&text, 200, FRESH "ETag: \"other\"\n"), .content_length = 5};
    cache_update_by_head(tiers.cache, &play.query, &response);
    play_end(&play);
    CU_ASSERT_FALSE(has(tiers.cache, "/a", HOST, 1000, 1));
    restart(&tiers, 8 * MIB);
    CU_ASSERT_FALSE(has(tiers.cache, "/a", HOST, 1000, 1));
    stop(&tiers);
    scratch_free(tiers.path);
}

// ---- other settings ----

// A directory with other settings is opened anew, though what came from it is in memory.
static void opened_anew(void) {
    struct tiers tiers = {.path = scratch_new()};
    start(&tiers, 8 * MIB);
    put(tiers.cache, "/small", HOST, FRESH STRONG, 1000, 1);
    put(tiers.cache, "/large", HOST, FRESH STRONG, 900000, 1);
    forget_memory(&tiers);
    bool was_there[] = {
            has(tiers.cache, "/small", HOST, 1000, 1), has(tiers.cache, "/large", HOST, 900000, 1)};
    tiers.volume.judges_unhit = true;
    disk_apply(tiers.disk, &tiers.settings);
    cache_leave_volumes(tiers.cache);
    for (unsigned i = 0; i < 5000 && !is_ready(&tiers); i++)
        nap();
    CU_ASSERT_TRUE(is_ready(&tiers));
    forget_memory(&tiers);
    CU_ASSERT_EQUAL(has(tiers.cache, "/small", HOST, 1000, 1), was_there[0]);
    CU_ASSERT_EQUAL(has(tiers.cache, "/large", HOST, 900000, 1), was_there[1]);
    stop(&tiers);
    scratch_free(tiers.path);
}

// ---- explained ----

static ssize_t cold_read(int fd, const struct iovec *parts, int count, off_t at, int flags) {
    if (flags & RWF_NOWAIT)
        return errno = EAGAIN, -1;
    return file_system.preadv2(fd, parts, count, at, flags);
}

// What lies on disk alone, and not in the kernel's memory either.
static void explained_from_the_disk(void) {
    static struct cache_explanation told;
    struct file_calls cold = file_system;
    struct tiers tiers = {.path = scratch_new()};
    struct play play;
    cold.preadv2 = cold_read;
    start(&tiers, 8 * MIB);
    put(tiers.cache, "/a", HOST, FRESH STRONG, 1000, 1);
    for (unsigned is_skipped = 0; is_skipped < 2; is_skipped++) {
        restart(&tiers, 8 * MIB);
        file_use(&cold);
        play_begin(&play, tiers.cache, "GET", "/b", HOST, NOW);
        play.query.path = VIEW("/a");
        play.query.skips_disk = is_skipped;
        cache_explain(tiers.cache, &play.query, &told);
        play_end(&play);
        file_use(NULL);
        CU_ASSERT_EQUAL(told.lookup, is_skipped ? LOOKUP_MISS : LOOKUP_HIT);
        CU_ASSERT_FALSE(told.is_unread);
        CU_ASSERT_EQUAL(told.variant_count, !is_skipped);
        CU_ASSERT_STRING_EQUAL(told.variants[0].disk_path, is_skipped ? "" : tiers.path);
    }
    stop(&tiers);
    scratch_free(tiers.path);
}

// ---- on several threads ----

#define THREADS 4
#define ROUNDS 400
#define PATHS 24

static const uint64_t lengths[] = {100, 5000, 70000, 262144, 300000, 1500000};

struct worker {
    pthread_t thread;
    struct cache *cache;
    unsigned state, hits;
};

static void take_turn(struct worker *worker) {
    struct play play;
    char path[32];
    unsigned number = (unsigned)rand_r(&worker->state) % PATHS;
    uint64_t bytes = lengths[number % 6];
    snprintf(path, sizeof path, "/%u", number);
    enum lookup lookup = get(&play, worker->cache, path, HOST);
    play.seed = number;
    if (lookup == LOOKUP_HIT) {
        worker->hits++;
        if (play_head(&play) != READ_READY || play.head.content_length != (int64_t)bytes)
            CU_FAIL("a hit of another one");
        enum read read = read_all(&play, UINT64_MAX);
        CU_ASSERT_TRUE(read == READ_END || read == READ_BROKEN || read == READ_HOLE);
        CU_ASSERT_TRUE(read != READ_END || play.received == bytes);
    } else if (play.fill && cache_fill_fields(play.fill).length == 0) {
        play_answer(&play, 200, FRESH STRONG, (int64_t)bytes);
        bool is_cut = rand_r(&worker->state) % 20 == 0;
        if (play_head(&play) == READ_READY)
            while (play.sent < (is_cut ? bytes / 2 : bytes)) {
                if (play_send(&play, bytes - play.sent) == 0)
                    sched_yield();
                play_read(&play, UINT64_MAX);
            }
        if (play.sent == bytes)
            play_finish(&play);
    }
    play_end(&play);
}

static void *work(void *argument) {
    struct worker *worker = argument;
    for (unsigned i = 0; i < ROUNDS; i++) {
        take_turn(worker);
        if (rand_r(&worker->state) % 200 == 0)
            cache_purge_url(worker->cache, VIEW("host"), VIEW("/3"));
    }
    return NULL;
}

static void many_threads(void) {
    struct tiers tiers = {.path = scratch_new_quick()};
    struct worker workers[THREADS];
    start(&tiers, 4 * MIB);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.cache = tiers.cache, .state = i + 1};
        CU_ASSERT_EQUAL_FATAL(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    unsigned hits = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        hits += workers[i].hits;
    }
    CU_ASSERT_TRUE(hits > THREADS * ROUNDS / 4);
    stop(&tiers); // checks that no byte is left counted
    scratch_free(tiers.path);
}

SUITE(cache_tier, CASE(sizes_come_back), CASE(unknown_sizes_come_back), CASE(variants_come_back),
        CASE(successors_come_back), CASE(broken_off_goes_on), CASE(a_part_that_cannot_go_on),
        CASE(dropped_stays_dropped), CASE(outdated_at_its_end), CASE(dropped_at_once), CASE(opened_anew),
        CASE(confirmed_and_replaced), CASE(contradicted_stays_so), CASE(explained_from_the_disk),
        CASE(many_threads))
