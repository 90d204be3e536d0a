// A disk that fails: each system call of a volume in turn, in every way it can.
#include "cache/file.h"
#include "cache/volume.h"
#include "tests/unit/cache/disk.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MIB (1 << 20)

enum call {
    OPEN,
    READ,
    WRITE,
    SYNC_DATA,
    SYNC,
    ALLOCATE,
    TRUNCATE,
    FSTAT,
    FSTATAT,
    FSTATVFS,
    UNLINK,
    MKDIR,
    RENAME,
    CALLS,
};

enum way { FAILS, FALLS_SHORT, IS_SLOW };

static struct {
    _Atomic int call, error; // CALLS: none
    _Atomic unsigned one_in; // of those calls
    _Atomic unsigned way;
    _Atomic uint64_t count, struck;
} fault = {.call = CALLS};

static bool strikes(enum call call) {
    if (atomic_load(&fault.call) != (int)call)
        return false;
    if (atomic_fetch_add(&fault.count, 1) % atomic_load(&fault.one_in) != 0)
        return false;
    atomic_fetch_add(&fault.struck, 1);
    if (atomic_load(&fault.way) == IS_SLOW)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    return atomic_load(&fault.way) == FAILS;
}

static bool falls_short(enum call call) {
    return atomic_load(&fault.way) == FALLS_SHORT && atomic_load(&fault.call) == (int)call;
}

static int failure(void) {
    errno = atomic_load(&fault.error);
    return -1;
}

static int faulty_open(int directory, const char *name, int flags, mode_t mode) {
    return strikes(OPEN) ? failure() : file_system.openat(directory, name, flags, mode);
}

static ssize_t faulty_read(int fd, const struct iovec *parts, int count, off_t at, int flags) {
    if (strikes(READ))
        return failure();
    struct iovec half = {parts->iov_base, parts->iov_len > 1 ? parts->iov_len / 2 : parts->iov_len};
    return falls_short(READ) ? file_system.preadv2(fd, &half, 1, at, flags)
                             : file_system.preadv2(fd, parts, count, at, flags);
}

static ssize_t faulty_write(int fd, const struct iovec *parts, int count, off_t at) {
    struct iovec half = {parts->iov_base, parts->iov_len > 1 ? parts->iov_len / 2 : parts->iov_len};
    if (strikes(WRITE)) {
        file_system.pwritev(fd, &half, 1, at); // some of it may have got there
        return failure();
    }
    return falls_short(WRITE) ? file_system.pwritev(fd, &half, 1, at)
                              : file_system.pwritev(fd, parts, count, at);
}

static int faulty_sync_data(int fd) {
    return strikes(SYNC_DATA) ? failure() : file_system.fdatasync(fd);
}

static int faulty_sync(int fd) {
    return strikes(SYNC) ? failure() : file_system.fsync(fd);
}

static int faulty_allocate(int fd, int mode, off_t at, off_t bytes) {
    return strikes(ALLOCATE) ? failure() : file_system.fallocate(fd, mode, at, bytes);
}

static int faulty_truncate(int fd, off_t bytes) {
    return strikes(TRUNCATE) ? failure() : file_system.ftruncate(fd, bytes);
}

static int faulty_fstat(int fd, struct stat *stat) {
    return strikes(FSTAT) ? failure() : file_system.fstat(fd, stat);
}

static int faulty_fstatat(int directory, const char *name, struct stat *stat, int flags) {
    return strikes(FSTATAT) ? failure() : file_system.fstatat(directory, name, stat, flags);
}

static int faulty_fstatvfs(int fd, struct statvfs *stat) {
    return strikes(FSTATVFS) ? failure() : file_system.fstatvfs(fd, stat);
}

static int faulty_unlink(int directory, const char *name, int flags) {
    return strikes(UNLINK) ? failure() : file_system.unlinkat(directory, name, flags);
}

static int faulty_mkdir(int directory, const char *name, mode_t mode) {
    return strikes(MKDIR) ? failure() : file_system.mkdirat(directory, name, mode);
}

