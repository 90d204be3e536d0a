// How well a volume chooses what it keeps: a trace is replayed through a real one, each miss puts a record of
// the object's size (one above 1 MiB in pieces). WEIR_TRACE names a trace, `time,id,size` in gzip, to be
// replayed as well, with the payload of WEIR_TRACE_BYTES and the bounds below.
#include "cache/volume_own.h"
#include "tests/unit/cache/disk.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BU98_BYTES 28043124
#define BU98_OBJECT_MISS 0.618
#define BU98_BYTE_MISS 0.605
#define BU98_WRITTEN 1.15
#define ZIPF_OBJECT_MISS 0.6 // a volume of about 1000 of 4000 objects, a quarter of the requests for others
#define ZIPF_WRITTEN 1.25

struct yardstick {
    uint64_t requests, misses, bytes, bytes_missed;
    uint64_t payload_most; // that lay in segments at once
    struct volume *volume;
    unsigned char *zeros;
};

struct result {
    double object_miss, byte_miss, written;
    uint64_t payload_most;
};

static uint32_t piece_bytes(uint64_t size, unsigned piece) {
    uint64_t left = size - (uint64_t)piece * RECORD_BODY_MAXIMUM;
    return (uint32_t)(left < RECORD_BODY_MAXIMUM ? left : RECORD_BODY_MAXIMUM);
}

static unsigned pieces_of(uint64_t size) {
    return size == 0 ? 1 : (unsigned)((size - 1) / RECORD_BODY_MAXIMUM) + 1;
}

static struct cache_key piece_key(uint64_t id, unsigned piece) {
    return disk_key(id * 8191 + piece);
}

// Reads the header alone: the checksums of content have their own tests.
static bool has_piece(struct yardstick *yard, struct cache_key key) {
    struct volume_place places[TABLE_CANDIDATES_MAX];
    unsigned count = volume_find(yard->volume, key, places);
    bool found = false;
    for (unsigned i = 0; i < count; i++) {
        unsigned char header[RECORD_HEADER_BYTES];
        struct record record;
        if (segment_read(places[i].segment, places[i].offset, header, sizeof header) == 0 &&
                record_decode(header, &record) == RECORD_OK && key_equal(record.key, key)) {
            volume_hit(yard->volume, key, places[i].location);
            found = true;
        }
        segment_put(places[i].segment);
    }
    return found;
}

static void put_piece(struct yardstick *yard, struct cache_key key, uint32_t bytes) {
    unsigned char crcs[64] = {0};
    struct record record = {.type = RECORD_HEAD, .key = key, .body_bytes = bytes};
    record_write_crcs(yard->zeros, bytes, crcs);
    struct iovec payload[] = {{crcs, record_crcs_bytes(bytes)}, {yard->zeros, bytes}};
    int error = -ENOSPC; // the disk may be busy with others
    for (int i = 0; i < 600 && (error == -ENOSPC || error == -EAGAIN); i++)
        error = volume_put(yard->volume, &record, payload, 2);
    CU_ASSERT_EQUAL(error, 0);
}

static bool count_payload(void *context, const struct segment_entry *entry) {
    uint64_t *bytes = context; // but for the padding, 32 bytes on average
    *bytes += (uint64_t)entry->bytes * RECORD_ALIGNMENT - RECORD_HEADER_BYTES;
    return true;
}

// Every record in every segment counts, also one that was just carried over and lies there twice.
static void measure_payload(struct yardstick *yard) {
    struct segments *pool = &yard->volume->pool;
    uint64_t bytes = 0;
    for (uint32_t slot = 0; slot < pool->slot_count; slot++) {
        struct segment *segment = segments_find(pool, slot);
        if (!segment)
            continue;
        if (segment_is_sealed(segment))
            segment_walk(segment, count_payload, &bytes);
        else
            bytes += segment_used(segment);
        segment_put(segment);
    }
    if (bytes > yard->payload_most)
        yard->payload_most = bytes;
}

static void request(struct yardstick *yard, uint64_t id, uint64_t size) {
    bool hit = true;
    yard->requests++;
    yard->bytes += size;
    for (unsigned i = 0; i < pieces_of(size); i++)
        if (!has_piece(yard, piece_key(id, i)))
            hit = false;
    if (hit)
        return;
    yard->misses++;
    yard->bytes_missed += size;
    for (unsigned i = 0; i < pieces_of(size); i++)
        if (!has_piece(yard, piece_key(id, i)))
            put_piece(yard, piece_key(id, i), piece_bytes(size, i));
    if (yard->misses % 256 == 0)
        measure_payload(yard);
}

