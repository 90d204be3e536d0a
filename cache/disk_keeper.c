// The thread that keeps a volume: opens it, as often as that takes, notices when it comes and goes, tries it
// while it is slow, and closes it once nobody uses it any more.
#include "admin/log.h"
#include "cache/disk_own.h"
#include "cache/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PROBE_MS 5000
#define PROBE_NAME "probe-speed"
#define PROBE_BYTES 4096
#define LOADING_MS 10 // how often it looks
#define LEAVING_MS 5
#define USUAL_MS 1000
#define SENTENCE_BYTES 512

static unsigned probe_ms(const struct disk_volume *volume) {
    return volume->settings.probe_ms ? volume->settings.probe_ms : PROBE_MS;
}

static void wait_ms(struct disk_volume *volume, int64_t ms, bool until_removed) {
    int64_t until_ms = file_now_ms() + ms;
    struct timespec until = {until_ms / 1000, until_ms % 1000 * 1000000};
    pthread_mutex_lock(&volume->lock);
    bool is_asked = disk_volume_open(volume) && volume->waiting_count > 0;
    if (!is_asked && (!until_removed || !atomic_load(&volume->is_removed)))
        pthread_cond_timedwait(&volume->wake, &volume->lock, &until);
    pthread_mutex_unlock(&volume->lock);
}

static void tell(struct disk_volume *volume) {
    const struct disk *disk = volume->disk;
    if (!atomic_load(&disk->is_stopping) && disk->settings.changed)
        disk->settings.changed(disk->settings.owner);
}

// ---- opening ----

// The same directory with other settings is still being closed.
static bool has_predecessor(struct disk_volume *volume) {
    struct disk *disk = volume->disk;
    bool has = false;
    pthread_mutex_lock(&disk->lock);
    for (struct disk_volume *other = disk->leaving; other && !has; other = other->next) {
        pthread_mutex_lock(&other->lock);
        has = other != volume && !other->is_closed &&
              strcmp(other->settings.path, volume->settings.path) == 0;
        pthread_mutex_unlock(&other->lock);
    }
    pthread_mutex_unlock(&disk->lock);
    return has;
}

// Says it once, until it is another one.
static void note_trouble(struct disk_volume *volume, const char *sentence) {
    pthread_mutex_lock(&volume->lock);
    bool is_new = strncmp(volume->trouble, sentence, sizeof volume->trouble - 1) != 0;
    snprintf(volume->trouble, sizeof volume->trouble, "%.*s", (int)sizeof volume->trouble - 1, sentence);
    pthread_mutex_unlock(&volume->lock);
    if (is_new)
        log_warning("%s; it is tried again every %u ms", sentence, probe_ms(volume));
}

static void forget_trouble(struct disk_volume *volume) {
    pthread_mutex_lock(&volume->lock);
    volume->trouble[0] = '\0';
    pthread_mutex_unlock(&volume->lock);
}

static struct volume *try_open(struct disk_volume *volume) {
    char sentence[SENTENCE_BYTES] = "";
    struct volume *open = volume_open(&volume->settings, sentence, sizeof sentence);
    if (open && !disk_io_start(volume)) {
        snprintf(sentence, sizeof sentence, "cache_dir %s: cannot start its threads", volume->settings.path);
        volume_close(open);
        open = NULL;
    }
    if (!open)
        note_trouble(volume, sentence);
    return open;
}

// NULL: it was removed before that worked.
static struct volume *open_at_last(struct disk_volume *volume) {
    while (!atomic_load(&volume->is_removed)) {
        if (has_predecessor(volume)) {
            wait_ms(volume, LEAVING_MS, true);
            continue;
        }
        struct volume *open = try_open(volume);
        if (open) {
            if (volume->trouble[0])
                log_info("cache_dir %s: in use now", volume->settings.path);
            disk_purge_waiting(volume, open);
            forget_trouble(volume);
            atomic_store_explicit(&volume->volume, open, memory_order_release);
            return open;
        }
        wait_ms(volume, probe_ms(volume), true);
    }
    return NULL;
}

// ---- a slow one ----

static int try_file(int directory) {
    unsigned char written[PROBE_BYTES], read[PROBE_BYTES];
    int fd, result = file_open(directory, PROBE_NAME, O_RDWR | O_CREAT | O_TRUNC, &fd);
    if (result < 0)
        return result;
    memset(written, 0xa5, sizeof written);
    result = file_write_bytes(fd, 0, written, sizeof written);
    if (result == 0 && (result = file_sync_data(fd)) == 0) {
        file_forget(fd);
        result = file_read(fd, 0, read, sizeof read);
    }
    file_close(fd);
    file_unlink(directory, PROBE_NAME);
    return result;
}

