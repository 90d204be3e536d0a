// What the files of a volume share: volume (its face), append, reclaim, keeper (its thread), recovery,
// health.
//
// Locks, in this order: append[main or small], lock. Neither is held while the disk is waited for, but
// append, by whoever writes to that queue's open segment.
#pragma once

#include "cache/ghosts.h"
#include "cache/segments.h"
#include "cache/super.h"
#include "cache/volume.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#define VOLUME_SHELVES 16 // directories that segment files lie in, by the last digit of their number
#define VOLUME_SLACK_BYTES (8 << 10)      // that a file system may take for a file beside its blocks
#define VOLUME_OVERHEAD_BYTES (256 << 10) // directories, super block, probe
#define VOLUME_INDEX_ENTRY_BYTES 32

struct volume {
    struct volume_settings settings; // `path` is a copy, nothing is 0
    struct super super;
    int directory, shelves[VOLUME_SHELVES]; // the numbers stay when what they refer to changes (dup3)
    struct table *table;
    struct ghosts *ghosts;
    _Atomic uint64_t sequence; // the last one

    pthread_mutex_t append[SEGMENTS_QUEUES];
    uint32_t open[SEGMENTS_QUEUES]; // slots; under append

    pthread_mutex_t lock; // all below
    pthread_cond_t work, room;
    struct segments pool;
    uint64_t next_number;
    uint64_t wanted; // the most that someone waits for
    unsigned waiting;
    bool stuck; // there is nothing to reclaim
    bool stopping;
    uint64_t aside_bytes; // of old content that still lies there
    _Atomic enum volume_state state;
    int64_t probe_at_ms;
    unsigned recent_errors;
    int64_t recent_since_ms;
    pthread_t keeper;

    _Atomic uint64_t bytes_put, bytes_written, reclaimed, carried, broken_records, errors;
};

static inline enum volume_state volume_state(const struct volume *volume) {
    return atomic_load_explicit(&volume->state, memory_order_relaxed);
}

// ---- append.c ----

struct append {
    struct record *record; // a sequence of 0: the next one is set
    const struct iovec *payload;
    int count;
    bool is_keeper;  // may use up the reserve that reclaiming needs
    bool is_carried; // the entry moves from `from`
    uint64_t from;
    uint8_t hits;
};
// 0 or -errno; -EAGAIN: there is no room.
int append_record(struct volume *volume, enum segments_queue queue, const struct append *append);
// What must stay free for reclaiming.
uint64_t append_reserve(const struct volume *volume);
unsigned append_closing_max(const struct volume *volume); // segments that may wait to be sealed
bool append_is_alone(const struct volume *volume, uint64_t record_bytes); // in a segment of its own
void append_close(struct volume *volume, enum segments_queue queue);      // under append[queue]

// ---- reclaim.c: by the keeper alone ----

void reclaim_segment(struct volume *volume, uint32_t slot);
void reclaim_seal(struct volume *volume, uint32_t slot); // or gives it up

// ---- keeper.c ----

void *keeper_run(void *volume);

// ---- recovery.c ----

void recovery_run(struct volume *volume); // by the keeper, first
int recovery_save(struct volume *volume); // at the end, when all is sealed

// ---- health.c ----

// Counts a failure, and draws the conclusion. Takes the lock.
void health_failed(struct volume *volume, int error, const char *doing);
static inline bool health_is_space(int error) {
    return error == -ENOSPC || error == -EDQUOT;
}
void health_probe(struct volume *volume); // by the keeper
// The directory, its lock, super block and shelves: made, or opened again. 0, or -errno and a sentence.
int health_open_directory(struct volume *volume, char *error, size_t error_bytes);
