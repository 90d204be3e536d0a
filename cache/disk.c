// The set of volumes, and which of them a name belongs to.
#include "cache/disk.h"

#include "admin/check.h"
#include "admin/clock.h"
#include "admin/log.h"
#include "cache/disk_own.h"
#include "cache/file.h"
#include "cache/memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SLOW_MS 500
#define FIRST_OPEN_MS 1000 // that a start waits for the directories
#define STUCK_STOP_MS 2000 // that an end waits for a slow disk
#define SHUN_MS 250

// ---- the set ----

unsigned disk_list(struct disk *disk, struct disk_volume *volumes[static DISK_VOLUMES_MAX]) {
    unsigned count = 0;
    for (unsigned i = 0; i < DISK_VOLUMES_MAX; i++) {
        struct disk_volume *volume = atomic_load_explicit(&disk->volumes[i], memory_order_acquire);
        if (volume && disk_volume_try_get(volume))
            volumes[count++] = volume;
    }
    return count;
}

static void put_all(struct disk_volume *const *volumes, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        disk_volume_put(volumes[i]);
}

static void init_signal(pthread_cond_t *signal) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(signal, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static struct disk_volume *volume_new(struct disk *disk) {
    struct disk_volume *volume = disk->pool;
    if (volume) {
        disk->pool = volume->next;
        return volume;
    }
    volume = memory_new(sizeof *volume);
    memset(volume, 0, sizeof *volume);
    volume->disk = disk;
    pthread_mutex_init(&volume->lock, NULL);
    init_signal(&volume->given_up);
    init_signal(&volume->wake);
    for (unsigned i = 0; i < DISK_KINDS; i++)
        init_signal(&volume->queues[i].work);
    return volume;
}

static void volume_free(struct disk_volume *volume) {
    for (unsigned i = 0; i < DISK_KINDS; i++)
        pthread_cond_destroy(&volume->queues[i].work);
    pthread_cond_destroy(&volume->given_up);
    pthread_cond_destroy(&volume->wake);
    pthread_mutex_destroy(&volume->lock);
    free(volume);
}

// One that was closed, or is new: nobody uses it.
static void set(struct disk_volume *volume, const struct volume_settings *settings) {
    pthread_mutex_lock(&volume->lock);
    volume->settings = *settings;
    volume->settings.path = strdup(settings->path);
    CHECK(volume->settings.path);
    volume->is_stopping = volume->is_closed = volume->is_given_up = false;
    volume->thread_count = 0;
    volume->trouble[0] = '\0';
    for (unsigned i = 0; i < DISK_KINDS; i++)
        volume->queues[i].end = &volume->queues[i].first;
    atomic_store(&volume->volume, NULL);
    atomic_store(&volume->is_slow, false);
    atomic_store(&volume->is_removed, false);
    atomic_store(&volume->shunned_until_ms, 0);
    atomic_store(&volume->bytes, settings->bytes);
    atomic_store(&volume->reads, 0);
    atomic_store(&volume->writes, 0);
    atomic_store(&volume->gave_up, 0);
    atomic_store_explicit(&volume->references, 1, memory_order_release);
    pthread_mutex_unlock(&volume->lock);
}

static void add(struct disk *disk, unsigned slot, const struct volume_settings *settings) {
    struct disk_volume *volume = volume_new(disk);
    set(volume, settings);
    if (pthread_create(&volume->keeper, NULL, disk_keep, volume) == 0) {
        atomic_store_explicit(&disk->volumes[slot], volume, memory_order_release);
        return;
    }
    log_warning("cache_dir %s: cannot start its thread; not used", settings->path);
    free((char *)volume->settings.path);
    atomic_store(&volume->references, 0);
    volume->next = disk->pool;
    disk->pool = volume;
}

static void take_out(struct disk *disk, unsigned slot) {
    struct disk_volume *volume = atomic_exchange(&disk->volumes[slot], NULL);
    volume->next = disk->leaving;
    disk->leaving = volume;
    pthread_mutex_lock(&volume->lock);
    atomic_store(&volume->is_removed, true);
    pthread_cond_broadcast(&volume->wake);
    pthread_mutex_unlock(&volume->lock);
    disk_volume_put(volume);
}

static bool is_closed(struct disk_volume *volume) {
    pthread_mutex_lock(&volume->lock);
    bool closed = volume->is_closed;
    pthread_mutex_unlock(&volume->lock);
    return closed;
}

// Those whose keeper has ended may be used anew.
static void collect(struct disk *disk) {
    for (struct disk_volume **link = &disk->leaving; *link;) {
        struct disk_volume *volume = *link;
        if (!is_closed(volume)) {
            link = &volume->next;
            continue;
        }
        pthread_join(volume->keeper, NULL);
        *link = volume->next;
        volume->next = disk->pool;
        disk->pool = volume;
    }
}

// ---- settings ----

// An index, and what `wear` has of memory, keep their size until the next start: both change with every
// volume that comes or goes, and opening all the others anew would cost more than it gives.
static bool is_same(const struct volume_settings *a, const struct volume_settings *b) {
    return strcmp(a->path, b->path) == 0 && a->segment_bytes == b->segment_bytes &&
           a->small_percent == b->small_percent && a->probe_ms == b->probe_ms &&
           !a->small_memory_bytes == !b->small_memory_bytes && a->context == b->context &&
           a->matches == b->matches && a->keep == b->keep && a->judges_unhit == b->judges_unhit;
}

// Which of them this volume has but for its size; NULL: none.
static const struct volume_settings *settings_for(
        const struct disk_volume *volume, const struct disk_settings *all) {
    for (unsigned i = 0; i < all->count; i++)
        if (is_same(&volume->settings, &all->volumes[i]))
            return &all->volumes[i];
    return NULL;
}

// The slot of a volume in use with these settings, or NULL: a free one. DISK_VOLUMES_MAX: there is none.
static unsigned find(struct disk *disk, const struct volume_settings *settings) {
    for (unsigned i = 0; i < DISK_VOLUMES_MAX; i++) {
        struct disk_volume *volume = atomic_load(&disk->volumes[i]);
        if (settings ? volume && is_same(&volume->settings, settings) : !volume)
            return i;
    }
    return DISK_VOLUMES_MAX;
}

// False: it has to be opened anew for that.
static bool resize(struct disk_volume *volume, uint64_t bytes) {
    if (bytes == atomic_load(&volume->bytes))
        return true;
    struct volume *open = atomic_load_explicit(&volume->volume, memory_order_acquire);
    if (!open || volume_resize(open, bytes) < 0)
        return false;
    atomic_store(&volume->bytes, bytes);
    return true;
}

// A volume with other settings is closed, and opened with them once the last use of it has ended.
void disk_apply(struct disk *disk, const struct disk_settings *settings) {
    CHECK(settings->count <= DISK_VOLUMES_MAX);
    pthread_mutex_lock(&disk->lock);
    collect(disk);
    for (unsigned i = 0; i < DISK_VOLUMES_MAX; i++) {
        struct disk_volume *volume = atomic_load(&disk->volumes[i]);
        const struct volume_settings *now = volume ? settings_for(volume, settings) : NULL;
        if (volume && (!now || !resize(volume, now->bytes)))
            take_out(disk, i);
    }
    for (unsigned i = 0; i < settings->count; i++)
        if (find(disk, &settings->volumes[i]) == DISK_VOLUMES_MAX)
            add(disk, find(disk, NULL), &settings->volumes[i]);
    atomic_store(&disk->slow_ms, settings->slow_ms ? settings->slow_ms : SLOW_MS);
    pthread_mutex_unlock(&disk->lock);
}

static void pause_ms(long ms) {
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static bool is_tried(struct disk_volume *volume) {
    pthread_mutex_lock(&volume->lock);
    bool tried = atomic_load(&volume->volume) || volume->trouble[0];
    pthread_mutex_unlock(&volume->lock);
    return tried;
}

// What is stored is found from the beginning on, where the disks are well.
static void wait_for_first_open(struct disk *disk) {
    struct disk_volume *volumes[DISK_VOLUMES_MAX];
    int64_t until_ms = file_now_ms() + FIRST_OPEN_MS;
    unsigned count = disk_list(disk, volumes);
    for (unsigned i = 0; i < count; i++)
        while (!is_tried(volumes[i]) && file_now_ms() < until_ms)
            pause_ms(1);
    put_all(volumes, count);
}

struct disk *disk_new(const struct disk_settings *settings) {
    if (settings->count == 0)
        return NULL;
    struct disk *disk = memory_new(sizeof *disk);
    memset(disk, 0, sizeof *disk);
    disk->settings = *settings;
    disk->settings.volumes = NULL;
    atomic_store(&disk->slow_ms, settings->slow_ms ? settings->slow_ms : SLOW_MS);
    pthread_mutex_init(&disk->lock, NULL);
    init_signal(&disk->watch);
    CHECK(pthread_create(&disk->watchdog, NULL, disk_io_watch, disk) == 0);
    disk_apply(disk, settings);
    wait_for_first_open(disk);
    return disk;
}

// ---- the end ----

// False: a disk hangs, and those threads will still use their volume.
static bool wait_for_closed(struct disk *disk) {
    int64_t since_ms = file_now_ms(), now_ms = since_ms;
    for (struct disk_volume *volume = disk->leaving; volume;) {
        if (is_closed(volume)) {
            volume = volume->next;
            continue;
        }
        int64_t most_ms = atomic_load(&volume->is_slow) ? STUCK_STOP_MS : DISK_STOP_MS;
        if (now_ms - since_ms >= most_ms) {
            log_warning("cache_dir %s: its disk does not answer: not waited for any longer",
                    volume->settings.path);
            return false;
        }
        pause_ms(2);
        now_ms = file_now_ms();
    }
    return true;
}

// The memory stays: their threads use it.
static void leave_behind(struct disk *disk) {
    for (struct disk_volume *volume = disk->leaving; volume; volume = volume->next)
        pthread_detach(volume->keeper);
}

bool disk_free(struct disk *disk) {
    if (!disk)
        return true;
    atomic_store(&disk->is_stopping, true);
    pthread_mutex_lock(&disk->lock);
    for (unsigned i = 0; i < DISK_VOLUMES_MAX; i++)
        if (atomic_load(&disk->volumes[i]))
            take_out(disk, i);
    pthread_mutex_unlock(&disk->lock);
    disk_io_watch_now(disk);
    pthread_join(disk->watchdog, NULL);
    bool is_whole = wait_for_closed(disk);
    collect(disk);
    if (!is_whole) {
        leave_behind(disk);
        return false;
    }
    while (disk->pool) {
        struct disk_volume *volume = disk->pool;
        disk->pool = volume->next;
        volume_free(volume);
    }
    pthread_mutex_destroy(&disk->lock);
    pthread_cond_destroy(&disk->watch);
    free(disk);
    return true;
}

// ---- names ----

struct cache_key disk_key_of(struct volume *volume, const struct disk_name *name) {
    return key_of(volume_seed(volume), name->destination, name->authority, name->path);
}

static bool has(struct volume *volume, struct cache_key key) {
    struct volume_place places[TABLE_CANDIDATES_MAX];
    unsigned count = volume_find(volume, key, places);
    for (unsigned i = 0; i < count; i++)
        segment_put(places[i].segment);
    return count > 0;
}

// Weighted rendezvous: in proportion to the weights, and only what comes or goes moves.
static double score(uint64_t bytes, uint64_t rank) {
    double share = ((double)(rank >> 11) + 0.5) / (double)(UINT64_C(1) << 53);
    return (double)bytes / -log(share);
}

typedef bool disk_choice(struct disk_volume *volume, struct volume *open, struct cache_key key);

static bool may_have(struct disk_volume *volume, struct volume *open, struct cache_key key) {
    (void)volume;
    return has(open, key);
}

static bool may_take(struct disk_volume *volume, struct volume *open, struct cache_key key) {
    (void)open, (void)key;
    int64_t until_ms = atomic_load_explicit(&volume->shunned_until_ms, memory_order_relaxed);
    return until_ms == 0 || file_now_ms() >= until_ms;
}

static unsigned rank(struct disk *disk, const struct disk_name *name, disk_choice *choice,
        struct disk_volume *volumes[static DISK_VOLUMES_MAX]) {
    double scores[DISK_VOLUMES_MAX];
    unsigned listed = name->destination->scope ? 0 : disk_list(disk, volumes), count = 0;
    for (unsigned i = 0; i < listed; i++) {
        struct disk_volume *volume = volumes[i];
        struct volume *open = disk_volume_open(volume);
        struct cache_key key = open ? disk_key_of(open, name) : (struct cache_key){0};
        if (!open || !choice(volume, open, key)) {
            disk_volume_put(volume);
            continue;
        }
        double own = score(atomic_load_explicit(&volume->bytes, memory_order_relaxed), key_rank(key));
        unsigned at = count++;
        for (; at > 0 && scores[at - 1] < own; at--) {
            scores[at] = scores[at - 1];
            volumes[at] = volumes[at - 1];
        }
        scores[at] = own;
        volumes[at] = volume;
    }
    return count;
}

unsigned disk_rank(struct disk *disk, const struct disk_name *name,
        struct disk_volume *volumes[static DISK_VOLUMES_MAX]) {
    return rank(disk, name, may_take, volumes);
}

static struct disk_volume *first(struct disk *disk, const struct disk_name *name, disk_choice *choice) {
    struct disk_volume *volumes[DISK_VOLUMES_MAX];
    unsigned count = rank(disk, name, choice, volumes);
    put_all(volumes, count);
    return count ? volumes[0] : NULL;
}

struct disk_volume *disk_volume_of(struct disk *disk, const struct disk_name *name) {
    return first(disk, name, may_have);
}

struct disk_volume *disk_volume_for(struct disk *disk, const struct disk_name *name) {
    return first(disk, name, may_take);
}

bool disk_may_have(struct disk *disk, const struct disk_name *name) {
    for (unsigned i = 0; i < DISK_VOLUMES_MAX && !name->destination->scope; i++) {
        struct disk_volume *volume = atomic_load_explicit(&disk->volumes[i], memory_order_acquire);
        if (!volume || !disk_volume_try_get(volume))
            continue;
        struct volume *open = disk_volume_open(volume);
        bool found = open && has(open, disk_key_of(open, name));
        disk_volume_put(volume);
        if (found)
            return true;
    }
    return false;
}

bool disk_refused(struct disk_volume *volume, int error) {
    if (error != -EFBIG)
        atomic_store(&volume->shunned_until_ms, file_now_ms() + SHUN_MS);
    return error == -EFBIG || error == -ENOSPC || error == -EIO || error == -EAGAIN || error == -EDQUOT ||
           error == -EROFS;
}

// Of the wall clock, so that one of another volume, or of an earlier start, is lower.
uint64_t disk_new_generation(struct disk *disk) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t next = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    uint64_t last = atomic_load(&disk->generation), taken;
    do
        taken = next > last ? next : last + 1;
    while (!atomic_compare_exchange_weak(&disk->generation, &last, taken));
    return taken;
}

// ---- places ----

struct disk_place disk_place_get(const struct disk_place *place) {
    if (place->volume)
        CHECK(disk_volume_try_get(place->volume));
    return *place;
}

const char *disk_place_path(const struct disk_place *place) {
    return place->volume->settings.path;
}

void disk_place_put(struct disk_place *place) {
    if (place->volume)
        disk_volume_put(place->volume);
    place->volume = NULL;
}

bool disk_place_is_leaving(const struct disk_place *place) {
    return atomic_load(&place->volume->is_removed);
}

// ---- statistics ----

static enum disk_state state_of(struct disk_volume *volume, const struct volume_stats *stats, bool is_open) {
    if (!is_open)
        return DISK_OFFLINE;
    if (atomic_load(&volume->is_slow))
        return DISK_SLOW;
    switch (stats->state) {
    case VOLUME_LOADING:
        return DISK_LOADING;
    case VOLUME_READY:
        return DISK_READY;
    case VOLUME_FULL:
        return DISK_FULL;
    case VOLUME_BROKEN:
        return DISK_OFFLINE;
    }
    UNREACHABLE("a volume is in one of its states");
}

static void stats_of(struct disk_volume *volume, struct disk_volume_stats *out) {
    struct volume *open = atomic_load_explicit(&volume->volume, memory_order_acquire);
    memset(out, 0, sizeof *out);
    if (open)
        volume_stats(open, &out->volume);
    out->state = state_of(volume, &out->volume, open);
    out->reads = atomic_load_explicit(&volume->reads, memory_order_relaxed);
    out->writes = atomic_load_explicit(&volume->writes, memory_order_relaxed);
    out->gave_up = atomic_load_explicit(&volume->gave_up, memory_order_relaxed);
    pthread_mutex_lock(&volume->lock);
    strncpy(out->path, volume->settings.path, sizeof out->path - 1);
    memcpy(out->trouble, volume->trouble, sizeof out->trouble);
    for (unsigned i = 0; i < DISK_KINDS; i++)
        out->queued += volume->queues[i].count;
    pthread_mutex_unlock(&volume->lock);
}

unsigned disk_stats(struct disk *disk, struct disk_volume_stats out[static DISK_VOLUMES_MAX]) {
    struct disk_volume *volumes[DISK_VOLUMES_MAX];
    unsigned count = disk_list(disk, volumes);
    for (unsigned i = 0; i < count; i++)
        stats_of(volumes[i], &out[i]);
    put_all(volumes, count);
    return count;
}
