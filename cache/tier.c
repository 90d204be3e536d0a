// The tier's common part, and what is read: heads at a look-up, content as readers come to it.
#include "cache/tier.h"

#include "admin/check.h"
#include "admin/container.h"
#include "cache/partial.h"
#include "cache/store.h"
#include "cache/tier_own.h"
#include "cache/vary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOADS_MAX 4

// ---- names ----

struct tier_name *tier_name_new(const struct entry_name *name) {
    struct tier_name *copy = memory_new(sizeof *copy + name->authority.length + name->path.length);
    char *path = copy->text + name->authority.length;
    if (name->authority.length)
        memcpy(copy->text, name->authority.data, name->authority.length);
    if (name->path.length)
        memcpy(path, name->path.data, name->path.length);
    copy->destination = *name->destination;
    copy->entry = (struct entry_name){.key = name->key,
            .destination = &copy->destination,
            .authority = {copy->text, name->authority.length},
            .path = {path, name->path.length}};
    return copy;
}

struct disk_name tier_disk_name(const struct entry_name *name) {
    return (struct disk_name){name->destination, name->authority, name->path};
}

// ---- how many jobs there are ----

void tier_job_begins(struct cache *cache, uint64_t dirty_bytes) {
    pthread_mutex_lock(&cache->dirty_lock);
    cache->jobs++;
    cache->dirty_bytes += dirty_bytes;
    cache->writes += dirty_bytes > 0;
    pthread_mutex_unlock(&cache->dirty_lock);
}

static struct cache_fill *take_held(struct cache *cache) {
    struct cache_fill *held = cache->held;
    cache->held = NULL;
    for (struct cache_fill *fill = held; fill; fill = fill->held_next) {
        fill->is_held = false;
        fill->wake(fill->owner);
    }
    return held;
}

// The lock is held.
static void end_dirty(struct cache *cache, uint64_t dirty_bytes) {
    cache->dirty_bytes -= dirty_bytes;
    cache->writes -= dirty_bytes > 0;
    if (dirty_bytes)
        take_held(cache);
}

void tier_dirty_ends(struct cache *cache, uint64_t dirty_bytes) {
    pthread_mutex_lock(&cache->dirty_lock);
    end_dirty(cache, dirty_bytes);
    pthread_mutex_unlock(&cache->dirty_lock);
}

void tier_job_ends(struct cache *cache, uint64_t dirty_bytes) {
    pthread_mutex_lock(&cache->dirty_lock);
    end_dirty(cache, dirty_bytes);
    if (--cache->jobs == 0)
        pthread_cond_broadcast(&cache->idle);
    pthread_mutex_unlock(&cache->dirty_lock);
}

// Of a small memory not more than half: what comes meanwhile has to lie there, too.
static uint64_t dirty_limit(struct cache *cache) {
    uint64_t memory = atomic_load_explicit(&cache->budget.limit, memory_order_relaxed);
    uint64_t limit = memory / 100 * TIER_DIRTY_PERCENT, least = TIER_DIRTY_LEAST_BYTES;
    if (least > memory / 2)
        least = memory / 2 + 1;
    return limit > least ? limit : least;
}

static bool hold(struct cache_fill *fill, uint64_t most, void (*wake)(void *owner), void *owner) {
    struct cache *cache = fill->cache;
    if (!cache->disk)
        return false;
    pthread_mutex_lock(&cache->dirty_lock);
    bool is_busy = cache->dirty_bytes >= most || cache->writes >= TIER_WRITES_MAX;
    if (is_busy && !fill->is_held) {
        fill->wake = wake;
        fill->owner = owner;
        fill->is_held = true;
        fill->held_next = cache->held;
        cache->held = fill;
    }
    pthread_mutex_unlock(&cache->dirty_lock);
    return is_busy;
}

bool tier_is_busy(struct cache_fill *fill, void (*wake)(void *owner), void *owner) {
    return hold(fill, dirty_limit(fill->cache), wake, owner);
}

bool tier_will_free(struct cache_fill *fill, void (*wake)(void *owner), void *owner) {
    return hold(fill, 1, wake, owner);
}

