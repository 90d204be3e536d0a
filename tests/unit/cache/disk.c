#include "tests/unit/cache/disk.h"

#include "tests/unit/unit.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HEAD_MAX 200

static __thread uint64_t usage;

char *scratch_new(void) {
    const char *parent = getenv("TMPDIR");
    char *path = NULL;
    CU_ASSERT_FATAL(asprintf(&path, "%s/weir-volume-XXXXXX", parent ? parent : "/tmp") > 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(path));
    return path;
}

static int delete_one(const char *path, const struct stat *stat, int type, struct FTW *place) {
    (void)stat, (void)type, (void)place;
    return remove(path) < 0 && errno != ENOENT;
}

void scratch_free(char *path) {
    nftw(path, delete_one, 16, FTW_DEPTH | FTW_PHYS);
    free(path);
}

static int add_one(const char *path, const struct stat *stat, int type, struct FTW *place) {
    (void)path, (void)place;
    if (type != FTW_NS)
        usage += (uint64_t)stat->st_blocks * 512;
    return 0;
}

uint64_t disk_usage(const char *path) {
    usage = 0;
    nftw(path, add_one, 16, FTW_PHYS);
    return usage;
}

uint64_t disk_random(uint64_t *state) {
    uint64_t bits = *state += UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
    return bits ^ bits >> 31;
}

struct cache_key disk_key(uint64_t id) {
    uint64_t state = id;
    return (struct cache_key){id, disk_random(&state)};
}

bool disk_leave(struct volume *volume, enum volume_state state) {
    struct volume_stats stats;
    for (int i = 0; i < 10000; i++) {
        volume_stats(volume, &stats);
        if (stats.state != state)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return false;
}

struct volume *disk_open(const struct volume_settings *settings) {
    char error[512] = "";
    struct volume *volume = volume_open(settings, error, sizeof error);
    if (!volume)
        fprintf(stderr, "%s\n", error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(volume);
    CU_ASSERT_TRUE(disk_leave(volume, VOLUME_LOADING));
    return volume;
}

static void fill(uint64_t id, uint64_t salt, unsigned char *out, size_t length) {
    uint64_t state = id * 31 + salt;
    for (size_t i = 0; i < length; i += sizeof state) {
        uint64_t bits = disk_random(&state);
        memcpy(out + i, &bits, length - i < sizeof bits ? length - i : sizeof bits);
    }
}

int disk_put(struct volume *volume, uint64_t id, uint32_t body_bytes) {
    unsigned char head[HEAD_MAX], crcs[64], *body = malloc(body_bytes + 1);
    struct record record = {.type = RECORD_HEAD, .key = disk_key(id), .generation = id, .number = 7};
    fill(id, 1, head, id % HEAD_MAX);
    fill(id, 2, body, body_bytes);
    record_set_head(&record, head, id % HEAD_MAX);
    record.body_bytes = body_bytes;
    record_write_crcs(body, body_bytes, crcs);
    struct iovec payload[] = {
            {head, record.head_bytes}, {crcs, record_crcs_bytes(body_bytes)}, {body, body_bytes}};
    int error = volume_put(volume, &record, payload, 3);
    free(body);
    return error;
}

bool disk_put_surely(struct volume *volume, uint64_t id, uint32_t body_bytes) {
    int error = -ENOSPC;
    for (int i = 0; i < 600 && (error == -ENOSPC || error == -EAGAIN); i++)
        error = disk_put(volume, id, body_bytes);
    return error == 0;
}

bool disk_is_right(const struct record *record, const unsigned char *bytes) {
    uint64_t id = record->key.low;
    unsigned char *wanted = malloc(record->body_bytes + HEAD_MAX);
    fill(id, 1, wanted, id % HEAD_MAX);
    bool right = record->head_bytes == id % HEAD_MAX && record->generation == id && record->number == 7 &&
                 key_equal(record->key, disk_key(id)) &&
                 memcmp(wanted, bytes + RECORD_HEADER_BYTES, record->head_bytes) == 0;
    fill(id, 2, wanted, record->body_bytes);
    right = right && memcmp(wanted, bytes + record_body_at(record->head_bytes, record->body_bytes),
                             record->body_bytes) == 0;
    free(wanted);
    return right;
}

static enum disk_found look(struct volume *volume, struct cache_key key, const struct volume_place *place,
        unsigned char *buffer, uint32_t *bytes) {
    struct record record;
    int error = segment_read_record(place->segment, place->offset, buffer, &record);
    if (error == 0 && !key_equal(record.key, key))
        return DISK_MISS;
    if (error < 0) {
        volume_drop(volume, key, place->location);
        volume_complain(volume, error == -ENODATA ? -EBADMSG : error);
        return DISK_MISS;
    }
    *bytes = record.body_bytes;
    return disk_is_right(&record, buffer) ? DISK_RIGHT : DISK_WRONG;
}

static enum disk_found find(struct volume *volume, uint64_t id, uint32_t *bytes, bool hits) {
    struct volume_place places[TABLE_CANDIDATES_MAX];
    unsigned count = volume_find(volume, disk_key(id), places);
    unsigned char *buffer = malloc(SEGMENT_RECORD_MAXIMUM);
    enum disk_found found = DISK_MISS;
    for (unsigned i = 0; i < count; i++) {
        if (found == DISK_MISS) {
            found = look(volume, disk_key(id), &places[i], buffer, bytes);
            if (found != DISK_MISS && hits)
                volume_hit(volume, disk_key(id), places[i].location);
        }
        segment_put(places[i].segment);
    }
    free(buffer);
    return found;
}

enum disk_found disk_find(struct volume *volume, uint64_t id, uint32_t *bytes) {
    return find(volume, id, bytes, true);
}

enum disk_found disk_peek(struct volume *volume, uint64_t id, uint32_t *bytes) {
    return find(volume, id, bytes, false);
}
