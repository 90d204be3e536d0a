// Several threads fill, join, read, abandon, purge and resize one store at once; every byte is checked, and
// so is that nobody waits in vain. Made for the thread and address sanitizers as much as for its own checks.
#include "admin/container.h"
#include "cache/cache.h"
#include "tests/unit/cache/text.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define THREADS 6
#ifndef ROUNDS
#define ROUNDS 1000
#endif
#define PATHS 40
#define WAIT_SECONDS 20 // only a lost wake lets it pass
#define BODY_MAXIMUM 160000

static struct cache *cache;
static _Atomic unsigned version, delivered, broken, gone, hits, joins, confirmed, again, stood_in, refreshed,
        wrong, stuck;

struct actor { // a thread: one request at a time, with its fetch when it has one
    struct cache_reader reader;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t signal;
    bool woken;
    unsigned random;
    struct text_head request;
    struct cache_query query;
    struct cache_fill *fill;
    bool has_head;
    bool sent_head;
    unsigned seed;
    uint64_t length, sent, received;
    bool is_announced;
};

static unsigned dice(struct actor *actor, unsigned sides) {
    actor->random = actor->random * 1103515245 + 12345;
    return (actor->random >> 12) % sides;
}

static unsigned char byte_at(unsigned seed, uint64_t offset) {
    return (unsigned char)(offset * 7 + offset / 253 + seed * 13);
}

static void wake(struct actor *actor) {
    pthread_mutex_lock(&actor->lock);
    actor->woken = true;
    pthread_cond_signal(&actor->signal);
    pthread_mutex_unlock(&actor->lock);
}

static void on_reader(struct cache_reader *reader) {
    wake(CONTAINER_OF(reader, struct actor, reader));
}

static void on_room(void *owner) {
    wake(owner);
}

static bool wait_for_wake(struct actor *actor) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_SECONDS;
    int result = 0;
    pthread_mutex_lock(&actor->lock);
    while (!actor->woken && result == 0)
        result = pthread_cond_timedwait(&actor->signal, &actor->lock, &until);
    bool woken = actor->woken;
    actor->woken = false;
    pthread_mutex_unlock(&actor->lock);
    if (!woken)
        atomic_fetch_add(&stuck, 1);
    return woken;
}

// ---- the origin ----

static void send_head(struct actor *actor) {
    struct text_head text;
    struct http_error error;
    char fields[320], first[] = "HTTP/1.1 200 OK";
    bool confirms = cache_fill_fields(actor->fill).length > 0, not_modified = confirms && dice(actor, 2);
    actor->seed = atomic_fetch_add(&version, 1);
    actor->length = dice(actor, 4) ? dice(actor, 20000) : dice(actor, BODY_MAXIMUM);
    actor->is_announced = dice(actor, 2);
    static const char *const controls[] = {"max-age=60", "max-age=60", "max-age=1", "no-cache", "no-store",
            "max-age=1, stale-while-revalidate=60", "max-age=1, stale-if-error=60",
            "max-age=1, stale-if-error=60", "max-age=1, stale-if-error=60"};
    snprintf(fields, sizeof fields, "Cache-Control: %s\n%sX-Seed: %u\nX-Length: %llu\n%s",
            controls[dice(actor, sizeof controls / sizeof *controls)], not_modified ? "" : "ETag: \"x\"\n",
            actor->seed, (unsigned long long)actor->length, dice(actor, 3) ? "" : "Vary: Accept\n");
    if (not_modified) { // speaks of nothing that describes the stored body
        strcpy(first + 9, "304 NM");
        snprintf(
                fields, sizeof fields, "Cache-Control: max-age=5\n%s", dice(actor, 4) ? "" : "ETag: \"y\"\n");
        actor->length = 0;
    } else if (dice(actor, confirms ? 2 : 8) == 0) {
        strcpy(first + 9, "503 SU");
    }
    if (http_parse_response(text_lines(&text, first, fields), 0, &text_limits, &text.head, &error) !=
            PARSE_DONE)
        abort();
    struct cache_response response = {.head = &text.head,
            .content_length = actor->is_announced ? (int64_t)actor->length : -1,
            .request_at = actor->query.now,
            .response_at = actor->query.now,
            .has_body = !not_modified};
    const char *reason;
    actor->sent_head = true;
    switch (cache_fill_head(actor->fill, &response, &reason)) {
    case FILL_STORE:
    case FILL_STREAM:
        return;
    case FILL_AGAIN:
        actor->sent_head = false;
        atomic_fetch_add(&again, 1);
        return;
    case FILL_NOT_MODIFIED:
        atomic_fetch_add(&confirmed, 1);
        break;
    case FILL_STALE:
        atomic_fetch_add(&stood_in, 1);
        break;
    }
    cache_fill_finish(actor->fill);
    actor->fill = NULL;
}

