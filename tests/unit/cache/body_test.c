// Bodies beside a plain array that says of each byte whether it is there: written in any order by several
// flows, evicted chunk by chunk, read, and asked for what is missing.
#include "admin/container.h"
#include "cache/body.h"
#include "cache/store.h"
#include "tests/unit/cache/waiter.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK ((uint64_t)BODY_CHUNK_BYTES)
#define FLOWS 4
#define FLOWS_MAX 50 // of one body: fewer than CHUNK_SPANS_MAX, so that no run is crowded out
#define WRITE_BYTES 70000
#ifdef __SANITIZE_THREAD__ // for the threads' case: the others have one
#define SEEDS 1
#else
#define SEEDS 20
#endif

static char byte_at(uint64_t offset) {
    return (char)(offset * 7 + offset / 253);
}

static void on_wake(struct cache_reader *reader) {
    (void)reader;
}

static struct cache *new_cache(uint64_t bytes) {
    return cache_new(&(struct cache_limits){.memory_bytes = bytes});
}

static void write_bytes(struct body *body, struct flow *flow, uint64_t length) {
    static _Thread_local char data[WRITE_BYTES];
    uint64_t reserved = 0;
    for (; length; length -= length < sizeof data ? length : sizeof data) {
        size_t part = length < sizeof data ? length : sizeof data;
        for (size_t i = 0; i < part; i++)
            data[i] = byte_at(flow->position + i);
        body_write(body, flow, data, part, &reserved);
    }
}

static void bring(struct body *body, uint64_t from, uint64_t end) {
    struct flow flow = {.next = NULL};
    body_begin(body, &flow, from, end);
    write_bytes(body, &flow, end - from);
    body_end(body, &flow);
}

// ---- tables ----

static enum body_look look_at(struct body *body, uint64_t offset, uint64_t *run) {
    struct cache_reader reader = {.wake = on_wake, .offset = offset};
    struct iovec pieces[3];
    int used = 0;
    enum body_look found = body_look(body, &reader, pieces, 3, &used);
    uint64_t at = offset, wrong = 0;
    for (int i = 0; found == BODY_HERE && i < used; i++)
        for (size_t j = 0; j < pieces[i].iov_len; j++, at++)
            wrong += ((char *)pieces[i].iov_base)[j] != byte_at(at);
    CU_ASSERT_EQUAL(wrong, 0);
    *run = at - offset;
    body_leave(body, &reader);
    return found;
}

static void sizes(void) {
    static const uint64_t rows[] = {0, 1, BODY_BLOCK_BYTES, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5};
    struct cache *cache = new_cache(64 << 20);
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct body *body = body_new(cache, false);
        struct body_hole hole;
        uint64_t size = rows[i], run;
        body_set_size(body, size);
        CU_ASSERT_EQUAL(body_is_complete(body), size == 0);
        CU_ASSERT_EQUAL(body_find_hole(body, 0, UINT64_MAX - 1, UINT64_MAX, NULL, &hole), size > 0);
        CU_ASSERT_EQUAL(look_at(body, size, &run), BODY_OVER);
        if (size) {
            CU_ASSERT_EQUAL(hole.first, 0);
            CU_ASSERT_EQUAL(hole.last, size - 1);
            CU_ASSERT_EQUAL(look_at(body, size - 1, &run), BODY_ABSENT);
            bring(body, 0, size);
            CU_ASSERT_EQUAL(look_at(body, size - 1, &run), BODY_HERE);
            CU_ASSERT_EQUAL(run, 1);
            CU_ASSERT_TRUE(body_run(body, 0, &hole));
            CU_ASSERT_EQUAL(hole.last, size - 1);
            CU_ASSERT_TRUE(body_serves(body, 0, size - 1));
        }
        CU_ASSERT_TRUE(body_is_complete(body));
        CU_ASSERT_FALSE(body_find_hole(body, 0, UINT64_MAX - 1, UINT64_MAX, NULL, &hole));
        CU_ASSERT_EQUAL(look_at(body, size, &run), BODY_OVER);
        body_put(body);
    }
    cache_free(cache);
}

