// What of a body is there, and what is missing: for readers, look-ups and whoever asks for the rest.
#include "cache/body_own.h"

#include "cache/store.h"
#include "cache/tier.h"

#define DISK_ATTEMPTS_MAX 8

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
            end = body_most(end, flow->end);
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
    const struct chunk *chunk = body_find(body, offset);
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
    struct chunk *chunk = body_find(body, reader->offset);
    const struct chunk_span *span =
            chunk ? chunk_find(chunk, (uint32_t)(reader->offset % BODY_CHUNK_BYTES)) : NULL;
    if (reader->offset >= body->size)
        return BODY_OVER;
    if (span && reader->offset >= body->floor) {
        show(reader, chunk, body_start_of(chunk) + span->to);
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
            (uint32_t)(reader->run_end - body_start_of(reader->chunk)), pieces, count);
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
    while ((chunk = body_find(body, offset)) &&
            (span = chunk_find(chunk, (uint32_t)(offset % BODY_CHUNK_BYTES)))) {
        offset = body_start_of(chunk) + span->to;
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
        const struct chunk *chunk = body_find(body, offset);
        uint64_t start = offset / BODY_CHUNK_BYTES * BODY_CHUNK_BYTES;
        uint64_t end = body_least(start + BODY_CHUNK_BYTES, body->size);
        offset = chunk ? body_least(end, start + chunk->disk_end) : end;
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
    for (unsigned i = body_place_of(body, offset / BODY_CHUNK_BYTES);
            i < body->chunk_count && body_start_of(body->chunks[i]) < end; i++) {
        uint64_t start = body_start_of(body->chunks[i]);
        const struct chunk_span *span =
                chunk_next(body->chunks[i], start < offset ? (uint32_t)(offset - start) : 0);
        if (span)
            return next_on_disk(body, offset, body_least(start + span->from, end));
    }
    return next_on_disk(body, offset, end);
}

// The last byte there before `offset`, and not before `least_at`; the offset behind it.
static uint64_t previous_end(const struct body *body, uint64_t offset, uint64_t least_at) {
    const struct chunk *chunk = body_find(body, least_at);
    uint64_t end = least_at;
    for (uint32_t i = 0; chunk && i < chunk->span_count; i++)
        if (body_start_of(chunk) + chunk->spans[i].to <= offset)
            end = body_most(end, body_start_of(chunk) + chunk->spans[i].to);
    for (const struct flow *flow = body->flows; flow; flow = flow->next)
        if (flow->end <= offset)
            end = body_most(end, flow->end);
    return end;
}

static uint64_t next_flow(const struct body *body, uint64_t offset, uint64_t end) {
    for (const struct flow *flow = body->flows; flow; flow = flow->next)
        if (flow->position > offset)
            end = body_least(end, flow->position);
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
    uint64_t most = body_least(body->size, UINT64_MAX - 1), end = end_of_run(body, offset);
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
    return body_most(end_of_coming(body, offset, false), end_of_run(body, offset));
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
            is_rounded ? body_least((last / BODY_CHUNK_BYTES + 1) * BODY_CHUNK_BYTES, body->size) : last + 1;
    end = body_least(end, (at / BODY_CHUNK_BYTES + BODY_LOOK_CHUNKS) * BODY_CHUNK_BYTES);
    hole->first = start == at ? at : previous_end(body, at, start);
    hole->last = next_flow(body, at, next_run(body, at, end)) - 1;
    return true;
}

bool body_find_hole(struct body *body, uint64_t first, uint64_t last, uint64_t reach, struct flow *flow,
        struct body_hole *hole) {
    pthread_mutex_lock(&body->lock);
    last = body_least(last, body->size - 1);
    bool is_found =
            body->size != BODY_SIZE_UNKNOWN && body->size > 0 && find_hole(body, first, last, reach, hole);
    if (is_found && flow)
        body_link_flow(body, flow, hole->first, hole->last + 1);
    pthread_mutex_unlock(&body->lock);
    return is_found;
}
