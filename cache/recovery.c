// What a volume knows after a start: the index that was saved at a clean stop, or what the segments' tables
// of contents say, the newest first, and then the segments that were not sealed.
//
// The file `index`: 64 bytes of magic (8), format (4), segments (4), volume (8), sequence (8), next number
// (8), CRC32C of the list (4), zeros, CRC32C of the 60 bytes before (4); a list of 32 bytes a segment, each
// queue's newest first: number (8), bytes on the disk (8), slot (4), queue (1), zeros; then the table, and
// the ghosts.
#include "admin/log.h"
#include "cache/aside.h"
#include "cache/file.h"
#include "cache/little.h"
#include "cache/memory.h"
#include "cache/volume_own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INDEX_NAME "index"
#define INDEX_MAGIC "WEIRINDX"
#define INDEX_FORMAT 1
#define INDEX_HEADER_BYTES 64
#define VERSIONS_MAX 6 // records of one key that are entered: the latest
#define NAME_DIGITS_MIN 8

struct recovery {
    struct volume *volume;
    unsigned shelf;
    uint64_t *numbers; // of the segment files that are not entered yet
    uint64_t count, room;
    uint64_t bytes; // of those
};

// ---- which files there are ----

static int list_file(void *context, const char *name) {
    struct recovery *recovery = context;
    char *end;
    errno = 0;
    uint64_t number = strtoull(name, &end, 16);
    if (errno || *end || strlen(name) < NAME_DIGITS_MIN || number % VOLUME_SHELVES != recovery->shelf)
        return 0; // not a segment's name: nobody's of ours
    if (recovery->count == recovery->room) {
        recovery->room = recovery->room ? recovery->room * 2 : 256;
        uint64_t *numbers = memory_new(recovery->room * sizeof *numbers);
        memcpy(numbers, recovery->numbers ? recovery->numbers : numbers, recovery->count * sizeof *numbers);
        free(recovery->numbers);
        recovery->numbers = numbers;
    }
    recovery->numbers[recovery->count++] = number;
    return 0;
}

static int compare_newest_first(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? 1 : left > right ? -1 : 0;
}

static void list_files(struct recovery *recovery) {
    struct volume *volume = recovery->volume;
    for (recovery->shelf = 0; recovery->shelf < VOLUME_SHELVES; recovery->shelf++) {
        int error = file_list(volume->shelves[recovery->shelf], list_file, recovery);
        if (error < 0)
            health_failed(volume, error, "listing segments");
    }
    if (recovery->count > 0)
        qsort(recovery->numbers, recovery->count, sizeof *recovery->numbers, compare_newest_first);
    if (recovery->count > 0 && recovery->numbers[0] >= volume->next_number)
        volume->next_number = recovery->numbers[0] + 1;
}

static int shelf_of(const struct volume *volume, uint64_t number) {
    return volume->shelves[number % VOLUME_SHELVES];
}

static void delete_file(struct volume *volume, uint64_t number) {
    char name[24];
    snprintf(name, sizeof name, "%08llx", (unsigned long long)number);
    file_unlink(shelf_of(volume, number), name);
}

// ---- one segment ----

struct entries {
    struct segment_entry *list;
    uint64_t count, room;
};

static bool collect(void *context, const struct segment_entry *entry) {
    struct entries *entries = context;
    if (entries->count == entries->room) {
        entries->room = entries->room ? entries->room * 2 : 256;
        struct segment_entry *list = memory_new(entries->room * sizeof *list);
        memcpy(list, entries->list ? entries->list : list, entries->count * sizeof *list);
        free(entries->list);
        entries->list = list;
    }
    entries->list[entries->count++] = *entry;
    return true;
}

// The latest first; a key's older records than VERSIONS_MAX would only push others out.
static void enter_records(struct volume *volume, struct segment *segment, uint32_t slot, bool cut_off) {
    const unsigned most = cut_off ? TABLE_CANDIDATES_MAX - 1 : VERSIONS_MAX; // the newest come last
    struct table_entry found[TABLE_CANDIDATES_MAX];
    struct entries entries = {0};
    uint64_t lost;
    int error = segment_walk(segment, collect, &entries);
    if (error < 0)
        volume_complain(volume, error);
    while (entries.count > 0) {
        const struct segment_entry *entry = &entries.list[--entries.count];
        if (table_find(volume->table, entry->key, found) >= most)
            continue;
        uint64_t offset = (uint64_t)entry->offset * RECORD_ALIGNMENT;
        table_add(volume->table, entry->key, segments_location(slot, offset), &lost);
    }
    free(entries.list);
}