static void beyond_four_gigabytes(void) {
    static const uint64_t starts[] = {
            (UINT64_C(4) << 30) - 10, UINT64_C(300) << 30, (UINT64_C(1) << 52) - 10, UINT64_C(1) << 60};
    struct cache *cache = new_cache(64 << 20);
    for (unsigned i = 0; i < sizeof starts / sizeof *starts; i++)
        for (int is_stream = 0; is_stream < 2; is_stream++) {
            struct body *body = body_new(cache, is_stream);
            struct flow flow = {.next = NULL};
            struct body_hole hole;
            uint64_t from = starts[i], run;
            body_set_size(body, from + 3 * CHUNK);
            body_begin(body, &flow, from, from + 1000);
            write_bytes(body, &flow, 1000);
            CU_ASSERT_EQUAL(flow.position, from + 1000);
            CU_ASSERT_EQUAL(look_at(body, from, &run), BODY_HERE);
            CU_ASSERT_EQUAL(run, from % CHUNK ? 10 : 1000);
            CU_ASSERT_EQUAL(look_at(body, from + 999, &run), BODY_HERE);
            CU_ASSERT_EQUAL(run, 1);
            CU_ASSERT_EQUAL(look_at(body, from + 1000, &run), BODY_ABSENT);
            CU_ASSERT_TRUE(body_run(body, 5, &hole));
            CU_ASSERT_EQUAL(hole.first, from);
            CU_ASSERT_EQUAL(hole.last, from + 999);
            body_end(body, &flow);
            CU_ASSERT_TRUE(body_find_hole(body, from, from + 2000, UINT64_MAX, NULL, &hole));
            CU_ASSERT_EQUAL(hole.first, from + 1000);
            CU_ASSERT_EQUAL(hole.last, ((from + 2000) / CHUNK + 1) * CHUNK - 1);
            body_put(body);
        }
    cache_free(cache);
}

// What is there, and what is asked for then, in MiB and bytes about.
static void holes_reach_to_the_borders_of_chunks(void) {
    static const struct {
        uint64_t there[2][2], wanted[2], hole[2];
    } rows[] = {
            {{{0, 0}}, {CHUNK + 5, CHUNK + 5}, {CHUNK, 2 * CHUNK - 1}},
            {{{0, 0}}, {CHUNK - 1, CHUNK}, {0, 2 * CHUNK - 1}},
            {{{0, CHUNK}}, {CHUNK - 1, CHUNK}, {CHUNK, 2 * CHUNK - 1}},
            {{{CHUNK, CHUNK + 4}}, {CHUNK + 5, CHUNK + 5}, {CHUNK + 4, 2 * CHUNK - 1}},
            {{{CHUNK + 9, CHUNK + 12}}, {CHUNK + 5, CHUNK + 5}, {CHUNK, CHUNK + 8}},
            {{{CHUNK, CHUNK + 4}, {CHUNK + 9, CHUNK + 12}}, {CHUNK + 2, CHUNK + 20}, {CHUNK + 4, CHUNK + 8}},
            {{{2 * CHUNK, 2 * CHUNK + 1}}, {CHUNK, 3 * CHUNK + 4}, {CHUNK, 2 * CHUNK - 1}},
            {{{0, 0}}, {3 * CHUNK + 4, 3 * CHUNK + 4}, {3 * CHUNK, 3 * CHUNK + 4}}, // the end
            {{{0, 0}}, {0, UINT64_MAX - 1}, {0, 3 * CHUNK + 4}},
    };
    struct cache *cache = new_cache(64 << 20);
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct body *body = body_new(cache, false);
        struct body_hole hole;
        body_set_size(body, 3 * CHUNK + 5);
        for (unsigned j = 0; j < 2 && rows[i].there[j][1]; j++)
            bring(body, rows[i].there[j][0], rows[i].there[j][1]);
        CU_ASSERT_TRUE(body_find_hole(body, rows[i].wanted[0], rows[i].wanted[1], UINT64_MAX, NULL, &hole));
        CU_ASSERT_EQUAL(hole.first, rows[i].hole[0]);
        CU_ASSERT_EQUAL(hole.last, rows[i].hole[1]);
        body_put(body);
    }
    cache_free(cache);
}

