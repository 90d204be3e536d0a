// Several threads ask one small store for wholes and ranges of resources that change at any moment, whose
// answers break off at any byte: what is completed, joined and combined of parts must be of one version, byte
// for byte. Made for the thread and address sanitizers as much as for its own checks.
#include "admin/container.h"
#include "cache/cache.h"
#include "http/range.h"
#include "tests/unit/cache/text.h"
#include "tests/unit/cache/waiter.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 6
#ifndef PARTS_ROUNDS
#define PARTS_ROUNDS 1500
#endif
#define PATHS 4
#define APPEND_BYTES 8192

static struct cache *cache;
static _Atomic unsigned versions[PATHS];
static _Atomic unsigned holes, whole, ranged, joined, hits, resumed, combined, cut, gone, broken, wrong,
        stuck;

struct resource { // a version of what stands at a path
    unsigned path, version;
    uint64_t length;
};

struct thread {
    struct cache_reader reader;
    pthread_t id;
    struct waiter waiter;
    unsigned random;
    struct text_head request;
    struct cache_query query;
    struct cache_fill *fill;
    unsigned path;
    // the fetch
    bool has_sent_head;
    struct resource sent;
    uint64_t at, end;
    // the delivery
    bool has_head;
    struct resource told;
    uint64_t offset, last; // of the next byte, and of the last one wanted
};

static unsigned dice(struct thread *thread, unsigned sides) {
    thread->random = thread->random * 1103515245 + 12345;
    return (thread->random >> 12) % sides;
}

static unsigned char byte_at(const struct resource *resource, uint64_t offset) {
    return (unsigned char)(offset * 7 + offset / 253 + resource->version * 13 + resource->path * 101);
}

static struct resource resource_of(unsigned path, unsigned version) {
    static const unsigned lengths[] = {1, 300, 16384, 20000, 70000};
    return (struct resource){path, version, lengths[(version / 3 + path) % 5]}; // versions of equal length
}

static void on_reader(struct cache_reader *reader) {
    waiter_wake(&(CONTAINER_OF(reader, struct thread, reader))->waiter);
}

static void on_room(void *owner) {
    waiter_wake(&((struct thread *)owner)->waiter);
}

static bool wait_for_wake(struct thread *thread) {
    bool woken = waiter_wait(&thread->waiter);
    if (!woken)
        atomic_fetch_add(&stuck, 1);
    return woken;
}

// ---- the origin ----

// "NAME: VALUE" among the lines that the store asks with; else the request's own field.
static bool asked(const struct thread *thread, const char *name, char value[static 64]) {
    struct view fields = cache_fill_fields(thread->fill);
    char text[512];
    snprintf(text, sizeof text, VIEW_FORMAT, VIEW_ARGUMENT(fields));
    const char *found = strstr(text, name);
    const struct http_field *own = http_field_find(thread->query.head, http_field_id(view_of(name)), 0);
    if (found)
        return sscanf(found + strlen(name), ": %63[^\r]", value) == 1;
    if (fields.length || !own)
        return false;
    return snprintf(value, 64, VIEW_FORMAT, VIEW_ARGUMENT(own->value)) > 0;
}

// Which part the answer has; the whole when no range is asked for, or not of this version.
static bool choose_part(const struct thread *thread, struct range *part) {
    char value[64], tag[64], wanted[64];
    struct range_list ranges;
    snprintf(tag, sizeof tag, "\"%u\"", thread->sent.version);
    *part = (struct range){0, thread->sent.length - 1};
    if (!asked(thread, "Range", value) || (asked(thread, "If-Range", wanted) && strcmp(tag, wanted) != 0) ||
            range_parse(view_of(value), thread->sent.length, &ranges) != RANGES_SOME)
        return false;
    *part = ranges.all[0];
    return true;
}