static void raise_sequence(struct volume *volume, uint64_t sequence) {
    if (sequence > atomic_load(&volume->sequence))
        atomic_store(&volume->sequence, sequence);
}

static bool place(struct volume *volume, struct segment *segment, bool oldest, uint32_t *slot) {
    uint64_t bytes = 0;
    enum segments_queue queue =
            segment_label(segment)->queue == SEGMENTS_MAIN ? SEGMENTS_MAIN : SEGMENTS_SMALL;
    segment_disk_bytes(segment, &bytes);
    pthread_mutex_lock(&volume->lock);
    *slot = segments_take_anyway(&volume->pool, bytes);
    if (*slot != SEGMENTS_SLOT_NONE && oldest)
        segments_enter_oldest(&volume->pool, *slot, segment, queue);
    else if (*slot != SEGMENTS_SLOT_NONE)
        segments_enter(&volume->pool, *slot, segment, queue, SEGMENTS_CLOSED);
    pthread_mutex_unlock(&volume->lock);
    raise_sequence(volume, segment_sequence(segment));
    return *slot != SEGMENTS_SLOT_NONE;
}

// A segment that was cut off: what can be read of it is sealed.
static bool close_cut_off(struct volume *volume, struct segment *segment) {
    int error = segment_recover(segment);
    if (segment_was_broken(segment))
        volume_complain(volume, -EBADMSG);
    if (error == 0 && segment_used(segment) > RECORD_HEADER_BYTES)
        error = segment_seal(segment);
    if (error < 0)
        health_failed(volume, error, "recovering a segment");
    return (error == 0 || health_is_space(error)) && segment_used(segment) > RECORD_HEADER_BYTES;
}

static void recover_segment(struct volume *volume, uint64_t number, bool cut_off) {
    int error;
    uint32_t slot;
    struct segment *segment = segment_open(shelf_of(volume, number), volume->super.uuid[0], number, &error);
    if (!segment) {
        volume_complain(volume, error);
        delete_file(volume, number);
        return;
    }
    if (segment_was_broken(segment))
        volume_complain(volume, -EBADMSG);
    cut_off = !segment_is_sealed(segment); // a read that failed may have said otherwise
    if ((!cut_off || close_cut_off(volume, segment)) && place(volume, segment, !cut_off, &slot)) {
        enter_records(volume, segment, slot, cut_off);
        return;
    }
    delete_file(volume, number);
    segment_put(segment);
}

static bool is_cut_off(struct volume *volume, uint64_t number) {
    int error;
    struct segment *segment = segment_open(shelf_of(volume, number), volume->super.uuid[0], number, &error);
    bool cut_off = segment && !segment_is_sealed(segment);
    if (segment)
        segment_put(segment);
    return cut_off;
}

static bool is_stopping(struct volume *volume) {
    pthread_mutex_lock(&volume->lock);
    bool stopping = volume->stopping;
    pthread_mutex_unlock(&volume->lock);
    return stopping;
}

// False when it was told to stop before the end.
static bool recover_segments(struct recovery *recovery) {
    uint64_t left = 0;
    for (uint64_t i = 0; i < recovery->count; i++) {
        if (is_stopping(recovery->volume))
            return false;
        if (is_cut_off(recovery->volume, recovery->numbers[i]))
            recovery->numbers[left++] = recovery->numbers[i];
        else
            recover_segment(recovery->volume, recovery->numbers[i], false);
    }
    while (left > 0) {
        if (is_stopping(recovery->volume))
            return false;
        recover_segment(recovery->volume, recovery->numbers[--left], true);
    }
    return true;
}

// ---- the saved index ----

static void encode_segment(const struct segments *pool, uint32_t slot, unsigned char *out) {
    const struct segment *segment = atomic_load(&pool->slots[slot].segment);
    little_put64(out, segment_label(segment)->number);
    little_put64(out + 8, pool->slots[slot].bytes);
    little_put32(out + 16, slot);
    out[20] = (unsigned char)pool->slots[slot].queue;
}

