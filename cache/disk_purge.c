// Purges, and drops that outlast a crash: each volume's own journal keeps them. A volume that cannot be asked
// just now is told before it serves again.
#include "admin/check.h"
#include "cache/disk_own.h"
#include "cache/file.h"
#include "cache/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static enum volume_purge kind_of(enum disk_purge kind) {
    switch (kind) {
    case DISK_PURGE_URL:
        return VOLUME_PURGE_URL;
    case DISK_PURGE_HOST:
        return VOLUME_PURGE_HOST;
    case DISK_PURGE_PREFIX:
        return VOLUME_PURGE_PREFIX;
    case DISK_PURGE_MASK:
        return VOLUME_PURGE_MASK;
    case DISK_PURGE_ALL:
        return VOLUME_PURGE_ALL;
    }
    UNREACHABLE("a purge is of one of these kinds");
}

// ---- what waits ----

static char *copy(struct view text) {
    char *own = memory_new(text.length + 1);
    if (text.length)
        memcpy(own, text.data, text.length);
    return own;
}

static void forget(struct disk_waiting *waiting) {
    free(waiting->authority);
    free(waiting->path);
    *waiting = (struct disk_waiting){0};
}

static void forget_all(struct disk_volume *volume) {
    for (unsigned i = 0; i < volume->waiting_count; i++)
        forget(&volume->waiting[i]);
    volume->waiting_count = 0;
}

// What is too much to keep becomes one that purges all.
static void wait_with(struct disk_volume *volume, const struct disk_waiting *waiting) {
    pthread_mutex_lock(&volume->lock);
    bool is_all = waiting->kind == VOLUME_PURGE_ALL || volume->waiting_count == DISK_WAITING_MAX;
    if (is_all)
        forget_all(volume);
    struct disk_waiting *own = &volume->waiting[volume->waiting_count++];
    *own = *waiting;
    own->authority = copy((struct view){waiting->authority, waiting->authority_length});
    own->path = copy((struct view){waiting->path, waiting->path_length});
    if (is_all)
        own->kind = VOLUME_PURGE_ALL;
    pthread_cond_broadcast(&volume->wake); // of the keeper, should the volume have come back meanwhile
    pthread_mutex_unlock(&volume->lock);
}

static int apply(struct volume *open, const struct disk_waiting *waiting) {
    if (waiting->kind == VOLUME_PURGE_KEY)
        return volume_purge_key(open, waiting->key, waiting->sequence);
    return volume_purge(open, waiting->kind, (struct view){waiting->authority, waiting->authority_length},
            (struct view){waiting->path, waiting->path_length});
}

static bool take(struct disk_volume *volume, struct disk_waiting *waiting) {
    pthread_mutex_lock(&volume->lock);
    bool has = volume->waiting_count > 0;
    if (has)
        *waiting = volume->waiting[--volume->waiting_count];
    volume->is_purging = has;
    pthread_mutex_unlock(&volume->lock);
    return has;
}

static void note(struct disk_volume *volume, int error) {
    pthread_mutex_lock(&volume->lock);
    volume->purge_error = error;
    pthread_mutex_unlock(&volume->lock);
}

// In whatever order: each of them says what is gone. One that fails holds, and the volume tries it again.
void disk_purge_waiting(struct disk_volume *volume, struct volume *open) {
    struct disk_waiting waiting;
    while (take(volume, &waiting)) {
        note(volume, apply(open, &waiting));
        forget(&waiting);
    }
}

void disk_purge_forget(struct disk_volume *volume) {
    pthread_mutex_lock(&volume->lock);
    forget_all(volume);
    pthread_mutex_unlock(&volume->lock);
}

// ---- purging one volume, on its own thread: who asks does not wait for a disk that hangs ----

struct purging { // counted: by who asks, and by the job
    struct disk_job job;
    _Atomic unsigned references;
    struct disk_volume *volume;
    struct disk_waiting purge;
    pthread_mutex_t lock;
    pthread_cond_t signal;
    bool is_over, is_given_up;
    int error;
};

static struct purging *purging_of(struct disk_job *job) {
    return (struct purging *)((char *)job - offsetof(struct purging, job));
}

static void purging_free(struct purging *purging) {
    pthread_mutex_destroy(&purging->lock);
    pthread_cond_destroy(&purging->signal);
    forget(&purging->purge);
    free(purging);
}

static void purging_put(struct purging *purging) {
    if (atomic_fetch_sub(&purging->references, 1) == 1)
        purging_free(purging);
}

static void end(struct purging *purging, int error, bool is_given_up) {
    pthread_mutex_lock(&purging->lock);
    if (!purging->is_over) {
        purging->is_over = true;
        purging->is_given_up = is_given_up;
        purging->error = error;
    }
    pthread_cond_signal(&purging->signal);
    pthread_mutex_unlock(&purging->lock);
}

static void run(struct disk_job *job) {
    struct purging *purging = purging_of(job);
    struct volume *open = atomic_load(&purging->volume->volume);
    end(purging, apply(open, &purging->purge), false);
}

static void give_up(struct disk_job *job) {
    end(purging_of(job), -EIO, true);
}

static void done(struct disk_job *job) {
    purging_put(purging_of(job));
}

static struct purging *purging_new(struct disk_volume *volume, const struct disk_waiting *purge) {
    struct purging *purging = memory_new(sizeof *purging);
    *purging = (struct purging){.job = {.run = run, .give_up = give_up, .done = done},
            .references = 2,
            .volume = volume,
            .purge = *purge};
    purging->purge.authority = copy((struct view){purge->authority, purge->authority_length});
    purging->purge.path = copy((struct view){purge->path, purge->path_length});
    pthread_mutex_init(&purging->lock, NULL);
    pthread_cond_init(&purging->signal, NULL);
    return purging;
}