static int compose(struct thread *thread, char *fields, size_t size) {
    char tags[64] = "", tag[16];
    struct range part;
    const struct resource *sent = &thread->sent;
    bool is_part = choose_part(thread, &part);
    snprintf(tag, sizeof tag, "\"%u\"", sent->version);
    int length = snprintf(fields, size,
            "ETag: %s\nAccept-Ranges: bytes\nCache-Control: %s\nX-Path: %u\nX-Version: %u\n", tag,
            dice(thread, 3) ? "max-age=60" : "max-age=1", sent->path, sent->version);
    thread->at = part.first;
    thread->end = part.last + 1;
    if (asked(thread, "If-None-Match", tags) && strstr(tags, tag))
        return thread->end = thread->at, 304;
    if (is_part)
        snprintf(fields + length, size - (size_t)length, "Content-Range: bytes %llu-%llu/%llu\n",
                (unsigned long long)part.first, (unsigned long long)part.last,
                (unsigned long long)sent->length);
    return is_part ? 206 : 200;
}

static void end_fill(struct thread *thread, void (*end)(struct cache_fill *fill)) {
    end(thread->fill);
    thread->fill = NULL;
}

static void send_head(struct thread *thread) {
    struct text_head text;
    char fields[512], value[64];
    thread->sent = resource_of(thread->path, atomic_load(&versions[thread->path]));
    bool was_resuming = cache_fill_fields(thread->fill).length > 0 && asked(thread, "If-Range", value);
    int status = compose(thread, fields, sizeof fields);
    struct cache_response response = {.head = text_response(&text, status, fields),
            .content_length =
                    status == 304 || dice(thread, 4) == 0 ? -1 : (int64_t)(thread->end - thread->at),
            .request_at = thread->query.now,
            .response_at = thread->query.now,
            .has_body = status != 304};
    const char *reason;
    switch (cache_fill_head(thread->fill, &response, &reason)) {
    case FILL_STORE:
    case FILL_STREAM:
        thread->has_sent_head = true;
        atomic_fetch_add(&resumed, was_resuming && status == 206);
        return;
    case FILL_AGAIN:
        return;
    case FILL_NOT_MODIFIED:
    case FILL_STALE:
        end_fill(thread, cache_fill_finish);
        return;
    }
}

static void break_off(struct thread *thread) {
    atomic_fetch_add(&cut, 1);
    if (dice(thread, 2)) {
        end_fill(thread, cache_fill_abandon);
    } else {
        cache_fill_fail(thread->fill);
        thread->fill = NULL;
    }
}

// One step of the fetch. False when it waits for room.
static bool produce(struct thread *thread) {
    unsigned char data[APPEND_BYTES];
    if (dice(thread, 20) == 0)
        return break_off(thread), true;
    if (!thread->has_sent_head) {
        if (dice(thread, 4)) // the origin thinks, and others come to wait
            return sched_yield(), true;
        return send_head(thread), true;
    }
    if (thread->at == thread->end)
        return end_fill(thread, cache_fill_finish), true;
    size_t room = cache_fill_room(thread->fill, on_room, thread), length = 1 + dice(thread, sizeof data);
    length = length < room ? length : room;
    length = length < thread->end - thread->at ? length : (size_t)(thread->end - thread->at);
    for (size_t i = 0; i < length; i++)
        data[i] = byte_at(&thread->sent, thread->at + i);
    if (length)
        cache_fill_append(thread->fill, data, length);
    thread->at += length;
    return length > 0;
}

// ---- the client ----

static unsigned number_of(const struct http_head *head, const char *name) {
    uint64_t number = 0;
    for (unsigned i = 0; i < head->field_count; i++)
        if (view_equal(head->fields[i].name, view_of(name)))
            view_number(head->fields[i].value, &number);
    return (unsigned)number;
}

