#include "cache/file.h"
#include "cache/super.h"
#include "cache/volume.h"
#include "cache/volume_own.h"
#include "tests/unit/cache/disk.h"
#include "tests/unit/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KIB 1024
#define MIB (1 << 20)

static struct volume_settings settings_of(const char *path) {
    return (struct volume_settings){
            .path = path, .bytes = 8 * MIB, .segment_bytes = 128 * KIB, .objects = 8000, .probe_ms = 20};
}

static uint32_t size_of(uint64_t id) {
    return (uint32_t)(disk_random(&id) % 20000);
}

static unsigned count_right(struct volume *volume, uint64_t first, uint64_t last) {
    unsigned right = 0;
    for (uint64_t id = first; id < last; id++) {
        uint32_t bytes = 0;
        enum disk_found found = disk_find(volume, id, &bytes);
        CU_ASSERT_NOT_EQUAL(found, DISK_WRONG);
        right += found == DISK_RIGHT && bytes == size_of(id);
    }
    return right;
}

static void put_all(struct volume *volume, uint64_t first, uint64_t last) {
    for (uint64_t id = first; id < last; id++)
        CU_ASSERT_TRUE(disk_put_surely(volume, id, size_of(id)));
}

// ---- what it is for ----

static void puts_and_finds(void) {
    char *path = scratch_new();
    struct volume_settings settings = settings_of(path);
    struct volume *volume = disk_open(&settings);
    put_all(volume, 0, 300);
    CU_ASSERT_EQUAL(count_right(volume, 0, 300), 300);
    CU_ASSERT_EQUAL(count_right(volume, 300, 400), 0);
    CU_ASSERT_TRUE(disk_put_surely(volume, 1000, MIB)); // longer than a segment
    CU_ASSERT_TRUE(disk_put_surely(volume, 1001, 0));
    uint32_t bytes = 1;
    CU_ASSERT_EQUAL(disk_find(volume, 1000, &bytes), DISK_RIGHT);
    CU_ASSERT_EQUAL(bytes, MIB);
    CU_ASSERT_EQUAL(disk_find(volume, 1001, &bytes), DISK_RIGHT);
    CU_ASSERT_EQUAL(bytes, 0);
    volume_close(volume);
    scratch_free(path);
}

static void remembers_after_a_clean_stop(void) {
    char *path = scratch_new();
    struct volume_settings settings = settings_of(path);
    struct volume *volume = disk_open(&settings);
    uint64_t seed = volume_seed(volume);
    put_all(volume, 0, 300);
    volume_close(volume);
    for (int i = 0; i < 3; i++) {
        struct volume_stats stats;
        volume = disk_open(&settings);
        CU_ASSERT_EQUAL(volume_seed(volume), seed);
        CU_ASSERT_EQUAL(count_right(volume, 0, 300), 300);
        volume_stats(volume, &stats);
        CU_ASSERT_EQUAL(stats.objects, 300);
        CU_ASSERT_EQUAL(stats.broken_records, 0);
        volume_close(volume);
    }
    scratch_free(path);
}

// The saved index is of no use when it is broken, or of another size: the segments say the same.
static void does_without_the_index(void) {
    char *path = scratch_new_quick(), *index = NULL;
    struct volume_settings settings = settings_of(path);
    struct volume *volume = disk_open(&settings);
    put_all(volume, 0, 300);
    volume_close(volume);
    CU_ASSERT_FATAL(asprintf(&index, "%s/index", path) > 0);
    for (off_t at = 5; at < 4000; at += 700) {
        int fd = open(index, O_RDWR);
        unsigned char byte;
        CU_ASSERT_EQUAL(pread(fd, &byte, 1, at), 1);
        byte ^= 1;
        CU_ASSERT_EQUAL(pwrite(fd, &byte, 1, at), 1);
        close(fd);
        volume = disk_open(&settings);
        CU_ASSERT_EQUAL(count_right(volume, 0, 300), 300);
        volume_close(volume);
    }
    settings.objects = 20000;
    volume = disk_open(&settings);
    CU_ASSERT_EQUAL(count_right(volume, 0, 300), 300);
    volume_close(volume);
    free(index);
    scratch_free(path);
}