static int faulty_rename(int from, const char *name, int to, const char *new_name) {
    return strikes(RENAME) ? failure() : file_system.renameat(from, name, to, new_name);
}

static int real_lock(int fd, int operation) {
    return file_system.flock(fd, operation);
}

static const struct file_calls faulty = {
        .openat = faulty_open,
        .preadv2 = faulty_read,
        .pwritev = faulty_write,
        .fdatasync = faulty_sync_data,
        .fsync = faulty_sync,
        .fallocate = faulty_allocate,
        .ftruncate = faulty_truncate,
        .fstat = faulty_fstat,
        .fstatat = faulty_fstatat,
        .fstatvfs = faulty_fstatvfs,
        .unlinkat = faulty_unlink,
        .mkdirat = faulty_mkdir,
        .renameat = faulty_rename,
        .flock = real_lock,
};

static void set_fault(enum call call, enum way way, int error, unsigned one_in) {
    atomic_store(&fault.error, error);
    atomic_store(&fault.way, way);
    atomic_store(&fault.one_in, one_in);
    atomic_store(&fault.count, 0);
    atomic_store(&fault.call, call);
}

static void set_none(void) {
    atomic_store(&fault.call, CALLS);
    atomic_store(&fault.way, FAILS);
}

// ---- what is done meanwhile ----

static uint64_t next_id = 1;

static uint32_t size_of(uint64_t id) {
    return (uint32_t)(disk_random(&id) % 20000);
}

static bool put_next(struct volume *volume) {
    uint64_t id = next_id++;
    return disk_put(volume, id, size_of(id)) == 0;
}

static void find_some(struct volume *volume, unsigned count) {
    for (uint64_t id = next_id > count ? next_id - count : 1; id < next_id; id++) {
        uint32_t bytes = 0;
        enum disk_found found = disk_find(volume, id, &bytes);
        CU_ASSERT_NOT_EQUAL(found, DISK_WRONG);
        if (found == DISK_RIGHT)
            CU_ASSERT_EQUAL(bytes, size_of(id));
    }
}

static void work(struct volume *volume, unsigned puts) {
    for (unsigned i = 0; i < puts; i++) {
        put_next(volume);
        if (i % 8 == 0)
            find_some(volume, 20);
    }
}

