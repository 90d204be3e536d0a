// Purging a volume, what is judged at reclaim, and a new size.
#include "cache/file.h"
#include "cache/head_record.h"
#include "cache/volume_own.h"
#include "tests/unit/cache/disk.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KIB 1024
#define MIB (1 << 20)
#define HOSTS 4

static bool contains(void *context, struct view mask, struct view authority, struct view path) {
    (void)context, (void)authority;
    return memmem(path.data, path.length, mask.data, mask.length) != NULL;
}

static struct volume_settings settings_of(const char *path) {
    return (struct volume_settings){.path = path,
            .bytes = 8 * MIB,
            .segment_bytes = 128 * KIB,
            .objects = 8000,
            .probe_ms = 20,
            .matches = contains};
}

struct url {
    char host[16], path[32];
};

static struct url url_of(uint64_t id) {
    struct url url;
    snprintf(url.host, sizeof url.host, "h%d", (int)(id % HOSTS));
    snprintf(url.path, sizeof url.path, "/%c/%d", (char)('a' + id % 7), (int)id);
    return url;
}

static int put(struct volume *volume, uint64_t id) {
    static const unsigned char body[4000] = {1};
    struct url url = url_of(id);
    struct stored_head *head = calloc(1, sizeof *head);
    head->http.status = 200;
    head->http.minor_version = 1;
    head->content_length = -1;
    struct head_record about = {
            .authority = view_of(url.host), .path = view_of(url.path), .body_length = sizeof body};
    about.destination.address.bytes[10] = about.destination.address.bytes[11] = 0xff;
    unsigned char bytes[512], crcs[64];
    size_t length = head_record_encode(&about, head, bytes, sizeof bytes);
    free(head);
    CU_ASSERT_FATAL(length > 0 && length <= sizeof bytes);
    struct record record = {.type = RECORD_HEAD, .key = disk_key(id), .body_bytes = sizeof body};
    record_set_head(&record, bytes, length);
    record_write_crcs(body, sizeof body, crcs);
    struct iovec payload[] = {
            {bytes, length}, {crcs, record_crcs_bytes(sizeof body)}, {(void *)body, sizeof body}};
    int error = -EAGAIN;
    for (int i = 0; i < 600 && (error == -EAGAIN || error == -ENOSPC); i++)
        error = volume_put(volume, &record, payload, 3);
    return error;
}

// Read as its face does; hit too if `hits`.
static bool has(struct volume *volume, uint64_t id, bool hits) {
    struct volume_place places[TABLE_CANDIDATES_MAX];
    unsigned count = volume_find(volume, disk_key(id), places);
    unsigned char *buffer = malloc(SEGMENT_RECORD_MAXIMUM);
    struct url url = url_of(id);
    bool found = false;
    for (unsigned i = 0; i < count; i++) {
        struct record record;
        if (segment_read_record(places[i].segment, places[i].offset, buffer, &record) == 0 &&
                key_equal(record.key, disk_key(id)) &&
                !volume_is_purged(
                        volume, record.key, view_of(url.host), view_of(url.path), record.sequence)) {
            found = true;
            if (hits)
                volume_hit(volume, record.key, places[i].location);
        }
        segment_put(places[i].segment);
    }
    free(buffer);
    return found;
}

static unsigned count(struct volume *volume, uint64_t first, uint64_t last) {
    unsigned found = 0;
    for (uint64_t id = first; id < last; id++)
        found += has(volume, id, false);
    return found;
}

static void put_all(struct volume *volume, uint64_t first, uint64_t last) {
    for (uint64_t id = first; id < last; id++)
        CU_ASSERT_EQUAL(put(volume, id), 0);
}

static void purge_some(struct volume *volume) {
    CU_ASSERT_EQUAL(volume_purge(volume, VOLUME_PURGE_URL, VIEW("h1"), view_of(url_of(1).path)), 0);
    CU_ASSERT_EQUAL(volume_purge(volume, VOLUME_PURGE_HOST, VIEW("h2"), VIEW("")), 0);
    CU_ASSERT_EQUAL(volume_purge(volume, VOLUME_PURGE_PREFIX, VIEW("h0"), VIEW("/a/")), 0);
    CU_ASSERT_EQUAL(volume_purge(volume, VOLUME_PURGE_MASK, VIEW(""), VIEW("/b/8")), 0);
    CU_ASSERT_EQUAL(volume_purge_key(volume, disk_key(3), 0), 0);
}

static bool is_gone(uint64_t id) {
    return id == 1 || id == 3 || id % HOSTS == 2 || (id % HOSTS == 0 && id % 7 == 0) ||
           strstr(url_of(id).path, "/b/8");
}

