// The set of volumes: which one a name belongs to, changes of it while it serves, and everything at once.
#include "cache/disk.h"
#include "tests/unit/cache/disk_play.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KIB (1 << 10)
#define MIB (1 << 20)
#define NAMES 300

static unsigned open_files(void) {
    unsigned count = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static const void *volume_for(struct play_disk *play, unsigned number) {
    struct play_name name;
    play_name(&name, number);
    return disk_volume_for(play->disk, &name.name);
}

// ---- ranks ----

// Three times the size, three times the share; and what is left of the set keeps what it had.
static void shares_follow_sizes(void) {
    struct play_disk play;
    const void *before[NAMES];
    unsigned moved_wrongly = 0;
    play_start(&play, 2);
    play_close(&play);
    play.volumes[1].bytes *= 3;
    play_open(&play);
    const void *large = NULL;
    unsigned counts[2] = {0};
    for (unsigned i = 0; i < NAMES; i++) {
        before[i] = volume_for(&play, i);
        large = large ? large : before[i];
        counts[before[i] == large]++;
    }
    unsigned most = counts[0] > counts[1] ? counts[0] : counts[1];
    CU_ASSERT_TRUE(most > NAMES * 65 / 100 && most < NAMES * 85 / 100);
    play.paths[2] = scratch_new();
    play.volumes[2] = play.volumes[0];
    play.volumes[2].path = play.paths[2];
    play.settings.count = 3;
    disk_apply(play.disk, &play.settings);
    CU_ASSERT_TRUE(play_wait(&play, 2, DISK_READY));
    unsigned moved = 0;
    const void *third = NULL;
    for (unsigned i = 0; i < NAMES; i++) {
        const void *after = volume_for(&play, i);
        if (after != before[i]) {
            moved++;
            third = third ? third : after;
            moved_wrongly += after != third;
        }
    }
    CU_ASSERT_EQUAL(moved_wrongly, 0);
    CU_ASSERT_TRUE(moved > NAMES / 10 && moved < NAMES * 3 / 10); // a fifth
    play_end(&play);
}

// ---- changes ----

static void volumes_come_and_go(void) {
    struct play_disk play;
    struct disk_place place;
    struct disk_volume_stats stats[DISK_VOLUMES_MAX];
    unsigned files = open_files();
    play_start(&play, 2);
    for (unsigned i = 0; i < NAMES; i++)
        CU_ASSERT_EQUAL(play_put(&play, i, NULL, i, 100, i ? NULL : &place, NULL), 0);
    struct disk_settings one = play.settings;
    one.count = 1;
    disk_apply(play.disk, &one);
    CU_ASSERT_EQUAL(disk_stats(play.disk, stats), 1);
    unsigned found = 0;
    for (unsigned i = 0; i < NAMES; i++)
        found += play_only(&play, i, NULL) == (int)i;
    CU_ASSERT_TRUE(found > NAMES / 3 && found < NAMES * 2 / 3);
    // Whoever is at it may go on, whichever volume it is.
    unsigned char content[100];
    struct iovec part = {content, sizeof content};
    memset(content, 1, sizeof content);
    CU_ASSERT_EQUAL(disk_put_chunk(&place, 0, &part, 1), 0);
    CU_ASSERT_TRUE(disk_may_have_chunk(&place, 0));
    disk_apply(play.disk, &play.settings); // it comes back once the place is given back
    disk_place_put(&place);
    CU_ASSERT_TRUE(play_wait(&play, 1, DISK_READY));
    CU_ASSERT_EQUAL(disk_stats(play.disk, stats), 2);
    for (unsigned i = 0; i < NAMES; i++)
        CU_ASSERT_EQUAL(play_only(&play, i, NULL), (int)i);
    play_end(&play);
    CU_ASSERT_EQUAL(open_files(), files);
}

static void sizes_change(void) {
    struct play_disk play;
    struct disk_volume_stats stats[DISK_VOLUMES_MAX];
    play_start(&play, 1);
    for (unsigned i = 0; i < NAMES; i++)
        CU_ASSERT_EQUAL(play_put(&play, i, NULL, i, 100, NULL, NULL), 0);
    play.volumes[0].bytes += 8 * MIB;
    disk_apply(play.disk, &play.settings);
    for (int i = 0; i < 5000; i++) {
        disk_stats(play.disk, stats);
        if (stats[0].state == DISK_READY && stats[0].volume.limit_bytes > 36 * MIB)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    CU_ASSERT_TRUE(stats[0].volume.limit_bytes > 36 * MIB && stats[0].volume.limit_bytes <= 40 * MIB);
    for (unsigned i = 0; i < NAMES; i++)
        CU_ASSERT_EQUAL(play_only(&play, i, NULL), (int)i);
    play_end(&play);
}

// What was written while its volume was away replaces what lies there.
static void of_two_volumes_the_later_response_counts(void) {
    struct play_disk play;
    play_start(&play, 2);
    for (unsigned i = 0; i < 40; i++)
        CU_ASSERT_EQUAL(play_put(&play, i, NULL, 1, 100, NULL, NULL), 0);
    struct disk_settings one = play.settings;
    one.count = 1;
    disk_apply(play.disk, &one);
    for (unsigned i = 0; i < 20; i++)
        CU_ASSERT_EQUAL(play_put(&play, i, NULL, 2, 100, NULL, NULL), 0);
    disk_apply(play.disk, &play.settings);
    CU_ASSERT_TRUE(play_wait(&play, 1, DISK_READY));
    for (unsigned i = 0; i < 40; i++) {
        struct disk_head *heads;
        CU_ASSERT_EQUAL(play_read(&play, i, true, &heads), 0);
        CU_ASSERT_PTR_NOT_NULL_FATAL(heads);
        CU_ASSERT_EQUAL(play_edition(heads->head, i, NULL), i < 20 ? 2 : 1);
        disk_heads_free(heads);
    }
    play_end(&play);
}

// ---- all at once ----

#define THREADS 4
#define ROUNDS 400
#define CROWD_NAMES 40

struct crowd {
    struct play_disk *play;
    _Atomic unsigned right, wrong, edition, gave_up;
};

struct crowd_job {
    struct disk_job job;
    struct crowd *crowd;
    unsigned number;
    _Atomic bool done;
};

// Several editions may be there; each is one that was put, with its own content.
static void check_heads(struct crowd *crowd, unsigned number, const struct disk_head *head) {
    for (; head; head = head->next) {
        int edition = play_edition(head->head, number, NULL);
        unsigned char *wanted = malloc(head->content_bytes + 1);
        play_fill(wanted, head->content_bytes, (uint64_t)edition);
        bool right = edition > 0 && head->has_content &&
                     memcmp(wanted, head->content ? head->content : wanted, head->content_bytes) == 0;
        atomic_fetch_add(right ? &crowd->right : &crowd->wrong, 1);
        free(wanted);
    }
}

static void read_one(struct crowd *crowd, unsigned number, bool may_wait, bool drops) {
    struct disk_head *heads = NULL;
    int error = play_read(crowd->play, number, may_wait, &heads);
    if (error < 0 && error != -EAGAIN)
        atomic_fetch_add(&crowd->wrong, 1);
    check_heads(crowd, number, heads);
    if (heads && drops)
        disk_drop(&heads->place, heads->location, false);
    else if (heads)
        disk_hit(&heads->place, heads->location);
    disk_heads_free(heads);
}

static void run_job(struct disk_job *job) {
    struct crowd_job *own = (struct crowd_job *)job;
    read_one(own->crowd, own->number, true, false);
}

static void give_up_job(struct disk_job *job) {
    atomic_fetch_add(&((struct crowd_job *)job)->crowd->gave_up, 1);
}

static void end_job(struct disk_job *job) {
    atomic_store(&((struct crowd_job *)job)->done, true);
}

static void submit_one(struct crowd *crowd, unsigned number) {
    struct crowd_job job = {.job = {.run = run_job, .give_up = give_up_job, .done = end_job},
            .crowd = crowd,
            .number = number};
    struct play_name name;
    play_name(&name, number);
    struct disk_volume *volume = disk_volume_for(crowd->play->disk, &name.name);
    if (!volume || !disk_submit(volume, DISK_READ, &job.job))
        return;
    while (!atomic_load(&job.done))
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

static void *take_part(void *context) {
    struct crowd *crowd = context;
    uint64_t random = (uintptr_t)&random;
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t bits = disk_random(&random);
        unsigned number = (unsigned)(bits >> 32) % CROWD_NAMES;
        struct disk_volume_stats stats[DISK_VOLUMES_MAX];
        switch (bits % 8) {
        case 0:
        case 1:
            play_put(crowd->play, number, NULL, atomic_fetch_add(&crowd->edition, 1) + 1,
                    (int64_t)(bits >> 16) % (100 * KIB), NULL, NULL);
            break;
        case 2:
            read_one(crowd, number, true, true);
            break;
        case 3:
            submit_one(crowd, number);
            break;
        case 4:
            disk_stats(crowd->play->disk, stats);
            break;
        default:
            read_one(crowd, number, bits & 8, false);
        }
    }
    return NULL;
}

static void four_threads_at_once(void) {
    struct play_disk play;
    unsigned files = open_files();
    play_start(&play, 3);
    struct crowd crowd = {.play = &play};
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, take_part, &crowd), 0);
    struct disk_settings fewer = play.settings;
    fewer.count = 2;
    for (unsigned i = 0; i < 6; i++) { // the third one comes and goes meanwhile
        disk_apply(play.disk, i % 2 ? &play.settings : &fewer);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CU_ASSERT_EQUAL(crowd.wrong, 0);
    CU_ASSERT_TRUE(crowd.right > ROUNDS);
    play_end(&play);
    CU_ASSERT_EQUAL(open_files(), files);
}

SUITE(cache_disk_set, CASE(shares_follow_sizes), CASE(volumes_come_and_go), CASE(sizes_change),
        CASE(of_two_volumes_the_later_response_counts), CASE(four_threads_at_once))