bool tier_is_writing(struct cache *cache) {
    pthread_mutex_lock(&cache->dirty_lock);
    bool is_writing = cache->dirty_bytes > 0;
    pthread_mutex_unlock(&cache->dirty_lock);
    return is_writing;
}

void tier_wait_no_more(struct cache_fill *fill) {
    struct cache *cache = fill->cache;
    if (!cache->disk)
        return;
    pthread_mutex_lock(&cache->dirty_lock);
    struct cache_fill **link = &cache->held;
    while (fill->is_held && *link != fill)
        link = &(*link)->held_next;
    if (fill->is_held)
        *link = fill->held_next;
    fill->is_held = false;
    pthread_mutex_unlock(&cache->dirty_lock);
}

bool tier_drain(struct cache *cache) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += TIER_STOP_MS / 1000;
    int timeout = 0;
    pthread_mutex_lock(&cache->dirty_lock);
    while (cache->jobs && timeout == 0)
        timeout = pthread_cond_timedwait(&cache->idle, &cache->dirty_lock, &until);
    bool is_idle = cache->jobs == 0;
    pthread_mutex_unlock(&cache->dirty_lock);
    return is_idle;
}

// ---- heads: into the index ----

static struct cache_object *object_of(struct cache *cache, struct cache_key key, struct disk_head *found) {
    struct cache_object *object = object_new(cache, false);
    object->key = key;
    object->reason = "stored";
    object->head = found->head;
    found->head = NULL;
    object->size = found->has_content       ? found->content_bytes
                   : found->body_length < 0 ? SIZE_UNKNOWN
                                            : (uint64_t)found->body_length;
    object->is_partial = !found->has_content;
    atomic_init(&object->contradicted, found->is_contradicted);
    object->body->fingerprint = key.low;
    if (object->size != SIZE_UNKNOWN)
        body_set_size(object->body, object->size);
    if (found->content_bytes) {
        body_take_whole(object->body, found->memory, (char *)found->content, found->content_bytes);
        found->memory = found->content = NULL;
    }
    body_set_place(object->body, &found->place);
    atomic_init(&object->location, found->location);
    atomic_init(&object->sequence, found->sequence);
    if (found->gives_ranges && object->size != SIZE_UNKNOWN && partial_is_provable(object->head))
        body_set_can_ask(object->body);
    object_charge(object, memory_cost(object->head->bytes), false);
    fill_count_node(object, 0);
    atomic_store_explicit(&object->phase, PHASE_WHOLE, memory_order_release);
    return object;
}

static bool is_superfluous(const struct entry *entry, const struct cache_object *object) {
    for (const struct cache_object *other = entry->stored; other; other = other->sibling)
        if (vary_is_same(other->head, object->head) &&
                other->head->freshness.response_at.steady_s >= object->head->freshness.response_at.steady_s)
            return true;
    return false;
}

// Without a size nobody could tell what is missing.
static bool is_usable(const struct disk_head *found) {
    return found->has_content || found->body_length >= 0;
}

static struct entry *find_or_add(struct cache *cache, struct shard *shard, const struct entry_name *name) {
    struct entry *entry = index_find(shard, name);
    if (entry)
        return entry;
    entry = index_entry_new(name);
    index_add(shard, entry);
    budget_charge(cache, memory_cost(entry->bytes));
    return entry;
}

static bool has_later(struct cache_object **objects, unsigned at) {
    for (unsigned i = 0; i < at; i++)
        if (vary_is_same(objects[i]->head, objects[at]->head))
            return true;
    return false;
}

// The last one read comes first into the list of the newest first. After a crash an earlier version lies
// there, too.
static void link_all(
        struct cache *cache, struct entry *entry, struct cache_object **objects, unsigned count) {
    while (count-- > 0)
        if (!has_later(objects, count) && !is_superfluous(entry, objects[count]))
            store_link(cache, entry, objects[count]);
}

// When its successor's record goes first, the earlier one must not come back.
static void drop_earlier(struct cache_object **objects, unsigned count) {
    for (unsigned i = 1; i < count; i++) {
        struct disk_place place = {.volume = NULL};
        if (!has_later(objects, i))
            continue;
        body_copy_place(objects[i]->body, &place);
        if (place.volume)
            disk_drop(&place, objects[i]->location, false);
        disk_place_put(&place);
    }
}