static void check_gone(struct volume *volume, uint64_t first, uint64_t last) {
    for (uint64_t id = first; id < last; id++)
        CU_ASSERT_EQUAL(has(volume, id, false), !is_gone(id));
}

static void purges_last(void) {
    char *path = scratch_new();
    struct volume_settings settings = settings_of(path);
    struct volume *volume = disk_open(&settings);
    put_all(volume, 0, 200);
    purge_some(volume);
    check_gone(volume, 0, 200);
    put_all(volume, 1, 3); // what comes later is none of it
    CU_ASSERT_EQUAL(count(volume, 1, 3), 2);
    for (int i = 0; i < 3; i++) {
        volume_close(volume);
        if (i == 1) { // a torn tail
            char *name = NULL;
            CU_ASSERT_FATAL(asprintf(&name, "%s/purge.log", path) > 0);
            int fd = open(name, O_RDWR);
            CU_ASSERT_FATAL(fd >= 0);
            CU_ASSERT_EQUAL(pwrite(fd, "PURG\1", 5, 64 * 10), 5);
            close(fd);
            free(name);
        }
        volume = disk_open(&settings);
        check_gone(volume, 3, 200);
        CU_ASSERT_EQUAL(count(volume, 1, 3), 2);
        CU_ASSERT_FALSE(has(volume, 3, false));
    }
    settings.matches = NULL;
    volume_close(volume);
    volume = disk_open(&settings);
    CU_ASSERT_EQUAL(volume_purge(volume, VOLUME_PURGE_MASK, VIEW(""), VIEW("x")), -EINVAL);
    CU_ASSERT_EQUAL(volume_purge(volume, VOLUME_PURGE_ALL, VIEW(""), VIEW("")), 0);
    CU_ASSERT_EQUAL(count(volume, 0, 200), 0);
    volume_close(volume);
    scratch_free(path);
}

// Killed as soon as the purge is answered.
static void purges_survive_a_kill(void) {
    char *path = scratch_new_quick();
    struct volume_settings settings = settings_of(path);
    for (int round = 0; round < 10; round++) {
        uint64_t first = (uint64_t)round * 20;
        pid_t child = fork();
        if (child == 0) {
            char error[256];
            struct volume *volume = volume_open(&settings, error, sizeof error);
            // In half of them while it is loading: whatever there is by then.
            if (!volume || (round % 2 && !disk_leave(volume, VOLUME_LOADING)))
                _exit(1);
            struct view host = view_of(url_of((uint64_t)round).host);
            for (uint64_t id = first; id < first + 20 && round % 2; id++)
                if (put(volume, id) < 0)
                    _exit(2);
            if (volume_purge(volume, VOLUME_PURGE_HOST, host, VIEW("")) < 0)
                _exit(3);
            kill(getpid(), SIGKILL);
        }
        int status;
        CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
        CU_ASSERT_TRUE(WIFSIGNALED(status));
        struct volume *volume = disk_open(&settings);
        for (uint64_t id = 0; id < first + 20; id++)
            if (id % HOSTS == (uint64_t)round % HOSTS)
                CU_ASSERT_FALSE(has(volume, id, false));
        put_all(volume, first, first + 20); // found again, with a later sequence
        CU_ASSERT_EQUAL(count(volume, first, first + 20), 20);
        volume_close(volume);
    }
    scratch_free(path);
}

// What is purged is not carried over, however often it was hit; the rules go when nothing older is left.
static void reclaim_asks(void) {
    char *path = scratch_new_quick();
    struct volume_settings settings = settings_of(path);
    struct volume *volume = disk_open(&settings);
    struct volume_stats stats;
    put_all(volume, 0, 100);
    purge_some(volume);
    for (uint64_t id = 0; id < 100; id++) { // as a reader in flight may have
        struct volume_place places[TABLE_CANDIDATES_MAX];
        unsigned found = volume_find(volume, disk_key(id), places);
        for (unsigned i = 0; i < found; i++) {
            volume_hit(volume, disk_key(id), places[i].location);
            segment_put(places[i].segment);
        }
    }
    put_all(volume, 1000, 3500);
    struct volume_place places[TABLE_CANDIDATES_MAX];
    for (uint64_t id = 0; id < 100; id++) {
        unsigned found = volume_find(volume, disk_key(id), places);
        for (unsigned i = 0; i < found; i++)
            segment_put(places[i].segment);
        CU_ASSERT_EQUAL(found, !is_gone(id));
    }
    put_all(volume, 4000, 12000);
    volume_stats(volume, &stats);
    CU_ASSERT_EQUAL(stats.rules, 0);
    volume_close(volume);
    scratch_free(path);
}

