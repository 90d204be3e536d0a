#include "cache/volume.h"

#include "admin/check.h"
#include "admin/log.h"
#include "cache/file.h"
#include "cache/memory.h"
#include "cache/volume_own.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SMALL_PERCENT 20
#define SMALL_MEMORY_LEAST (UINT64_C(1) << 20)
#define PROBE_MS 5000
#define SEGMENTS_USUAL 2048
#define SEGMENTS_LEAST 64
#define SEGMENT_LEAST_BYTES (UINT64_C(64) << 10)
#define SEGMENT_USUAL_BYTES (UINT64_C(4) << 20)
#define OBJECT_BYTES (8 << 10)
#define OBJECTS_LEAST 1024
#define OBJECTS_MOST (UINT64_C(128) << 20)
#define BLOCK_BYTES 4096
#define ATTEMPTS_MAX 8

static uint64_t minimum(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t maximum(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

// ---- opening and closing ----

static uint64_t usual_segment(uint64_t bytes) {
    uint64_t usual = minimum(maximum(bytes / SEGMENTS_USUAL, SEGMENT_USUAL_BYTES), SEGMENT_BYTES_MAXIMUM);
    return maximum(minimum(usual, bytes / SEGMENTS_LEAST), SEGMENT_LEAST_BYTES);
}

static void settle(struct volume_settings *settings) {
    if (settings->segment_bytes == 0)
        settings->segment_bytes = usual_segment(settings->bytes);
    settings->segment_bytes =
            minimum(settings->segment_bytes, SEGMENT_BYTES_MAXIMUM) / BLOCK_BYTES * BLOCK_BYTES;
    settings->segment_bytes = maximum(settings->segment_bytes, BLOCK_BYTES);
    if (settings->objects == 0)
        settings->objects = minimum(maximum(settings->bytes / OBJECT_BYTES, OBJECTS_LEAST), OBJECTS_MOST);
    if (settings->small_memory_bytes > 0)
        settings->small_memory_bytes = maximum(settings->small_memory_bytes, SMALL_MEMORY_LEAST);
    if (settings->small_percent == 0)
        settings->small_percent = SMALL_PERCENT;
    if (settings->probe_ms == 0)
        settings->probe_ms = PROBE_MS;
    settings->path = strdup(settings->path);
    CHECK(settings->path);
}

static void init_locks(struct volume *volume) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&volume->lock, NULL);
    pthread_cond_init(&volume->work, &monotonic);
    pthread_cond_init(&volume->room, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (unsigned i = 0; i < SEGMENTS_QUEUES; i++) {
        pthread_mutex_init(&volume->append[i], NULL);
        volume->open[i] = SEGMENTS_SLOT_NONE;
    }
}

static uint64_t overhead(const struct volume *volume, uint32_t slots) {
    return VOLUME_OVERHEAD_BYTES + (uint64_t)slots * VOLUME_INDEX_ENTRY_BYTES + table_bytes(volume->table) +
           ghosts_bytes(volume->ghosts) + purges_overhead(volume);
}

static uint32_t slots_for(const struct volume *volume, uint64_t bytes) {
    return (uint32_t)minimum(bytes / volume->settings.segment_bytes * 2 + 64, SEGMENTS_SLOTS_MAXIMUM);
}

static uint64_t limit_for(const struct volume *volume, uint64_t bytes, uint32_t slots) {
    uint64_t taken = overhead(volume, slots);
    return bytes > taken ? bytes - taken : 0;
}

static void init_pool(struct volume *volume) {
    const struct volume_settings *settings = &volume->settings;
    uint32_t slots = slots_for(volume, settings->bytes);
    uint64_t limit = limit_for(volume, settings->bytes, slots);
    segments_init(&volume->pool, limit, slots, slots_for(volume, settings->bytes * VOLUME_GROWTH),
            settings->small_percent);
    volume->pool.memory_limit = settings->small_memory_bytes;
    atomic_store(&volume->largest, limit / 4);
}

static void volume_free(struct volume *volume) {
    file_close(volume->directory);
    for (unsigned i = 0; i < VOLUME_SHELVES; i++)
        file_close(volume->shelves[i]);
    for (unsigned i = 0; i < SEGMENTS_QUEUES; i++)
        pthread_mutex_destroy(&volume->append[i]);
    pthread_mutex_destroy(&volume->lock);
    pthread_cond_destroy(&volume->work);
    pthread_cond_destroy(&volume->room);
    if (volume->pool.slots)
        segments_fini(&volume->pool);
    purges_close(volume);
    table_free(volume->table);
    ghosts_free(volume->ghosts);
    free((char *)volume->settings.path);
    free(volume);
}

static int start(struct volume *volume, char *error, size_t error_bytes) {
    int result = health_open_directory(volume, error, error_bytes);
    if (result < 0)
        return result;
    volume->table = table_new(volume->settings.objects);
    volume->ghosts = ghosts_new(volume->settings.objects);
    if (!volume->table || !volume->ghosts) {
        snprintf(error, error_bytes, "cache_dir %s: no memory for an index of %llu objects; make it smaller",
                volume->settings.path, (unsigned long long)volume->settings.objects);
        return -ENOMEM;
    }
    purges_open(volume);
    init_pool(volume);
    unsigned long long bytes = table_bytes(volume->table), ghosts = ghosts_bytes(volume->ghosts);
    log_info("cache_dir %s: index: %llu objects, %llu bytes", volume->settings.path,
            (unsigned long long)volume->settings.objects, bytes + ghosts);
    result = -pthread_create(&volume->keeper, NULL, keeper_run, volume);
    if (result < 0)
        snprintf(error, error_bytes, "cache_dir %s: cannot start its thread: %s", volume->settings.path,
                strerror(-result));
    return result;
}

struct volume *volume_open(const struct volume_settings *settings, char *error, size_t error_bytes) {
    if (settings->bytes < VOLUME_BYTES_MINIMUM) {
        snprintf(error, error_bytes,
                "cache_dir %s: a size of %llu bytes is too small; give it 4 MiB at least", settings->path,
                (unsigned long long)settings->bytes);
        return NULL;
    }
    struct volume *volume = memory_new(sizeof *volume);
    *volume = (struct volume){.settings = *settings, .directory = -1, .next_number = 1};
    for (unsigned i = 0; i < VOLUME_SHELVES; i++)
        volume->shelves[i] = -1;
    settle(&volume->settings);
    init_locks(volume);
    atomic_init(&volume->state, VOLUME_LOADING);
    if (start(volume, error, error_bytes) == 0)
        return volume;
    volume_free(volume);
    return NULL;
}

// What was hit in memory is carried over.
static void leave_memory(struct volume *volume) {
    uint32_t slot;
    while ((slot = segments_victim_in_memory(&volume->pool)) != SEGMENTS_SLOT_NONE)
        reclaim_segment(volume, slot);
}

static void seal_all(struct volume *volume) {
    uint32_t slot;
    for (unsigned i = 0; i < SEGMENTS_QUEUES; i++) {
        pthread_mutex_lock(&volume->append[i]);
        append_close(volume, i);
        pthread_mutex_unlock(&volume->append[i]);
    }
    while ((slot = segments_closing(&volume->pool)) != SEGMENTS_SLOT_NONE)
        reclaim_seal(volume, slot);
    reclaim_flush(volume);
}

void volume_close(struct volume *volume) {
    pthread_mutex_lock(&volume->lock);
    volume->stopping = true;
    pthread_cond_broadcast(&volume->work);
    pthread_mutex_unlock(&volume->lock);
    pthread_join(volume->keeper, NULL);
    if (volume_state(volume) != VOLUME_LOADING) {
        seal_all(volume);
        if (volume->settings.small_memory_bytes > 0) {
            leave_memory(volume);
            seal_all(volume);
        }
        if (atomic_load(&volume->purges.is_stale))
            purges_rewrite(volume);
        recovery_save(volume); // else the next start recovers
    }
    volume_free(volume);
}

uint64_t volume_seed(const struct volume *volume) {
    return volume->super.seed;
}

uint64_t volume_uuid(const struct volume *volume) {
    return volume->super.uuid[0];
}

uint64_t volume_sequence(const struct volume *volume) {
    return atomic_load_explicit(&volume->sequence, memory_order_relaxed);
}

int volume_resize(struct volume *volume, uint64_t bytes) {
    struct segments *pool = &volume->pool;
    if (bytes < VOLUME_BYTES_MINIMUM || slots_for(volume, bytes) > pool->slot_most)
        return -EINVAL;
    pthread_mutex_lock(&volume->lock);
    bool was_lowered = pool->target + volume->aside_bytes < pool->limit; // the disk has less
    segments_grow(pool, slots_for(volume, bytes));
    pool->limit = limit_for(volume, bytes, pool->slot_count);
    uint64_t most = pool->limit > volume->aside_bytes ? pool->limit - volume->aside_bytes : 0;
    pool->target = was_lowered ? minimum(pool->target, most) : most;
    volume->settings.bytes = bytes;
    atomic_store(&volume->largest, pool->limit / 4);
    pthread_cond_signal(&volume->work);
    pthread_cond_broadcast(&volume->room);
    pthread_mutex_unlock(&volume->lock);
    return 0;
}

// ---- finding ----

// False when an entry's segment was just reclaimed: what was carried over lies elsewhere by now.
static bool find(struct volume *volume, struct cache_key key, struct volume_place *places, unsigned *count) {
    struct table_entry entries[TABLE_CANDIDATES_MAX];
    unsigned found = table_find(volume->table, key, entries);
    bool complete = true;
    *count = 0;
    for (unsigned i = 0; i < found; i++) {
        struct segment *segment = segments_find(&volume->pool, segments_slot_of(entries[i].location));
        if (segment)
            places[(*count)++] = (struct volume_place){.segment = segment,
                    .offset = segments_offset_of(entries[i].location),
                    .location = entries[i].location};
        else
            complete = false;
    }
    return complete;
}

unsigned volume_find(struct volume *volume, struct cache_key key,
        struct volume_place places[static TABLE_CANDIDATES_MAX]) {
    unsigned count = 0;
    if (volume_state(volume) == VOLUME_BROKEN || find(volume, key, places, &count))
        return count;
    for (unsigned i = 0; i < count; i++)
        segment_put(places[i].segment);
    find(volume, key, places, &count);
    return count;
}

void volume_hit(struct volume *volume, struct cache_key key, uint64_t location) {
    table_hit(volume->table, key, location);
}

void volume_drop(struct volume *volume, struct cache_key key, uint64_t location) {
    table_remove(volume->table, key, location);
}

// ---- putting ----

static struct timespec instant_of(int64_t ms) {
    return (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
}

static bool has_room(const struct volume *volume, enum segments_queue queue, uint64_t bytes) {
    if (queue == SEGMENTS_SMALL && volume->pool.memory_limit > 0)
        return volume->pool.free_slots > 0 && volume->pool.memory_used + bytes <= volume->pool.memory_limit;
    return volume->pool.closing < append_closing_max(volume) && volume->pool.free_slots > 0 &&
           segments_free_bytes(&volume->pool) >= bytes + append_reserve(volume);
}

// Under the lock. False when it is of no use to wait any longer.
static bool wait_for_room(
        struct volume *volume, enum segments_queue queue, uint64_t bytes, int64_t until_ms) {
    struct timespec until = instant_of(until_ms);
    int timeout = 0;
    bool room = false;
    volume->waiting++;
    volume->wanted = maximum(volume->wanted, bytes);
    volume->stuck = false;
    pthread_cond_signal(&volume->work);
    while (!(room = has_room(volume, queue, bytes)) && volume_state(volume) == VOLUME_READY &&
            !volume->stuck && !volume->stopping && timeout == 0)
        timeout = pthread_cond_timedwait(&volume->room, &volume->lock, &until);
    if (--volume->waiting == 0)
        volume->wanted = 0;
    return room;
}

// 0, or what a put says in this state.
static int refusal(const struct volume *volume) {
    switch (volume_state(volume)) {
    case VOLUME_LOADING:
        return -EAGAIN;
    case VOLUME_READY:
        return 0;
    case VOLUME_FULL:
        return -ENOSPC;
    case VOLUME_BROKEN:
        return -EIO;
    }
    UNREACHABLE("a volume is in one of its states");
}

int volume_put(struct volume *volume, struct record *record, const struct iovec *payload, int count) {
    uint64_t bytes = segment_bytes_for(record_bytes(record->head_bytes, record->body_bytes));
    uint64_t segment_bytes = maximum(bytes, volume->settings.segment_bytes) + VOLUME_SLACK_BYTES;
    int64_t until_ms = file_now_ms() + VOLUME_PUT_WAIT_MS;
    int error = refusal(volume);
    if (error < 0)
        return error;
    if (bytes > atomic_load_explicit(&volume->largest, memory_order_relaxed))
        return -EFBIG;
    enum segments_queue queue = ghosts_take(volume->ghosts, record->key) ? SEGMENTS_MAIN : SEGMENTS_SMALL;
    uint64_t memory = volume->settings.small_memory_bytes;
    if (queue == SEGMENTS_SMALL && memory > 0) {
        if (bytes > memory / 4)
            queue = SEGMENTS_MAIN;
        else
            segment_bytes = maximum(bytes, append_memory_segment(volume));
    }
    struct append append = {.record = record, .payload = payload, .count = count};
    for (unsigned i = 0; i < ATTEMPTS_MAX; i++) {
        error = append_record(volume, queue, &append);
        if (error != -EAGAIN)
            return error;
        if (file_now_ms() >= until_ms)
            break;
        pthread_mutex_lock(&volume->lock);
        bool goes_on = wait_for_room(volume, queue, segment_bytes, until_ms);
        pthread_mutex_unlock(&volume->lock);
        if (!goes_on)
            break;
    }
    return -ENOSPC;
}

void volume_complain(struct volume *volume, int error) {
    if (error == -EBADMSG)
        atomic_fetch_add_explicit(&volume->broken_records, 1, memory_order_relaxed);
    else
        health_failed(volume, error, "reading a segment");
}

static uint64_t load(_Atomic uint64_t *counter) {
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void volume_stats(struct volume *volume, struct volume_stats *stats) {
    const struct segments *pool = &volume->pool;
    pthread_mutex_lock(&volume->lock);
    uint64_t beside = overhead(volume, pool->slot_count);
    *stats = (struct volume_stats){.state = volume_state(volume),
            .bytes = pool->used + load(&volume->pool.held) + volume->aside_bytes + beside,
            .limit_bytes = pool->target + volume->aside_bytes + beside,
            .memory_bytes = pool->memory_used,
            .segments = pool->lists[SEGMENTS_SMALL].count + pool->lists[SEGMENTS_MAIN].count};
    pthread_mutex_unlock(&volume->lock);
    pthread_rwlock_rdlock(&volume->purges.lock);
    stats->rules = purge_count(volume->purges.rules);
    pthread_rwlock_unlock(&volume->purges.lock);
    stats->objects = table_count(volume->table);
    stats->index_bytes = table_bytes(volume->table) + ghosts_bytes(volume->ghosts);
    stats->bytes_put = load(&volume->bytes_put);
    stats->bytes_written = load(&volume->bytes_written);
    stats->reclaimed = load(&volume->reclaimed);
    stats->carried = load(&volume->carried);
    stats->broken_records = load(&volume->broken_records);
    stats->errors = load(&volume->errors);
}
