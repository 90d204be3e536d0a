#include "cache/file.h"
#include "cache/memory.h"
#include "cache/offline_own.h"
#include "cache/offline_purge.h"
#include "cache/saved_index.h"
#include "cache/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define WORKSHOP "repair" // where segments are written anew

struct copying {
    struct segment *segment;
    int error;
};

static bool copy_record(void *context, const struct offline_record *found) {
    struct copying *copying = context;
    struct iovec payload = {(void *)(found->bytes + RECORD_HEADER_BYTES),
            record_body_at(found->record.head_bytes, found->record.body_bytes) + found->record.body_bytes -
                    RECORD_HEADER_BYTES};
    uint64_t offset;
    copying->error =
            segment_append(copying->segment, &found->record, &payload, payload.iov_len ? 1 : 0, &offset);
    return copying->error == 0;
}

static void tell(const struct offline_watch *watch, const char *file, const char *what) {
    if (watch->tell)
        watch->tell(watch->context, file, 0, what);
}

static void name_in_workshop(uint64_t number, char out[static OFFLINE_NAME_BYTES]) {
    snprintf(out, OFFLINE_NAME_BYTES, WORKSHOP "/%08llx", (unsigned long long)number);
}

static int copy_good(struct scan *old, int workshop) {
    struct segment_label label = {
            .volume = old->offline->super.uuid[0], .number = old->number, .queue = old->queue};
    // The records it has, and a table of contents, which it may have had no room for.
    uint64_t bytes = old->size + (old->records + 4) * SEGMENT_ENTRY_BYTES + 4 * (uint64_t)RECORD_ALIGNMENT;
    struct copying copying = {0};
    struct offline_watch watch = {.visit = copy_record, .context = &copying};
    struct offline_count totals = {0};
    struct scan again = {.offline = old->offline, .watch = &watch, .totals = &totals, .number = old->number};
    if (bytes > SEGMENT_BYTES_MAXIMUM)
        bytes = SEGMENT_BYTES_MAXIMUM;
    copying.segment = segment_create(workshop, &label, bytes, &copying.error);
    if (!copying.segment)
        return copying.error;
    int error = offline_scan(&again);
    if (error == 0)
        error = copying.error;
    if (error == 0 && again.records != old->records)
        error = -EIO; // it reads differently now: the disk is dying
    if (error == 0)
        error = segment_seal(copying.segment);
    segment_put(copying.segment);
    return error;
}

static int sync_shelf(struct offline *offline, uint64_t number) {
    char name[16];
    int fd;
    snprintf(name, sizeof name, "seg/%02x", (unsigned)(number % OFFLINE_SHELVES));
    int error = file_open_directory(offline->directory, name, &fd);
    if (error < 0)
        return error;
    error = file_sync(fd);
    file_close(fd);
    return error;
}

static int write_anew(struct scan *old, int workshop) {
    char name[OFFLINE_NAME_BYTES];
    struct offline *offline = old->offline;
    name_in_workshop(old->number, name);
    file_unlink(offline->directory, name);
    int error = copy_good(old, workshop);
    if (error == 0)
        error = file_rename(offline->directory, name, offline->directory, old->file);
    if (error < 0)
        file_unlink(offline->directory, name);
    return error;
}

static int mend_segment(struct scan *old, int workshop) {
    bool is_empty = old->records == 0;
    int error = is_empty ? file_unlink(old->offline->directory, old->file) : write_anew(old, workshop);
    if (error == 0)
        error = sync_shelf(old->offline, old->number);
    if (error < 0)
        tell(old->watch, old->file, "it cannot be mended and is as it was");
    else
        tell(old->watch, old->file,
                is_empty ? "deleted: there was no good record in it" : "written anew with its good records");
    return error;
}

static int mend_segments(struct offline *offline, const struct offline_watch *watch,
        struct offline_count *count, int workshop) {
    const struct offline_watch telling = {.tell = watch->tell, .context = watch->context};
    int first = 0;
    for (uint64_t i = 0; i < offline->count; i++) {
        struct scan scan = {
                .offline = offline, .watch = &telling, .totals = count, .number = offline->numbers[i]};
        int error = offline_scan(&scan);
        count->segments++;
        if (error == 0 && scan.problems > 0)
            error = mend_segment(&scan, workshop);
        if (error < 0 && first == 0)
            first = error;
    }
    return first;
}

static int remove_leftover(void *context, const char *name) {
    file_unlink(*(int *)context, name);
    return 0;
}

static int open_workshop(struct offline *offline, int *workshop) {
    int error = file_open_directory(offline->directory, WORKSHOP, workshop);
    return error < 0 ? error : file_list(*workshop, remove_leftover, workshop);
}

static int mend_super(
        struct offline *offline, const struct offline_watch *watch, struct offline_count *count) {
    bool is_whole = true;
    for (unsigned i = 0; i < SUPER_COPIES; i++)
        is_whole = is_whole && offline->copies[i] == SUPER_GOOD;
    if (is_whole)
        return 0;
    count->problems++;
    int error = super_write(offline->directory, &offline->super);
    tell(watch, "super",
            error < 0 ? "a copy is broken and cannot be written" : "the broken copy was written anew");
    if (error == 0)
        for (unsigned i = 0; i < SUPER_COPIES; i++)
            offline->copies[i] = SUPER_GOOD;
    return error;
}

static bool is_good_index(struct offline *offline) {
    int error;
    uint64_t segment;
    struct saved_index *index = saved_index_read(offline->directory, offline->super.uuid[0], &error);
    bool good = index || error == -ENOENT;
    for (uint32_t i = 0; index && good && saved_index_segment(index, i, &segment); i++) {
        char name[OFFLINE_NAME_BYTES];
        struct stat status;
        offline_name(segment, name);
        good = file_status(offline->directory, name, &status) == 0;
    }
    saved_index_free(index);
    return good;
}

// Of no use once a record lies elsewhere.
static int mend_index(struct offline *offline, const struct offline_watch *watch, struct offline_count *count,
        bool is_stale) {
    bool is_good = is_good_index(offline);
    count->problems += !is_good;
    if (is_good && !is_stale)
        return 0;
    int error = file_unlink(offline->directory, "index");
    if (error == -ENOENT)
        return 0;
    tell(watch, "index", error < 0 ? "it cannot be deleted" : "deleted: the next start makes it anew");
    return error;
}

// What can be read of it; where it cannot be, everything up to then counts as purged.
static int mend_purges(
        struct offline *offline, const struct offline_watch *watch, struct offline_count *count) {
    bool is_good;
    struct purge *purge = offline_purges(offline, &is_good);
    int error = is_good ? 0 : offline_write_purges(offline, purge);
    purge_free(purge);
    if (is_good)
        return 0;
    count->problems++;
    tell(watch, OFFLINE_PURGES, error < 0 ? "it is broken and cannot be written" : "written anew");
    return error;
}

int offline_repair(struct offline *offline, const struct offline_watch *watch, struct offline_count *count) {
    int workshop;
    *count = (struct offline_count){0};
    int error = open_workshop(offline, &workshop);
    if (error == 0)
        error = offline_list(offline);
    if (error == 0) {
        error = mend_segments(offline, watch, count, workshop);
        int of_index = mend_index(offline, watch, count, count->problems > 0);
        int of_super = mend_super(offline, watch, count), of_purges = mend_purges(offline, watch, count);
        error = error ? error : of_index ? of_index : of_super ? of_super : of_purges;
    }
    file_close(workshop);
    file_remove_directory(offline->directory, WORKSHOP);
    return error;
}
