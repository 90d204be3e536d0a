#include "cache/body.h"

#include "admin/check.h"
#include "cache/store.h"
#include "cache/tier.h"

#include <stdlib.h>
#include <string.h>

#define DISK_ATTEMPTS_MAX 8

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

// ---- life ----

static void charge(struct body *body, uint64_t bytes) {
    if (body->is_stream)
        atomic_fetch_add_explicit(&body->cache->budget.streams, bytes, memory_order_relaxed);
    else
        budget_charge(body->cache, bytes);
}

// The same for bytes of which `reserved` are counted already, of the store's budget.
static void spend(struct body *body, uint64_t bytes, uint64_t *reserved) {
    uint64_t part = body->is_stream ? 0 : least(*reserved, bytes);
    *reserved -= part;
    body->charged += bytes;
    charge(body, bytes - part);
}

static void give(struct body *body, uint64_t bytes) {
    body->charged -= bytes;
    if (body->is_stream)
        atomic_fetch_sub_explicit(&body->cache->budget.streams, bytes, memory_order_relaxed);
    else
        budget_give(body->cache, bytes);
}

struct body *body_new(struct cache *cache, bool is_stream) {
    struct body *body = memory_new(sizeof *body);
    *body = (struct body){.cache = cache,
            .references = 1,
            .size = BODY_SIZE_UNKNOWN,
            .is_stream = is_stream,
            .chunk_room = 1,
            .charged = memory_cost(sizeof *body)};
    body->chunks = &body->single;
    pthread_mutex_init(&body->writing, NULL);
    pthread_mutex_init(&body->lock, NULL);
    charge(body, body->charged);
    return body;
}

static void body_free(struct body *body) {
    CHECK(!body->flows && !body->waiters);
    for (unsigned i = 0; i < body->chunk_count; i++) {
        eviction_remove(&body->cache->eviction, &body->chunks[i]->node);
        chunk_put(body->chunks[i]);
    }
    while (body->full) {
        struct chunk *chunk = body->full;
        body->full = chunk->next_full;
        chunk_put(chunk);
    }
    disk_place_put(&body->place);
    free(body->name);
    give(body, body->charged);
    if (body->chunks != &body->single)
        free(body->chunks);
    pthread_mutex_destroy(&body->writing);
    pthread_mutex_destroy(&body->lock);
    free(body);
}

void body_put(struct body *body) {
    unsigned before = atomic_fetch_sub_explicit(&body->references, 1, memory_order_acq_rel);
    CHECK(before > 0);
    if (before == 1)
        body_free(body);
}

bool body_try_get(struct body *body) {
    unsigned references = atomic_load_explicit(&body->references, memory_order_relaxed);
    while (references > 0)
        if (atomic_compare_exchange_weak_explicit(&body->references, &references, references + 1,
                    memory_order_acquire, memory_order_relaxed))
            return true;
    return false;
}

void body_set_size(struct body *body, uint64_t size) {
    pthread_mutex_lock(&body->lock);
    CHECK(body->size == BODY_SIZE_UNKNOWN || body->size == size);
    if (body->size == BODY_SIZE_UNKNOWN) // else others may be reading it without the lock
        body->size = size;
    pthread_mutex_unlock(&body->lock);
}

uint64_t body_size(struct body *body) {
    pthread_mutex_lock(&body->lock);
    uint64_t size = body->size;
    pthread_mutex_unlock(&body->lock);
    return size;
}

uint64_t body_charged(struct body *body) {
    pthread_mutex_lock(&body->lock);
    uint64_t charged = body->charged;
    pthread_mutex_unlock(&body->lock);
    return charged;
}

// ---- chunks; the lock is held ----

static uint64_t start_of(const struct chunk *chunk) {
    return chunk->number * BODY_CHUNK_BYTES;
}