// Which bytes of what is there the client gets, as the delivery has it.
static enum read choose_bytes(struct thread *thread, const struct cache_head *head) {
    struct content_range given = {.range = {0, thread->told.length - 1}};
    struct range_list ranges;
    bool is_part = head->status == 206;
    if (is_part && !content_range_of(head->head, head->content_length, &given))
        return atomic_fetch_add(&wrong, 1), READ_BROKEN;
    thread->offset = given.range.first;
    thread->last = given.range.last;
    if (range_of_request(thread->query.head, thread->told.length, &ranges) != RANGES_SOME ||
            ranges.all[0].first < given.range.first || ranges.all[0].last > given.range.last ||
            (!is_part && head->content_length < 0))
        return is_part && head->source != SOURCE_ORIGIN ? (atomic_fetch_add(&wrong, 1), READ_BROKEN)
                                                        : READ_READY;
    thread->offset = ranges.all[0].first;
    thread->last = ranges.all[0].last;
    return cache_reader_seek(&thread->reader, thread->offset) ? READ_READY : READ_BROKEN;
}

static enum read take_head(struct thread *thread) {
    struct cache_head head;
    enum read read = cache_reader_head(&thread->reader, &thread->query, &head);
    if (read != READ_READY)
        return read;
    thread->has_head = true;
    thread->told = resource_of(number_of(head.head, "X-Path"), number_of(head.head, "X-Version"));
    bool is_whole_known = head.status == 206 || head.content_length < 0 ||
                          (uint64_t)head.content_length == thread->told.length;
    if (thread->told.path != thread->path || !is_whole_known)
        return atomic_fetch_add(&wrong, 1), READ_BROKEN;
    return choose_bytes(thread, &head);
}

static void check(struct thread *thread, const struct iovec *pieces, int used) {
    uint64_t most = 1 + dice(thread, 30000), taken = 0, differ = 0;
    most = most < thread->last - thread->offset + 1 ? most : thread->last - thread->offset + 1;
    for (int i = 0; i < used; i++)
        for (size_t j = 0; j < pieces[i].iov_len && taken < most; j++, taken++)
            differ += ((unsigned char *)pieces[i].iov_base)[j] !=
                      byte_at(&thread->told, thread->offset + taken);
    atomic_fetch_add(&wrong, differ > 0);
    cache_reader_advance(&thread->reader, taken);
    thread->offset += taken;
}

// One step of the delivery. READ_READY: go on.
static enum read consume(struct thread *thread) {
    struct iovec pieces[3];
    int used = 0;
    if (!thread->has_head)
        return take_head(thread);
    if (thread->offset > thread->last)
        return READ_END;
    enum read read = cache_reader_peek(&thread->reader, pieces, 3, &used);
    if (read == READ_READY)
        check(thread, pieces, used);
    if (read == READ_HOLE) {
        if (!thread->fill &&
                (thread->fill = cache_reader_fill(&thread->reader, &thread->query, thread->last + 1))) {
            thread->has_sent_head = false;
            atomic_fetch_add(&holes, 1);
        }
        return READ_READY;
    }
    atomic_fetch_add(&wrong, read == READ_END); // something is missing
    return read;
}

static void run_exchange(struct thread *thread) {
    enum read read = READ_READY;
    while (read == READ_READY || read == READ_WAIT || thread->fill) {
        bool progress = thread->fill && produce(thread);
        if (dice(thread, 3) == 0)
            sched_yield(); // on few cores as well, let the others in between
        if (read == READ_READY || read == READ_WAIT)
            read = consume(thread);
        if ((read == READ_READY || read == READ_WAIT) && dice(thread, 300) == 0) {
            cache_reader_detach(&thread->reader); // the client left
            read = READ_BROKEN;
        }
        if (!progress && read == READ_WAIT && !wait_for_wake(thread))
            return;
    }
    bool is_range = http_field_find(thread->query.head, FIELD_RANGE, 0);
    atomic_fetch_add(read == READ_END ? is_range ? &ranged : &whole : read == READ_GONE ? &gone : &broken, 1);
}

