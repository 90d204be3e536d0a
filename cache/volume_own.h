// What the files of a volume share: volume (its face), append, reclaim, keeper (its thread), recovery,
// health, purges.
//
// Locks, in this order: purges.file, purges.carry, append[main or small], lock, purges.lock. Held while the
// disk is waited for are purges.file (a purge and its fsync), purges.carry (a record that is carried over)
// and append (a write to that queue's open segment, no fsync): neither finding nor reading takes them.
#pragma once

#include "cache/ghosts.h"
#include "cache/purge.h"
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
#define VOLUME_GROWTH 8 // that a resize may bring

struct purges {
    pthread_mutex_t file; // held while the journal is written: fd and at
    int fd;               // -1: there is none yet
    uint64_t at, bytes_most;
    // The keeper holds it from asking whether a record is purged until it lies elsewhere: it goes with no
    // record in between, and a rule's number says which segments may hold what it matches.
    pthread_mutex_t carry;
    pthread_rwlock_t lock; // rules
    struct purge *rules;
    _Atomic uint64_t newest; // the highest sequence of a rule
    _Atomic bool is_stale;   // the journal says less than the rules
    int64_t retry_at_ms;     // under the volume's lock
};

struct volume {
    struct volume_settings settings; // `path` is a copy, nothing is 0
    struct super super;
    int directory, shelves[VOLUME_SHELVES]; // the numbers stay when what they refer to changes (dup3)
    bool has_moved;                         // to another directory of that path; the keeper's
    struct table *table;
    struct ghosts *ghosts;
    struct purges purges;
    _Atomic uint64_t sequence; // the last one

    pthread_mutex_t append[SEGMENTS_QUEUES];
    uint32_t open[SEGMENTS_QUEUES]; // slots; under append

    pthread_mutex_t lock; // all below
    pthread_cond_t work, room;
    struct segments pool;
    uint64_t next_number;
    uint64_t wanted; // the most that someone waits for
    unsigned waiting;
    bool stuck;             // there is nothing to reclaim
    uint64_t drained_bytes; // of segments that wait for what was carried over to be safe
    bool stopping;
    uint64_t aside_bytes; // of old content that still lies there
    _Atomic enum volume_state state;
    int64_t probe_at_ms;
    unsigned recent_errors;
    int64_t recent_since_ms;
    pthread_t keeper;
    _Atomic uint64_t largest; // segment that a put may ask for

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
// 0 or -errno; -EAGAIN: there is no room, or, but for the keeper, others write for longer than
// VOLUME_PUT_WAIT_MS.
int append_record(struct volume *volume, enum segments_queue queue, const struct append *append);
// What must stay free for reclaiming.
uint64_t append_reserve(const struct volume *volume);
unsigned append_closing_max(const struct volume *volume); // segments that may wait to be sealed
// Whether it gets a segment of its own.
bool append_is_alone(const struct volume *volume, enum segments_queue queue, uint64_t record_bytes);
// wear: the small queue lies in memory, in segments of so many bytes; 0: on the disk.
uint64_t append_memory_segment(const struct volume *volume);
void append_close(struct volume *volume, enum segments_queue queue); // under append[queue]

// ---- reclaim.c: by the keeper alone ----

// Carries over what is kept of it. Its file goes when that is safe: at the next reclaim_flush.
void reclaim_segment(struct volume *volume, uint32_t slot);
void reclaim_flush(struct volume *volume);
void reclaim_seal(struct volume *volume, uint32_t slot); // or gives it up
// Gives up all whose files were deleted underneath: they take room on a disk for nothing that lasts.
void reclaim_deleted(struct volume *volume);

// ---- keeper.c ----

void *keeper_run(void *volume);

// ---- recovery.c ----

void recovery_run(struct volume *volume); // by the keeper, first
int recovery_save(struct volume *volume); // at the end, when all is sealed

// ---- purges.c ----

// Reads the journal, if there is one: after the super block, before the keeper.
void purges_open(struct volume *volume);
void purges_close(struct volume *volume);
uint64_t purges_overhead(const struct volume *volume); // bytes that journals may take
// When all that is stored is known: pending rules get their sequence.
void purges_settle(struct volume *volume);
bool purges_is_purged(struct volume *volume, const struct purge_asked *asked);
void purges_retire(struct volume *volume); // by the keeper
// Writes the journal anew. 0 or -errno.
int purges_rewrite(struct volume *volume);

// ---- health.c ----

// Counts a failure, and draws the conclusion. Takes the lock.
void health_failed(struct volume *volume, int error, const char *doing);
static inline bool health_is_space(int error) {
    return error == -ENOSPC || error == -EDQUOT;
}
void health_probe(struct volume *volume); // by the keeper
// The directory, its lock, super block and shelves: made, or opened again. 0, or -errno and a sentence.
int health_open_directory(struct volume *volume, char *error, size_t error_bytes);