// `pins` are counted: until they are put, they stay in memory.
static bool take_heads(struct cache *cache, const struct entry_name *name, struct disk_head *heads,
        uint64_t purges, struct tier_pins *pins) {
    struct cache_object **objects = pins->objects;
    unsigned count = 0;
    for (struct disk_head *found = heads; found && count < INDEX_VARIANTS_MAX; found = found->next)
        if (is_usable(found))
            objects[count++] = object_of(cache, name->key, found);
    pins->count = count;
    struct shard *shard = index_shard(&cache->index, name->key);
    pthread_mutex_lock(&shard->lock);
    bool is_valid = atomic_load_explicit(&cache->purges, memory_order_acquire) == purges;
    if (is_valid) {
        struct entry *entry = find_or_add(cache, shard, name);
        entry->is_loaded = true;
        link_all(cache, entry, objects, count);
        if (count == 0)
            store_release(cache, shard, entry);
    }
    pthread_mutex_unlock(&shard->lock);
    drop_earlier(objects, count);
    return is_valid;
}

void tier_unpin(struct tier_pins *pins) {
    for (unsigned i = 0; i < pins->count; i++)
        object_put(pins->objects[i]);
    pins->count = 0;
}

// The same as load(), once. *is_valid: nothing was purged meanwhile.
static int load_once(struct cache *cache, const struct entry_name *name, struct moment now, bool may_wait,
        struct tier_pins *pins, bool *is_valid) {
    struct disk_name disk_name = tier_disk_name(name);
    struct head_record_now record_now = {now, cache->boot};
    uint64_t purges = atomic_load_explicit(&cache->purges, memory_order_acquire);
    struct disk_head *heads = NULL;
    int error = disk_read_heads(cache->disk, &disk_name, &record_now, may_wait, &heads);
    *is_valid = error != 0 || take_heads(cache, name, heads, purges, pins);
    disk_heads_free(heads);
    if (error == 0)
        budget_settle(cache);
    return error;
}

// 0, -EAGAIN: it would wait; anything else counts as nothing. Whatever was purged meanwhile, most likely it
// was something else: then once more.
static int load(struct cache *cache, const struct entry_name *name, struct moment now, bool may_wait,
        struct tier_pins *pins) {
    bool is_valid;
    int error = load_once(cache, name, now, may_wait, pins, &is_valid);
    for (unsigned i = 1; !is_valid && i < LOADS_MAX; i++) {
        tier_unpin(pins);
        error = load_once(cache, name, now, may_wait, pins, &is_valid);
    }
    return error;
}

// ---- heads: by a job ----

struct load {
    struct disk_job job;
    struct cache *cache;
    struct tier_name *name;
    struct moment now;
    // by the shard's lock
    struct load *next;
    struct cache_reader *waiters;
    bool is_over; // nobody comes to wait any more
};

static void wake_waiters(struct load *load) {
    struct shard *shard = index_shard(&load->cache->index, load->name->entry.key);
    pthread_mutex_lock(&shard->lock);
    struct load **link = &shard->loads;
    while (*link && *link != load)
        link = &(*link)->next;
    if (*link)
        *link = load->next;
    load->is_over = true;
    for (struct cache_reader *reader = load->waiters, *next; reader; reader = next) {
        next = reader->wait_next;
        reader->load = NULL;
        reader->wake(reader);
    }
    load->waiters = NULL;
    pthread_mutex_unlock(&shard->lock);
}

static void load_run(struct disk_job *job) {
    struct load *load_ = CONTAINER_OF(job, struct load, job);
    struct tier_pins pins = {.count = 0};
    load(load_->cache, &load_->name->entry, load_->now, true, &pins);
    wake_waiters(load_);
    tier_unpin(&pins);
}

static void load_give_up(struct disk_job *job) {
    wake_waiters(CONTAINER_OF(job, struct load, job));
}

static void load_done(struct disk_job *job) {
    struct load *load = CONTAINER_OF(job, struct load, job);
    struct cache *cache = load->cache;
    free(load->name);
    free(load);
    tier_job_ends(cache, 0);
}