static unsigned char *encode_list(struct volume *volume, size_t *bytes) {
    const struct segments *pool = &volume->pool;
    uint64_t count = pool->lists[SEGMENTS_SMALL].count + pool->lists[SEGMENTS_MAIN].count;
    *bytes = INDEX_HEADER_BYTES + count * VOLUME_INDEX_ENTRY_BYTES;
    unsigned char *out = memory_new(*bytes), *at = out + INDEX_HEADER_BYTES;
    memset(out, 0, *bytes);
    for (unsigned i = 0; i < SEGMENTS_QUEUES; i++)
        for (uint32_t slot = pool->lists[i].newest; slot != SEGMENTS_SLOT_NONE;
                slot = pool->slots[slot].older) {
            encode_segment(pool, slot, at);
            at += VOLUME_INDEX_ENTRY_BYTES;
        }
    memcpy(out, INDEX_MAGIC, strlen(INDEX_MAGIC));
    little_put32(out + 8, INDEX_FORMAT);
    little_put32(out + 12, (uint32_t)count);
    little_put64(out + 16, volume->super.uuid[0]);
    little_put64(out + 24, atomic_load(&volume->sequence));
    little_put64(out + 32, volume->next_number);
    little_put32(out + 40, record_crc(out + INDEX_HEADER_BYTES, *bytes - INDEX_HEADER_BYTES));
    little_put32(out + 60, record_crc(out, 60));
    return out;
}

static int save_to(struct volume *volume, int fd) {
    size_t bytes;
    unsigned char *list = encode_list(volume, &bytes);
    int error = file_write_bytes(fd, 0, list, bytes);
    free(list);
    if (error == 0 && lseek(fd, (off_t)bytes, SEEK_SET) < 0)
        error = -errno;
    if (error == 0)
        error = table_save(volume->table, fd);
    off_t at = error == 0 ? lseek(fd, 0, SEEK_CUR) : 0;
    uint64_t ghosts_at = at < 0 ? 0 : (uint64_t)at;
    if (error == 0)
        error = at < 0 ? -errno : ghosts_save(volume->ghosts, fd, &ghosts_at);
    return error == 0 ? file_sync(fd) : error;
}

int recovery_save(struct volume *volume) {
    int fd, error = file_open(volume->directory, INDEX_NAME, O_RDWR | O_CREAT | O_TRUNC, &fd);
    if (error < 0)
        return error;
    error = save_to(volume, fd);
    file_close(fd);
    if (error < 0)
        file_unlink(volume->directory, INDEX_NAME);
    return error;
}

static bool is_good_header(const struct volume *volume, const unsigned char *header) {
    return memcmp(header, INDEX_MAGIC, strlen(INDEX_MAGIC)) == 0 &&
           little_get32(header + 60) == record_crc(header, 60) && little_get32(header + 8) == INDEX_FORMAT &&
           little_get64(header + 16) == volume->super.uuid[0] &&
           little_get32(header + 12) <= volume->pool.slot_count;
}

// The list, NULL when it is not what was saved. Freed by the caller.
static unsigned char *load_list(struct volume *volume, int fd, unsigned char *header, size_t *bytes) {
    if (file_read(fd, 0, header, INDEX_HEADER_BYTES) < 0 || !is_good_header(volume, header))
        return NULL;
    *bytes = (size_t)little_get32(header + 12) * VOLUME_INDEX_ENTRY_BYTES;
    unsigned char *list = memory_new(*bytes + 1);
    if (file_read(fd, INDEX_HEADER_BYTES, list, *bytes) == 0 &&
            record_crc(list, *bytes) == little_get32(header + 40))
        return list;
    free(list);
    return NULL;
}

// Where it is in `numbers`; `count` when there is no such file.
static uint64_t place_of(const struct recovery *recovery, uint64_t number) {
    for (uint64_t low = 0, high = recovery->count; low < high;) {
        uint64_t middle = (low + high) / 2;
        if (recovery->numbers[middle] == number)
            return middle;
        *(recovery->numbers[middle] > number ? &low : &high) =
                recovery->numbers[middle] > number ? middle + 1 : middle;
    }
    return recovery->count;
}