// All right again: what is put is found, within a few seconds.
static bool recovers(struct volume *volume) {
    for (int i = 0; i < 5000; i++) {
        uint32_t bytes;
        struct volume_stats stats;
        if (put_next(volume) && disk_find(volume, next_id - 1, &bytes) == DISK_RIGHT) {
            volume_stats(volume, &stats);
            if (stats.state == VOLUME_READY)
                return true;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return false;
}

static struct volume_settings settings_of(const char *path) {
    return (struct volume_settings){
            .path = path, .bytes = 4 * MIB, .segment_bytes = 64 << 10, .objects = 4000, .probe_ms = 10};
}

// The volume lives through the fault; then once more from its start to its end; and is all right after it.
static void try_fault(const char *path, enum call call, enum way way, int error, unsigned one_in) {
    struct volume_settings settings = settings_of(path);
    struct volume *volume = disk_open(&settings);
    char sentence[256];
    work(volume, 300);
    set_fault(call, way, error, one_in);
    work(volume, 150);
    set_none();
    bool well = recovers(volume);
    if (!well)
        fprintf(stderr, "call %d, way %d, %s, one in %u: does not recover\n", (int)call, (int)way,
                strerror(error), one_in);
    CU_ASSERT_TRUE(well);
    set_fault(call, way, error, one_in);
    volume_close(volume);
    volume = volume_open(&settings, sentence, sizeof sentence);
    if (volume) {
        disk_leave(volume, VOLUME_LOADING);
        work(volume, 50);
        set_none();
        CU_ASSERT_TRUE(recovers(volume));
        find_some(volume, 300);
        volume_close(volume);
    } else
        CU_ASSERT_TRUE(strlen(sentence) > 20);
    set_none();
    volume = disk_open(&settings);
    find_some(volume, 300);
    CU_ASSERT_TRUE(recovers(volume));
    volume_close(volume);
}

static void try_errors(enum call call, const int *errors, int count) {
    static const unsigned one_in[] = {1, 3, 20};
    char *path = scratch_new_quick();
    file_use(&faulty);
    for (int i = 0; i < count; i++)
        for (unsigned j = 0; j < 3; j++)
            try_fault(path, call, FAILS, errors[i], one_in[j]);
    file_use(NULL);
    CU_ASSERT_TRUE(disk_usage(path) <= 4 * MIB);
    scratch_free(path);
}

#define TRY(call, ...)                                                                                       \
    try_errors(call, (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

static void opening(void) {
    TRY(OPEN, ENOSPC, EIO, EROFS, EACCES, EMFILE, ENOENT);
}

static void reading(void) {
    TRY(READ, EIO);
}

// Without the index each segment is read twice: the first look may fail where the second does not.
static void recovering(void) {
    char *path = scratch_new(), *index = NULL;
    struct volume_settings settings = settings_of(path);
    CU_ASSERT_FATAL(asprintf(&index, "%s/index", path) > 0);
    file_use(&faulty);
    for (unsigned one_in = 2; one_in < 16; one_in++) {
        struct volume *volume = disk_open(&settings);
        work(volume, 100);
        volume_close(volume);
        CU_ASSERT_EQUAL(unlink(index), 0);
        set_fault(READ, FAILS, EIO, one_in);
        volume = disk_open(&settings);
        set_none();
        CU_ASSERT_TRUE(recovers(volume));
        find_some(volume, 100);
        volume_close(volume);
    }
    file_use(NULL);
    free(index);
    scratch_free(path);
}

static void writing(void) {
    TRY(WRITE, ENOSPC, EDQUOT, EIO);
}

static void syncing(void) {
    TRY(SYNC_DATA, EIO, ENOSPC);
    TRY(SYNC, EIO);
}

static void allocating(void) {
    TRY(ALLOCATE, ENOSPC, EDQUOT, EIO, EOPNOTSUPP);
}

static void the_rest(void) {
    TRY(TRUNCATE, EIO, ENOSPC);
    TRY(FSTAT, EIO);
    TRY(FSTATAT, EIO);
    TRY(FSTATVFS, EIO);
    TRY(UNLINK, EIO, EROFS);
    TRY(MKDIR, ENOSPC, EROFS);
    TRY(RENAME, EIO);
}

static void short_reads_and_writes(void) {
    char *path = scratch_new();
    struct volume_settings settings = settings_of(path);
    struct volume_stats stats;
    file_use(&faulty);
    for (enum call call = READ; call <= WRITE; call++) {
        struct volume *volume = disk_open(&settings);
        set_fault(call, FALLS_SHORT, 0, 1);
        for (int i = 0; i < 300; i++)
            CU_ASSERT_TRUE(disk_put_surely(volume, next_id + (uint64_t)i, size_of(next_id + (uint64_t)i)));
        next_id += 300;
        find_some(volume, 100);
        uint32_t bytes;
        CU_ASSERT_EQUAL(disk_find(volume, next_id - 1, &bytes), DISK_RIGHT);
        volume_stats(volume, &stats);
        CU_ASSERT_EQUAL(stats.errors, 0);
        CU_ASSERT_EQUAL(stats.broken_records, 0);
        set_none();
        volume_close(volume);
    }
    file_use(NULL);
    scratch_free(path);
}

static void slow_calls(void) {
    char *path = scratch_new();
    struct volume_settings settings = settings_of(path);
    file_use(&faulty);
    for (enum call call = OPEN; call < ALLOCATE; call++)
        for (int i = 0; i < 2; i++)
            try_fault(path, call, IS_SLOW, 0, 50);
    file_use(NULL);
    struct volume *volume = disk_open(&settings);
    find_some(volume, 300);
    volume_close(volume);
    scratch_free(path);
}

// A disk where everything fails is given up, and tried again.
static void breaks_and_comes_back(void) {
    char *path = scratch_new();
    struct volume_settings settings = settings_of(path);
    struct volume_place places[TABLE_CANDIDATES_MAX];
    struct volume_stats stats;
    file_use(&faulty);
    struct volume *volume = disk_open(&settings);
    work(volume, 100);
    uint32_t bytes;
    uint64_t kept = next_id - 1;
    CU_ASSERT_EQUAL(disk_find(volume, kept, &bytes), DISK_RIGHT);
    set_fault(WRITE, FAILS, EIO, 1);
    for (int i = 0; i < 100; i++)
        put_next(volume);
    volume_stats(volume, &stats);
    CU_ASSERT_EQUAL(stats.state, VOLUME_BROKEN);
    CU_ASSERT_TRUE(stats.errors >= 8);
    CU_ASSERT_EQUAL(volume_find(volume, disk_key(kept), places), 0);
    CU_ASSERT_FALSE(put_next(volume));
    set_none();
    CU_ASSERT_TRUE(recovers(volume));
    volume_close(volume);
    file_use(NULL);
    scratch_free(path);
}

// Nothing can be written: what is there is served all the same.
static void reads_go_on_when_it_is_read_only(void) {
    char *path = scratch_new();
    struct volume_settings settings = settings_of(path);
    struct volume_stats stats;
    file_use(&faulty);
    struct volume *volume = disk_open(&settings);
    work(volume, 100);
    uint64_t kept = next_id - 1;
    set_fault(OPEN, FAILS, EROFS, 1);
    for (int i = 0; i < 100; i++)
        put_next(volume);
    volume_stats(volume, &stats);
    CU_ASSERT_EQUAL(stats.state, VOLUME_FULL);
    uint32_t bytes;
    CU_ASSERT_EQUAL(disk_find(volume, kept, &bytes), DISK_RIGHT);
    set_none();
    CU_ASSERT_TRUE(recovers(volume));
    volume_close(volume);
    file_use(NULL);
    scratch_free(path);
}

static unsigned deleted_files(const char *path) {
    char link[64], target[512];
    unsigned count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, target, sizeof target - 1);
        target[length < 0 ? 0 : length] = '\0';
        count += strncmp(target, path, strlen(path)) == 0 && strstr(target, " (deleted)");
    }
    return count;
}

static bool leaves_deleted_files(const char *path) {
    for (int i = 0; i < 5000 && deleted_files(path); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return deleted_files(path) == 0;
}

// The directory is deleted underneath: what is open is served until it is made anew, and left then.
static void deleted_underneath(void) {
    char *path = scratch_new(), *command = NULL, *super = NULL;
    struct volume_settings settings = settings_of(path);
    struct volume *volume = disk_open(&settings);
    work(volume, 100);
    uint64_t kept = next_id - 1;
    CU_ASSERT_FATAL(asprintf(&command, "rm -rf '%s'", path) > 0 && asprintf(&super, "%s/super", path) > 0);
    CU_ASSERT_EQUAL(system(command), 0);
    uint32_t bytes;
    CU_ASSERT_EQUAL(disk_find(volume, kept, &bytes), DISK_RIGHT);
    for (int i = 0; i < 100; i++)
        put_next(volume);
    CU_ASSERT_TRUE(recovers(volume));
    CU_ASSERT_EQUAL(access(super, F_OK), 0);
    CU_ASSERT_TRUE(leaves_deleted_files(path));
    kept = next_id - 1;
    uint64_t first = kept;
    while (disk_find(volume, first - 1, &bytes) == DISK_RIGHT)
        first--;
    volume_close(volume);
    volume = disk_open(&settings);
    for (; first <= kept; first++) // what it has is safe from then on
        CU_ASSERT_EQUAL(disk_find(volume, first, &bytes), DISK_RIGHT);
    volume_close(volume);
    free(command), free(super);
    scratch_free(path);
}

SUITE(cache_faults, CASE(opening), CASE(reading), CASE(recovering), CASE(writing), CASE(syncing),
        CASE(allocating), CASE(the_rest), CASE(short_reads_and_writes), CASE(slow_calls),
        CASE(breaks_and_comes_back), CASE(reads_go_on_when_it_is_read_only), CASE(deleted_underneath))