// The next hole is none that a flow fills already.
static void holes_are_given_out_once(void) {
    struct cache *cache = new_cache(64 << 20);
    struct body *body = body_new(cache, false);
    struct flow flows[4] = {{.next = NULL}};
    struct body_hole hole;
    body_set_size(body, 4 * CHUNK);
    for (unsigned i = 0; i < 4; i++) {
        CU_ASSERT_TRUE(body_find_hole(body, i * CHUNK + 7, i * CHUNK + 7, UINT64_MAX, &flows[i], &hole));
        CU_ASSERT_EQUAL(hole.first, i * CHUNK);
        CU_ASSERT_EQUAL(hole.last, (i + 1) * CHUNK - 1);
    }
    CU_ASSERT_FALSE(body_find_hole(body, 0, 4 * CHUNK - 1, UINT64_MAX, &flows[0], &hole));
    body_end(body, &flows[2]);
    CU_ASSERT_TRUE(body_find_hole(body, 0, 4 * CHUNK - 1, UINT64_MAX, NULL, &hole));
    CU_ASSERT_EQUAL(hole.first, 2 * CHUNK);
    CU_ASSERT_EQUAL(hole.last, 3 * CHUNK - 1);
    CU_ASSERT_FALSE(body_serves(body, 0, 10)); // the origin has not said yet that it sends them
    body_confirm(body, &flows[0]);
    CU_ASSERT_TRUE(body_serves(body, 0, 10));
    for (unsigned i = 0; i < 4; i++)
        body_end(body, &flows[i]);
    body_put(body);
    cache_free(cache);
}

// Its own flow, and who reads it, look at the chunk still.
static void what_has_ended_is_trimmed(void) {
    static const uint64_t lengths[] = {1, 100, BODY_BLOCK_BYTES, BODY_BLOCK_BYTES + 1, 50000};
    struct cache *cache = new_cache(64 << 20);
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int is_read = 0; is_read < 2; is_read++) {
            uint64_t length = lengths[i], run, tail = length % BODY_BLOCK_BYTES;
            struct body *body = body_new(cache, false);
            struct cache_reader reader = {.wake = on_wake};
            struct iovec piece;
            int used;
            uint64_t empty = body_charged(body);
            bring(body, 0, length);
            if (is_read)
                CU_ASSERT_EQUAL(body_look(body, &reader, &piece, 1, &used), BODY_HERE);
            body_set_size(body, length);
            body_trim(body);
            CU_ASSERT_EQUAL(body_charged(body) - empty,
                    memory_cost(chunk_struct_bytes((uint32_t)length)) +
                            length / BODY_BLOCK_BYTES * memory_cost(BODY_BLOCK_BYTES) +
                            (tail ? memory_cost(tail) : 0));
            CU_ASSERT_EQUAL(look_at(body, 0, &run), BODY_HERE);
            CU_ASSERT_EQUAL(run, length < 3 * BODY_BLOCK_BYTES ? length : 3 * BODY_BLOCK_BYTES);
            CU_ASSERT_TRUE(!is_read || *(char *)piece.iov_base == byte_at(0));
            body_leave(body, &reader);
            body_put(body);
        }
    cache_free(cache);
}

// Of a stream, what all have passed goes; but not from under a flow that still writes there.
static void a_stream_is_freed_behind_its_readers(void) {
    struct cache *cache = new_cache(64 << 20);
    struct body *body = body_new(cache, true);
    struct flow flow = {.next = NULL}, hole = {.next = NULL};
    uint64_t run, empty = body_charged(body);
    body_set_size(body, 4 * CHUNK);
    body_begin(body, &flow, 0, 4 * CHUNK);
    write_bytes(body, &flow, 3 * CHUNK);
    body_begin(body, &hole, 100, CHUNK);
    write_bytes(body, &hole, 10);
    body_free_before(body, 2 * CHUNK + BODY_BLOCK_BYTES);
    CU_ASSERT_EQUAL(look_at(body, 2 * CHUNK, &run), BODY_ABSENT);
    CU_ASSERT_EQUAL(look_at(body, 2 * CHUNK + BODY_BLOCK_BYTES, &run), BODY_HERE);
    write_bytes(body, &hole, CHUNK - 110);
    body_end(body, &hole);
    body_free_before(body, 3 * CHUNK);
    CU_ASSERT_EQUAL(body_charged(body), empty);
    body_end(body, &flow);
    body_put(body);
    CU_ASSERT_EQUAL(cache->budget.streams, 0);
    cache_free(cache);
}

// ---- beside a plain array ----