static int wait_for(struct purging *purging, bool *is_given_up) {
    pthread_mutex_lock(&purging->lock);
    while (!purging->is_over)
        pthread_cond_wait(&purging->signal, &purging->lock);
    int error = purging->error;
    *is_given_up = purging->is_given_up;
    pthread_mutex_unlock(&purging->lock);
    purging_put(purging);
    return error;
}

// NULL: its thread does not take it.
static struct purging *begin(struct disk_volume *volume, const struct disk_waiting *purge) {
    struct purging *purging = disk_volume_open(volume) ? purging_new(volume, purge) : NULL;
    if (purging && !disk_submit(volume, DISK_WRITE, &purging->job)) {
        purging_free(purging); // nobody else has it
        purging = NULL;
    }
    return purging;
}

static bool has_waiting(struct disk_volume *volume) {
    pthread_mutex_lock(&volume->lock);
    bool has = volume->waiting_count > 0 || volume->is_purging;
    pthread_mutex_unlock(&volume->lock);
    return has;
}

// Of a volume that is well, but has too much to do: its keeper has it soon, unless the disk hangs.
static int leave_to_keeper(struct disk_volume *volume, const struct disk_waiting *purge) {
    int64_t until_ms = file_now_ms() + 2 * (int64_t)atomic_load(&volume->disk->slow_ms);
    wait_with(volume, purge);
    while (disk_volume_open(volume) && has_waiting(volume) && file_now_ms() < until_ms)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return disk_volume_open(volume) && !has_waiting(volume) ? 0 : -EIO;
}

static int noted(struct disk_volume *volume) {
    pthread_mutex_lock(&volume->lock);
    int error = volume->purge_error;
    pthread_mutex_unlock(&volume->lock);
    return error;
}

static int finish(struct disk_volume *volume, const struct disk_waiting *purge, struct purging *purging) {
    bool is_given_up = false;
    int error = purging ? wait_for(purging, &is_given_up) : leave_to_keeper(volume, purge);
    if (!purging && error == 0)
        return noted(volume); // by the keeper
    note(volume, error);
    if (is_given_up)
        wait_with(volume, purge);
    return error;
}

int disk_purge(struct disk *disk, enum disk_purge kind, struct view authority, struct view path) {
    struct disk_volume *volumes[DISK_VOLUMES_MAX];
    struct purging *purgings[DISK_VOLUMES_MAX];
    struct disk_waiting purge = {.kind = kind_of(kind),
            .authority = (char *)authority.data,
            .path = (char *)path.data,
            .authority_length = authority.length,
            .path_length = path.length};
    unsigned count = disk_list(disk, volumes);
    int error = 0;
    for (unsigned i = 0; i < count; i++) // all of them at once
        purgings[i] = begin(volumes[i], &purge);
    for (unsigned i = 0; i < count; i++) {
        int own = finish(volumes[i], &purge, purgings[i]);
        error = error < 0 ? error : own;
        disk_volume_put(volumes[i]);
    }
    return error;
}

int disk_purge_missed(struct disk *disk, char *path, size_t size) {
    struct disk_volume *volumes[DISK_VOLUMES_MAX];
    unsigned count = disk_list(disk, volumes);
    int error = 0;
    for (unsigned i = 0; i < count; i++) {
        pthread_mutex_lock(&volumes[i]->lock);
        if (error == 0 && (error = volumes[i]->purge_error) < 0)
            snprintf(path, size, "%s", volumes[i]->settings.path);
        pthread_mutex_unlock(&volumes[i]->lock);
        disk_volume_put(volumes[i]);
    }
    return error;
}

// ---- drops ----

// Up to what was written now, whatever its variant.
void disk_purge_key(struct disk_volume *volume, struct cache_key key, uint64_t sequence) {
    struct disk_waiting purge = {.kind = VOLUME_PURGE_KEY, .key = key, .sequence = sequence};
    struct volume *open = disk_volume_open(volume);
    if (open)
        volume_purge_key(open, key, sequence);
    else
        wait_with(volume, &purge);
}

// ---- invalidating, from a thread that may not wait ----

// Until the rule is there. Another name's with the same fingerprint may be among them, and is lost.
static bool drop_all(struct volume *open, struct cache_key key) {
    struct volume_place places[TABLE_CANDIDATES_MAX];
    unsigned count = volume_find(open, key, places);
    for (unsigned i = 0; i < count; i++) {
        volume_drop(open, key, places[i].location);
        segment_put(places[i].segment);
    }
    return count > 0;
}

static bool is_loading(struct volume *open) {
    struct volume_stats stats;
    volume_stats(open, &stats);
    return stats.state == VOLUME_LOADING;
}

static void invalidate(struct disk_volume *volume, struct volume *open, const struct disk_name *name) {
    struct disk_waiting purge = {.kind = VOLUME_PURGE_KEY, .key = disk_key_of(open, name)};
    if (!drop_all(open, purge.key) && !is_loading(open))
        return;
    struct purging *purging = purging_new(volume, &purge);
    purging->references = 1; // the job's
    if (disk_submit(volume, DISK_WRITE, &purging->job))
        return;
    purging_free(purging);
    wait_with(volume, &purge);
}

void disk_invalidate(struct disk *disk, const struct disk_name *name) {
    struct disk_volume *volumes[DISK_VOLUMES_MAX];
    unsigned count = name->destination->scope ? 0 : disk_list(disk, volumes);
    for (unsigned i = 0; i < count; i++) {
        struct volume *open = atomic_load_explicit(&volumes[i]->volume, memory_order_acquire); // slow, too
        if (open)
            invalidate(volumes[i], open, name);
        disk_volume_put(volumes[i]);
    }
}