// ---- the end of it ----

static void give_up(struct actor *actor) {
    if (dice(actor, 2))
        cache_fill_abandon(actor->fill);
    else if (cache_fill_fail(actor->fill))
        atomic_fetch_add(&stood_in, 1);
    actor->fill = NULL;
}

// One step of the fetch. False when it waits for room.
static bool produce(struct actor *actor) {
    unsigned char data[8192];
    if (dice(actor, 300) == 0) {
        give_up(actor);
        return true;
    }
    if (!actor->sent_head) {
        if (dice(actor, 8)) // the origin thinks, and others come to wait
            return sched_yield(), true;
        send_head(actor);
        return true;
    }
    if (actor->sent == actor->length) {
        cache_fill_finish(actor->fill);
        actor->fill = NULL;
        return true;
    }
    size_t room = cache_fill_room(actor->fill, on_room, actor), length = 1 + dice(actor, sizeof data);
    length = length < room ? length : room;
    length = length < actor->length - actor->sent ? length : (size_t)(actor->length - actor->sent);
    for (size_t i = 0; i < length; i++)
        data[i] = byte_at(actor->seed, actor->sent + i);
    if (length)
        cache_fill_append(actor->fill, data, length);
    actor->sent += length;
    return length > 0;
}

// ---- the client ----

struct told { // by the head, for checking the content
    unsigned seed;
    uint64_t length;
};

static void read_told(const struct http_head *head, struct told *told) {
    for (unsigned i = 0; i < head->field_count; i++) {
        uint64_t number = 0;
        view_number(head->fields[i].value, &number);
        if (view_equal(head->fields[i].name, VIEW("X-Seed")))
            told->seed = (unsigned)number;
        if (view_equal(head->fields[i].name, VIEW("X-Length")))
            told->length = number;
    }
}

static void check(struct actor *actor, const struct told *told, const struct iovec *pieces, int used) {
    uint64_t most = 1 + dice(actor, 30000), taken = 0, differ = 0;
    for (int i = 0; i < used; i++)
        for (size_t j = 0; j < pieces[i].iov_len && taken < most; j++, taken++)
            differ +=
                    ((unsigned char *)pieces[i].iov_base)[j] != byte_at(told->seed, actor->received + taken);
    if (differ)
        atomic_fetch_add(&wrong, 1);
    cache_reader_advance(&actor->reader, taken);
    actor->received += taken;
}

// One step of the delivery. READ_READY: go on.
static enum read consume(struct actor *actor, struct told *told) {
    struct iovec pieces[3];
    int used = 0;
    if (!actor->has_head) {
        struct cache_head head;
        enum read read = cache_reader_head(&actor->reader, &actor->query, &head);
        actor->has_head = read == READ_READY;
        if (actor->has_head)
            read_told(head.head, told);
        return read;
    }
    enum read read = cache_reader_peek(&actor->reader, pieces, 3, &used);
    if (read == READ_READY)
        check(actor, told, pieces, used);
    if (read == READ_END && actor->received != told->length)
        atomic_fetch_add(&wrong, 1);
    return read;
}

static void run_exchange(struct actor *actor) {
    struct told told = {0, 0};
    enum read read = READ_READY;
    while (read == READ_READY || read == READ_WAIT || actor->fill) {
        bool progress = actor->fill && produce(actor);
        if (dice(actor, 3) == 0)
            sched_yield(); // on few cores as well, let the others in between
        if (read == READ_READY || read == READ_WAIT)
            read = consume(actor, &told);
        if (read == READ_GONE && actor->fill)
            atomic_fetch_add(&wrong, 1); // the producer's own is never told to go
        if ((read == READ_READY || read == READ_WAIT) && dice(actor, 400) == 0) {
            cache_reader_detach(&actor->reader); // the client left
            read = READ_BROKEN;
        }
        if (!progress && read == READ_WAIT && !wait_for_wake(actor))
            return;
    }
    atomic_fetch_add(read == READ_END ? &delivered : read == READ_GONE ? &gone : &broken, 1);
}

static void count(enum lookup lookup) {
    if (lookup == LOOKUP_HIT)
        atomic_fetch_add(&hits, 1);
    if (lookup == LOOKUP_JOIN)
        atomic_fetch_add(&joins, 1);
}