static void keeps_what_is_hit(void) {
    char *path = scratch_new();
    struct volume_settings settings = settings_of(path);
    struct volume *volume = disk_open(&settings);
    for (uint64_t id = 0; id < 5000; id++) {
        uint32_t bytes;
        CU_ASSERT_TRUE(disk_put_surely(volume, id, size_of(id)));
        if (id >= 20)
            for (uint64_t hot = 0; hot < 20 && id % 50 == 0; hot++)
                disk_find(volume, hot, &bytes);
    }
    CU_ASSERT_EQUAL(count_right(volume, 0, 20), 20);
    CU_ASSERT_EQUAL(count_right(volume, 20, 2000), 0);
    CU_ASSERT_TRUE(count_right(volume, 4700, 5000) == 300);
    volume_close(volume);
    scratch_free(path);
}

// ---- the limit ----

static void never_takes_more_than_its_size(void) {
    char *path = scratch_new();
    struct volume_settings settings = settings_of(path);
    struct volume *volume = disk_open(&settings);
    uint64_t most = 0, random = 3;
    for (uint64_t id = 0; id < 6000; id++) {
        uint32_t bytes, size = id % 97 == 0 ? 1000000 : size_of(id);
        CU_ASSERT_TRUE(disk_put_surely(volume, id, size));
        disk_find(volume, id - disk_random(&random) % 200, &bytes);
        uint64_t usage = id % 8 == 0 ? disk_usage(path) : 0;
        most = usage > most ? usage : most;
        if (id % 2000 == 1999) {
            volume_close(volume);
            usage = disk_usage(path);
            most = usage > most ? usage : most;
            volume = disk_open(&settings);
        }
    }
    CU_ASSERT_TRUE(most <= settings.bytes);
    CU_ASSERT_TRUE(most > settings.bytes * 9 / 10);
    volume_close(volume);
    settings.bytes /= 2; // and less from the next start on
    volume = disk_open(&settings);
    CU_ASSERT_TRUE(disk_put_surely(volume, 9000, 10));
    CU_ASSERT_TRUE(disk_usage(path) <= settings.bytes);
    volume_close(volume);
    scratch_free(path);
}

// What someone still reads stays readable when its segment is gone, and counts.
static void readers_keep_what_they_read(void) {
    char *path = scratch_new();
    struct volume_settings settings = settings_of(path);
    struct volume *volume = disk_open(&settings);
    struct volume_place places[TABLE_CANDIDATES_MAX];
    unsigned char *buffer = malloc(SEGMENT_RECORD_MAXIMUM);
    struct record record;
    CU_ASSERT_TRUE(disk_put_surely(volume, 1, 50000));
    CU_ASSERT_EQUAL_FATAL(volume_find(volume, disk_key(1), places), 1);
    put_all(volume, 100, 3000);
    uint32_t bytes;
    CU_ASSERT_EQUAL(disk_find(volume, 1, &bytes), DISK_MISS);
    CU_ASSERT_EQUAL(segment_read_record(places[0].segment, places[0].offset, buffer, &record), 0);
    CU_ASSERT_TRUE(disk_is_right(&record, buffer));
    CU_ASSERT_TRUE(atomic_load(&volume->pool.held) > 0);
    segment_put(places[0].segment);
    for (int i = 0; i < 5000 && atomic_load(&volume->pool.held) > 0; i++) // others may be going just now
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    CU_ASSERT_EQUAL(atomic_load(&volume->pool.held), 0);
    free(buffer);
    volume_close(volume);
    scratch_free(path);
}

// ---- starting ----

static void one_process_at_a_time(void) {
    char *path = scratch_new(), error[256] = "";
    struct volume_settings settings = settings_of(path);
    struct volume *volume = disk_open(&settings);
    CU_ASSERT_PTR_NULL(volume_open(&settings, error, sizeof error));
    CU_ASSERT_PTR_NOT_NULL(strstr(error, "another process"));
    volume_close(volume);
    volume_close(disk_open(&settings));
    settings.bytes = 100;
    CU_ASSERT_PTR_NULL(volume_open(&settings, error, sizeof error));
    CU_ASSERT_PTR_NOT_NULL(strstr(error, "too small"));
    settings.path = "/proc/none/here";
    settings.bytes = 8 * MIB;
    CU_ASSERT_PTR_NULL(volume_open(&settings, error, sizeof error));
    CU_ASSERT_PTR_NOT_NULL(strstr(error, "/proc/none/here"));
    scratch_free(path);
}

