// What several threads bring at the same moment: all of it is there afterwards. Each has requests and heads
// parsed before, as the assertions are the main thread's.
#include "admin/container.h"
#include "cache/cache.h"
#include "tests/unit/cache/text.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#define THREADS 3
#define ROUNDS 2000
#define PART 50000
#define SIZE (THREADS * PART)
#define FRESH "Cache-Control: max-age=60\nETag: \"x\"\nDate: Sun, 06 Nov 1994 08:49:37 GMT\n"
#define NOW 784111777

struct actor {
    struct cache_reader reader;
    pthread_t thread;
    pthread_barrier_t *start;
    struct cache *cache;
    struct text_head request, answer;
    struct cache_query query;
    struct cache_fill *fill;
    char path[32];
    unsigned number, unstored, not_asked;
};

static char bytes[PART];

static void on_wake(struct cache_reader *reader) {
    (void)reader;
}

static void on_room(void *owner) {
    (void)owner;
}

static enum lookup look_up(struct actor *actor) {
    const char *reason;
    actor->reader = (struct cache_reader){.wake = on_wake};
    actor->query = (struct cache_query){.head = &actor->request.head,
            .destination = {.address = {{[10] = 0xff, [11] = 0xff, 192, 0, 2, 1}}, .port = 80},
            .authority = VIEW("host"),
            .path = view_of(actor->path),
            .now = {NOW, NOW},
            .store_allowed = true};
    return cache_lookup(actor->cache, &actor->query, &actor->reader, &actor->fill, &reason);
}

// The origin's answer to what the look-up made of the request; left in the middle when `is_whole` is not set.
static void bring(struct actor *actor, bool is_whole) {
    const char *reason;
    struct cache_response response = {.head = &actor->answer.head,
            .content_length = PART,
            .request_at = actor->query.now,
            .response_at = actor->query.now,
            .has_body = true};
    if (!actor->fill) {
        actor->not_asked++;
        return;
    }
    cache_fill_head(actor->fill, &response, &reason);
    uint64_t sent = 0;
    while (sent < (is_whole ? PART : PART / 2) && cache_fill_stores(actor->fill)) {
        size_t room = cache_fill_room(actor->fill, on_room, actor);
        room = room < PART - sent ? room : PART - sent;
        cache_fill_append(actor->fill, bytes, room);
        sent += room;
    }
    actor->unstored += !cache_fill_stores(actor->fill);
    if (is_whole)
        cache_fill_finish(actor->fill);
    else
        cache_fill_abandon(actor->fill);
    cache_reader_detach(&actor->reader);
}

static void begin(struct actor actors[THREADS], struct cache *cache, pthread_barrier_t *start) {
    pthread_barrier_init(start, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++)
        actors[i] = (struct actor){.cache = cache, .number = i, .start = start};
}

static void run(struct actor actors[THREADS], void *(*body)(void *)) {
    for (unsigned i = 0; i < THREADS; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&actors[i].thread, NULL, body, &actors[i]), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(actors[i].thread, NULL);
}

// ---- at the limit ----

static void *store_many(void *argument) {
    struct actor *actor = argument;
    pthread_barrier_wait(actor->start);
    for (unsigned i = 0; i < ROUNDS; i++) {
        snprintf(actor->path, sizeof actor->path, "/%u/%u", actor->number, i);
        look_up(actor);
        bring(actor, true);
    }
    return NULL;
}

static void there_is_room_at_the_limit(void) {
    struct cache_limits limits = {.memory_bytes = 2 << 20};
    struct cache *cache = cache_new(&limits);
    struct actor actors[THREADS];
    pthread_barrier_t start;
    begin(actors, cache, &start);
    for (unsigned i = 0; i < THREADS; i++) {
        text_request(&actors[i].request, "GET", "Host: host\n");
        text_response(&actors[i].answer, 200, FRESH);
    }
    run(actors, store_many);
    for (unsigned i = 0; i < THREADS; i++) {
        CU_ASSERT_EQUAL(actors[i].unstored, 0);
        CU_ASSERT_EQUAL(actors[i].not_asked, 0);
    }
    pthread_barrier_destroy(&start);
    cache_free(cache);
}

// ---- parts of one representation ----

static void *bring_parts(void *argument) {
    struct actor *actor = argument;
    for (unsigned i = 0; i < ROUNDS; i++) {
        snprintf(actor->path, sizeof actor->path, "/parts/%u", i);
        look_up(actor);
        pthread_barrier_wait(actor->start); // none has a head by now
        bring(actor, true);
        pthread_barrier_wait(actor->start);
    }
    return NULL;
}

static void parts_that_come_at_once_are_one(void) {
    struct cache_limits limits = {.memory_bytes = 1 << 30};
    struct cache *cache = cache_new(&limits);
    struct actor actors[THREADS];
    pthread_barrier_t start;
    begin(actors, cache, &start);
    for (unsigned i = 0; i < THREADS; i++) {
        char fields[256];
        snprintf(fields, sizeof fields, "Host: host\nRange: bytes=%u-%u\n", i * PART, (i + 1) * PART - 1);
        text_request(&actors[i].request, "GET", fields);
        snprintf(fields, sizeof fields, FRESH "Content-Range: bytes %u-%u/%u\n", i * PART, (i + 1) * PART - 1,
                SIZE);
        text_response(&actors[i].answer, 206, fields);
    }
    run(actors, bring_parts);
    for (unsigned i = 0; i < THREADS; i++) {
        CU_ASSERT_EQUAL(actors[i].unstored, 0);
        CU_ASSERT_EQUAL(actors[i].not_asked, 0);
    }
    struct actor *whole = &actors[0];
    unsigned missed = 0;
    text_request(&whole->request, "GET", "Host: host\n");
    for (unsigned i = 0; i < ROUNDS; i++) {
        snprintf(whole->path, sizeof whole->path, "/parts/%u", i);
        missed += look_up(whole) != LOOKUP_HIT;
        cache_reader_detach(&whole->reader);
        if (whole->fill)
            cache_fill_abandon(whole->fill);
    }
    CU_ASSERT_EQUAL(missed, 0);
    pthread_barrier_destroy(&start);
    cache_free(cache);
}

SUITE(cache_at_once, CASE(there_is_room_at_the_limit), CASE(parts_that_come_at_once_are_one))
