// The volumes as one amid disks that are slow, hang, lie or are not there.
#include "cache/disk.h"
#include "cache/file.h"
#include "tests/unit/cache/disk_play.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KIB (1 << 10)
#define MIB (1 << 20)
#define NAMES 60

// ---- reads and syncs under one directory that take long, or for ever ----

static struct {
    const char *_Atomic path; // NULL: none
    _Atomic unsigned ms;
    _Atomic bool hangs;
    _Atomic unsigned hanging, error;
} fault;

static void pause_ms(unsigned ms) {
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static bool is_struck(int fd) {
    char link[64], path[256];
    const char *under = atomic_load(&fault.path);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = under ? readlink(link, path, sizeof path - 1) : -1;
    return length > 0 && strncmp(path, under, strlen(under)) == 0;
}

static bool suffer(int fd) {
    if (!is_struck(fd))
        return false;
    atomic_fetch_add(&fault.hanging, 1);
    pause_ms(atomic_load(&fault.ms));
    while (atomic_load(&fault.hangs))
        pause_ms(1);
    atomic_fetch_sub(&fault.hanging, 1);
    errno = (int)atomic_load(&fault.error);
    return errno != 0;
}

static ssize_t slow_read(int fd, const struct iovec *parts, int count, off_t at, int flags) {
    return suffer(fd) ? -1 : file_system.preadv2(fd, parts, count, at, flags);
}

static int slow_sync(int fd) {
    return suffer(fd) ? -1 : file_system.fdatasync(fd);
}

static struct file_calls slow;

__attribute__((constructor)) static void fill_table(void) { // once: threads may be left that use it
    slow = file_system;
    slow.preadv2 = slow_read;
    slow.fdatasync = slow_sync;
}

static void strike(const char *path, unsigned ms, bool hangs, unsigned error) {
    atomic_store(&fault.ms, ms);
    atomic_store(&fault.hangs, hangs);
    atomic_store(&fault.error, error);
    atomic_store(&fault.path, path);
}

static void start_slow(struct play_disk *play, unsigned count) {
    strike(NULL, 0, false, 0);
    file_use(&slow);
    play_start(play, count);
    play->settings.slow_ms = PLAY_SLOW_MS;
    disk_apply(play->disk, &play->settings);
}

static void end_slow(struct play_disk *play) {
    play_end(play);
    file_use(NULL);
}

// ---- jobs ----

struct reading {
    struct disk_job job;
    struct play_disk *play;
    unsigned number;
    _Atomic int edition;
    _Atomic unsigned runs, gave_up, dones;
    _Atomic int64_t gave_up_at_ms;
};

static struct reading *reading_of(struct disk_job *job) {
    return (struct reading *)((char *)job - offsetof(struct reading, job));
}

static void read_it(struct disk_job *job) {
    struct reading *reading = reading_of(job);
    atomic_store(&reading->edition, play_only(reading->play, reading->number, NULL));
    atomic_fetch_add(&reading->runs, 1);
}

static void give_it_up(struct disk_job *job) {
    struct reading *reading = reading_of(job);
    CU_ASSERT_EQUAL(atomic_load(&reading->dones), 0);
    atomic_store(&reading->gave_up_at_ms, file_now_ms());
    atomic_fetch_add(&reading->gave_up, 1);
}

static void note_done(struct disk_job *job) {
    atomic_fetch_add(&reading_of(job)->dones, 1);
}

static struct reading reading_new(struct play_disk *play, unsigned number) {
    return (struct reading){.job = {.run = read_it, .give_up = give_it_up, .done = note_done},
            .play = play,
            .number = number};
}

static bool wait_for(_Atomic unsigned *counter, unsigned value) {
    for (int i = 0; i < 20000 && atomic_load(counter) < value; i++)
        pause_ms(1);
    return atomic_load(counter) >= value;
}

// How many objects each volume has.
static void count_objects(struct play_disk *play, uint64_t objects[static PLAY_VOLUMES]) {
    struct disk_volume_stats stats[DISK_VOLUMES_MAX];
    unsigned count = disk_stats(play->disk, stats);
    memset(objects, 0, PLAY_VOLUMES * sizeof *objects);
    for (unsigned i = 0; i < count; i++)
        for (unsigned j = 0; j < PLAY_VOLUMES; j++)
            if (play->paths[j] && strcmp(stats[i].path, play->paths[j]) == 0)
                objects[j] = stats[i].volume.objects;
}

// Puts the names from `first` on; which volume each lies in.
static void put_names(struct play_disk *play, unsigned first, unsigned count, unsigned *where) {
    uint64_t before[PLAY_VOLUMES], after[PLAY_VOLUMES];
    count_objects(play, before);
    for (unsigned i = 0; i < count; i++) {
        CU_ASSERT_EQUAL(play_put(play, first + i, NULL, first + i, 3000, NULL, NULL), 0);
        count_objects(play, after);
        for (unsigned j = 0; j < PLAY_VOLUMES; j++)
            if (after[j] > before[j])
                where[i] = j;
        memcpy(before, after, sizeof before);
    }
}

static bool may_have(struct play_disk *play, unsigned number) {
    struct play_name name;
    play_name(&name, number);
    return disk_may_have(play->disk, &name.name);
}

static unsigned first_in(const unsigned *where, unsigned volume) {
    unsigned i = 0;
    while (i < NAMES && where[i] != volume)
        i++;
    CU_ASSERT_TRUE_FATAL(i < NAMES);
    return i;
}

// ---- slow ----

static void check_only_the_other_serves(struct play_disk *play, const unsigned *where) {
    unsigned again[NAMES], wrong = 0;
    for (unsigned i = 0; i < NAMES; i++)
        wrong +=
                may_have(play, i) != (where[i] == 1) || (where[i] == 1 && play_only(play, i, NULL) != (int)i);
    CU_ASSERT_EQUAL(wrong, 0);
    put_names(play, 1000, NAMES, again);
    for (unsigned i = 0; i < NAMES; i++)
        CU_ASSERT_EQUAL(again[i], 1);
}

static void a_slow_volume_is_taken_out_and_comes_back(void) {
    struct play_disk play;
    struct play_name name;
    unsigned where[NAMES];
    start_slow(&play, 2);
    put_names(&play, 0, NAMES, where);
    unsigned slow_one = first_in(where, 0);
    struct reading reading = reading_new(&play, slow_one);
    play_name(&name, slow_one);
    struct disk_volume *volume = disk_volume_of(play.disk, &name.name);
    strike(play.paths[0], 2 * PLAY_SLOW_MS, false, 0);
    int64_t since_ms = file_now_ms();
    CU_ASSERT_TRUE(disk_submit(volume, DISK_READ, &reading.job));
    CU_ASSERT_TRUE(wait_for(&reading.gave_up, 1));
    int64_t took_ms = atomic_load(&reading.gave_up_at_ms) - since_ms;
    CU_ASSERT_TRUE(took_ms >= PLAY_SLOW_MS && took_ms < 2 * PLAY_SLOW_MS);
    CU_ASSERT_TRUE(play_wait(&play, 0, DISK_SLOW));
    check_only_the_other_serves(&play, where);
    CU_ASSERT_TRUE(wait_for(&reading.dones, 1));
    CU_ASSERT_EQUAL(atomic_load(&reading.runs), 1);
    pause_ms(4 * PLAY_PROBE_MS);
    struct reading refused = reading_new(&play, slow_one);
    CU_ASSERT_FALSE(disk_submit(volume, DISK_READ, &refused.job));
    unsigned changed = atomic_load(&play.changed);
    strike(NULL, 0, false, 0);
    CU_ASSERT_TRUE(play_wait(&play, 0, DISK_READY));
    CU_ASSERT_TRUE(wait_for(&play.changed, changed + 1));
    for (unsigned i = 0; i < NAMES; i++)
        CU_ASSERT_EQUAL(play_only(&play, i, NULL), (int)i);
    CU_ASSERT_TRUE(disk_submit(volume, DISK_READ, &refused.job));
    CU_ASSERT_TRUE(wait_for(&refused.dones, 1));
    CU_ASSERT_EQUAL(atomic_load(&refused.edition), (int)slow_one);
    CU_ASSERT_EQUAL(atomic_load(&refused.gave_up), 0);
    CU_ASSERT_EQUAL(atomic_load(&reading.gave_up), 1);
    end_slow(&play);
}

// All that wait are given up, once each; all are run once the disk answers.
static void a_hung_read_is_given_up(void) {
    struct play_disk play;
    struct play_name name;
    struct reading *readings = calloc(DISK_QUEUE_MAX + 3, sizeof *readings);
    start_slow(&play, 1);
    CU_ASSERT_EQUAL(play_put(&play, 7, NULL, 7, 3000, NULL, NULL), 0);
    play_name(&name, 7);
    struct disk_volume *volume = disk_volume_of(play.disk, &name.name);
    play.settings.slow_ms = 1000;
    disk_apply(play.disk, &play.settings);
    strike(play.paths[0], 0, true, 0);
    for (unsigned i = 0; i < DISK_QUEUE_MAX + 3; i++)
        readings[i] = reading_new(&play, 7);
    for (unsigned i = 0; i < 2; i++)
        CU_ASSERT_TRUE(disk_submit(volume, DISK_READ, &readings[i].job));
    CU_ASSERT_TRUE(wait_for(&fault.hanging, 2)); // both readers
    for (unsigned i = 2; i < DISK_QUEUE_MAX + 2; i++)
        CU_ASSERT_TRUE(disk_submit(volume, DISK_READ, &readings[i].job));
    CU_ASSERT_FALSE(disk_submit(volume, DISK_READ, &readings[DISK_QUEUE_MAX + 2].job)); // full
    for (unsigned i = 0; i < DISK_QUEUE_MAX + 2; i++)
        CU_ASSERT_TRUE(wait_for(&readings[i].gave_up, 1));
    CU_ASSERT_FALSE(may_have(&play, 7));
    strike(NULL, 0, false, 0);
    for (unsigned i = 0; i < DISK_QUEUE_MAX + 2; i++) {
        CU_ASSERT_TRUE(wait_for(&readings[i].dones, 1));
        CU_ASSERT_EQUAL(atomic_load(&readings[i].gave_up), 1);
        CU_ASSERT_EQUAL(atomic_load(&readings[i].runs), 1);
    }
    CU_ASSERT_TRUE(play_wait(&play, 0, DISK_READY));
    CU_ASSERT_EQUAL(play_only(&play, 7, NULL), 7);
    end_slow(&play);
    free(readings);
}

static struct disk *volatile left_behind; // what a hung thread still uses stays where it is

static void a_hung_disk_does_not_hold_up_the_end(void) {
    struct play_disk play;
    struct play_name name;
    static struct reading reading;
    start_slow(&play, 1);
    CU_ASSERT_EQUAL(play_put(&play, 7, NULL, 7, 3000, NULL, NULL), 0);
    play_name(&name, 7);
    reading = reading_new(&play, 7);
    strike(play.paths[0], 0, true, 0);
    CU_ASSERT_TRUE(disk_submit(disk_volume_of(play.disk, &name.name), DISK_READ, &reading.job));
    CU_ASSERT_TRUE(wait_for(&reading.gave_up, 1));
    int64_t since_ms = file_now_ms();
    left_behind = play.disk;
    disk_free(play.disk);
    CU_ASSERT_TRUE(file_now_ms() - since_ms < 5000);
    strike(NULL, 0, false, 0);
    CU_ASSERT_TRUE(wait_for(&reading.dones, 1));
    pause_ms(200); // its keeper closes it
    play.disk = NULL;
    end_slow(&play);
}

static void errors_of_reads_cost_their_entry_alone(void) {
    struct play_disk play;
    struct disk_volume_stats stats[DISK_VOLUMES_MAX];
    start_slow(&play, 1);
    for (unsigned i = 0; i < 5; i++)
        CU_ASSERT_EQUAL(play_put(&play, i, NULL, i, 3000, NULL, NULL), 0);
    strike(play.paths[0], 0, false, EIO);
    CU_ASSERT_EQUAL(play_only(&play, 0, NULL), -1);
    CU_ASSERT_EQUAL(play_only(&play, 1, NULL), -1);
    strike(NULL, 0, false, 0);
    CU_ASSERT_FALSE(may_have(&play, 0));
    for (unsigned i = 2; i < 5; i++)
        CU_ASSERT_EQUAL(play_only(&play, i, NULL), (int)i);
    disk_stats(play.disk, stats);
    CU_ASSERT_EQUAL(stats[0].volume.errors, 2);
    end_slow(&play);
}

// ---- broken ----

static int open_segment(const char *path, char name[static 512]) {
    for (unsigned shelf = 0; shelf < 16; shelf++) {
        snprintf(name, 512, "%s/seg/%02x", path, shelf);
        DIR *directory = opendir(name);
        const struct dirent *entry;
        while (directory && (entry = readdir(directory)))
            if (entry->d_name[0] != '.') {
                snprintf(name, 512, "%s/seg/%02x/%s", path, shelf, entry->d_name);
                closedir(directory);
                return open(name, O_RDWR);
            }
        if (directory)
            closedir(directory);
    }
    return -1;
}

static void flip(const char *path, off_t at, int bit) {
    char name[512];
    unsigned char byte;
    int fd = open_segment(path, name);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(pread(fd, &byte, 1, at), 1);
    byte ^= (unsigned char)(1 << bit);
    CU_ASSERT_EQUAL(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

// In every part of the one record there is: header, head, checksum, content.
static void a_flipped_bit_is_never_read(void) {
    struct disk_volume_stats stats[DISK_VOLUMES_MAX];
    for (unsigned i = 0; i < 40; i++) {
        struct play_disk play;
        play_start(&play, 1);
        CU_ASSERT_EQUAL(play_put(&play, 1, NULL, 1, 300, NULL, NULL), 0);
        if (i % 2) {
            play_close(&play); // sealed
            flip(play.paths[0], 64 + i * 8, (int)i % 8);
            play_open(&play);
        } else
            flip(play.paths[0], 64 + i * 8, (int)i % 8);
        CU_ASSERT_EQUAL(play_only(&play, 1, NULL), -1);
        CU_ASSERT_FALSE(may_have(&play, 1));
        disk_stats(play.disk, stats);
        CU_ASSERT_TRUE(stats[0].volume.broken_records > 0);
        play_end(&play);
    }
}

static void a_broken_chunk_is_fetched_again(void) {
    struct play_disk play;
    struct disk_place place;
    unsigned char *content = malloc(MIB), *got = malloc(MIB);
    uint32_t length, end;
    struct iovec part = {content, 200 * KIB};
    play_start(&play, 1);
    play_fill(content, MIB, 3);
    CU_ASSERT_EQUAL(play_put(&play, 1, NULL, 1, -1, &place, NULL), 0);
    for (unsigned i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(disk_put_chunk(&place, i, &part, 1), 0);
    flip(play.paths[0], 64 * 12 + 100 * KIB, 3); // in the second block of chunk 0
    CU_ASSERT_EQUAL(disk_read_chunk(&place, 0, 0, got, 64 * KIB, true, &length, &end), 0);
    CU_ASSERT_TRUE(length == 64 * KIB && memcmp(got, content, length) == 0);
    CU_ASSERT_EQUAL(disk_read_chunk(&place, 0, 64 * KIB, got, 64 * KIB, true, &length, &end), -ENODATA);
    CU_ASSERT_EQUAL(disk_read_chunk(&place, 0, 0, got, 64 * KIB, true, &length, &end), -ENODATA);
    CU_ASSERT_EQUAL(disk_read_chunk(&place, 1, 64 * KIB, got, 192 * KIB, true, &length, &end), 0);
    CU_ASSERT_TRUE(length == 136 * KIB && memcmp(got, content + 64 * KIB, length) == 0);
    disk_place_put(&place);
    play_end(&play);
    free(content);
    free(got);
}

static void what_was_put_survives_a_kill(void) {
    struct play_disk play;
    play_start(&play, 2);
    play_close(&play);
    pid_t child = fork();
    if (child == 0) {
        play_open(&play);
        for (unsigned i = 0; i < NAMES; i++)
            if (play_put(&play, i, NULL, i, 20000, NULL, NULL) != 0)
                _exit(1);
        _exit(0);
    }
    int status;
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
    play_open(&play);
    for (unsigned i = 0; i < NAMES; i++)
        CU_ASSERT_EQUAL(play_only(&play, i, NULL), (int)i);
    play_end(&play);
}

// ---- not there ----

static void one_lost_volume_costs_its_share(void) {
    struct play_disk play;
    unsigned where[NAMES], found = 0, lost = 0;
    char aside[512];
    play_start(&play, 2);
    put_names(&play, 0, NAMES, where);
    play_close(&play);
    snprintf(aside, sizeof aside, "%s.aside", play.paths[0]);
    CU_ASSERT_EQUAL(rename(play.paths[0], aside), 0);
    int fd = open(play.paths[0], O_CREAT | O_WRONLY, 0600); // no directory
    close(fd);
    play.disk = disk_new(&play.settings);
    CU_ASSERT_TRUE(play_wait(&play, 0, DISK_OFFLINE));
    CU_ASSERT_TRUE(play_wait(&play, 1, DISK_READY));
    for (unsigned i = 0; i < NAMES; i++) {
        CU_ASSERT_EQUAL(play_only(&play, i, NULL), where[i] == 1 ? (int)i : -1);
        found += where[i] == 1;
        lost += where[i] == 0;
    }
    CU_ASSERT_TRUE(found > NAMES / 5 && lost > NAMES / 5);
    CU_ASSERT_EQUAL(play_put(&play, 500, NULL, 500, 10, NULL, NULL), 0);
    unlink(play.paths[0]);
    CU_ASSERT_EQUAL(rename(aside, play.paths[0]), 0);
    CU_ASSERT_TRUE(play_wait(&play, 0, DISK_READY));
    for (unsigned i = 0; i < NAMES; i++)
        CU_ASSERT_EQUAL(play_only(&play, i, NULL), (int)i);
    play_end(&play);
}

static void another_ones_lock_is_waited_for(void) {
    struct play_disk play;
    char error[512];
    play_start(&play, 1);
    play_close(&play);
    struct volume *other = volume_open(&play.volumes[0], error, sizeof error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(other);
    play.disk = disk_new(&play.settings);
    CU_ASSERT_TRUE(play_wait(&play, 0, DISK_OFFLINE));
    CU_ASSERT_FALSE(may_have(&play, 1));
    CU_ASSERT_EQUAL(play_put(&play, 1, NULL, 1, 10, NULL, NULL), -EIO);
    volume_close(other);
    CU_ASSERT_TRUE(play_wait(&play, 0, DISK_READY));
    CU_ASSERT_EQUAL(play_put(&play, 1, NULL, 1, 10, NULL, NULL), 0);
    play_end(&play);
}

SUITE(cache_disk_faults, CASE(a_slow_volume_is_taken_out_and_comes_back), CASE(a_hung_read_is_given_up),
        CASE(a_hung_disk_does_not_hold_up_the_end), CASE(errors_of_reads_cost_their_entry_alone),
        CASE(a_flipped_bit_is_never_read), CASE(a_broken_chunk_is_fetched_again),
        CASE(what_was_put_survives_a_kill), CASE(one_lost_volume_costs_its_share),
        CASE(another_ones_lock_is_waited_for))