static int opening_error;

static int cannot_open(int directory, const char *name, int flags, mode_t mode) {
    (void)directory, (void)name, (void)flags, (void)mode;
    errno = opening_error;
    return -1;
}

static int cannot_make(int directory, const char *name, mode_t mode) {
    return cannot_open(directory, name, 0, mode);
}

// Each trouble has its own way out.
static void says_what_to_do(void) {
    static const struct {
        int error;
        bool is_there;
        const char *advice;
    } rows[] = {
            {EACCES, true, "Permission denied; make the user weir runs as the owner"},
            {EACCES, false, "Permission denied; create it, and"},
            {ENOTDIR, true, "Not a directory; a file lies there: remove it, or name another path"},
            {EROFS, true, "Read-only file system; mount its file system read-write"},
            {ENOSPC, false, "No space left on device; make room on its file system"},
    };
    char *path = scratch_new(), error[512] = "";
    struct file_calls calls = file_system;
    calls.openat = cannot_open;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct volume_settings settings = settings_of(rows[i].is_there ? path : "/nowhere/at/all");
        opening_error = rows[i].error;
        calls.mkdirat = rows[i].is_there ? file_system.mkdirat : cannot_make;
        file_use(&calls);
        CU_ASSERT_PTR_NULL(volume_open(&settings, error, sizeof error));
        file_use(NULL);
        CU_ASSERT_PTR_NOT_NULL(strstr(error, rows[i].advice));
    }
    scratch_free(path);
}

static bool has_aside(const char *path) {
    DIR *directory = opendir(path);
    const struct dirent *entry;
    bool found = false;
    while ((entry = readdir(directory)))
        found = found || strncmp(entry->d_name, "aside.", 6) == 0;
    closedir(directory);
    return found;
}

static void write_super(const char *path, const struct super *super, uint64_t rubbish) {
    int directory = open(path, O_RDONLY | O_DIRECTORY);
    if (super)
        CU_ASSERT_EQUAL(super_write(directory, super), 0);
    int fd = openat(directory, "super", O_RDWR);
    if (!super)
        for (off_t at = 0; at < (off_t)(2 * SUPER_COPY_AT); at += SUPER_COPY_AT)
            CU_ASSERT_EQUAL(pwrite(fd, &rubbish, sizeof rubbish, at + 20), sizeof rubbish);
    close(fd);
    close(directory);
}

static void sets_aside_what_it_does_not_know(void) {
    struct super foreign = super_new(4096);
    for (int i = 0; i < 4; i++) {
        char *path = scratch_new_quick(), *super = NULL, *other = NULL;
        struct volume_settings settings = settings_of(path);
        struct volume *volume = disk_open(&settings);
        put_all(volume, 0, 300);
        volume_close(volume);
        CU_ASSERT_FATAL(asprintf(&super, "%s/super", path) > 0 && asprintf(&other, "%s/mine", path) > 0);
        close(open(other, O_CREAT | O_RDWR, 0600));
        foreign.format = i == 0 ? SUPER_FORMAT + 1 : SUPER_FORMAT;
        foreign.needed_bits = i == 1 ? 4 : 0;
        if (i < 3)
            write_super(path, i == 2 ? NULL : &foreign, 0xbad);
        else
            unlink(super);
        volume = disk_open(&settings);
        CU_ASSERT_EQUAL(count_right(volume, 0, 300), 0);
        CU_ASSERT_TRUE(disk_put_surely(volume, 1, size_of(1)));
        CU_ASSERT_EQUAL(count_right(volume, 1, 2), 1);
        for (int wait = 0; has_aside(path) && wait < 5000; wait++)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        CU_ASSERT_FALSE(has_aside(path));
        CU_ASSERT_EQUAL(access(other, F_OK), 0); // nobody's of ours
        volume_close(volume);
        free(super), free(other);
        scratch_free(path);
    }
}

