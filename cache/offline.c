#include "cache/offline.h"

#include "cache/file.h"
#include "cache/memory.h"
#include "cache/offline_own.h"
#include "cache/offline_purge.h"
#include "cache/saved_index.h"
#include "cache/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_BYTES (4 << 20)
#define NAME_DIGITS_MIN 8
_Static_assert(WINDOW_BYTES >= SEGMENT_RECORD_MAXIMUM, "a record fits into the window");

static struct offline *failed(int directory, char *error, size_t error_bytes, const char *path,
        const char *what, const char *advice) {
    snprintf(error, error_bytes, "%s: %s; %s", path, what, advice);
    file_close(directory);
    return NULL;
}

static const char *advice_on(int result, const char *usual) {
    return result == -EACCES || result == -EPERM ? "run it as root or as the directory's owner" : usual;
}

static const char *super_trouble(const enum super_found copies[static SUPER_COPIES]) {
    for (unsigned i = 0; i < SUPER_COPIES; i++)
        if (copies[i] == SUPER_GOOD)
            return NULL;
    for (unsigned i = 0; i < SUPER_COPIES; i++)
        if (copies[i] == SUPER_FOREIGN)
            return "it is in a format that this version does not know";
    return copies[0] == SUPER_NONE ? "no store lies there, its super block is missing"
                                   : "both copies of its super block are broken";
}

static const char *super_advice(const enum super_found copies[static SUPER_COPIES]) {
    if (copies[0] == SUPER_NONE && copies[1] == SUPER_NONE)
        return "name a directory that a cache_dir line of the configuration names";
    if (copies[0] == SUPER_FOREIGN || copies[1] == SUPER_FOREIGN)
        return "use the version of weir that wrote it";
    return "nothing in it can be found any more: empty the directory";
}

struct offline *offline_open(const char *path, char *error, size_t error_bytes) {
    struct stat status;
    struct super super;
    enum super_found copies[SUPER_COPIES];
    int directory = -1, result = file_status(AT_FDCWD, path, &status);
    if (result == 0 && !S_ISDIR(status.st_mode))
        result = -ENOTDIR;
    if (result == 0)
        result = file_open_directory(AT_FDCWD, path, &directory);
    if (result < 0)
        return failed(-1, error, error_bytes, path, strerror(-result),
                advice_on(result, "name the directory of a volume"));
    result = file_lock(directory);
    if (result == -EWOULDBLOCK)
        return failed(directory, error, error_bytes, path, "another process uses it, a running weir perhaps",
                "stop that first: weir stop");
    if (result < 0)
        return failed(directory, error, error_bytes, path, strerror(-result), "it cannot be locked");
    result = super_look(directory, &super, copies);
    if (result < 0)
        return failed(directory, error, error_bytes, path, strerror(-result),
                advice_on(result, "its super block cannot be read: look at the disk"));
    if (super_trouble(copies))
        return failed(directory, error, error_bytes, path, super_trouble(copies), super_advice(copies));
    struct offline *offline = memory_new(sizeof *offline);
    *offline = (struct offline){.directory = directory, .super = super};
    memcpy(offline->copies, copies, sizeof copies);
    offline->window = memory_new(WINDOW_BYTES);
    return offline;
}

bool offline_is_empty(const char *path) {
    struct stat status;
    struct super super;
    enum super_found copies[SUPER_COPIES];
    int directory, error = file_status(AT_FDCWD, path, &status);
    if (error < 0)
        return error == -ENOENT;
    if (!S_ISDIR(status.st_mode) || file_open_directory(AT_FDCWD, path, &directory) < 0)
        return false;
    error = super_look(directory, &super, copies);
    file_close(directory);
    return error == 0 && copies[0] == SUPER_NONE && copies[1] == SUPER_NONE;
}

void offline_close(struct offline *offline) {
    file_close(offline->directory);
    free(offline->window);
    free(offline->numbers);
    free(offline);
}

const struct super *offline_super(const struct offline *offline) {
    return &offline->super;
}

int offline_directory(const struct offline *offline) {
    return offline->directory;
}

// ---- which files there are ----

void offline_name(uint64_t number, char out[static OFFLINE_NAME_BYTES]) {
    snprintf(out, OFFLINE_NAME_BYTES, "seg/%02x/%08llx", (unsigned)(number % OFFLINE_SHELVES),
            (unsigned long long)number);
}

struct listing {
    struct offline *offline;
    unsigned shelf;
};

