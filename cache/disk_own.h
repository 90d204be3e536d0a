// What the files of the volumes as one share: disk (the set, ranks), disk_look, disk_head, disk_put,
// disk_drop and disk_chunk (what lies there), disk_purge, disk_io (threads, watchdog), disk_keeper (opening,
// probing, closing).
//
// A disk_volume is counted by what uses it, the set included, and its memory is only reused: a stale pointer
// is good for disk_volume_try_get. Locks, in this order: the disk's, a volume's. Neither is held across I/O.
#pragma once

#include "cache/disk.h"

#include <pthread.h>
#include <stdatomic.h>

#define DISK_KINDS 2
#define DISK_THREADS 3 // of a volume: two readers and a writer

struct disk_thread {
    struct disk_volume *volume;
    enum disk_kind kind;
    struct disk_job *job; // running; under the volume's lock
    pthread_t thread;
};

struct disk_queue {
    struct disk_job *first, **end;
    unsigned count;
    pthread_cond_t work;
};

#define DISK_WAITING_MAX 256 // purges for a volume that is out of use; at one more all of it is purged

struct disk_waiting {
    enum volume_purge kind;
    char *authority, *path; // owned
    size_t authority_length, path_length;
    struct cache_key key; // VOLUME_PURGE_KEY
    uint64_t sequence;
};

struct disk_volume {
    struct disk *disk;
    _Atomic uint32_t references;     // 0: closed, or about to be
    _Atomic(struct volume *) volume; // NULL: not open; does not change back while it is counted
    _Atomic bool is_slow, is_removed;
    _Atomic int64_t shunned_until_ms; // it refused to write
    _Atomic uint64_t bytes;           // its weight
    struct volume_settings settings;  // `path` is a copy

    pthread_mutex_t lock; // all below
    struct disk_queue queues[DISK_KINDS];
    struct disk_thread threads[DISK_THREADS];
    unsigned thread_count;
    struct disk_job *giving_up; // its give_up runs just now
    pthread_cond_t given_up, wake;
    bool is_stopping; // the threads end once nothing waits
    bool is_closed;   // its keeper has ended
    bool is_given_up; // those that waited when it became slow
    char trouble[DISK_TROUBLE_BYTES];
    int purge_error; // of the last purge
    struct disk_waiting waiting[DISK_WAITING_MAX];
    unsigned waiting_count;
    bool is_purging; // one of them is being applied
    pthread_t keeper;
    struct disk_volume *next; // in the disk's pool

    _Atomic uint64_t reads, writes, gave_up;
};

struct disk {
    struct disk_settings settings;
    _Atomic(struct disk_volume *) volumes[DISK_VOLUMES_MAX]; // in use, in any order
    _Atomic uint64_t generation;                             // the last one
    _Atomic bool is_stopping;
    _Atomic unsigned slow_ms;

    pthread_mutex_t lock; // all below
    struct disk_volume *pool;
    struct disk_volume *leaving; // removed, not closed yet
    pthread_t watchdog;
    pthread_cond_t watch;
    bool is_woken;
    _Atomic bool is_idle; // the watchdog: there was nothing to watch, so it wants to be told of what is new
};

static inline bool disk_volume_try_get(struct disk_volume *volume) {
    uint32_t references = atomic_load_explicit(&volume->references, memory_order_relaxed);
    while (references > 0)
        if (atomic_compare_exchange_weak_explicit(&volume->references, &references, references + 1,
                    memory_order_acquire, memory_order_relaxed))
            return true;
    return false;
}

static inline void disk_volume_put(struct disk_volume *volume) {
    atomic_fetch_sub_explicit(&volume->references, 1, memory_order_release);
}

// NULL: there is nothing to be found in it just now.
static inline struct volume *disk_volume_open(struct disk_volume *volume) {
    return atomic_load_explicit(&volume->is_slow, memory_order_relaxed)
                   ? NULL
                   : atomic_load_explicit(&volume->volume, memory_order_acquire);
}

// ---- disk.c ----

// The volumes in use, each counted.
unsigned disk_list(struct disk *disk, struct disk_volume *volumes[static DISK_VOLUMES_MAX]);
struct cache_key disk_key_of(struct volume *volume, const struct disk_name *name);
// Those that may be written to now, counted, the highest rank first.
unsigned disk_rank(struct disk *disk, const struct disk_name *name,
        struct disk_volume *volumes[static DISK_VOLUMES_MAX]);
uint64_t disk_new_generation(struct disk *disk);
// What volume_put said: whether another volume may do better.
bool disk_refused(struct disk_volume *volume, int error);

// ---- disk_look.c ----

// Reads, or tries to.
int disk_read(struct disk_volume *volume, struct segment *segment, uint64_t offset, void *out, size_t length,
        bool may_wait);
// The header at a place. 0; -EAGAIN; or -errno: it was dropped.
int disk_read_header(struct disk_volume *volume, struct volume *open, struct cache_key key,
        const struct volume_place *place, bool may_wait, struct record *record);
// Not what was written, or an error: not to be found any more, and counted.
void disk_drop_broken(
        struct volume *volume, struct cache_key key, const struct volume_place *place, int error);
struct disk_look { // at one candidate for a key
    struct disk_volume *volume;
    struct volume *open;
    struct cache_key key;
    const struct volume_place *place;
    bool may_wait;
    struct record record; // of this key; no chunk
    unsigned char *bytes; // all of it but the zeros at the end; malloc; take it by setting NULL
};
// 0: all of it is what was written; -ENOENT: another one's; -EAGAIN; -ENOMEM; else it was dropped.
int disk_look_read(struct disk_look *look);
struct view disk_look_head(const struct disk_look *look);
const unsigned char *disk_look_content(const struct disk_look *look);
// Whose times mean nothing. NULL: refused.
struct stored_head *disk_look_decode(const struct disk_look *look);
// Reads each candidate, and gives it back whatever `visit` says; -EAGAIN and -ENOMEM end it. 0, or one of
// these.
typedef int disk_look_visit(struct disk_look *look, void *context);
int disk_look_at_all(struct disk_volume *volume, struct volume *open, struct cache_key key, bool may_wait,
        disk_look_visit *visit, void *context);

// ---- disk_put.c ----

// All of it in one piece: what there is, or *copy, malloc, else NULL. -ENOMEM, or 0.
int disk_gather(const struct iovec *parts, int count, struct view *all, unsigned char **copy);

// ---- disk_purge.c ----

// What is stored under the key up to this sequence is gone for good; at once, or before the volume serves.
void disk_purge_key(struct disk_volume *volume, struct cache_key key, uint64_t sequence);
void disk_purge_waiting(struct disk_volume *volume, struct volume *open); // what was asked for meanwhile
void disk_purge_forget(struct disk_volume *volume);

// ---- disk_io.c ----

bool disk_io_start(struct disk_volume *volume); // the threads; false: none
// Ends them when nothing waits any more.
void disk_io_stop(struct disk_volume *volume);
// Takes the volume out: `ms` is how long something took.
void disk_io_slow(struct disk_volume *volume, int64_t ms);
bool disk_io_is_stuck(struct disk_volume *volume, int64_t now_ms); // something still takes too long
void *disk_io_watch(void *disk);
void disk_io_watch_now(struct disk *disk);
// The volume whose thread this is; NULL: none.
struct disk_volume *disk_io_own(void);

// ---- disk_keeper.c ----

void *disk_keep(void *volume);