// A disk that cannot be written to is not slow: the volume itself finds that out.
static bool is_fast(struct disk_volume *volume) {
    int64_t slow_ms = atomic_load(&volume->disk->slow_ms), since_ms = file_now_ms();
    int fd, result = file_open(AT_FDCWD, volume->settings.path, O_RDONLY | O_DIRECTORY, &fd);
    if (result == 0) {
        try_file(fd);
        file_close(fd);
    }
    return file_now_ms() - since_ms <= slow_ms;
}

static void take_in(struct disk_volume *volume) {
    pthread_mutex_lock(&volume->lock);
    volume->trouble[0] = '\0';
    volume->is_given_up = false;
    atomic_store(&volume->is_slow, false);
    pthread_mutex_unlock(&volume->lock);
    log_info("cache_dir %s: fast again, in use", volume->settings.path);
    tell(volume);
}

static void probe(struct disk_volume *volume, struct volume *open) {
    if (!is_fast(volume) || disk_io_is_stuck(volume, file_now_ms()))
        return;
    disk_purge_waiting(volume, open);
    take_in(volume);
}

// ---- while it is open ----

static bool is_serving(enum volume_state state) {
    return state == VOLUME_READY || state == VOLUME_FULL;
}

static void note_state(struct disk_volume *volume, enum volume_state before, enum volume_state state) {
    if (before == state)
        return;
    pthread_mutex_lock(&volume->lock);
    if (!atomic_load(&volume->is_slow))
        snprintf(volume->trouble, sizeof volume->trouble, "%s",
                state == VOLUME_BROKEN ? "too many errors of the disk"
                : state == VOLUME_FULL ? "nothing can be written"
                                       : "");
    pthread_mutex_unlock(&volume->lock);
    if (state == VOLUME_READY)
        atomic_store(&volume->shunned_until_ms, 0);
    if (is_serving(state) && !is_serving(before))
        tell(volume);
}

static bool is_unused(struct disk_volume *volume) {
    return atomic_load(&volume->is_removed) &&
           atomic_load_explicit(&volume->references, memory_order_acquire) == 0;
}

static int64_t pause_of(struct disk_volume *volume, enum volume_state state, int64_t probe_in_ms) {
    if (atomic_load(&volume->is_removed))
        return LEAVING_MS;
    int64_t usual_ms = state == VOLUME_LOADING ? LOADING_MS : USUAL_MS;
    return atomic_load(&volume->is_slow) && probe_in_ms < usual_ms ? probe_in_ms : usual_ms;
}

static void attend(struct disk_volume *volume, struct volume *open) {
    enum volume_state state = VOLUME_LOADING;
    bool was_slow = false;
    int64_t probe_at_ms = 0;
    while (!is_unused(volume)) {
        struct volume_stats stats;
        volume_stats(open, &stats);
        note_state(volume, state, stats.state);
        state = stats.state;
        bool is_slow = atomic_load(&volume->is_slow);
        if (is_slow && !was_slow)
            probe_at_ms = file_now_ms() + probe_ms(volume);
        if (is_slow && file_now_ms() >= probe_at_ms) {
            probe(volume, open);
            probe_at_ms = file_now_ms() + probe_ms(volume);
        }
        was_slow = atomic_load(&volume->is_slow);
        if (!was_slow) // what was told to wait just when the volume came back
            disk_purge_waiting(volume, open);
        int64_t probe_in_ms = probe_at_ms - file_now_ms();
        wait_ms(volume, pause_of(volume, state, probe_in_ms < 1 ? 1 : probe_in_ms), false);
    }
}

static void close_it(struct disk_volume *volume, struct volume *open) {
    disk_io_stop(volume);
    disk_purge_waiting(volume, open);
    atomic_store(&volume->volume, NULL);
    volume_close(open);
}

void *disk_keep(void *context) {
    struct disk_volume *volume = context;
    struct volume *open = open_at_last(volume);
    if (open) {
        attend(volume, open);
        close_it(volume, open);
    }
    while (!is_unused(volume))
        wait_ms(volume, LEAVING_MS, false);
    disk_purge_forget(volume);
    pthread_mutex_lock(&volume->lock);
    free((char *)volume->settings.path);
    volume->settings.path = NULL;
    volume->is_closed = true;
    pthread_mutex_unlock(&volume->lock);
    return NULL;
}
