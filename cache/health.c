// What a failing disk leads to, and how it comes back.
#include "admin/log.h"
#include "cache/aside.h"
#include "cache/file.h"
#include "cache/volume_own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ERRORS_MAX 8 // within ERRORS_MS: the volume is broken
#define ERRORS_MS 60000
#define PROBE_NAME "probe"
#define PROBE_BYTES 4096
#define SEGMENTS_LEAST 4
#define NAME_BYTES 16

// ---- the directory ----

// `usual`: where nothing is known that would be of more help.
static const char *advice_on(const struct volume *volume, int result, const char *usual) {
    struct stat stat;
    switch (-result) {
    case EACCES:
    case EPERM:
        return file_status(AT_FDCWD, volume->settings.path, &stat) < 0
                       ? usual
                       : "make the user weir runs as the owner of it and of all in it (chown -R)";
    case ENOTDIR:
        return "a file lies there: remove it, or name another path";
    case EROFS:
        return "mount its file system read-write";
    case ENOSPC:
    case EDQUOT:
        return "make room on its file system";
    default:
        return usual;
    }
}

static int failed(const struct volume *volume, char *error, size_t error_bytes, int result, const char *what,
        const char *advice) {
    snprintf(error, error_bytes, "cache_dir %s: %s: %s; %s", volume->settings.path, what, strerror(-result),
            advice_on(volume, result, advice));
    return result;
}

// Takes over `fd` under the number that is known already, if there is one: other threads may be using it.
static void replace(int *known, int fd) {
    if (*known < 0)
        *known = fd;
    else {
        dup3(fd, *known, O_CLOEXEC);
        file_close(fd);
    }
}