static void forget_place(struct recovery *recovery, uint64_t place) {
    recovery->count--;
    memmove(&recovery->numbers[place], &recovery->numbers[place + 1],
            (recovery->count - place) * sizeof *recovery->numbers);
}

// A segment that the saved index knows, in the slot it had. False: its entries lead nowhere, and what can be
// made of its file is found later.
static bool open_listed(struct recovery *recovery, const unsigned char *listed) {
    struct volume *volume = recovery->volume;
    uint64_t number = little_get64(listed), at = place_of(recovery, number);
    uint32_t slot = little_get32(listed + 16);
    int error;
    if (at == recovery->count)
        return false;
    struct segment *segment = segment_open(shelf_of(volume, number), volume->super.uuid[0], number, &error);
    if (!segment)
        return false;
    pthread_mutex_lock(&volume->lock);
    bool taken =
            segment_is_sealed(segment) && segments_take_slot(&volume->pool, slot, little_get64(listed + 8));
    if (taken)
        segments_enter_oldest(
                &volume->pool, slot, segment, listed[20] == SEGMENTS_MAIN ? SEGMENTS_MAIN : SEGMENTS_SMALL);
    pthread_mutex_unlock(&volume->lock);
    if (taken)
        forget_place(recovery, at);
    else
        segment_put(segment);
    return taken;
}

static bool load_from(struct recovery *recovery, int fd) {
    struct volume *volume = recovery->volume;
    unsigned char header[INDEX_HEADER_BYTES];
    size_t bytes;
    unsigned char *list = load_list(volume, fd, header, &bytes);
    if (!list)
        return false;
    bool good = lseek(fd, (off_t)(INDEX_HEADER_BYTES + bytes), SEEK_SET) >= 0 &&
                table_load(volume->table, fd) == 0;
    off_t ghosts_at = good ? lseek(fd, 0, SEEK_CUR) : -1;
    if (ghosts_at >= 0)
        ghosts_load(volume->ghosts, fd, (uint64_t)ghosts_at); // of no use: there are none
    if (good) {
        raise_sequence(volume, little_get64(header + 24));
        if (little_get64(header + 32) > volume->next_number)
            volume->next_number = little_get64(header + 32);
    }
    for (size_t at = 0; good && at < bytes; at += VOLUME_INDEX_ENTRY_BYTES) {
        uint32_t slot = little_get32(list + at + 16);
        if (!open_listed(recovery, list + at))
            table_forget(volume->table, segments_location(slot, 0), segments_location(slot + 1, 0) - 1);
    }
    free(list);
    return good;
}

static void load_index(struct recovery *recovery) {
    struct volume *volume = recovery->volume;
    int fd, error = file_open(volume->directory, INDEX_NAME, O_RDONLY, &fd);
    if (error == -ENOENT)
        return;
    if (error < 0) {
        health_failed(volume, error, "opening the index");
        return;
    }
    if (!load_from(recovery, fd)) {
        volume_complain(volume, -EBADMSG);
        log_warning("cache_dir %s: the saved index is of no use; reads the segments", volume->settings.path);
    }
    file_close(fd);
}

static void measure_aside(struct volume *volume) {
    uint64_t bytes = aside_bytes(volume->directory);
    pthread_mutex_lock(&volume->lock);
    volume->aside_bytes = bytes;
    volume->pool.target = volume->pool.limit > bytes ? volume->pool.limit - bytes : 0;
    pthread_mutex_unlock(&volume->lock);
}

void recovery_run(struct volume *volume) {
    struct recovery recovery = {.volume = volume};
    measure_aside(volume);
    list_files(&recovery);
    load_index(&recovery);
    // It is out of date with the first record that is put.
    int error = file_unlink(volume->directory, INDEX_NAME);
    if (error < 0 && error != -ENOENT)
        health_failed(volume, error, "deleting the saved index");
    bool done = recover_segments(&recovery);
    free(recovery.numbers);
    pthread_mutex_lock(&volume->lock);
    if (done)
        atomic_store(&volume->state, VOLUME_READY);
    pthread_mutex_unlock(&volume->lock);
    if (done) { // after the state: a purge that came before is pending, and settled here
        purges_settle(volume);
        purges_retire(volume);
    }
}