static int list_file(void *context, const char *name) {
    struct listing *listing = context;
    struct offline *offline = listing->offline;
    char *end, own[OFFLINE_NAME_BYTES];
    errno = 0;
    uint64_t number = strtoull(name, &end, 16);
    offline_name(number, own);
    if (errno || *end || number % OFFLINE_SHELVES != listing->shelf ||
            strcmp(strrchr(own, '/') + 1, name) != 0)
        return 0; // not a segment's name
    if (offline->count == offline->room) {
        offline->room = offline->room ? offline->room * 2 : 256;
        uint64_t *numbers = memory_new(offline->room * sizeof *numbers);
        if (offline->count)
            memcpy(numbers, offline->numbers, offline->count * sizeof *numbers);
        free(offline->numbers);
        offline->numbers = numbers;
    }
    offline->numbers[offline->count++] = number;
    return 0;
}

static int compare_newest_first(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? 1 : left > right ? -1 : 0;
}

int offline_list(struct offline *offline) {
    struct listing listing = {.offline = offline};
    offline->count = 0;
    for (; listing.shelf < OFFLINE_SHELVES; listing.shelf++) {
        char name[16];
        struct stat status;
        int fd = -1;
        snprintf(name, sizeof name, "seg/%02x", listing.shelf);
        int error = file_status(offline->directory, name, &status);
        if (error == -ENOENT)
            continue;
        if (error == 0)
            error = file_open_directory(offline->directory, name, &fd);
        if (error < 0)
            return error;
        error = file_list(fd, list_file, &listing);
        file_close(fd);
        if (error < 0)
            return error;
    }
    if (offline->count > 0)
        qsort(offline->numbers, offline->count, sizeof *offline->numbers, compare_newest_first);
    return 0;
}

// ---- the whole ----

int offline_walk(struct offline *offline, const struct offline_watch *watch, struct offline_count *count) {
    *count = (struct offline_count){0};
    int error = offline_list(offline);
    for (uint64_t i = 0; i < offline->count && error == 0; i++) {
        struct scan scan = {
                .offline = offline, .watch = watch, .totals = count, .number = offline->numbers[i]};
        offline_scan(&scan); // what it cannot read it tells of
        count->segments++;
        if (scan.is_over)
            break;
    }
    return error;
}

static void tell(const struct offline_watch *watch, struct offline_count *count, const char *file,
        uint64_t offset, const char *what) {
    count->problems++;
    if (watch->tell)
        watch->tell(watch->context, file, offset, what);
}

static void check_index(
        struct offline *offline, const struct offline_watch *watch, struct offline_count *count) {
    int error;
    uint64_t segment;
    struct saved_index *index = saved_index_read(offline->directory, offline->super.uuid[0], &error);
    if (!index && error != -ENOENT)
        tell(watch, count, "index", 0, error == -EBADMSG ? "it is not what was saved" : "it cannot be read");
    for (uint32_t i = 0; index && saved_index_segment(index, i, &segment); i++)
        if (!bsearch(&segment, offline->numbers, offline->count, sizeof segment, compare_newest_first))
            tell(watch, count, "index", 0, "it lists a segment that is not there");
    saved_index_free(index);
}

static void check_purges(
        struct offline *offline, const struct offline_watch *watch, struct offline_count *count) {
    bool is_good;
    purge_free(offline_purges(offline, &is_good));
    if (!is_good)
        tell(watch, count, OFFLINE_PURGES, 0, "the journal of purges is broken, or another volume's");
}

int offline_check(struct offline *offline, const struct offline_watch *watch, struct offline_count *count) {
    int error = offline_walk(offline, watch, count);
    for (unsigned i = 0; i < SUPER_COPIES; i++)
        if (offline->copies[i] != SUPER_GOOD)
            tell(watch, count, "super", (uint64_t)i * SUPER_COPY_AT,
                    "this copy of the super block is broken");
    check_purges(offline, watch, count);
    if (error == 0)
        check_index(offline, watch, count);
    return error;
}

int offline_read(struct offline *offline, uint64_t segment, uint64_t offset, unsigned char *out,
        struct record *record) {
    char name[OFFLINE_NAME_BYTES];
    int fd;
    offline_name(segment, name);
    int error = file_open(offline->directory, name, O_RDONLY, &fd);
    if (error < 0)
        return error;
    error = file_read(fd, offset, out, RECORD_HEADER_BYTES);
    if (error == 0 && record_decode(out, record) != RECORD_OK)
        error = -EBADMSG;
    if (error == 0)
        error = file_read(fd, offset + RECORD_HEADER_BYTES, out + RECORD_HEADER_BYTES,
                record_bytes(record->head_bytes, record->body_bytes) - RECORD_HEADER_BYTES);
    file_close(fd);
    if (error < 0)
        return error;
    const unsigned char *body = out + record_body_at(record->head_bytes, record->body_bytes);
    bool good = record_check_head(record, out + RECORD_HEADER_BYTES) &&
                record_check_body(out + RECORD_HEADER_BYTES + record->head_bytes, record->body_bytes, 0, body,
                        record->body_bytes);
    return good ? 0 : -EBADMSG;
}