static void wait_for(struct load *load, struct cache_reader *reader) {
    reader->load = load;
    reader->load_key = load->name->entry.key;
    reader->load_cache = load->cache;
    reader->wait_next = load->waiters;
    reader->wait_link = &load->waiters;
    if (reader->wait_next)
        reader->wait_next->wait_link = &reader->wait_next;
    load->waiters = reader;
}

void tier_leave(struct cache_reader *reader) {
    if (!reader->load_cache)
        return;
    struct shard *shard = index_shard(&reader->load_cache->index, reader->load_key);
    pthread_mutex_lock(&shard->lock);
    if (reader->load) {
        *reader->wait_link = reader->wait_next;
        if (reader->wait_next)
            reader->wait_next->wait_link = reader->wait_link;
        reader->load = NULL;
    }
    pthread_mutex_unlock(&shard->lock);
    reader->load_cache = NULL;
}

static bool has_name(const struct entry_name *a, const struct entry_name *b) {
    return key_equal(a->key, b->key) && endpoint_equal(a->destination, b->destination) &&
           view_equal(a->authority, b->authority) && view_equal(a->path, b->path);
}

// With one that runs already, if there is.
static bool wait_with_others(
        struct shard *shard, const struct entry_name *name, struct cache_reader *reader) {
    pthread_mutex_lock(&shard->lock);
    struct load *load = shard->loads;
    while (load && !has_name(&load->name->entry, name))
        load = load->next;
    if (load)
        wait_for(load, reader);
    pthread_mutex_unlock(&shard->lock);
    return load;
}

static bool begin_load(
        struct cache *cache, const struct entry_name *name, struct moment now, struct cache_reader *reader) {
    struct shard *shard = index_shard(&cache->index, name->key);
    struct disk_name disk_name = tier_disk_name(name);
    struct disk_volume *volume = disk_volume_of(cache->disk, &disk_name);
    if (!volume)
        return false;
    struct load *load = memory_new(sizeof *load);
    *load = (struct load){.job = {.run = load_run, .give_up = load_give_up, .done = load_done},
            .cache = cache,
            .name = tier_name_new(name),
            .now = now};
    pthread_mutex_lock(&shard->lock);
    load->next = shard->loads;
    shard->loads = load;
    wait_for(load, reader);
    pthread_mutex_unlock(&shard->lock);
    tier_job_begins(cache, 0);
    if (disk_submit(volume, DISK_READ, &load->job))
        return true;
    wake_waiters(load); // another one may have come to wait
    load_done(&load->job);
    tier_leave(reader);
    return false;
}

// ---- what is not valid any more ----

bool tier_invalidate(struct cache *cache, const struct entry_name *name) {
    struct disk_name disk_name = tier_disk_name(name);
    if (!cache->disk)
        return false;
    disk_invalidate(cache->disk, &disk_name);
    atomic_fetch_add(&cache->purges, 1);
    return true;
}

static bool is_loaded(struct cache *cache, const struct entry_name *name) {
    struct shard *shard = index_shard(&cache->index, name->key);
    pthread_mutex_lock(&shard->lock);
    const struct entry *entry = index_find(shard, name);
    bool is_loaded = entry && entry->is_loaded;
    pthread_mutex_unlock(&shard->lock);
    return is_loaded;
}

enum tier_look tier_look(struct cache *cache, const struct entry_name *name, const struct moment *now,
        bool may_wait, struct cache_reader *reader, struct tier_pins *pins) {
    struct disk_name disk_name = tier_disk_name(name);
    pins->count = 0;
    if (!cache->disk || is_loaded(cache, name) || !disk_may_have(cache->disk, &disk_name))
        return TIER_KNOWN;
    if (load(cache, name, *now, false, pins) != -EAGAIN || !may_wait || !reader)
        return TIER_KNOWN;
    if (wait_with_others(index_shard(&cache->index, name->key), name, reader))
        return TIER_WAIT;
    return begin_load(cache, name, *now, reader) ? TIER_WAIT : TIER_KNOWN;
}

bool tier_may_have(struct cache *cache, const struct entry_name *name) {
    struct disk_name disk_name = tier_disk_name(name);
    return cache->disk && disk_may_have(cache->disk, &disk_name);
}