static void write_request(struct thread *thread, char *fields, size_t size) {
    unsigned length = (unsigned)resource_of(thread->path, atomic_load(&versions[thread->path])).length;
    unsigned first = dice(thread, length), last = first + dice(thread, 9000);
    switch (dice(thread, 6)) {
    case 0:
        snprintf(fields, size, "Host: h\nRange: bytes=%u-%u\n", first, last);
        return;
    case 1:
        snprintf(fields, size, "Host: h\nRange: bytes=%u-\n", first);
        return;
    case 2:
        snprintf(fields, size, "Host: h\nRange: bytes=-%u\n", 1 + last);
        return;
    case 3:
        snprintf(fields, size, "Host: h\nCache-Control: no-cache\n");
        return;
    default:
        snprintf(fields, size, "Host: h\n");
    }
}

static void ask(struct thread *thread, unsigned round) {
    char fields[128], path[] = "/0";
    const char *reason;
    thread->path = dice(thread, PATHS);
    path[1] = (char)('0' + thread->path);
    write_request(thread, fields, sizeof fields);
    thread->query = (struct cache_query){.head = text_request(&thread->request, "GET", fields),
            .destination.port = 80,
            .authority = VIEW("h"),
            .path = view_of(path),
            .now = {784111777 + round / 100, 784111777 + round / 100},
            .store_allowed = true};
    thread->has_head = thread->has_sent_head = false;
    thread->waiter.woken = false; // nobody has it: it is detached
    thread->reader.wake = on_reader;
    enum lookup lookup = cache_lookup(cache, &thread->query, &thread->reader, &thread->fill, &reason);
    atomic_fetch_add(&hits, lookup == LOOKUP_HIT);
    atomic_fetch_add(&joined, lookup == LOOKUP_JOIN);
    atomic_fetch_add(&combined, lookup == LOOKUP_MISS && strcmp(reason, "incomplete") == 0);
    thread->query.path = (struct view){"", 0}; // borrowed for the look-up alone
}

static void disturb(struct thread *thread) {
    struct cache_limits limits = {.memory_bytes = dice(thread, 2) ? 1 << 20 : 1 << 18};
    switch (dice(thread, 100)) {
    case 0:
        cache_purge_all(cache);
        return;
    case 1:
        cache_set_limits(cache, &limits);
        return;
    case 2:
    case 3:
    case 4:
        atomic_fetch_add(&versions[dice(thread, PATHS)], 1);
        return;
    }
}

static void *run(void *argument) {
    struct thread *thread = argument;
    for (unsigned round = 0; round < PARTS_ROUNDS && !atomic_load(&stuck); round++) {
        disturb(thread);
        ask(thread, round);
        run_exchange(thread);
        cache_reader_detach(&thread->reader);
    }
    return NULL;
}

static void many_threads_and_parts(void) {
    static struct thread threads[THREADS];
    struct cache_limits limits = {.memory_bytes = 1 << 19};
    cache = cache_new(&limits);
    for (unsigned i = 0; i < THREADS; i++) {
        threads[i].random = i + 1;
        pthread_mutex_init(&threads[i].waiter.lock, NULL);
        pthread_cond_init(&threads[i].waiter.signal, NULL);
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i].id, NULL, run, &threads[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i].id, NULL);
    CU_ASSERT_EQUAL(stuck, 0);
    CU_ASSERT_EQUAL(wrong, 0);
    // It did what it is for.
    CU_ASSERT_TRUE(whole > 0 && ranged > 0 && joined > 0 && hits > 0);
    CU_ASSERT_TRUE(holes > 0);
    CU_ASSERT_TRUE(resumed > 0 && combined > 0 && cut > 0 && gone > 0 && broken > 0);
    struct cache_stats stats;
    cache_stats(cache, &stats);
    CU_ASSERT_EQUAL(stats.fills, 0);
    CU_ASSERT_EQUAL(stats.stream_bytes, 0);
    cache_free(cache); // checks that no byte is left counted
}

SUITE(cache_parts_stress, CASE(many_threads_and_parts))