static enum volume_verdict judge(void *context, const struct volume_judged *judged) {
    struct head_record about;
    unsigned *asked = context;
    ++*asked;
    CU_ASSERT_FATAL(head_record_read(judged->head, &about));
    if (view_equal(about.authority, VIEW("h0")))
        return VOLUME_DROP;
    return view_equal(about.authority, VIEW("h1")) && !judged->is_main ? VOLUME_KEEP : VOLUME_BY_HITS;
}

static void reclaim_judges(void) {
    char *path = scratch_new_quick();
    unsigned asked = 0;
    struct volume_settings settings = settings_of(path);
    settings.keep = judge;
    settings.judges_unhit = true;
    settings.context = &asked;
    struct volume *volume = disk_open(&settings);
    put_all(volume, 0, 40);
    for (uint64_t id = 0; id < 40; id++)
        CU_ASSERT_TRUE(has(volume, id, id % HOSTS != 1)); // h1 is not hit
    put_all(volume, 1000, 3000);
    for (uint64_t id = 0; id < 40; id++)
        CU_ASSERT_EQUAL(has(volume, id, false), id % HOSTS != 0);
    volume_close(volume);
    CU_ASSERT_TRUE(asked > 100);
    scratch_free(path);
}

static void ghosts_last(void) {
    char *path = scratch_new_quick();
    struct volume_settings settings = settings_of(path);
    struct volume *volume = disk_open(&settings);
    put_all(volume, 0, 2400); // the first ones leave without a hit
    volume_close(volume);
    volume = disk_open(&settings);
    unsigned remembered = 0;
    for (uint64_t id = 0; id < 500; id++)
        remembered += ghosts_take(volume->ghosts, disk_key(id));
    CU_ASSERT_TRUE(remembered > 250);
    volume_close(volume);
    scratch_free(path);
}

