// Purges and drops, and that they outlast what comes after.
#include "cache/disk.h"
#include "cache/file.h"
#include "tests/unit/cache/disk_play.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAMES 30 // 0.example ... 9.example, three paths each

static bool ends_with(void *context, struct view mask, struct view authority, struct view path) {
    (void)context, (void)authority;
    return path.length >= mask.length && view_equal(view_skip(path, path.length - mask.length), mask);
}

static void start(struct play_disk *play, unsigned count) {
    play_start(play, count);
    play_close(play);
    for (unsigned i = 0; i < count; i++)
        play->volumes[i].matches = ends_with;
    play_open(play);
    for (unsigned i = 0; i < NAMES; i++)
        CU_ASSERT_EQUAL(play_put(play, i, NULL, i + 1, 100, NULL, NULL), 0);
}

typedef bool is_gone(unsigned number);

static bool is_13(unsigned number) {
    return number == 13;
}

static bool is_of_host_3(unsigned number) {
    return number % 10 == 3;
}

static bool is_below_2(unsigned number) { // of host 4: paths /4?4, /14?14, /24?24
    return number == 24;
}

static bool ends_in_7(unsigned number) {
    return number % 10 == 7;
}

static bool is_any(unsigned number) {
    (void)number;
    return true;
}

static const struct {
    enum disk_purge kind;
    const char *authority, *path;
    is_gone *gone;
    unsigned example; // of what is gone
} purges[] = {
        {DISK_PURGE_URL, "3.example", "/13?13", is_13, 13},
        {DISK_PURGE_HOST, "3.example", "", is_of_host_3, 3},
        {DISK_PURGE_PREFIX, "4.example", "/2", is_below_2, 24},
        {DISK_PURGE_MASK, "", "7", ends_in_7, 17},
        {DISK_PURGE_ALL, "", "", is_any, 5},
};
#define PURGES (sizeof purges / sizeof *purges)

static void check(struct play_disk *play, is_gone *gone, unsigned until) {
    for (unsigned i = 0; i < until; i++)
        CU_ASSERT_EQUAL(play_only(play, i, NULL), gone(i) ? -1 : (int)i + 1);
}

static int purge(struct play_disk *play, unsigned i) {
    return disk_purge(play->disk, purges[i].kind, view_of(purges[i].authority), view_of(purges[i].path));
}

static void each_kind_goes_and_stays_away(void) {
    for (unsigned i = 0; i < PURGES; i++) {
        struct play_disk play;
        start(&play, 2);
        CU_ASSERT_EQUAL(purge(&play, i), 0);
        check(&play, purges[i].gone, NAMES);
        play_close(&play);
        play_open(&play);
        check(&play, purges[i].gone, NAMES);
        unsigned later = purges[i].example; // what comes later stays
        CU_ASSERT_EQUAL(play_put(&play, later, NULL, 99, 10, NULL, NULL), 0);
        CU_ASSERT_EQUAL(play_only(&play, later, NULL), 99);
        play_close(&play);
        play_open(&play);
        CU_ASSERT_EQUAL(play_only(&play, later, NULL), 99);
        play_end(&play);
    }
}

static void a_purge_outlasts_a_kill(void) {
    for (unsigned i = 0; i < PURGES; i++) {
        struct play_disk play;
        int status;
        play_start(&play, 2);
        play_close(&play);
        for (unsigned j = 0; j < 2; j++)
            play.volumes[j].matches = ends_with;
        pid_t child = fork();
        if (child == 0) {
            play_open(&play);
            for (unsigned j = 0; j < NAMES; j++)
                play_put(&play, j, NULL, j + 1, 100, NULL, NULL);
            _exit(purge(&play, i) != 0);
        }
        CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
        CU_ASSERT_EQUAL(status, 0);
        play_open(&play);
        check(&play, purges[i].gone, NAMES);
        play_end(&play);
    }
}

// A dropped head stays dropped, and the other variant of its URL stays.
static void drops_outlast_a_kill(void) {
    struct play_disk play;
    int status;
    play_start(&play, 1);
    play_close(&play);
    pid_t child = fork();
    if (child == 0) {
        struct disk_place place;
        uint64_t location;
        play_open(&play);
        play_put(&play, 1, "de", 1, 100, NULL, NULL);
        play_put(&play, 1, "fr", 2, 100, NULL, NULL);
        play_put(&play, 1, "de", 3, 100, &place, &location); // the first one lies there still
        disk_drop(&place, location, true);
        play_put(&play, 2, NULL, 4, 100, &place, &location);
        disk_drop(&place, location, true);
        play_put(&play, 2, NULL, 5, 100, NULL, NULL); // a later one
        _exit(play_only(&play, 1, "fr") != 2);
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
    play_open(&play);
    CU_ASSERT_EQUAL(play_only(&play, 1, "fr"), 2);
    CU_ASSERT_EQUAL(play_only(&play, 2, NULL), 5);
    play_end(&play);
}

// What is purged while its volume is away is gone when that comes back.
static void a_volume_that_was_away_is_told(void) {
    struct play_disk play;
    char aside[512], missed[512];
    start(&play, 2);
    play_close(&play);
    snprintf(aside, sizeof aside, "%s.aside", play.paths[0]);
    CU_ASSERT_EQUAL(rename(play.paths[0], aside), 0);
    close(open(play.paths[0], O_CREAT | O_WRONLY, 0600));
    play.disk = disk_new(&play.settings);
    CU_ASSERT_TRUE(play_wait(&play, 1, DISK_READY));
    CU_ASSERT_EQUAL(purge(&play, 1), -EIO);
    CU_ASSERT_EQUAL(disk_purge_missed(play.disk, missed, sizeof missed), -EIO);
    CU_ASSERT_STRING_EQUAL(missed, play.paths[0]);
    unlink(play.paths[0]);
    CU_ASSERT_EQUAL(rename(aside, play.paths[0]), 0);
    CU_ASSERT_TRUE(play_wait(&play, 0, DISK_READY));
    check(&play, purges[1].gone, NAMES);
    CU_ASSERT_EQUAL(disk_purge_missed(play.disk, missed, sizeof missed), 0);
    play_end(&play);
}

SUITE(cache_disk_purge, CASE(each_kind_goes_and_stays_away), CASE(a_purge_outlasts_a_kill),
        CASE(drops_outlast_a_kill), CASE(a_volume_that_was_away_is_told))
