#include "intercept/store_status.h"

#include "admin/json.h"
#include "admin/value.h"

#include <inttypes.h>
#include <stdlib.h>

struct volume_field {
    const char *name;
    uint64_t value;
    const char *meaning;
};
#define FIELD_COUNT 16

static const char *state_name(enum disk_state state) {
    switch (state) {
    case DISK_LOADING:
        return "loading";
    case DISK_READY:
        return "ready";
    case DISK_FULL:
        return "full";
    case DISK_SLOW:
        return "slow";
    case DISK_OFFLINE:
        return "offline";
    }
    return "?";
}

static const char *state_meaning(enum disk_state state) {
    switch (state) {
    case DISK_LOADING:
        return "serves what is loaded so far, and writes nothing yet";
    case DISK_READY:
        return "in use";
    case DISK_FULL:
        return "the disk takes nothing more: it is read, and tried again";
    case DISK_SLOW:
        return "takes too long: its share goes to the origin until it is faster";
    case DISK_OFFLINE:
        return "cannot be used: its share goes to the origin; it is tried again";
    }
    return "";
}

static void fields_of(const struct disk_volume_stats *stats, struct volume_field out[static FIELD_COUNT]) {
    const struct volume_stats *volume = &stats->volume;
    const struct volume_field fields[FIELD_COUNT] = {
            {"limit_bytes", volume->limit_bytes, "that the directory may take now"},
            {"bytes", volume->bytes, "that it takes"},
            {"objects", volume->objects, "records that the index knows: heads, small objects, chunks"},
            {"index_bytes", volume->index_bytes, "of memory for the index"},
            {"segments", volume->segments, "files"},
            {"purge_rules", volume->rules, "purges that something stored before them may still meet"},
            {"bytes_put", volume->bytes_put, "given to be written"},
            {"bytes_written", volume->bytes_written, "written, with what was carried over"},
            {"reclaimed", volume->reclaimed, "segments given up to make room"},
            {"carried", volume->carried, "records carried over from these"},
            {"broken_records", volume->broken_records, "dropped since they were not what was written"},
            {"errors", volume->errors, "of the disk"},
            {"reads", stats->reads, "jobs that read"},
            {"writes", stats->writes, "jobs that wrote"},
            {"gave_up", stats->gave_up, "jobs that nobody waited for any longer"},
            {"queued", stats->queued, "jobs that wait now"},
    };
    for (int i = 0; i < FIELD_COUNT; i++)
        out[i] = fields[i];
}

// In hundredths: what was written for each byte given to be written.
static uint64_t amplification(const struct volume_stats *volume) {
    return volume->bytes_put ? (uint64_t)((double)volume->bytes_written * 100 / (double)volume->bytes_put)
                             : 0;
}

static void print_volume(const struct disk_volume_stats *stats, FILE *out) {
    struct volume_field fields[FIELD_COUNT];
    uint64_t hundredths = amplification(&stats->volume);
    fields_of(stats, fields);
    fprintf(out, "%s: %s: %s\n", stats->path, state_name(stats->state), state_meaning(stats->state));
    if (*stats->trouble)
        fprintf(out, "    last trouble: %s\n", stats->trouble);
    for (int i = 0; i < FIELD_COUNT; i++)
        fprintf(out, "%16" PRIu64 "  %-15s %s\n", fields[i].value, fields[i].name, fields[i].meaning);
    fprintf(out, "%13" PRIu64 ".%02" PRIu64 "  %-15s written for each byte put\n", hundredths / 100,
            hundredths % 100, "amplification");
}

void store_status_print(const struct disk_volume_stats *volumes, unsigned count, FILE *out) {
    if (count == 0)
        fputs("no volumes: the store is in memory (weir stats shows it); cache_dir makes one\n", out);
    for (unsigned i = 0; i < count; i++) {
        fputs(i ? "\n" : "", out);
        print_volume(&volumes[i], out);
    }
}

static void print_volume_json(const struct disk_volume_stats *stats, FILE *out) {
    struct volume_field fields[FIELD_COUNT];
    fields_of(stats, fields);
    fputs("{\"path\":", out);
    json_print(view_of(stats->path), out);
    fprintf(out, ",\"state\":\"%s\",\"trouble\":", state_name(stats->state));
    json_print(view_of(stats->trouble), out);
    for (int i = 0; i < FIELD_COUNT; i++)
        fprintf(out, ",\"%s\":%" PRIu64, fields[i].name, fields[i].value);
    fputs("}", out);
}

void store_status_print_json(const struct disk_volume_stats *volumes, unsigned count, FILE *out) {
    fputs("[", out);
    for (unsigned i = 0; i < count; i++) {
        fputs(i ? "," : "", out);
        print_volume_json(&volumes[i], out);
    }
    fputs("]", out);
}

void store_status_answer(struct cache *cache, bool json, FILE *out) {
    struct disk_volume_stats *volumes = calloc(DISK_VOLUMES_MAX, sizeof *volumes);
    if (!volumes) {
        fputs("error: out of memory\n", out);
        return;
    }
    unsigned count = cache_disk_stats(cache, volumes);
    fputs(json ? "ok\n{\"volumes\":" : "ok\n", out);
    if (json)
        store_status_print_json(volumes, count, out);
    else
        store_status_print(volumes, count, out);
    fputs(json ? "}\n" : "", out);
    free(volumes);
}

void store_status_sum(struct cache *cache, struct store_sums *sums) {
    struct disk_volume_stats *volumes = calloc(DISK_VOLUMES_MAX, sizeof *volumes);
    *sums = (struct store_sums){0};
    if (!volumes)
        return;
    sums->volumes = cache_disk_stats(cache, volumes);
    for (unsigned i = 0; i < sums->volumes; i++) {
        const struct disk_volume_stats *one = &volumes[i];
        sums->unused += one->state == DISK_SLOW || one->state == DISK_OFFLINE;
        sums->objects += one->volume.objects;
        sums->bytes += one->volume.bytes;
        sums->limit_bytes += one->volume.limit_bytes;
        sums->index_bytes += one->volume.index_bytes;
        sums->bytes_put += one->volume.bytes_put;
        sums->bytes_written += one->volume.bytes_written;
        sums->broken_records += one->volume.broken_records;
        sums->errors += one->volume.errors;
        sums->reads += one->reads;
        sums->writes += one->writes;
        sums->gave_up += one->gave_up;
        sums->queued += one->queued;
    }
    free(volumes);
}