// Where the chunk is, or would be.
static unsigned place_of(const struct body *body, uint64_t number) {
    unsigned low = 0, high = body->chunk_count;
    if (high && body->chunks[high - 1]->number < number)
        return high;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (body->chunks[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct chunk *find(const struct body *body, uint64_t offset) {
    uint64_t number = offset / BODY_CHUNK_BYTES;
    unsigned at = place_of(body, number);
    return at < body->chunk_count && body->chunks[at]->number == number ? body->chunks[at] : NULL;
}

static void queue_chunk(struct body *body, struct chunk *chunk) {
    chunk->node.bytes = memory_cost(chunk_struct_bytes(chunk->length)) +
                        (uint64_t)chunk_blocks(chunk->length) * memory_cost(BODY_BLOCK_BYTES);
    chunk->node.fingerprint = body->fingerprint + chunk->number * UINT64_C(0x9e3779b97f4a7c15);
    eviction_add(&body->cache->eviction, &chunk->node);
}

static size_t pointer_bytes(unsigned count) {
    return count * sizeof(void *);
}

static void make_room(struct body *body) {
    if (body->chunk_count < body->chunk_room)
        return;
    unsigned room = body->chunk_room < 8 ? 8 : body->chunk_room * 2;
    struct chunk **chunks = memory_new(pointer_bytes(room));
    memcpy(chunks, body->chunks, pointer_bytes(body->chunk_count));
    if (body->chunks != &body->single)
        free(body->chunks);
    body->chunks = chunks;
    body->chunk_room = room;
}

static struct chunk *add(struct body *body, uint64_t number, uint64_t *reserved) {
    uint64_t left =
            body->size == BODY_SIZE_UNKNOWN ? BODY_CHUNK_BYTES : body->size - number * BODY_CHUNK_BYTES;
    struct chunk *chunk = chunk_new(body, number, (uint32_t)least(left, BODY_CHUNK_BYTES));
    unsigned at = place_of(body, number);
    make_room(body);
    memmove(&body->chunks[at + 1], &body->chunks[at], pointer_bytes(body->chunk_count - at));
    body->chunks[at] = chunk;
    body->chunk_count++;
    chunk->charged = (uint32_t)memory_cost(chunk_struct_bytes(chunk->length));
    spend(body, chunk->charged, reserved);
    if (atomic_load_explicit(&body->is_by_chunks, memory_order_relaxed))
        queue_chunk(body, chunk);
    return chunk;
}

static void take_out(struct body *body, unsigned at) {
    struct chunk *chunk = body->chunks[at];
    memmove(&body->chunks[at], &body->chunks[at + 1], pointer_bytes(--body->chunk_count - at));
    give(body, chunk->charged);
}

void body_evict(struct body *body, struct chunk *chunk) {
    pthread_mutex_lock(&body->lock);
    unsigned at = place_of(body, chunk->number);
    bool is_there = at < body->chunk_count && body->chunks[at] == chunk;
    // The body's own count, and the caller's.
    bool is_used = atomic_load_explicit(&chunk->references, memory_order_acquire) > 2;
    bool is_taken = is_there && !is_used && !body->is_stream;
    if (is_taken)
        take_out(body, at);
    else if (is_there && !body->is_stream) // what has become a stream since is evicted no more
        eviction_add(&body->cache->eviction, &chunk->node);
    pthread_mutex_unlock(&body->lock);
    if (is_taken)
        chunk_put(chunk);
}

// Its chunks can come back, from the origin or from the disk. The lock is held.
static void go_by_chunks(struct body *body) {
    bool is_large = body->size > BODY_CHUNK_BYTES && !body->is_stream; // or of unknown size, and on disk
    if (is_large && !atomic_load_explicit(&body->is_by_chunks, memory_order_relaxed)) {
        atomic_store_explicit(&body->is_by_chunks, true, memory_order_relaxed);
        for (unsigned i = 0; i < body->chunk_count; i++)
            queue_chunk(body, body->chunks[i]);
    }
}

void body_never_ask(struct body *body) {
    atomic_store_explicit(&body->can_ask, false, memory_order_relaxed);
}

void body_set_can_ask(struct body *body) {
    atomic_store_explicit(&body->was_askable, true, memory_order_relaxed);
    atomic_store_explicit(&body->can_ask, true, memory_order_relaxed);
    pthread_mutex_lock(&body->lock);
    go_by_chunks(body);
    pthread_mutex_unlock(&body->lock);
}

// ---- flows ----

static void wake(struct cache_reader *reader) {
    *reader->wait_link = reader->wait_next;
    if (reader->wait_next)
        reader->wait_next->wait_link = reader->wait_link;
    reader->awaits = false;
    reader->wake(reader);
}

static void wake_all(struct body *body) {
    while (body->waiters)
        wake(body->waiters);
}

static void wake_reached(struct body *body, uint64_t from, uint64_t to) {
    for (struct cache_reader *reader = body->waiters, *next; reader; reader = next) {
        next = reader->wait_next;
        if (reader->offset >= from && reader->offset < to)
            wake(reader);
    }
}

static void link_flow(struct body *body, struct flow *flow, uint64_t from, uint64_t end) {
    *flow = (struct flow){
            .next = body->flows, .position = from, .end = end, .is_running = true, .is_load = flow->is_load};
    body->flows = flow;
}

void body_begin(struct body *body, struct flow *flow, uint64_t from, uint64_t end) {
    CHECK(!flow->is_running);
    pthread_mutex_lock(&body->lock);
    link_flow(body, flow, from, end);
    if (body->is_stream && !flow->is_load)
        body->floor = from;
    pthread_mutex_unlock(&body->lock);
}

bool body_is_awaited(struct body *body, const struct flow *flow) {
    bool is_awaited = false;
    pthread_mutex_lock(&body->lock);
    for (const struct cache_reader *reader = body->waiters; reader && !is_awaited; reader = reader->wait_next)
        is_awaited = reader->offset >= flow->position && reader->offset < flow->end;
    pthread_mutex_unlock(&body->lock);
    return is_awaited;
}

bool body_is_fetched(struct body *body) {
    pthread_mutex_lock(&body->lock);
    const struct flow *flow = body->flows;
    while (flow && flow->is_load)
        flow = flow->next;
    pthread_mutex_unlock(&body->lock);
    return flow;
}

void body_confirm(struct body *body, struct flow *flow) {
    pthread_mutex_lock(&body->lock);
    flow->is_confirmed = true;
    pthread_mutex_unlock(&body->lock);
}

static void unlink_flow(struct body *body, struct flow *flow) {
    struct flow **link = &body->flows;
    if (!flow->is_running)
        return;
    while (*link != flow)
        link = &(*link)->next;
    *link = flow->next;
    flow->is_running = false;
}

void body_end(struct body *body, struct flow *flow) {
    pthread_mutex_lock(&body->lock);
    unlink_flow(body, flow);
    wake_all(body);
    pthread_mutex_unlock(&body->lock);
    chunk_put(flow->chunk);
    flow->chunk = NULL;
}

static uint64_t cost(const struct body *body, const struct flow *flow, size_t length) {
    uint64_t at = flow->position % BODY_CHUNK_BYTES, first = at / BODY_BLOCK_BYTES;
    uint64_t blocks = (at + length + BODY_BLOCK_BYTES - 1) / BODY_BLOCK_BYTES - first;
    bool is_begun = flow->chunk && flow->chunk->number == flow->position / BODY_CHUNK_BYTES &&
                    first < chunk_blocks(flow->chunk->length) && flow->chunk->blocks[first];
    bool is_small = body->size != BODY_SIZE_UNKNOWN && body->size < BODY_BLOCK_BYTES;
    uint64_t room =
            is_small ? memory_cost(length) : (blocks - (is_begun ? 1 : 0)) * memory_cost(BODY_BLOCK_BYTES);
    bool is_new = !flow->chunk || at + length > flow->chunk->length;
    return room + (is_new ? memory_cost(chunk_struct_bytes(BODY_CHUNK_BYTES)) : 0);
}

uint64_t body_cost(struct body *body, const struct flow *flow, size_t length) {
    pthread_mutex_lock(&body->writing); // another flow may write to the same chunk
    uint64_t bytes = cost(body, flow, length);
    pthread_mutex_unlock(&body->writing);
    return bytes;
}

// The chunk that holds the flow's position, counted for the flow.
static void settle(struct body *body, struct flow *flow, uint64_t *reserved) {
    uint64_t number = flow->position / BODY_CHUNK_BYTES;
    struct chunk *old = flow->chunk;
    if (old && old->number == number)
        return;
    pthread_mutex_lock(&body->lock);
    struct chunk *chunk = find(body, flow->position);
    if (!chunk)
        chunk = add(body, number, reserved);
    flow->chunk = chunk_get(chunk);
    pthread_mutex_unlock(&body->lock);
    chunk_put(old);
}

// The lock is held.
static void queue_full(struct body *body, struct chunk *chunk) {
    chunk->is_queued = true;
    chunk->next_full = body->full;
    body->full = chunk_get(chunk);
}

static void note_full(struct body *body, const struct flow *flow) {
    struct chunk *chunk = flow->chunk;
    bool is_full = chunk_is_full(chunk, chunk->length);
    if (flow->is_load) {
        chunk->is_queued |= is_full;
        atomic_store_explicit(&chunk->is_on_disk, true, memory_order_relaxed);
    } else if (is_full && !chunk->is_queued && body->cache->disk && !body->is_stream &&
               body->size > RECORD_SMALL_BYTES) {
        queue_full(body, chunk);
    }
}

static void publish(
        struct body *body, struct flow *flow, uint32_t from, uint32_t to, uint32_t cost, uint64_t *reserved) {
    uint64_t start = start_of(flow->chunk);
    pthread_mutex_lock(&body->lock);
    chunk_add(flow->chunk, from, to);
    note_full(body, flow);
    flow->chunk->charged += cost;
    spend(body, cost, reserved);
    flow->position = start + to;
    wake_reached(body, start + from, start + to);
    pthread_mutex_unlock(&body->lock);
}

void body_write(struct body *body, struct flow *flow, const void *data, size_t length, uint64_t *reserved) {
    const char *bytes = data;
    pthread_mutex_lock(&body->writing);
    while (length) {
        settle(body, flow, reserved);
        uint32_t from = (uint32_t)(flow->position % BODY_CHUNK_BYTES);
        uint32_t part = (uint32_t)least(length, BODY_CHUNK_BYTES - from);
        CHECK(from + part <= flow->chunk->length);
        uint32_t blocks = chunk_copy(flow->chunk, from, bytes, part);
        publish(body, flow, from, from + part, blocks, reserved);
        bytes += part;
        length -= part;
    }
    pthread_mutex_unlock(&body->writing);
}

void body_take_whole(struct body *body, void *memory, char *content, uint32_t length) {
    uint64_t reserved = 0;
    size_t bytes = (size_t)(content - (char *)memory) + length;
    struct chunk *chunk = chunk_new_whole(body, length, memory, bytes, content);
    chunk->is_queued = true;
    atomic_store_explicit(&chunk->is_on_disk, true, memory_order_relaxed);
    pthread_mutex_lock(&body->lock);
    CHECK(body->chunk_count == 0 && length == body->size && length <= BODY_CHUNK_BYTES);
    body->chunks[body->chunk_count++] = chunk;
    spend(body, chunk->charged, &reserved);
    pthread_mutex_unlock(&body->lock);
}

void body_skip(struct body *body, struct flow *flow, size_t length) {
    pthread_mutex_lock(&body->lock);
    flow->position += length;
    if (body->is_stream)
        body->floor = flow->position;
    pthread_mutex_unlock(&body->lock);
}

void body_withdraw(struct body *body, struct flow *flow) {
    pthread_mutex_lock(&body->lock);
    unlink_flow(body, flow);
    wake_all(body);
    pthread_mutex_unlock(&body->lock);
}

// ---- to the disk ----

struct chunk *body_take_full(struct body *body) {
    pthread_mutex_lock(&body->lock);
    struct chunk *chunk = body->full;
    if (chunk)
        body->full = chunk->next_full;
    pthread_mutex_unlock(&body->lock);
    return chunk;
}

void body_queue_rest(struct body *body) {
    pthread_mutex_lock(&body->lock);
    bool is_wanted = body->cache->disk && !body->is_stream && body->size > RECORD_SMALL_BYTES;
    for (unsigned i = 0; is_wanted && i < body->chunk_count; i++) {
        struct chunk *chunk = body->chunks[i];
        uint64_t length = least(chunk->length, body->size - start_of(chunk));
        bool is_of_use =
                body_can_ask(body) || chunk_is_full(chunk, (uint32_t)length); // else the rest is lost
        if (is_of_use && !chunk->is_queued && chunk->span_count && chunk->spans[0].from == 0)
            queue_full(body, chunk);
    }
    pthread_mutex_unlock(&body->lock);
}

// A stream's blocks are freed behind its readers, whoever has the chunk: block by block, and only while it is
// none.
static bool copy_block(struct body *body, const struct chunk *chunk, uint32_t at, char *to, uint32_t bytes) {
    pthread_mutex_lock(&body->lock);
    bool is_kept = !body->is_stream;
    if (is_kept)
        memcpy(to, chunk->blocks[at / BODY_BLOCK_BYTES], bytes);
    pthread_mutex_unlock(&body->lock);
    return is_kept;
}

uint32_t body_copy_chunk(struct body *body, struct chunk *chunk, void *out) {
    char *to = out;
    pthread_mutex_lock(&body->lock);
    uint32_t bytes = chunk->span_count && chunk->spans[0].from == 0 ? chunk->spans[0].to : 0;
    pthread_mutex_unlock(&body->lock);
    for (uint32_t at = 0; at < bytes; at += BODY_BLOCK_BYTES)
        if (!copy_block(body, chunk, at, to + at, (uint32_t)least(bytes - at, BODY_BLOCK_BYTES)))
            return 0;
    return bytes;
}

void body_set_place(struct body *body, struct disk_place *place) {
    pthread_mutex_lock(&body->lock);
    struct disk_place old = body->place;
    bool is_of_use = !place->volume || !disk_place_is_leaving(place);
    if (is_of_use)
        body->place = *place;
    if (is_of_use && place->volume)
        go_by_chunks(body);
    pthread_mutex_unlock(&body->lock);
    disk_place_put(is_of_use ? &old : place);
    *place = (struct disk_place){.volume = NULL};
}

bool body_is_leaving(struct body *body) {
    pthread_mutex_lock(&body->lock);
    bool is_leaving = body->place.volume && disk_place_is_leaving(&body->place);
    pthread_mutex_unlock(&body->lock);
    return is_leaving;
}

void body_leave_disk(struct body *body) {
    struct disk_place old = {.volume = NULL};
    pthread_mutex_lock(&body->lock);
    if (body->place.volume && disk_place_is_leaving(&body->place)) {
        old = body->place;
        body->place.volume = NULL;
    }
    for (unsigned i = 0; old.volume && i < body->chunk_count; i++)
        atomic_store_explicit(&body->chunks[i]->is_on_disk, false, memory_order_relaxed);
    pthread_mutex_unlock(&body->lock);
    disk_place_put(&old);
}

void body_copy_place(struct body *body, struct disk_place *place) {
    pthread_mutex_lock(&body->lock);
    *place = body->place.volume ? disk_place_get(&body->place) : body->place;
    pthread_mutex_unlock(&body->lock);
}

void body_note_disk_end(struct body *body, uint64_t start, uint32_t end) {
    uint64_t reserved = 0;
    pthread_mutex_lock(&body->lock);
    struct chunk *chunk = find(body, start);
    bool is_short = start + end < least(start + BODY_CHUNK_BYTES, body->size);
    if (!chunk && is_short)
        chunk = add(body, start / BODY_CHUNK_BYTES, &reserved);
    if (chunk && is_short)
        chunk->disk_end = end;
    pthread_mutex_unlock(&body->lock);
}

void body_hit_disk(struct body *body, uint64_t location) {
    pthread_mutex_lock(&body->lock);
    if (body->place.volume)
        disk_hit(&body->place, location);
    pthread_mutex_unlock(&body->lock);
}

struct chunk *body_first_chunk(struct body *body) {
    pthread_mutex_lock(&body->lock);
    struct chunk *chunk =
            body->chunk_count && body->chunks[0]->number == 0 ? chunk_get(body->chunks[0]) : NULL;
    pthread_mutex_unlock(&body->lock);
    return chunk;
}

// ---- streams ----

void body_become_stream(struct body *body) {
    CHECK(!body_can_ask(body));
    pthread_mutex_lock(&body->lock);
    for (unsigned i = 0; i < body->chunk_count; i++)
        eviction_remove(&body->cache->eviction, &body->chunks[i]->node);
    atomic_store_explicit(&body->is_by_chunks, false, memory_order_relaxed);
    if (!body->is_stream) {
        budget_give(body->cache, body->charged);
        body->is_stream = true;
        charge(body, body->charged);
    }
    pthread_mutex_unlock(&body->lock);
}

// A hole behind the floor whose reader has left: its bytes still come, into blocks that must be there.
static bool is_written_behind(const struct body *body, const struct chunk *chunk, uint64_t floor) {
    for (const struct flow *flow = body->flows; flow; flow = flow->next)
        if (flow->position < floor && flow->position / BODY_CHUNK_BYTES == chunk->number)
            return true;
    return false;
}

void body_free_before(struct body *body, uint64_t floor) {
    pthread_mutex_lock(&body->lock);
    body->floor = floor = most(body->floor, floor);
    for (unsigned i = 0; i < body->chunk_count && start_of(body->chunks[i]) < floor;) {
        struct chunk *chunk = body->chunks[i];
        uint64_t passed = floor - start_of(chunk);
        if (is_written_behind(body, chunk, floor)) {
            i++;
            continue;
        }
        uint32_t freed = chunk_free_before(chunk, (uint32_t)least(passed, BODY_CHUNK_BYTES));
        if (passed < BODY_CHUNK_BYTES) {
            chunk->charged -= freed;
            give(body, freed);
            break;
        }
        take_out(body, i);
        chunk_put(chunk);
    }
    pthread_mutex_unlock(&body->lock);
}

#define TRIM_COPY_BYTES (4 * BODY_BLOCK_BYTES) // what is worth copying for the room behind it

// A copy that has room for what is there alone: with the old one's blocks, but the last, or, when somebody
// looks at that just now, with blocks of its own. NULL: there is nothing to gain.
static struct chunk *trimmed(struct chunk *chunk, bool is_used) {
    uint32_t length = chunk->span_count == 1 && chunk->spans[0].from == 0 ? chunk->spans[0].to : 0;
    if (length == 0 || length == chunk->length || (is_used && length > TRIM_COPY_BYTES))
        return NULL;
    struct chunk *copy = chunk_new(chunk->body, chunk->number, length);
    copy->charged = (uint32_t)memory_cost(chunk_struct_bytes(length));
    for (uint32_t i = 0; i < chunk_blocks(length); i++) {
        uint32_t bytes = chunk_block_bytes(copy, i);
        if (is_used || bytes < BODY_BLOCK_BYTES) {
            copy->blocks[i] = memory_new(bytes);
            memcpy(copy->blocks[i], chunk->blocks[i], bytes);
        } else {
            copy->blocks[i] = chunk->blocks[i];
            chunk->blocks[i] = NULL;
        }
        copy->charged += (uint32_t)memory_cost(bytes);
    }
    chunk_add(copy, 0, length);
    return copy;
}

void body_trim(struct body *body) {
    struct chunk *old = NULL, *copy = NULL;
    pthread_mutex_lock(&body->lock);
    // Only a body of one chunk has much to give back.
    if (body->chunk_count == 1 && !body->is_stream && !body->flows && !body->full &&
            !atomic_load_explicit(&body->is_by_chunks, memory_order_relaxed)) {
        old = body->chunks[0];
        copy = trimmed(old, atomic_load_explicit(&old->references, memory_order_acquire) > 1);
    }
    if (copy) {
        body->chunks[0] = copy;
        uint32_t before = old->charged;
        body->charged += copy->charged;
        budget_charge(body->cache, copy->charged);
        give(body, before);
    }
    pthread_mutex_unlock(&body->lock);
    if (copy)
        chunk_put(old);
}

// ---- reading ----

// The flow that brings the byte first, if that is soon enough not to ask for it elsewhere.
static const struct flow *coming(const struct body *body, uint64_t offset, uint64_t ahead) {
    const struct flow *best = NULL;
    for (const struct flow *flow = body->flows; flow; flow = flow->next)
        if (flow->position <= offset && offset < flow->end && offset - flow->position <= ahead &&
                (!best || flow->position > best->position))
            best = flow;
    return best;
}

// How far flows that bring the byte soon go on; `offset`: none does.
static uint64_t end_of_coming(const struct body *body, uint64_t offset, bool must_be_confirmed) {
    uint64_t end = offset;
    for (const struct flow *flow = body->flows; flow; flow = flow->next)
        if (flow->position <= offset && offset - flow->position <= BODY_AHEAD_BYTES &&
                (flow->is_confirmed || !must_be_confirmed))
            end = most(end, flow->end);
    return end;
}

// Where nothing else can be done, however long it takes.
static uint64_t patience(const struct body *body) {
    return body_can_ask(body) ? BODY_AHEAD_BYTES : UINT64_MAX;
}

// Whether the byte lies on disk, as far as is known without reading. The lock is held.
static bool is_on_disk(const struct body *body, uint64_t offset) {
    if (!body->place.volume || body->size <= RECORD_SMALL_BYTES)
        return false;
    const struct chunk *chunk = find(body, offset);
    return (!chunk || offset % BODY_CHUNK_BYTES < chunk->disk_end) &&
           disk_may_have_chunk(&body->place, (uint32_t)(offset / BODY_CHUNK_BYTES));
}

// The disk counts hits, too, as long as they are news in memory.
static void hit(struct chunk *chunk) {
    const struct body *body = chunk->body;
    uint8_t frequency = atomic_load_explicit(&chunk->node.frequency, memory_order_relaxed);
    eviction_hit(&chunk->node);
    if (frequency < EVICTION_FREQUENCY_MAXIMUM && body->place.volume && body->size > RECORD_SMALL_BYTES)
        disk_hit_chunk(&body->place, chunk->number);
}

static void show(struct cache_reader *reader, struct chunk *chunk, uint64_t end) {
    if (reader->chunk != chunk) {
        if (reader->source != SOURCE_ORIGIN)
            hit(chunk);
        chunk_put(reader->chunk);
        reader->chunk = chunk_get(chunk);
    }
    reader->run_end = end;
}

static enum body_look wait_for(struct body *body, struct cache_reader *reader) {
    reader->wait_next = body->waiters;
    reader->wait_link = &body->waiters;
    if (reader->wait_next)
        reader->wait_next->wait_link = &reader->wait_next;
    body->waiters = reader;
    reader->awaits = true;
    reader->has_waited = true;
    return BODY_COMING;
}

static void unlink_waiter(struct cache_reader *reader) {
    if (!reader->awaits)
        return;
    *reader->wait_link = reader->wait_next;
    if (reader->wait_next)
        reader->wait_next->wait_link = reader->wait_link;
    reader->awaits = false;
}

static enum body_look look(struct body *body, struct cache_reader *reader) {
    struct chunk *chunk = find(body, reader->offset);
    const struct chunk_span *span =
            chunk ? chunk_find(chunk, (uint32_t)(reader->offset % BODY_CHUNK_BYTES)) : NULL;
    if (reader->offset >= body->size)
        return BODY_OVER;
    if (span && reader->offset >= body->floor) {
        show(reader, chunk, start_of(chunk) + span->to);
        return BODY_HERE;
    }
    const struct flow *flow = coming(body, reader->offset, patience(body));
    if (flow && reader->offset - flow->position <= BODY_AHEAD_BYTES)
        return wait_for(body, reader);
    if (is_on_disk(body, reader->offset))
        return BODY_ON_DISK;
    return flow ? wait_for(body, reader) : BODY_ABSENT;
}

static bool is_shown(const struct cache_reader *reader) {
    return reader->chunk && reader->offset < reader->run_end &&
           reader->offset / BODY_CHUNK_BYTES == reader->chunk->number;
}

static enum body_look look_once(struct body *body, struct cache_reader *reader) {
    pthread_mutex_lock(&body->lock);
    unlink_waiter(reader);
    enum body_look found = look(body, reader);
    pthread_mutex_unlock(&body->lock);
    return found;
}

// What was read at once may have been evicted again by the next look, or be less than was thought: after a
// few attempts the origin is asked.
static enum body_look look_with_disk(struct body *body, struct cache_reader *reader) {
    enum body_look found = look_once(body, reader);
    for (unsigned i = 0; found == BODY_ON_DISK && i < DISK_ATTEMPTS_MAX; i++)
        found = tier_read(body, reader) ? look_once(body, reader) : BODY_ABSENT;
    return found == BODY_ON_DISK ? BODY_ABSENT : found;
}

enum body_look body_look(
        struct body *body, struct cache_reader *reader, struct iovec *pieces, int count, int *used) {
    if (!is_shown(reader)) {
        enum body_look found = look_with_disk(body, reader);
        // What a fill's reader has passed makes room for what comes. Of a hit, the chunk would count as hit
        // again.
        if (found != BODY_HERE && reader->source == SOURCE_ORIGIN)
            body_rest(reader);
        if (found != BODY_HERE)
            return found;
    }
    *used = chunk_pieces(reader->chunk, (uint32_t)(reader->offset % BODY_CHUNK_BYTES),
            (uint32_t)(reader->run_end - start_of(reader->chunk)), pieces, count);
    return BODY_HERE;
}

void body_rest(struct cache_reader *reader) {
    chunk_put(reader->chunk);
    reader->chunk = NULL;
    reader->run_end = 0;
}

void body_leave(struct body *body, struct cache_reader *reader) {
    body_rest(reader);
    if (!reader->has_waited)
        return;
    pthread_mutex_lock(&body->lock);
    unlink_waiter(reader);
    pthread_mutex_unlock(&body->lock);
}

// ---- what is there; the lock is held ----

// Where the run of bytes from `offset` on that is there ends; `offset` when it is not.
static uint64_t end_in_memory(const struct body *body, uint64_t offset) {
    const struct chunk *chunk;
    const struct chunk_span *span;
    while ((chunk = find(body, offset)) &&
            (span = chunk_find(chunk, (uint32_t)(offset % BODY_CHUNK_BYTES)))) {
        offset = start_of(chunk) + span->to;
        if (span->to < BODY_CHUNK_BYTES)
            break;
    }
    return offset;
}

// The same with the disk: what lies behind BODY_LOOK_CHUNKS of it is taken to be there.
static uint64_t end_of_run(const struct body *body, uint64_t offset) {
    for (unsigned looks = 0;; looks++) {
        offset = end_in_memory(body, offset);
        if (offset >= body->size || !is_on_disk(body, offset))
            return offset;
        if (looks == BODY_LOOK_CHUNKS)
            return body->size;
        const struct chunk *chunk = find(body, offset);
        uint64_t start = offset / BODY_CHUNK_BYTES * BODY_CHUNK_BYTES;
        uint64_t end = least(start + BODY_CHUNK_BYTES, body->size);
        offset = chunk ? least(end, start + chunk->disk_end) : end;
    }
}

static uint64_t next_on_disk(const struct body *body, uint64_t offset, uint64_t end) {
    uint64_t at = (offset / BODY_CHUNK_BYTES + 1) * BODY_CHUNK_BYTES;
    for (unsigned i = 0; body->place.volume && at < end && i < BODY_LOOK_CHUNKS; i++, at += BODY_CHUNK_BYTES)
        if (is_on_disk(body, at))
            return at;
    return end;
}

// The beginning of the next run behind `offset`, where nothing is; `end` when there is none before.
static uint64_t next_run(const struct body *body, uint64_t offset, uint64_t end) {
    for (unsigned i = place_of(body, offset / BODY_CHUNK_BYTES);
            i < body->chunk_count && start_of(body->chunks[i]) < end; i++) {
        uint64_t start = start_of(body->chunks[i]);
        const struct chunk_span *span =
                chunk_next(body->chunks[i], start < offset ? (uint32_t)(offset - start) : 0);
        if (span)
            return next_on_disk(body, offset, least(start + span->from, end));
    }
    return next_on_disk(body, offset, end);
}

// The last byte there before `offset`, and not before `least_at`; the offset behind it.
static uint64_t previous_end(const struct body *body, uint64_t offset, uint64_t least_at) {
    const struct chunk *chunk = find(body, least_at);
    uint64_t end = least_at;
    for (uint32_t i = 0; chunk && i < chunk->span_count; i++)
        if (start_of(chunk) + chunk->spans[i].to <= offset)
            end = most(end, start_of(chunk) + chunk->spans[i].to);
    for (const struct flow *flow = body->flows; flow; flow = flow->next)
        if (flow->end <= offset)
            end = most(end, flow->end);
    return end;
}

static uint64_t next_flow(const struct body *body, uint64_t offset, uint64_t end) {
    for (const struct flow *flow = body->flows; flow; flow = flow->next)
        if (flow->position > offset)
            end = least(end, flow->position);
    return end;
}

static bool serves(const struct body *body, uint64_t first, uint64_t last) {
    while (first <= last) {
        uint64_t end = end_of_run(body, first);
        if (end == first)
            end = end_of_coming(body, first, true);
        if (end == first)
            return false;
        first = end;
    }
    return true;
}

bool body_serves(struct body *body, uint64_t first, uint64_t last) {
    pthread_mutex_lock(&body->lock);
    bool is_served = serves(body, first, last);
    pthread_mutex_unlock(&body->lock);
    return is_served;
}

bool body_is_complete(struct body *body) {
    pthread_mutex_lock(&body->lock);
    uint64_t size = body->size;
    bool is_complete = size != BODY_SIZE_UNKNOWN && (size == 0 || end_of_run(body, 0) >= size);
    pthread_mutex_unlock(&body->lock);
    return is_complete;
}

bool body_run(struct body *body, uint64_t offset, struct body_hole *run) {
    pthread_mutex_lock(&body->lock);
    uint64_t most = least(body->size, UINT64_MAX - 1), end = end_of_run(body, offset);
    if (end == offset) {
        offset = next_run(body, offset, most);
        end = offset == most ? offset : end_of_run(body, offset);
    }
    pthread_mutex_unlock(&body->lock);
    *run = (struct body_hole){offset, end - 1};
    return offset < end;
}

// ---- holes ----

static uint64_t skip(const struct body *body, uint64_t offset) {
    return most(end_of_coming(body, offset, false), end_of_run(body, offset));
}

static bool find_hole(
        const struct body *body, uint64_t first, uint64_t last, uint64_t reach, struct body_hole *hole) {
    uint64_t at = first, next;
    while (at <= last && at - first < reach && (next = skip(body, at)) > at)
        at = next;
    if (at > last || at - first >= reach)
        return false;
    // What is one chunk at most is no dearer byte by byte.
    bool is_rounded = body->size > BODY_CHUNK_BYTES;
    uint64_t start = is_rounded ? at / BODY_CHUNK_BYTES * BODY_CHUNK_BYTES : at;
    uint64_t end =
            is_rounded ? least((last / BODY_CHUNK_BYTES + 1) * BODY_CHUNK_BYTES, body->size) : last + 1;
    end = least(end, (at / BODY_CHUNK_BYTES + BODY_LOOK_CHUNKS) * BODY_CHUNK_BYTES);
    hole->first = start == at ? at : previous_end(body, at, start);
    hole->last = next_flow(body, at, next_run(body, at, end)) - 1;
    return true;
}

bool body_find_hole(struct body *body, uint64_t first, uint64_t last, uint64_t reach, struct flow *flow,
        struct body_hole *hole) {
    pthread_mutex_lock(&body->lock);
    last = least(last, body->size - 1);
    bool is_found =
            body->size != BODY_SIZE_UNKNOWN && body->size > 0 && find_hole(body, first, last, reach, hole);
    if (is_found && flow)
        link_flow(body, flow, hole->first, hole->last + 1);
    pthread_mutex_unlock(&body->lock);
    return is_found;
}