// ---- content ----

struct piece { // of a body, on its way from the disk
    struct disk_job job;
    struct body *body;
    struct flow flow;
    struct disk_place place;
    uint64_t offset;
    uint32_t room;
    unsigned char *bytes;
};

static uint32_t number_of(uint64_t offset) {
    return (uint32_t)(offset / BODY_CHUNK_BYTES);
}

// What was read is put into the body. `end`: where the chunk ends on disk.
static void keep(struct body *body, struct flow *flow, const void *bytes, uint32_t length, uint32_t end) {
    uint64_t reserved = 0, at = flow->position, start = at / BODY_CHUNK_BYTES * BODY_CHUNK_BYTES;
    uint64_t most = body->size > at ? body->size - at : 0;
    if (length > most)
        length = (uint32_t)most;
    if (length)
        body_write(body, flow, bytes, length, &reserved);
    body_note_disk_end(body, start, end);
}

static bool read_now(struct body *body, struct piece *piece, bool may_wait) {
    uint32_t length = 0, end = 0;
    int error = disk_read_chunk(&piece->place, number_of(piece->offset),
            (uint32_t)(piece->offset % BODY_CHUNK_BYTES), piece->bytes, piece->room, may_wait, &length, &end);
    if (error == -EAGAIN)
        return false;
    if (error < 0)
        length = end = 0;
    keep(body, &piece->flow, piece->bytes, length, end);
    if (error == 0)
        disk_hit_chunk(&piece->place, number_of(piece->offset));
    return true;
}

static void piece_free(struct piece *piece) {
    disk_place_put(&piece->place);
    body_put(piece->body);
    free(piece->bytes);
    free(piece);
}

static void piece_run(struct disk_job *job) {
    struct piece *piece = CONTAINER_OF(job, struct piece, job);
    read_now(piece->body, piece, true);
}

static void piece_give_up(struct disk_job *job) {
    struct piece *piece = CONTAINER_OF(job, struct piece, job);
    body_withdraw(piece->body, &piece->flow);
}

static void piece_done(struct disk_job *job) {
    struct piece *piece = CONTAINER_OF(job, struct piece, job);
    struct cache *cache = piece->body->cache;
    body_end(piece->body, &piece->flow);
    piece_free(piece);
    budget_settle(cache);
    tier_job_ends(cache, 0);
}

// Larger steps once a reader goes on where it stopped.
static uint32_t room_for(struct cache_reader *reader, uint64_t offset) {
    uint32_t left = BODY_CHUNK_BYTES - (uint32_t)(offset % BODY_CHUNK_BYTES);
    uint32_t room = reader->disk_next == offset ? TIER_READ_AHEAD_BYTES : TIER_READ_BYTES;
    return room < left ? room : left;
}

static struct piece *piece_new(struct body *body, struct cache_reader *reader) {
    struct piece *piece = memory_new(sizeof *piece);
    *piece = (struct piece){.job = {.run = piece_run, .give_up = piece_give_up, .done = piece_done},
            .body = body_get(body),
            .flow.is_load = true,
            .offset = reader->offset / TIER_READ_BYTES * TIER_READ_BYTES};
    piece->room = room_for(reader, piece->offset);
    piece->bytes = memory_new(piece->room);
    reader->disk_next = piece->offset + piece->room;
    body_copy_place(body, &piece->place);
    return piece;
}

bool tier_read(struct body *body, struct cache_reader *reader) {
    struct piece *piece = piece_new(body, reader);
    struct cache *cache = body->cache;
    if (!piece->place.volume)
        return piece_free(piece), false;
    body_begin(body, &piece->flow, piece->offset, piece->offset + piece->room);
    body_confirm(body, &piece->flow);
    if (read_now(body, piece, false)) {
        body_end(body, &piece->flow);
        piece_free(piece);
        budget_settle(cache);
        return true;
    }
    struct disk_volume *volume = piece->place.volume;
    tier_job_begins(cache, 0);
    if (disk_submit(volume, DISK_READ, &piece->job))
        return true;
    piece_done(&piece->job);
    return false;
}
