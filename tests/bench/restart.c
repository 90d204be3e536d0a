// How fast a volume is there again, with so many objects of 8 KiB: after a clean stop, and after kill -9.
//     make build/release/bench-restart && build/release/bench-restart DIRECTORY [OBJECTS]
#include "cache/file.h"
#include "cache/volume_own.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BODY_BYTES 8192
#define OBJECTS 1000000
#define SAMPLES 20000

static uint64_t mix(uint64_t bits) {
    bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
    return bits ^ bits >> 31;
}

static struct cache_key key_for(uint64_t id) {
    return (struct cache_key){id, mix(id + 1)};
}

static void fill(uint64_t id, uint64_t *body) {
    for (unsigned i = 0; i < BODY_BYTES / 8; i++)
        body[i] = mix(id * 1031 + i);
}

static void put(struct volume *volume, uint64_t id) {
    static uint64_t body[BODY_BYTES / 8];
    unsigned char crcs[8];
    struct record record = {.type = RECORD_CHUNK, .key = key_for(id), .body_bytes = BODY_BYTES};
    fill(id, body);
    record_write_crcs(body, BODY_BYTES, crcs);
    int error;
    do {
        struct iovec payload[] = {{crcs, record_crcs_bytes(BODY_BYTES)}, {body, BODY_BYTES}};
        error = volume_put(volume, &record, payload, 2);
    } while (error == -EAGAIN || error == -ENOSPC);
    if (error < 0) {
        fprintf(stderr, "put: %s\n", strerror(-error));
        exit(1);
    }
}

// 1: right; 0: not there; -1: wrong.
static int look(struct volume *volume, uint64_t id) {
    static unsigned char buffer[SEGMENT_RECORD_MAXIMUM];
    static uint64_t body[BODY_BYTES / 8];
    struct volume_place places[TABLE_CANDIDATES_MAX];
    unsigned count = volume_find(volume, key_for(id), places);
    int result = 0;
    for (unsigned i = 0; i < count; i++) {
        struct record record;
        if (segment_read_record(places[i].segment, places[i].offset, buffer, &record) == 0 &&
                key_equal(record.key, key_for(id))) {
            fill(id, body);
            result = memcmp(buffer + record_body_at(0, BODY_BYTES), body, BODY_BYTES) == 0 ? 1 : -1;
        }
        segment_put(places[i].segment);
    }
    return result;
}

static long resident_kib(void) {
    char line[128];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "VmRSS: %ld", &kib);
    if (file)
        fclose(file);
    return kib;
}

static struct volume *start(const struct volume_settings *settings) {
    char error[512];
    struct volume *volume = volume_open(settings, error, sizeof error);
    if (!volume) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
    return volume;
}

static bool is_loading(struct volume *volume) {
    return volume_state(volume) == VOLUME_LOADING;
}

static void measure(const struct volume_settings *settings, uint64_t objects, const char *after) {
    int64_t begin = file_now_ms(), first = -1;
    struct volume *volume = start(settings);
    uint64_t random = 1;
    while (is_loading(volume)) {
        random = mix(random + 1);
        if (first < 0 && look(volume, random % objects) == 1)
            first = file_now_ms() - begin;
        else
            nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    int64_t loaded = file_now_ms() - begin;
    uint64_t right = 0, wrong = 0;
    for (int i = 0; i < SAMPLES; i++) {
        random = mix(random + 1);
        int found = look(volume, random % objects);
        if (found == 1 && first < 0)
            first = file_now_ms() - begin;
        right += found == 1;
        wrong += found == -1;
    }
    struct volume_stats stats;
    volume_stats(volume, &stats);
    printf("%s: first find after %lld ms, all of %llu objects after %lld ms; of %d at random %.2f %% right, "
           "%llu wrong; index %.1f bytes an object it has room for; %ld MiB resident\n",
            after, (long long)first, (unsigned long long)stats.objects, (long long)loaded, SAMPLES,
            100.0 * (double)right / SAMPLES, (unsigned long long)wrong,
            (double)stats.index_bytes / (double)volume->settings.objects, resident_kib() / 1024);
    fflush(stdout);
    volume_close(volume);
}

static void in_child(void run(const struct volume_settings *, uint64_t),
        const struct volume_settings *settings, uint64_t objects) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        run(settings, objects);
        _exit(0);
    }
    waitpid(child, &status, 0);
}

static void fill_all(const struct volume_settings *settings, uint64_t objects) {
    int64_t begin = file_now_ms(), longest = 0;
    struct volume *volume = start(settings);
    while (is_loading(volume))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    for (uint64_t id = 0; id < objects; id++) {
        int64_t before = file_now_ms();
        put(volume, id);
        longest = file_now_ms() - before > longest ? file_now_ms() - before : longest;
    }
    printf("%llu puts in %lld ms, the longest %lld ms\n", (unsigned long long)objects,
            (long long)(file_now_ms() - begin), (long long)longest);
    begin = file_now_ms();
    volume_close(volume);
    printf("clean stop in %lld ms\n", (long long)(file_now_ms() - begin));
    fflush(stdout);
}

static void be_killed(const struct volume_settings *settings, uint64_t objects) {
    struct volume *volume = start(settings);
    while (is_loading(volume))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    for (uint64_t id = objects; id < objects + 1000; id++)
        put(volume, id);
    kill(getpid(), SIGKILL);
}

static void after_clean(const struct volume_settings *settings, uint64_t objects) {
    measure(settings, objects, "clean stop");
}

static void after_kill(const struct volume_settings *settings, uint64_t objects) {
    measure(settings, objects, "kill -9");
}

int main(int argc, char **argv) {
    uint64_t objects = argc > 2 ? strtoull(argv[2], NULL, 10) : OBJECTS;
    if (argc < 2 || objects == 0)
        return fprintf(stderr, "bench-restart DIRECTORY [OBJECTS]\n"), 2;
    struct volume_settings settings = {.path = argv[1], .bytes = objects * 10000 + (64 << 20)};
    in_child(fill_all, &settings, objects);
    in_child(after_clean, &settings, objects);
    in_child(be_killed, &settings, objects);
    in_child(after_kill, &settings, objects);
    return 0;
}