static bool is_same(int a, int b) {
    struct stat of_a, of_b;
    return a >= 0 && b >= 0 && fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

static int open_directory(struct volume *volume, char *error, size_t error_bytes) {
    int fd, result = file_open_directory(AT_FDCWD, volume->settings.path, &fd);
    if (result < 0)
        return failed(volume, error, error_bytes, result, "cannot be opened",
                "create it, and make its owner the user weir runs as");
    if (is_same(fd, volume->directory)) {
        file_close(fd);
        return 0;
    }
    result = file_lock(fd);
    if (result == 0) {
        volume->has_moved = volume->directory >= 0;
        replace(&volume->directory, fd);
        return 0;
    }
    file_close(fd);
    return result == -EWOULDBLOCK ? failed(volume, error, error_bytes, result, "another process uses it",
                                            "give each its own directory")
                                  : failed(volume, error, error_bytes, result, "cannot be locked",
                                            "use a local file system");
}

static int make_super(struct volume *volume, bool first, char *error, size_t error_bytes) {
    if (first)
        volume->super = super_new(volume->settings.segment_bytes);
    int result = super_write(volume->directory, &volume->super);
    return result == 0 ? 0
                       : failed(volume, error, error_bytes, result, "its super block cannot be written",
                                 "look at the owner and the room of the file system");
}

static int set_aside(struct volume *volume, const char *why, char *error, size_t error_bytes) {
    int result = aside_take(volume->directory);
    if (result < 0)
        return failed(volume, error, error_bytes, result, "old content cannot be set aside", "delete it");
    log_warning("cache_dir %s: %s: starts empty; the old content is deleted in the background",
            volume->settings.path, why);
    return make_super(volume, true, error, error_bytes);
}

static int settle_super(struct volume *volume, bool first, char *error, size_t error_bytes) {
    struct super super;
    enum super_found found;
    int result = super_read(volume->directory, &super, &found);
    if (result < 0)
        return failed(volume, error, error_bytes, result, "its super block cannot be read",
                "look at the disk and at the owner");
    if (!first && found == SUPER_GOOD && super.uuid[0] == volume->super.uuid[0])
        return 0;
    if (!first && found != SUPER_NONE)
        return failed(volume, error, error_bytes, -EEXIST, "another volume lies there now", "restart weir");
    switch (found) {
    case SUPER_GOOD:
        volume->super = super;
        return 0;
    case SUPER_NONE:
        if (first && aside_is_needed(volume->directory))
            return set_aside(volume, "its super block is missing", error, error_bytes);
        return make_super(volume, first, error, error_bytes);
    case SUPER_FOREIGN:
        return set_aside(volume, "is in a format this version does not know", error, error_bytes);
    case SUPER_BROKEN:
        return set_aside(volume, "its super block is broken", error, error_bytes);
    }
    return 0;
}

static int open_shelves(struct volume *volume) {
    char name[NAME_BYTES];
    int seg, fd, result = file_open_directory(volume->directory, "seg", &seg);
    for (unsigned i = 0; i < VOLUME_SHELVES && result == 0; i++) {
        snprintf(name, sizeof name, "%02x", i);
        result = file_open_directory(seg, name, &fd);
        if (result == 0)
            replace(&volume->shelves[i], fd);
    }
    file_close(seg);
    return result;
}

int health_open_directory(struct volume *volume, char *error, size_t error_bytes) {
    bool first = volume->directory < 0;
    int result = open_directory(volume, error, error_bytes);
    if (result == 0)
        result = settle_super(volume, first, error, error_bytes);
    if (result < 0)
        return result;
    result = open_shelves(volume);
    return result == 0 ? 0
                       : failed(volume, error, error_bytes, result, "its directories cannot be made",
                                 "look at the owner and the room of the file system");
}

// ---- failures ----

// Under the lock.
static void leave(struct volume *volume, enum volume_state state, const char *doing, int error) {
    enum volume_state before = volume_state(volume);
    if (before == VOLUME_LOADING || before == VOLUME_BROKEN || before == state)
        return;
    atomic_store(&volume->state, state);
    volume->probe_at_ms = file_now_ms() + volume->settings.probe_ms;
    pthread_cond_broadcast(&volume->room);
    pthread_cond_signal(&volume->work);
    log_warning("cache_dir %s: %s: %s: %s; it is tried again every %u ms", volume->settings.path, doing,
            strerror(-error), state == VOLUME_BROKEN ? "not used any more" : "nothing is written any more",
            volume->settings.probe_ms);
}

// The file system has less than was thought: so much less is used, and reclaiming goes on from there.
static void lower_target(struct volume *volume, const char *doing, int error) {
    struct segments *pool = &volume->pool;
    uint64_t segment = volume->settings.segment_bytes;
    bool was_lowered = pool->target + volume->aside_bytes < pool->limit;
    uint64_t target = pool->used > segment ? pool->used - segment : 0;
    if (target < pool->target)
        pool->target = target;
    volume->probe_at_ms = file_now_ms() + volume->settings.probe_ms;
    if (pool->target < SEGMENTS_LEAST * segment)
        leave(volume, VOLUME_FULL, doing, error);
    else if (!was_lowered)
        log_warning("cache_dir %s: %s: %s: keeps to %llu bytes until there is more", volume->settings.path,
                doing, strerror(-error), (unsigned long long)pool->target);
}

static void count_error(struct volume *volume, const char *doing, int error) {
    int64_t now_ms = file_now_ms();
    if (volume->recent_errors == 0 || now_ms - volume->recent_since_ms > ERRORS_MS) {
        volume->recent_since_ms = now_ms;
        volume->recent_errors = 0;
        log_warning("cache_dir %s: %s: %s", volume->settings.path, doing, strerror(-error));
    }
    if (++volume->recent_errors >= ERRORS_MAX)
        leave(volume, VOLUME_BROKEN, doing, error);
}

static bool is_unwritable(int error) {
    return error == -EROFS || error == -EACCES || error == -EPERM || error == -ENOENT || error == -EMFILE ||
           error == -ENFILE || error == -EEXIST;
}

void health_failed(struct volume *volume, int error, const char *doing) {
    atomic_fetch_add_explicit(&volume->errors, 1, memory_order_relaxed);
    pthread_mutex_lock(&volume->lock);
    if (health_is_space(error))
        lower_target(volume, doing, error);
    else if (is_unwritable(error))
        leave(volume, VOLUME_FULL, doing, error);
    else
        count_error(volume, doing, error);
    pthread_cond_signal(&volume->work);
    pthread_mutex_unlock(&volume->lock);
}

// ---- coming back ----

static int try_file(int directory) {
    unsigned char written[PROBE_BYTES], read[PROBE_BYTES];
    int fd, result = file_open(directory, PROBE_NAME, O_RDWR | O_CREAT | O_TRUNC, &fd);
    if (result < 0)
        return result;
    memset(written, 0x5a, sizeof written);
    result = file_write_bytes(fd, 0, written, sizeof written);
    if (result == 0 && (result = file_sync_data(fd)) == 0)
        result = file_read(fd, 0, read, sizeof read);
    if (result == 0 && memcmp(written, read, sizeof read) != 0)
        result = -EIO;
    file_close(fd);
    int unlinked = file_unlink(directory, PROBE_NAME);
    return result < 0 ? result : unlinked;
}

// As much more as the file system has, but for a segment that is left to others.
static void raise_target(struct volume *volume, uint64_t room) {
    struct segments *pool = &volume->pool;
    uint64_t segment = append_reserve(volume), most = pool->limit - volume->aside_bytes;
    uint64_t target = pool->used + (room > segment ? room - segment : 0);
    if (volume->aside_bytes > pool->limit)
        most = 0;
    if (target > pool->target)
        pool->target = target < most ? target : most;
}

void health_probe(struct volume *volume) {
    char sentence[512];
    uint64_t room = 0;
    int result = health_open_directory(volume, sentence, sizeof sentence);
    if (volume->has_moved)
        reclaim_deleted(volume); // before anything is put: it would go with its segment
    volume->has_moved = false;
    if (result == 0)
        result = try_file(volume->directory);
    if (result == 0)
        result = file_room(volume->directory, &room);
    // What was purged meanwhile is written before anything is served, into whatever directory this is now.
    bool knows_purges = atomic_load(&volume->purges.newest) > 0 || atomic_load(&volume->purges.is_stale);
    if (result == 0 && knows_purges)
        result = purges_rewrite(volume);
    pthread_mutex_lock(&volume->lock);
    volume->probe_at_ms = file_now_ms() + volume->settings.probe_ms;
    if (result == 0) {
        raise_target(volume, room);
        bool is_short = volume->pool.target < SEGMENTS_LEAST * volume->settings.segment_bytes;
        if (volume_state(volume) != VOLUME_READY && !is_short) {
            volume->recent_errors = 0;
            atomic_store(&volume->state, VOLUME_READY);
            log_info("cache_dir %s: in use again", volume->settings.path);
        }
    }
    pthread_cond_broadcast(&volume->room);
    pthread_mutex_unlock(&volume->lock);
}
