// The thread of a volume: loads, seals, reclaims ahead of need, deletes old content, tries a failed disk
// again.
#include "cache/aside.h"
#include "cache/file.h"
#include "cache/volume_own.h"

#include <errno.h>
#include <time.h>

#define SPARE_SHARE 256 // one segment ready for each so many
#define SPARE_MAX 8
#define SLOTS_SPARE 4
#define DELETE_FILES 16 // at once

#define RETIRE_EVERY 64 // segments reclaimed

enum keeper_step {
    KEEPER_SEAL,
    KEEPER_PROBE,
    KEEPER_PURGES,
    KEEPER_RECLAIM,
    KEEPER_FLUSH,
    KEEPER_DELETE,
    KEEPER_WAIT
};

static bool is_out(const struct volume *volume) {
    enum volume_state state = volume_state(volume);
    return state == VOLUME_FULL || state == VOLUME_BROKEN;
}

static bool needs_probe(const struct volume *volume) {
    return is_out(volume) || volume->pool.target + volume->aside_bytes < volume->pool.limit;
}

static bool has_stale_purges(const struct volume *volume) {
    return atomic_load(&volume->purges.is_stale) && volume_state(volume) != VOLUME_BROKEN;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

// With what is free once it is flushed: is there enough?
static bool needs_room(const struct volume *volume) {
    const struct segments *pool = &volume->pool;
    uint64_t segment = append_reserve(volume);
    uint64_t spare = pool->limit / segment / SPARE_SHARE;
    spare = larger(segment * (spare < 1 ? 1 : spare > SPARE_MAX ? SPARE_MAX : spare), volume->wanted);
    return pool->free_slots + pool->drained < SLOTS_SPARE ||
           segments_free_bytes(pool) + volume->drained_bytes < segment + spare;
}

// Not before it is urgent: one fdatasync serves all that were drained meanwhile.
static bool needs_flush(const struct volume *volume) {
    const struct segments *pool = &volume->pool;
    uint64_t segment = append_reserve(volume);
    return pool->drained > 0 &&
           (pool->free_slots < SLOTS_SPARE ||
                   segments_free_bytes(pool) < segment + larger(segment, volume->wanted));
}

static enum keeper_step next_step(struct volume *volume, uint32_t *slot) {
    bool needs = !is_out(volume) && needs_room(volume);
    if (needs_probe(volume) && file_now_ms() >= volume->probe_at_ms)
        return KEEPER_PROBE;
    if (has_stale_purges(volume) && file_now_ms() >= volume->purges.retry_at_ms)
        return KEEPER_PURGES;
    if (needs_flush(volume) && !is_out(volume))
        return KEEPER_FLUSH;
    // Room is wanted sooner than safety, within bounds: what is carried over is safe when it is sealed.
    bool seals = volume->pool.closing > 0 && (!needs || volume->pool.closing >= append_closing_max(volume));
    if (!seals && needs && (*slot = segments_victim(&volume->pool)) != SEGMENTS_SLOT_NONE)
        return KEEPER_RECLAIM;
    if ((*slot = segments_closing(&volume->pool)) != SEGMENTS_SLOT_NONE)
        return KEEPER_SEAL;
    if (needs && volume->pool.drained > 0)
        return KEEPER_FLUSH;
    if (needs)
        volume->stuck = true;
    pthread_cond_broadcast(&volume->room);
    return volume->aside_bytes > 0 && !is_out(volume) ? KEEPER_DELETE : KEEPER_WAIT;
}

static void wait_for_work(struct volume *volume) {
    bool probes = needs_probe(volume), writes = has_stale_purges(volume);
    if (!probes && !writes) {
        pthread_cond_wait(&volume->work, &volume->lock);
        return;
    }
    int64_t at_ms = probes ? volume->probe_at_ms : volume->purges.retry_at_ms;
    if (writes && volume->purges.retry_at_ms < at_ms)
        at_ms = volume->purges.retry_at_ms;
    struct timespec until = {at_ms / 1000, at_ms % 1000 * 1000000};
    pthread_cond_timedwait(&volume->work, &volume->lock, &until);
}

static void delete_aside(struct volume *volume) {
    uint64_t freed = 0;
    int result = aside_delete(volume->directory, DELETE_FILES, &freed);
    if (result < 0)
        health_failed(volume, result, "deleting old content");
    pthread_mutex_lock(&volume->lock);
    if (result <= 0 || freed > volume->aside_bytes) // what cannot be deleted is left to the next start
        freed = volume->aside_bytes;
    volume->aside_bytes -= freed;
    volume->pool.target += freed;
    pthread_mutex_unlock(&volume->lock);
}

static void write_purges(struct volume *volume) {
    int error = purges_rewrite(volume);
    if (error < 0)
        health_failed(volume, error, "writing the journal of purges");
    pthread_mutex_lock(&volume->lock);
    volume->purges.retry_at_ms = file_now_ms() + volume->settings.probe_ms;
    pthread_mutex_unlock(&volume->lock);
}

static void take_step(struct volume *volume, enum keeper_step step, uint32_t slot) {
    switch (step) {
    case KEEPER_SEAL:
        reclaim_seal(volume, slot);
        return;
    case KEEPER_PROBE:
        health_probe(volume);
        return;
    case KEEPER_PURGES:
        write_purges(volume);
        return;
    case KEEPER_RECLAIM:
        reclaim_segment(volume, slot);
        if (atomic_load(&volume->reclaimed) % RETIRE_EVERY == 0)
            purges_retire(volume);
        return;
    case KEEPER_FLUSH:
        reclaim_flush(volume);
        return;
    case KEEPER_DELETE:
        delete_aside(volume);
        return;
    case KEEPER_WAIT:
        return;
    }
}

void *keeper_run(void *context) {
    struct volume *volume = context;
    uint32_t slot = SEGMENTS_SLOT_NONE;
    recovery_run(volume);
    pthread_mutex_lock(&volume->lock);
    while (!volume->stopping) {
        enum keeper_step step = next_step(volume, &slot);
        if (step == KEEPER_WAIT) {
            wait_for_work(volume);
            continue;
        }
        pthread_mutex_unlock(&volume->lock);
        take_step(volume, step, slot);
        pthread_mutex_lock(&volume->lock);
    }
    pthread_mutex_unlock(&volume->lock);
    return NULL;
}