// The directory's size for so much payload: what the volume keeps free, and all that is not content, comes on
// top. About 64 segments.
static struct volume_settings settings_for(const char *path, uint64_t payload, uint64_t object_bytes) {
    struct volume_settings settings = {.path = path,
            .segment_bytes = payload / 64 / 4096 * 4096,
            .objects = payload / object_bytes * 3 / 2};
    settings.bytes = payload + 2 * settings.segment_bytes + VOLUME_OVERHEAD_BYTES + settings.objects * 16;
    return settings;
}

static struct result finish(struct yardstick *yard) {
    struct volume_stats stats;
    measure_payload(yard);
    volume_stats(yard->volume, &stats);
    struct result result = {.object_miss = (double)yard->misses / (double)yard->requests,
            .byte_miss = (double)yard->bytes_missed / (double)yard->bytes,
            .written = (double)stats.bytes_written / (double)yard->bytes_missed,
            .payload_most = yard->payload_most};
    printf("\n    %llu requests: object miss %.4f, byte miss %.4f, written %.3f a byte missed, payload at "
           "most "
           "%llu, %llu segments ",
            (unsigned long long)yard->requests, result.object_miss, result.byte_miss, result.written,
            (unsigned long long)result.payload_most, (unsigned long long)stats.segments);
    volume_close(yard->volume);
    free(yard->zeros);
    return result;
}

static struct yardstick begin(const struct volume_settings *settings) {
    return (struct yardstick){.volume = disk_open(settings), .zeros = calloc(1, RECORD_BODY_MAXIMUM)};
}

// Zipf's law with a share of objects that are asked for once: what proxies see.
static void zipf(void) {
    enum { OBJECTS = 4000, REQUESTS = 30000 };
    char *path = scratch_new();
    double *sums = malloc(OBJECTS * sizeof *sums), sum = 0;
    uint64_t state = 1, once = 1 << 20;
    struct volume_settings settings = settings_for(path, 8 << 20, 8 << 10);
    struct yardstick yard = begin(&settings);
    for (int i = 0; i < OBJECTS; i++)
        sums[i] = sum += 1 / pow(i + 1, 0.8);
    for (int i = 0; i < REQUESTS; i++) {
        double at = (double)(disk_random(&state) >> 11) / (double)(UINT64_C(1) << 53) * sum;
        int low = 0, high = OBJECTS - 1;
        while (low < high)
            *(sums[(low + high) / 2] < at ? &low : &high) =
                    sums[(low + high) / 2] < at ? (low + high) / 2 + 1 : (low + high) / 2;
        uint64_t id = disk_random(&state) % 4 == 0 ? once++ : (uint64_t)low, mixed = id;
        request(&yard, id, 1000 + disk_random(&mixed) % 15000);
    }
    struct result result = finish(&yard);
    CU_ASSERT_TRUE(result.payload_most <= 8 << 20);
    CU_ASSERT_TRUE(result.object_miss < ZIPF_OBJECT_MISS);
    CU_ASSERT_TRUE(result.written < ZIPF_WRITTEN);
    free(sums);
    scratch_free(path);
}

static void trace(void) {
    const char *name = getenv("WEIR_TRACE");
    if (!name)
        return; // `zipf` is the test that always runs
    char *path = scratch_new(), *command = NULL, line[128];
    struct volume_settings settings = settings_for(path, BU98_BYTES, 7600);
    if (getenv("WEIR_TRACE_SMALL"))
        settings.small_percent = (unsigned)atoi(getenv("WEIR_TRACE_SMALL"));
    struct yardstick yard = begin(&settings);
    CU_ASSERT_FATAL(asprintf(&command, "gzip -dc '%s'", name) > 0);
    FILE *file = popen(command, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    while (fgets(line, sizeof line, file)) {
        unsigned long long id, size;
        if (sscanf(line, "%*u,%llu,%llu", &id, &size) == 2)
            request(&yard, id, size);
    }
    CU_ASSERT_EQUAL(pclose(file), 0);
    struct result result = finish(&yard);
    CU_ASSERT_EQUAL(yard.requests, 66987);
    CU_ASSERT_TRUE(result.payload_most <= BU98_BYTES);
    CU_ASSERT_TRUE(result.object_miss <= BU98_OBJECT_MISS);
    CU_ASSERT_TRUE(result.byte_miss <= BU98_BYTE_MISS);
    CU_ASSERT_TRUE(result.written <= BU98_WRITTEN);
    free(command);
    scratch_free(path);
}

SUITE(cache_yardstick, CASE(zipf), CASE(trace))