static void waits_until_within(struct volume *volume, const char *path, uint64_t bytes) {
    struct volume_stats stats;
    for (int i = 0; i < 10000; i++) {
        volume_stats(volume, &stats);
        if (stats.bytes <= bytes)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    CU_ASSERT_TRUE(stats.bytes <= bytes);
    CU_ASSERT_TRUE(disk_usage(path) <= bytes);
}

static void takes_a_new_size(void) {
    char *path = scratch_new();
    struct volume_settings settings = settings_of(path);
    struct volume *volume = disk_open(&settings);
    put_all(volume, 0, 2000);
    CU_ASSERT_TRUE(disk_usage(path) > 6 * MIB);
    CU_ASSERT_EQUAL(volume_resize(volume, 4 * MIB), 0); // with nothing to push it
    waits_until_within(volume, path, 4 * MIB);
    put_all(volume, 2000, 3000);
    CU_ASSERT_TRUE(disk_usage(path) <= 4 * MIB);
    CU_ASSERT_EQUAL(volume_resize(volume, 16 * MIB), 0);
    put_all(volume, 3000, 6500);
    CU_ASSERT_TRUE(disk_usage(path) > 12 * MIB && disk_usage(path) <= 16 * MIB);
    CU_ASSERT_EQUAL(volume_resize(volume, MIB), -EINVAL);
    CU_ASSERT_EQUAL(volume_resize(volume, UINT64_C(1) << 40), -EINVAL);
    CU_ASSERT_EQUAL(count(volume, 6400, 6500), 100);
    unsigned before = count(volume, 3000, 6500);
    volume_close(volume);
    settings.bytes = 16 * MIB;
    volume = disk_open(&settings);
    CU_ASSERT_EQUAL(count(volume, 3000, 6500), before);
    volume_close(volume);
    scratch_free(path);
}

// Purges, index and ghosts included.
static void stays_within_its_size(void) {
    char *path = scratch_new();
    struct volume_settings settings = settings_of(path);
    settings.bytes = 4 * MIB;
    struct volume *volume = disk_open(&settings);
    uint64_t most = 0;
    for (uint64_t id = 0; id < 3000; id++) {
        char host[24];
        snprintf(host, sizeof host, "%d.example", (int)id);
        CU_ASSERT_EQUAL(put(volume, id), 0);
        if (id % 4 == 0)
            CU_ASSERT_EQUAL(volume_purge(volume, VOLUME_PURGE_URL, view_of(host), VIEW("/")), 0);
        uint64_t usage = id % 8 == 0 ? disk_usage(path) : 0;
        most = usage > most ? usage : most;
        if (id % 1000 == 999) {
            volume_close(volume);
            usage = disk_usage(path);
            most = usage > most ? usage : most;
            volume = disk_open(&settings);
        }
    }
    CU_ASSERT_TRUE(most <= settings.bytes);
    CU_ASSERT_TRUE(most > settings.bytes * 8 / 10);
    volume_close(volume);
    scratch_free(path);
}

// ---- wear ----

static uint64_t written(struct volume *volume) {
    struct volume_stats stats;
    volume_stats(volume, &stats);
    return stats.bytes_written;
}

// What is asked for once never gets to the disk; what was hit does, and what comes again; a hit is found at
// any time, and after a stop.
static void what_is_new_stays_in_memory(void) {
    char *path = scratch_new_quick();
    struct volume_settings settings = settings_of(path);
    struct volume_stats stats;
    settings.small_memory_bytes = MIB;
    struct volume *volume = disk_open(&settings);
    for (uint64_t id = 0; id < 5000; id++) {
        CU_ASSERT_EQUAL(put(volume, id), 0);
        CU_ASSERT_TRUE(has(volume, id, id < 20));
        if (id % 64 == 0) {
            volume_stats(volume, &stats);
            CU_ASSERT_TRUE(stats.memory_bytes <= MIB);
        }
    }
    CU_ASSERT_EQUAL(count(volume, 0, 20), 20);
    CU_ASSERT_EQUAL(count(volume, 20, 4000), 0);
    CU_ASSERT_TRUE(count(volume, 4850, 5000) == 150);
    volume_stats(volume, &stats);
    CU_ASSERT_TRUE(stats.bytes_put > 5000 * 4000);
    CU_ASSERT_TRUE(stats.bytes_written < 256 * KIB);
    CU_ASSERT_TRUE(disk_usage(path) < MIB);
    uint64_t before = written(volume);
    CU_ASSERT_EQUAL(put(volume, 4700), 0); // a ghost
    CU_ASSERT_TRUE(written(volume) > before);
    CU_ASSERT_TRUE(has(volume, 4999, true));
    for (int i = 0; i < 2; i++) {
        volume_close(volume);
        volume = disk_open(&settings);
        CU_ASSERT_EQUAL(count(volume, 0, 20), 20);
        CU_ASSERT_TRUE(has(volume, 4700, false) && has(volume, 4999, false));
        CU_ASSERT_EQUAL(count(volume, 4900, 4999), 0);
        volume_stats(volume, &stats);
        CU_ASSERT_EQUAL(stats.broken_records, 0);
        CU_ASSERT_EQUAL(stats.objects, 22);
    }
    unsigned char *body = calloc(1, RECORD_BODY_MAXIMUM), crcs[64];
    struct record record = {.type = RECORD_CHUNK, .key = disk_key(9999), .body_bytes = RECORD_BODY_MAXIMUM};
    record_write_crcs(body, RECORD_BODY_MAXIMUM, crcs);
    struct iovec payload[] = {{crcs, record_crcs_bytes(RECORD_BODY_MAXIMUM)}, {body, RECORD_BODY_MAXIMUM}};
    CU_ASSERT_EQUAL(volume_put(volume, &record, payload, 2), 0); // too long for the memory
    volume_stats(volume, &stats);
    CU_ASSERT_TRUE(stats.bytes_written > RECORD_BODY_MAXIMUM);
    free(body);
    volume_close(volume);
    settings.small_memory_bytes = 0; // and back
    volume = disk_open(&settings);
    put_all(volume, 6000, 9000);
    volume_close(volume);
    settings.small_memory_bytes = MIB;
    volume = disk_open(&settings);
    CU_ASSERT_EQUAL(count(volume, 8900, 9000), 100);
    put_all(volume, 10000, 11000);
    CU_ASSERT_TRUE(disk_usage(path) <= settings.bytes);
    volume_close(volume);
    scratch_free(path);
}

// ---- a disk that fails or hangs ----

static _Atomic int sync_error;
static _Atomic bool hangs;

static int bad_fsync(int fd) {
    if (atomic_load(&sync_error)) {
        errno = atomic_load(&sync_error);
        return -1;
    }
    return file_system.fsync(fd);
}

static int bad_fdatasync(int fd) {
    while (atomic_load(&hangs))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (atomic_load(&sync_error)) {
        errno = atomic_load(&sync_error);
        return -1;
    }
    return file_system.fdatasync(fd);
}

static void use_bad(struct file_calls *bad) {
    *bad = file_system;
    bad->fsync = bad_fsync;
    bad->fdatasync = bad_fdatasync;
    file_use(bad);
}

// What is sealed while syncing fails is lost, which is not what is asked here.
static void wait_until_sealed(struct volume *volume) {
    bool waits = true;
    for (int i = 0; waits && i < 10000; i++) {
        pthread_mutex_lock(&volume->lock);
        waits = volume->pool.closing > 0;
        pthread_mutex_unlock(&volume->lock);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

// What could not be written counts all the same, and is written once that is possible.
static void purges_wait_for_the_disk(void) {
    static struct file_calls bad;
    char *path = scratch_new_quick();
    struct volume_settings settings = settings_of(path);
    use_bad(&bad);
    struct volume *volume = disk_open(&settings);
    put_all(volume, 0, 200);
    wait_until_sealed(volume);
    atomic_store(&sync_error, EIO);
    CU_ASSERT_EQUAL(volume_purge(volume, VOLUME_PURGE_HOST, VIEW("h2"), VIEW("")), -EIO);
    CU_ASSERT_FALSE(has(volume, 2, false));
    for (int i = 0; i < 20; i++) // until it is out of use
        volume_complain(volume, -EIO);
    CU_ASSERT_EQUAL(volume_purge(volume, VOLUME_PURGE_URL, VIEW("h1"), view_of(url_of(1).path)), -EIO);
    atomic_store(&sync_error, 0);
    CU_ASSERT_TRUE(disk_leave(volume, VOLUME_BROKEN));
    CU_ASSERT_EQUAL(count(volume, 0, 200), 149);
    file_use(NULL);
    // As after a kill: from the files alone.
    struct purge *rules = purge_new(volume_seed(volume), 1 << 20);
    char *name = NULL, *bytes = calloc(1, MIB);
    uint64_t end;
    CU_ASSERT_FATAL(asprintf(&name, "%s/purge.log", path) > 0);
    int fd = open(name, O_RDONLY);
    ssize_t got = read(fd, bytes, MIB);
    close(fd);
    CU_ASSERT_FATAL(got > 0);
    CU_ASSERT_TRUE(purge_read(rules, volume->super.uuid[0], (struct view){bytes, (size_t)got}, &end));
    CU_ASSERT_EQUAL(purge_count(rules), 2);
    purge_free(rules);
    free(bytes), free(name);
    volume_close(volume);
    volume = disk_open(&settings);
    CU_ASSERT_EQUAL(count(volume, 0, 200), 149);
    volume_close(volume);
    scratch_free(path);
}

static int64_t put_ms(struct volume *volume, uint64_t id) {
    int64_t before = file_now_ms();
    unsigned char crcs[64], body[4000] = {0};
    struct record record = {.type = RECORD_CHUNK, .key = disk_key(id), .body_bytes = sizeof body};
    record_write_crcs(body, sizeof body, crcs);
    struct iovec payload[] = {{crcs, record_crcs_bytes(sizeof body)}, {body, sizeof body}};
    volume_put(volume, &record, payload, 2);
    return file_now_ms() - before;
}

// The keeper hangs in an fsync: finding goes on, and nobody waits for long.
static void nobody_waits_for_a_hanging_disk(void) {
    static struct file_calls bad;
    char *path = scratch_new_quick();
    struct volume_settings settings = settings_of(path);
    use_bad(&bad);
    struct volume *volume = disk_open(&settings);
    put_all(volume, 0, 500);
    atomic_store(&hangs, true);
    int64_t longest = 0, refused = 0;
    for (uint64_t id = 10000; id < 10500 && refused < 5; id++) {
        int64_t ms = put_ms(volume, id);
        longest = ms > longest ? ms : longest;
        refused += ms >= VOLUME_PUT_WAIT_MS / 2;
        int64_t before = file_now_ms();
        CU_ASSERT_TRUE(has(volume, id % 500, false));
        CU_ASSERT_TRUE(file_now_ms() - before < 1000);
    }
    CU_ASSERT_TRUE(refused > 0 && longest < 20 * VOLUME_PUT_WAIT_MS);
    atomic_store(&hangs, false);
    put_all(volume, 600, 700);
    CU_ASSERT_EQUAL(count(volume, 600, 700), 100);
    file_use(NULL);
    volume_close(volume);
    scratch_free(path);
}

SUITE(cache_volume_purge, CASE(purges_last), CASE(purges_survive_a_kill), CASE(reclaim_asks),
        CASE(reclaim_judges), CASE(ghosts_last), CASE(takes_a_new_size), CASE(stays_within_its_size),
        CASE(what_is_new_stays_in_memory), CASE(purges_wait_for_the_disk),
        CASE(nobody_waits_for_a_hanging_disk))