struct model {
    struct body *body;
    uint64_t size;
    char *present;
    struct flow flows[FLOWS];
    unsigned begun; // flows
    unsigned random;
    struct cache_reader readers[3]; // hold chunks
};

static unsigned dice(struct model *model, unsigned sides) {
    model->random = model->random * 1103515245 + 12345;
    return (model->random >> 8) % sides;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t some_offset(struct model *model) {
    uint64_t border = (dice(model, (unsigned)(model->size / CHUNK) + 2)) * CHUNK;
    if (dice(model, 3) == 0) // near a border
        return least(border > 2 ? border - 2 + dice(model, 5) : dice(model, 5), model->size - 1);
    return dice(model, (unsigned)model->size);
}

// The first byte from `at` that is there, or is not; `end` when none before.
static uint64_t next_of(const struct model *model, uint64_t at, uint64_t end, bool is_present) {
    const char *found = at < end ? memchr(model->present + at, is_present, end - at) : NULL;
    return found ? (uint64_t)(found - model->present) : end;
}

static const struct flow *coming(
        const struct model *model, uint64_t offset, uint64_t ahead, bool must_be_confirmed) {
    const struct flow *best = NULL;
    for (unsigned i = 0; i < FLOWS; i++) {
        const struct flow *flow = &model->flows[i];
        if (flow->is_running && flow->position <= offset && offset < flow->end &&
                offset - flow->position <= ahead && (flow->is_confirmed || !must_be_confirmed))
            best = best && best->end > flow->end ? best : flow;
    }
    return best;
}

static void step_begin(struct model *model) {
    struct flow *flow = &model->flows[dice(model, FLOWS)];
    struct body_hole hole;
    uint64_t first = some_offset(model), last = some_offset(model);
    if (flow->is_running || model->begun++ >= FLOWS_MAX)
        return;
    if (dice(model, 2))
        body_begin(model->body, flow, least(first, last), (first > last ? first : last) + 1);
    else
        body_find_hole(model->body, least(first, last), first > last ? first : last, UINT64_MAX, flow, &hole);
    if (flow->is_running && dice(model, 2))
        body_confirm(model->body, flow);
}

static void step_write(struct model *model) {
    struct flow *flow = &model->flows[dice(model, FLOWS)];
    if (!flow->is_running)
        return;
    uint64_t from = flow->position, most = dice(model, 3) ? WRITE_BYTES : 2 * CHUNK;
    uint64_t length = least(flow->end - from, dice(model, (unsigned)most));
    if (length && dice(model, 30)) {
        write_bytes(model->body, flow, length);
        memset(model->present + from, 1, length);
    }
    if (flow->position == flow->end || dice(model, 30) == 0)
        body_end(model->body, flow);
}

// As the eviction has it.
static void step_evict(struct model *model) {
    struct body *body = model->body;
    if (!body->chunk_count || !body->is_by_chunks)
        return;
    struct chunk *chunk = body->chunks[dice(model, body->chunk_count)];
    uint64_t start = chunk->number * CHUNK;
    bool is_used = chunk->references > 1;
    eviction_remove(&body->cache->eviction, &chunk->node);
    body_evict(body, chunk_get(chunk));
    if (!is_used)
        memset(model->present + start, 0, least(CHUNK, model->size - start));
    CU_ASSERT_EQUAL(chunk->node.queue != QUEUE_NONE, is_used);
    chunk_put(chunk);
}

static void step_read(struct model *model) {
    struct cache_reader *reader = &model->readers[dice(model, 3)];
    struct iovec pieces[3];
    int used = 0;
    body_leave(model->body, reader);
    *reader = (struct cache_reader){.wake = on_wake, .offset = some_offset(model)};
    uint64_t at = reader->offset, wrong = 0;
    uint64_t ahead = body_can_ask(model->body) ? BODY_AHEAD_BYTES : UINT64_MAX;
    enum body_look found = body_look(model->body, reader, pieces, 3, &used);
    enum body_look right = model->present[at]                ? BODY_HERE
                           : coming(model, at, ahead, false) ? BODY_COMING
                                                             : BODY_ABSENT;
    CU_ASSERT_EQUAL(found, right);
    if (found != BODY_HERE)
        return;
    for (int i = 0; i < used; i++)
        for (size_t j = 0; j < pieces[i].iov_len; j++, at++)
            wrong += ((char *)pieces[i].iov_base)[j] != byte_at(at) || !model->present[at];
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_TRUE(at > reader->offset);
}

static void check_hole(const struct model *model, uint64_t at, uint64_t last, const struct body_hole *hole) {
    bool is_rounded = model->size > CHUNK, is_border = false;
    uint64_t start = is_rounded ? at / CHUNK * CHUNK : at;
    uint64_t end = is_rounded ? least((last / CHUNK + 1) * CHUNK, model->size) : last + 1;
    CU_ASSERT_TRUE(start <= hole->first && hole->first <= at && at <= hole->last && hole->last < end);
    CU_ASSERT_EQUAL(next_of(model, hole->first, hole->last + 1, true), hole->last + 1); // nothing is there
    for (unsigned i = 0; i < FLOWS; i++) {
        const struct flow *flow = &model->flows[i];
        CU_ASSERT_FALSE(flow->is_running && flow->position > at && flow->position <= hole->last);
        is_border |= flow->is_running && (flow->end == hole->first || flow->position == hole->last + 1);
    }
    // As much as can be.
    CU_ASSERT_TRUE(hole->first == start || model->present[hole->first - 1] || is_border);
    CU_ASSERT_TRUE(hole->last + 1 == end || model->present[hole->last + 1] || is_border);
}

static void step_find_hole(struct model *model) {
    uint64_t a = some_offset(model), b = some_offset(model), first = least(a, b), last = a > b ? a : b;
    struct body_hole hole;
    uint64_t at = first;
    const struct flow *flow;
    while (at <= last) {
        flow = coming(model, at, BODY_AHEAD_BYTES, false);
        uint64_t next = next_of(model, at, model->size, false);
        next = flow && flow->end > next ? flow->end : next;
        if (next == at)
            break;
        at = next;
    }
    bool is_found = body_find_hole(model->body, first, last, UINT64_MAX, NULL, &hole);
    CU_ASSERT_EQUAL(is_found, at <= last);
    if (is_found)
        check_hole(model, at, last, &hole);
    at = first;
    while (at <= last) {
        uint64_t next = next_of(model, at, model->size, false);
        if (next == at)
            next = (flow = coming(model, at, BODY_AHEAD_BYTES, true)) ? flow->end : at;
        if (next == at)
            break;
        at = next;
    }
    CU_ASSERT_EQUAL(body_serves(model->body, first, last), at > last);
}

static void check_whole(const struct model *model) {
    struct body_hole run;
    for (uint64_t at = 0; at < model->size; at = run.last + 1) {
        uint64_t first = next_of(model, at, model->size, true);
        bool is_there = body_run(model->body, at, &run);
        CU_ASSERT_EQUAL(is_there, first < model->size);
        if (!is_there)
            break;
        CU_ASSERT_EQUAL_FATAL(run.first, first);
        CU_ASSERT_EQUAL_FATAL(run.last + 1, next_of(model, first, model->size, false));
    }
    CU_ASSERT_EQUAL(body_is_complete(model->body), next_of(model, 0, model->size, false) == model->size);
}

static void play(struct cache *cache, uint64_t size, unsigned seed) {
    struct model model = {
            .size = size, .present = calloc(1, size), .random = seed, .body = body_new(cache, false)};
    body_set_size(model.body, size);
    model.body->fingerprint = seed;
    for (unsigned step = 0; step < 400; step++) {
        switch (dice(&model, 12)) {
        case 0:
            step_begin(&model);
            break;
        case 1:
            step_evict(&model);
            break;
        case 2:
        case 3:
            step_find_hole(&model);
            break;
        case 4:
            if (step > 100 && dice(&model, 10) == 0)
                body_set_can_ask(model.body);
            break;
        case 5:
        case 6:
            step_read(&model);
            break;
        default:
            step_write(&model);
        }
        if (step % 50 == 0)
            check_whole(&model);
    }
    check_whole(&model);
    for (unsigned i = 0; i < FLOWS; i++)
        body_end(model.body, &model.flows[i]);
    for (unsigned i = 0; i < 3; i++)
        body_leave(model.body, &model.readers[i]);
    body_put(model.body);
    free(model.present);
}

static void as_a_plain_array_has_it(void) {
    static const uint64_t sizes[] = {
            1, 1000, 70000, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 12345, 3 * CHUNK};
    struct cache *cache = new_cache(256 << 20);
    uint64_t before = cache->budget.used;
    for (unsigned seed = 1; seed <= SEEDS; seed++)
        for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
            play(cache, sizes[i], seed);
    CU_ASSERT_EQUAL(cache->budget.used, before);
    cache_free(cache);
}

// ---- threads ----

#define THREADS 4
#define PASSES 6
#define SHARED_BYTES (4 * CHUNK + 777)

struct player {
    struct cache_reader reader;
    struct body *body;
    struct waiter waiter;
    pthread_t id;
    unsigned random;
    _Atomic unsigned *wrong, *stuck, *holes;
};

static void wake_player(struct cache_reader *reader) {
    waiter_wake(&(CONTAINER_OF(reader, struct player, reader))->waiter);
}

static void fill_hole(struct player *player) {
    struct flow flow = {.next = NULL};
    struct body_hole hole;
    if (!body_find_hole(player->body, player->reader.offset, player->reader.offset, UINT64_MAX, &flow, &hole))
        return; // another has begun it
    atomic_fetch_add(player->holes, 1);
    body_confirm(player->body, &flow);
    player->random = player->random * 1103515245 + 12345;
    bool breaks = (player->random >> 8) % 4 == 0; // what is missing then, another asks for
    for (uint64_t left = (hole.last + 1 - hole.first) / (breaks ? 2 : 1), part; left; left -= part) {
        part = least(left, 30000);
        write_bytes(player->body, &flow, part);
        budget_settle(player->body->cache);
    }
    body_end(player->body, &flow);
}

static bool read_some(struct player *player) {
    struct iovec pieces[4];
    int used = 0;
    uint64_t at = player->reader.offset, wrong = 0;
    switch (body_look(player->body, &player->reader, pieces, 4, &used)) {
    case BODY_HERE:
        for (int i = 0; i < used; i++)
            for (size_t j = 0; j < pieces[i].iov_len; j++, at++)
                wrong += ((char *)pieces[i].iov_base)[j] != byte_at(at);
        atomic_fetch_add(player->wrong, wrong > 0);
        player->reader.offset = at;
        return true;
    case BODY_COMING:
        if (!waiter_wait(&player->waiter))
            return atomic_fetch_add(player->stuck, 1), false;
        return true;
    case BODY_ABSENT:
        return fill_hole(player), true;
    case BODY_ON_DISK:
    case BODY_OVER:
        break;
    }
    return false;
}

static void *run_player(void *argument) {
    struct player *player = argument;
    for (unsigned i = 0; i < PASSES; i++) {
        player->random = player->random * 1103515245 + 12345;
        player->reader = (struct cache_reader){
                .wake = wake_player, .offset = i % 2 ? player->random % SHARED_BYTES : 0};
        while (read_some(player))
            continue;
        body_leave(player->body, &player->reader);
        atomic_fetch_add(player->wrong, player->reader.offset != SHARED_BYTES);
        player->waiter.woken = false;
    }
    return NULL;
}

// Readers that fill what they miss, in a store that is too small for all of it.
static void many_threads(void) {
    struct cache *cache = new_cache(3 << 20);
    struct body *body = body_new(cache, false);
    struct player players[THREADS];
    _Atomic unsigned wrong = 0, stuck = 0, holes = 0;
    body_set_size(body, SHARED_BYTES);
    body_set_can_ask(body);
    for (unsigned i = 0; i < THREADS; i++) {
        players[i] = (struct player){
                .body = body, .random = i + 1, .wrong = &wrong, .stuck = &stuck, .holes = &holes};
        pthread_mutex_init(&players[i].waiter.lock, NULL);
        pthread_cond_init(&players[i].waiter.signal, NULL);
        CU_ASSERT_EQUAL_FATAL(pthread_create(&players[i].id, NULL, run_player, &players[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(players[i].id, NULL);
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(stuck, 0);
    CU_ASSERT_TRUE(holes > 5); // some were evicted
    body_put(body);
    cache_free(cache); // checks that no byte is left counted
}

SUITE(cache_body, CASE(sizes), CASE(beyond_four_gigabytes), CASE(holes_reach_to_the_borders_of_chunks),
        CASE(holes_are_given_out_once), CASE(what_has_ended_is_trimmed),
        CASE(a_stream_is_freed_behind_its_readers), CASE(as_a_plain_array_has_it), CASE(many_threads))