static void ask(struct actor *actor, unsigned round) {
    static const char *const fields[] = {"Host: h\n", "Host: h\n", "Host: h\nAccept: a\n",
            "Host: h\nCache-Control: no-cache\n", "Host: h\nIf-None-Match: \"y\"\n"};
    struct http_error error;
    struct view text = text_lines(&actor->request, "GET / HTTP/1.1", fields[dice(actor, 5)]);
    if (http_parse_request(text, 0, &text_limits, &actor->request.head, &error) != PARSE_DONE)
        abort();
    char path[16];
    int length = snprintf(path, sizeof path, "/%u", dice(actor, 2) ? dice(actor, 3) : dice(actor, PATHS));
    const char *reason;
    actor->query = (struct cache_query){.head = &actor->request.head,
            .destination.port = 80,
            .authority = VIEW("h"),
            .path = {path, (size_t)length},
            .now = {784111777 + round / 100, 784111777 + round / 100},
            .store_allowed = true};
    actor->has_head = actor->sent_head = false;
    actor->sent = actor->received = actor->length = 0;
    actor->woken = false; // nobody has it: it is detached
    actor->reader.wake = on_reader;
    enum lookup lookup = cache_lookup(cache, &actor->query, &actor->reader, &actor->fill, &reason);
    if (lookup == LOOKUP_HIT && actor->fill)
        atomic_fetch_add(&refreshed, 1);
    count(lookup);
    actor->query.path = (struct view){"", 0}; // borrowed for the look-up alone
}

// The answer to a HEAD, or to a POST.
static void answer_other(struct actor *actor, const char *method) {
    struct text_head answer;
    struct http_error error;
    char first[32];
    snprintf(first, sizeof first, "%s / HTTP/1.1", method);
    struct view text = text_lines(&actor->request, first, "Host: h\n");
    struct view response = text_lines(&answer, "HTTP/1.1 200 OK",
            dice(actor, 2) ? "ETag: \"x\"\nLocation: /2\n" : "ETag: \"z\"\nLocation: /2\n");
    if (http_parse_request(text, 0, &text_limits, &actor->request.head, &error) != PARSE_DONE ||
            http_parse_response(response, 0, &text_limits, &answer.head, &error) != PARSE_DONE)
        abort();
    struct cache_query query = {.head = &actor->request.head,
            .destination.port = 80,
            .authority = VIEW("h"),
            .path = VIEW("/1"),
            .now = actor->query.now};
    struct cache_response told = {
            .head = &answer.head, .content_length = -1, .request_at = query.now, .response_at = query.now};
    if (actor->request.head.method_id == METHOD_HEAD)
        cache_update_by_head(cache, &query, &told);
    else
        cache_invalidate(cache, &query, &answer.head);
}

static void disturb(struct actor *actor) {
    struct cache_limits limits = {
            .memory_bytes = dice(actor, 2) ? 1 << 20 : 1 << 19, .maximum_object_bytes = 120000};
    switch (dice(actor, 200)) {
    case 0:
        cache_purge_all(cache);
        break;
    case 1:
        cache_purge_url(cache, VIEW("h"), VIEW("/1"));
        break;
    case 2:
        cache_set_limits(cache, &limits);
        break;
    case 3:
    case 4:
        answer_other(actor, "HEAD");
        break;
    case 5:
        answer_other(actor, "POST");
        break;
    default:
        break;
    }
}

static void *run(void *argument) {
    struct actor *actor = argument;
    for (unsigned round = 0; round < ROUNDS && !atomic_load(&stuck); round++) {
        disturb(actor);
        ask(actor, round);
        run_exchange(actor);
        cache_reader_detach(&actor->reader);
    }
    return NULL;
}

static void many_threads(void) {
    static struct actor actors[THREADS];
    struct cache_limits limits = {.memory_bytes = 1 << 19, .maximum_object_bytes = 120000};
    cache = cache_new(&limits);
    for (unsigned i = 0; i < THREADS; i++) {
        actors[i].random = i + 1;
        pthread_mutex_init(&actors[i].lock, NULL);
        pthread_cond_init(&actors[i].signal, NULL);
        CU_ASSERT_EQUAL_FATAL(pthread_create(&actors[i].thread, NULL, run, &actors[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(actors[i].thread, NULL);
    CU_ASSERT_EQUAL(stuck, 0);
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(delivered + gone + broken, THREADS * ROUNDS);
    // It did what it is for.
    CU_ASSERT_TRUE(delivered > THREADS * ROUNDS / 2);
    CU_ASSERT_TRUE(hits > 0 && joins > 0 && confirmed > 0 && gone > 0 && broken > 0);
    CU_ASSERT_TRUE(again > 0 && stood_in > 0 && refreshed > 0);
    struct cache_stats stats;
    cache_stats(cache, &stats);
    CU_ASSERT_TRUE(stats.evictions > 0);
    CU_ASSERT_EQUAL(stats.fills, 0);
    CU_ASSERT_EQUAL(stats.stream_bytes, 0);
    cache_free(cache); // checks that no byte is left counted
}

SUITE(cache_stress, CASE(many_threads))
