#include "cache/body_own.h"

#include "admin/check.h"
#include "cache/store.h"
#include "cache/tier.h"

#include <stdlib.h>
#include <string.h>

// ---- life ----

static void charge(struct body *body, uint64_t bytes) {
    if (body->is_stream)
        atomic_fetch_add_explicit(&body->cache->budget.streams, bytes, memory_order_relaxed);
    else
        budget_charge(body->cache, bytes);
}

// The same for bytes of which `reserved` are counted already, of the store's budget.
static void spend(struct body *body, uint64_t bytes, uint64_t *reserved) {
    uint64_t part = body->is_stream ? 0 : body_least(*reserved, bytes);
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

// Where the chunk is, or would be.
unsigned body_place_of(const struct body *body, uint64_t number) {
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

struct chunk *body_find(const struct body *body, uint64_t offset) {
    uint64_t number = offset / BODY_CHUNK_BYTES;
    unsigned at = body_place_of(body, number);
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

struct chunk *body_add(struct body *body, uint64_t number, uint64_t *reserved) {
    uint64_t left =
            body->size == BODY_SIZE_UNKNOWN ? BODY_CHUNK_BYTES : body->size - number * BODY_CHUNK_BYTES;
    struct chunk *chunk = chunk_new(body, number, (uint32_t)body_least(left, BODY_CHUNK_BYTES));
    unsigned at = body_place_of(body, number);
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
    unsigned at = body_place_of(body, chunk->number);
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
void body_go_by_chunks(struct body *body) {
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
    body_go_by_chunks(body);
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

void body_link_flow(struct body *body, struct flow *flow, uint64_t from, uint64_t end) {
    *flow = (struct flow){
            .next = body->flows, .position = from, .end = end, .is_running = true, .is_load = flow->is_load};
    body->flows = flow;
}

void body_begin(struct body *body, struct flow *flow, uint64_t from, uint64_t end) {
    CHECK(!flow->is_running);
    pthread_mutex_lock(&body->lock);
    body_link_flow(body, flow, from, end);
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
    struct chunk *chunk = body_find(body, flow->position);
    if (!chunk)
        chunk = body_add(body, number, reserved);
    flow->chunk = chunk_get(chunk);
    pthread_mutex_unlock(&body->lock);
    chunk_put(old);
}

// The lock is held.
void body_queue_full(struct body *body, struct chunk *chunk) {
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
        body_queue_full(body, chunk);
    }
}

static void publish(
        struct body *body, struct flow *flow, uint32_t from, uint32_t to, uint32_t cost, uint64_t *reserved) {
    uint64_t start = body_start_of(flow->chunk);
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
        uint32_t part = (uint32_t)body_least(length, BODY_CHUNK_BYTES - from);
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
    body->floor = floor = body_most(body->floor, floor);
    for (unsigned i = 0; i < body->chunk_count && body_start_of(body->chunks[i]) < floor;) {
        struct chunk *chunk = body->chunks[i];
        uint64_t passed = floor - body_start_of(chunk);
        if (is_written_behind(body, chunk, floor)) {
            i++;
            continue;
        }
        uint32_t freed = chunk_free_before(chunk, (uint32_t)body_least(passed, BODY_CHUNK_BYTES));
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