static void one_copy_of_the_super_block_is_enough(void) {
    for (off_t at = 0; at <= SUPER_COPY_AT; at += SUPER_COPY_AT) {
        char *path = scratch_new_quick(), *super = NULL;
        struct volume_settings settings = settings_of(path);
        struct volume *volume = disk_open(&settings);
        put_all(volume, 0, 50);
        volume_close(volume);
        CU_ASSERT_FATAL(asprintf(&super, "%s/super", path) > 0);
        for (int i = 0; i < 2; i++) { // the second time it is the other one, repaired meanwhile
            int fd = open(super, O_RDWR);
            CU_ASSERT_EQUAL(pwrite(fd, "rubbish", 7, i ? SUPER_COPY_AT - at : at), 7);
            close(fd);
            volume = disk_open(&settings);
            CU_ASSERT_EQUAL(count_right(volume, 0, 50), 50);
            volume_close(volume);
        }
        free(super);
        scratch_free(path);
    }
}

// ---- kill -9 ----

#define ROUNDS 200

struct life { // shared with the one that is killed
    _Atomic uint64_t put;
};

static _Noreturn void live(const struct volume_settings *settings, uint64_t first, struct life *life) {
    char error[256];
    uint32_t bytes;
    uint64_t random = first;
    struct volume *volume = volume_open(settings, error, sizeof error);
    if (!volume || !disk_leave(volume, VOLUME_LOADING))
        _exit(1);
    for (uint64_t id = first;; id++) {
        if (!disk_put_surely(volume, id, size_of(id)))
            _exit(2);
        atomic_store(&life->put, id + 1);
        disk_find(volume, id - disk_random(&random) % 100, &bytes);
    }
}

struct sealed {
    uint64_t *ids;
    uint64_t count, room;
};

static bool note_sealed(void *context, const struct segment_entry *entry) {
    struct sealed *sealed = context;
    if (sealed->count == sealed->room) {
        sealed->room = sealed->room * 2 + 1024;
        sealed->ids = realloc(sealed->ids, sealed->room * sizeof *sealed->ids);
    }
    sealed->ids[sealed->count++] = entry->key.low;
    return true;
}

static uint64_t uuid_of(const char *path) {
    struct super super = {0};
    enum super_found found;
    int directory = open(path, O_RDONLY | O_DIRECTORY);
    CU_ASSERT_EQUAL(super_read(directory, &super, &found), 0);
    CU_ASSERT_EQUAL(found, SUPER_GOOD);
    close(directory);
    return super.uuid[0];
}

static void visit_shelf(const char *path, unsigned shelf, segment_visit *visit, void *context) {
    char *name = NULL;
    int error;
    CU_ASSERT_FATAL(asprintf(&name, "%s/seg/%02x", path, shelf) > 0);
    DIR *directory = opendir(name);
    free(name);
    if (!directory)
        return;
    const struct dirent *entry;
    while ((entry = readdir(directory))) {
        uint64_t number = strtoull(entry->d_name, NULL, 16);
        struct segment *segment = entry->d_name[0] == '.'
                                          ? NULL
                                          : segment_open(dirfd(directory), uuid_of(path), number, &error);
        if (segment && segment_is_sealed(segment))
            CU_ASSERT_EQUAL(segment_walk(segment, visit, context), 0);
        if (segment)
            segment_put(segment);
    }
    closedir(directory);
}

// As many as lie in sealed segments, by what the files themselves say.
static struct sealed sealed_of(const char *path) {
    struct sealed sealed = {0};
    for (unsigned shelf = 0; shelf < VOLUME_SHELVES; shelf++)
        visit_shelf(path, shelf, note_sealed, &sealed);
    return sealed;
}

static void check_sealed(struct volume *volume, const struct sealed *sealed) {
    for (uint64_t i = 0; i < sealed->count; i++) {
        uint32_t bytes = 0;
        enum disk_found found = disk_peek(volume, sealed->ids[i], &bytes);
        CU_ASSERT_EQUAL(found, DISK_RIGHT);
        CU_ASSERT_EQUAL(bytes, size_of(sealed->ids[i]));
    }
}

static void wait_for_puts(struct life *life, uint64_t until) {
    for (int i = 0; i < 20000 && atomic_load(&life->put) < until; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

// Amid puts, and each fourth time at any moment, mostly while it is loading.
static void survives_a_kill(void) {
    struct life *life = mmap(NULL, sizeof *life, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *path = scratch_new_quick();
    struct volume_settings settings = settings_of(path);
    settings.bytes = 4 * MIB;
    settings.segment_bytes = 64 * KIB;
    uint64_t random = 5, killed_in_puts = 0, records = 0;
    volume_close(disk_open(&settings));
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t first = (uint64_t)(round + 1) << 20;
        int status;
        atomic_store(&life->put, 0);
        pid_t child = fork();
        if (child == 0)
            live(&settings, first, life);
        wait_for_puts(life, round % 4 ? first + disk_random(&random) % 200 + 1 : 0);
        nanosleep(&(struct timespec){.tv_nsec =
                                             (long)(disk_random(&random) % (round % 4 ? 1000000 : 30000000))},
                NULL);
        kill(child, SIGKILL);
        CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
        CU_ASSERT_TRUE(WIFSIGNALED(status));
        killed_in_puts += atomic_load(&life->put) > 0;
        struct sealed sealed = sealed_of(path);
        struct volume_settings larger = settings; // so that nothing is reclaimed before it is looked for
        larger.bytes *= 2;
        struct volume *volume = disk_open(&larger);
        check_sealed(volume, &sealed);
        records += sealed.count;
        // The latest: they were in no sealed segment, but the machine did not fail.
        uint64_t end = atomic_load(&life->put), latest = end < first + 5 ? first : end - 5;
        end = end < first ? first : end; // killed while it was loading
        CU_ASSERT_EQUAL(count_right(volume, latest, end), end - latest);
        volume_close(volume);
        free(sealed.ids);
    }
    printf("\n    %llu kills amid puts, %llu records of sealed segments found ",
            (unsigned long long)killed_in_puts, (unsigned long long)records);
    CU_ASSERT_TRUE(killed_in_puts > ROUNDS / 2);
    CU_ASSERT_TRUE(records > 1000);
    munmap(life, sizeof *life);
    scratch_free(path);
}

// ---- bit flips ----

static void flip_one(const char *path, uint64_t *random) {
    char *name = NULL;
    struct stat stat;
    for (int tries = 0; tries < 100; tries++) {
        unsigned shelf = (unsigned)(disk_random(random) % VOLUME_SHELVES);
        free(name);
        CU_ASSERT_FATAL(asprintf(&name, "%s/seg/%02x", path, shelf) > 0);
        int directory = open(name, O_RDONLY | O_DIRECTORY);
        DIR *list = fdopendir(directory);
        const struct dirent *entry;
        uint64_t skip = disk_random(random) % 5;
        while ((entry = readdir(list)) && (entry->d_name[0] == '.' || skip-- > 0))
            continue;
        int fd = entry ? openat(directory, entry->d_name, O_RDWR) : -1;
        if (fd >= 0 && fstat(fd, &stat) == 0 && stat.st_size > 0) {
            off_t at = (off_t)(disk_random(random) % (uint64_t)stat.st_size);
            if (disk_random(random) % 4 == 0) // labels and tables of contents too
                at = stat.st_size - 1 - at % (stat.st_size < 600 ? stat.st_size : 600);
            unsigned char byte;
            if (pread(fd, &byte, 1, at) == 1) { // else it was sealed meanwhile, and is shorter now
                byte ^= (unsigned char)(1 << disk_random(random) % 8);
                CU_ASSERT_EQUAL(pwrite(fd, &byte, 1, at), 1);
                tries = 100;
            }
        }
        if (fd >= 0)
            close(fd);
        closedir(list);
    }
    free(name);
}

static void flipped_bits_are_never_good(void) {
    char *path = scratch_new_quick(), *index = NULL;
    struct volume_settings settings = settings_of(path);
    uint64_t random = 11, id = 1, broken = 0;
    CU_ASSERT_FATAL(asprintf(&index, "%s/index", path) > 0);
    for (int round = 0; round < 60; round++) {
        struct volume_stats stats;
        struct volume *volume = disk_open(&settings);
        put_all(volume, id, id + 60);
        id += 60;
        uint64_t first = id > 500 ? id - 500 : 1;
        for (int flips = 0; flips < 10 && round % 2; flips++) // while it runs
            flip_one(path, &random);
        count_right(volume, first, id);
        put_all(volume, id, id + 60); // with reclaiming in between
        id += 60;
        volume_stats(volume, &stats);
        broken += stats.broken_records;
        volume_close(volume);
        for (int flips = 0; flips < 10; flips++) // and between
            flip_one(path, &random);
        if (round % 3 == 0)
            unlink(index);
        volume = disk_open(&settings);
        count_right(volume, first, id);
        volume_stats(volume, &stats);
        broken += stats.broken_records;
        CU_ASSERT_NOT_EQUAL(stats.state, VOLUME_BROKEN);
        volume_close(volume);
    }
    printf("\n    900 flipped bits, %llu times something broken was met ", (unsigned long long)broken);
    CU_ASSERT_TRUE(broken > 100);
    free(index);
    scratch_free(path);
}

// ---- all at once ----

#define READERS 3

struct crowd {
    struct volume *volume;
    _Atomic uint64_t newest;
    _Atomic bool stop;
    _Atomic uint64_t wrong, right;
};

static void *read_along(void *context) {
    struct crowd *crowd = context;
    uint64_t random = (uintptr_t)&random;
    while (!atomic_load(&crowd->stop)) {
        uint64_t newest = atomic_load(&crowd->newest), bits = disk_random(&random);
        uint64_t id = newest - (bits % 16 ? bits % 20 : bits % 600) % (newest + 1);
        uint32_t bytes = 0;
        enum disk_found found = disk_find(crowd->volume, id, &bytes);
        if (found == DISK_WRONG || (found == DISK_RIGHT && bytes != size_of(id)))
            atomic_fetch_add(&crowd->wrong, 1);
        else if (found == DISK_RIGHT)
            atomic_fetch_add(&crowd->right, 1);
        if (bits % 16 == 1)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        if (bits % 1000 == 0) {
            struct volume_stats stats;
            volume_stats(crowd->volume, &stats);
        }
    }
    return NULL;
}

static void one_puts_and_three_read(void) {
    char *path = scratch_new_quick();
    struct volume_settings settings = settings_of(path);
    struct crowd crowd = {.volume = disk_open(&settings)};
    pthread_t readers[READERS];
    struct volume_stats stats;
    CU_ASSERT_TRUE(disk_put_surely(crowd.volume, 0, size_of(0)));
    for (int i = 0; i < READERS; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&readers[i], NULL, read_along, &crowd), 0);
    // On a busy machine the readers take longer to come to something.
    for (uint64_t id = 1; id < 2000 || (atomic_load(&crowd.right) <= 1000 && id < 200000); id++) {
        CU_ASSERT_TRUE(disk_put_surely(crowd.volume, id, size_of(id)));
        atomic_store(&crowd.newest, id);
    }
    atomic_store(&crowd.stop, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    volume_stats(crowd.volume, &stats);
    CU_ASSERT_EQUAL(crowd.wrong, 0);
    CU_ASSERT_TRUE(crowd.right > 1000);
    CU_ASSERT_TRUE(stats.reclaimed > 50 && stats.carried > 50);
    CU_ASSERT_EQUAL(stats.broken_records, 0);
    CU_ASSERT_EQUAL(stats.errors, 0);
    volume_close(crowd.volume);
    scratch_free(path);
}

SUITE(cache_volume, CASE(puts_and_finds), CASE(remembers_after_a_clean_stop), CASE(does_without_the_index),
        CASE(keeps_what_is_hit), CASE(never_takes_more_than_its_size), CASE(readers_keep_what_they_read),
        CASE(one_process_at_a_time), CASE(says_what_to_do), CASE(sets_aside_what_it_does_not_know),
        CASE(one_copy_of_the_super_block_is_enough), CASE(survives_a_kill), CASE(flipped_bits_are_never_good),
        CASE(one_puts_and_three_read))
