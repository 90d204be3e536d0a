#include "intercept/control_answer.h"

#include "admin/clock.h"
#include "intercept/explain.h"
#include "intercept/purge.h"
#include "intercept/store_status.h"
#include "intercept/supervisor.h"
#include "intercept/worker.h"

#include <inttypes.h>
#include <stdlib.h>

// ---- stats ----

// Everything that is told of the daemon beside the counters: name, value, meaning.
#define GENERAL_COUNT 32
struct general {
    const char *name;
    uint64_t value;
    const char *meaning;
};

static void sum_counters(const struct daemon *daemon, struct counter_sums *sums) {
    *sums = (struct counter_sums){0};
    for (unsigned i = 0; i < daemon->worker_count; i++)
        counter_sum(sums, worker_counters(daemon->workers[i]));
}

static void fill_general(const struct supervisor *supervisor, struct general all[GENERAL_COUNT]) {
    const struct daemon *daemon = supervisor->daemon;
    const struct settings *settings = supervisor->settings;
    struct cache_stats cache;
    struct store_sums disk;
    const struct memory_plan *memory = &settings->memory;
    cache_stats(daemon->cache, &cache);
    store_status_sum(daemon->cache, &disk);
    const struct general general[GENERAL_COUNT] = {
            {"uptime_s", (uint64_t)(clock_monotonic_ms() - supervisor->began_at_ms) / 1000,
                    "seconds since start"},
            {"workers", daemon->worker_count, "event loops"},
            {"draining", supervisor->draining, "1: no new connections are taken"},
            {"sessions", atomic_load(&daemon->sessions), "client connections open now"},
            {"sessions_limit", settings->client_connections, "client connections at most"},
            {"upstreams", atomic_load(&daemon->upstreams), "connections to origins open now"},
            {"upstreams_limit", settings->upstream_connections, "connections to origins at most"},
            {"offline", uplink_watch_is_offline(daemon->uplink, settings->config),
                    "1: what is stored is served, and nothing is asked"},
            {"log_lines_lost", access_log_lost(settings->access_log),
                    "by the access logs, since the last reload"},
            {"acl_rules", acl_count(settings->acl), "rules in force"},
            {"acl_bytes", acl_bytes(settings->acl), "memory they take"},
            {"cache_objects", cache.objects, "responses stored"},
            {"cache_bytes", cache.bytes, "memory they take, overhead included"},
            {"cache_limit_bytes", cache.limit_bytes, "memory they may take"},
            {"cache_fills", cache.fills, "responses arriving now"},
            {"cache_evictions", cache.evictions, "responses dropped from memory to make room"},
            {"memory_limit_bytes", (uint64_t)memory->memory_bytes, "the process's budget; 0: none"},
            {"memory_planned_bytes", (uint64_t)memory_plan_sum(memory),
                    "what may be in use at most, by the settings"},
            {"disk_volumes", disk.volumes, "volumes of the store; weir store status shows each"},
            {"disk_volumes_unused", disk.unused, "of these, those that are offline or too slow now"},
            {"disk_objects", disk.objects, "records on disk: heads, small objects, chunks"},
            {"disk_bytes", disk.bytes, "that they take, with all overhead"},
            {"disk_limit_bytes", disk.limit_bytes, "that they may take now"},
            {"disk_index_bytes", disk.index_bytes, "of memory for their indexes"},
            {"disk_bytes_put", disk.bytes_put, "given to be written"},
            {"disk_bytes_written", disk.bytes_written, "written, with what was carried over"},
            {"disk_broken_records", disk.broken_records,
                    "records dropped since they were not what was written"},
            {"disk_errors", disk.errors, "errors of the disks"},
            {"disk_reads", disk.reads, "times that a read waited for a disk"},
            {"disk_writes", disk.writes, "jobs that wrote"},
            {"disk_gave_up", disk.gave_up, "of both, those that nobody waited for any longer"},
            {"disk_queued", disk.queued, "jobs that wait now"},
    };
    for (int i = 0; i < GENERAL_COUNT; i++)
        all[i] = general[i];
}

static void answer_stats(const struct supervisor *supervisor, bool json, FILE *out) {
    struct general all[GENERAL_COUNT];
    struct counter_sums sums;
    fill_general(supervisor, all);
    sum_counters(supervisor->daemon, &sums);
    fputs("ok\n", out);
    if (!json) {
        for (int i = 0; i < GENERAL_COUNT; i++)
            fprintf(out, "%15" PRIu64 "  %-24s %s\n", all[i].value, all[i].name, all[i].meaning);
        counter_print(&sums, out);
        return;
    }
    fprintf(out, "{\"version\":\"%s\"", WEIR_VERSION);
    for (int i = 0; i < GENERAL_COUNT; i++)
        fprintf(out, ",\"%s\":%" PRIu64, all[i].name, all[i].value);
    fputs(",\"counters\":", out);
    counter_print_json(&sums, out);
    fputs("}\n", out);
}

// ---- reload, drain, stop ----

static void answer_reload(struct supervisor *supervisor, FILE *out) {
    char *text = NULL;
    size_t length = 0;
    FILE *notes = open_memstream(&text, &length);
    if (!notes) {
        fputs("error: out of memory\n", out);
        return;
    }
    bool good = supervisor_reload(supervisor, notes);
    bool whole = fclose(notes) == 0;
    fputs(good ? "ok\n" : "error: the new configuration has errors; the old one stays in force\n", out);
    if (whole)
        fwrite(text, 1, length, out);
    if (good)
        fprintf(out, "%s is in force\n", supervisor->settings->config->file);
    free(text);
}

static void answer_drain(struct supervisor *supervisor, FILE *out) {
    supervisor_drain(supervisor);
    int64_t left_ms = supervisor->until_ms - clock_monotonic_ms();
    fprintf(out, "ok\ndraining: %u connections, at most %" PRId64 " s\n",
            atomic_load(&supervisor->daemon->sessions), left_ms > 0 ? left_ms / 1000 : 0);
}

void control_answer(void *context, struct view request, struct control_reply *reply) {
    struct supervisor *supervisor = context;
    struct cache *cache = supervisor->daemon->cache;
    if (view_equal(request, VIEW("stats")) || view_equal(request, VIEW("stats json"))) {
        answer_stats(supervisor, request.length > 5, reply->out);
    } else if (view_equal(request, VIEW("store status")) || view_equal(request, VIEW("store status json"))) {
        store_status_answer(cache, request.length > 12, reply->out);
    } else if (view_starts(request, VIEW("purge "))) {
        purge_answer(cache, view_skip(request, 6), reply->out);
    } else if (view_starts(request, VIEW("explain\t"))) {
        explain_answer(supervisor, request, reply->out);
    } else if (view_equal(request, VIEW("reload"))) {
        answer_reload(supervisor, reply->out);
    } else if (view_equal(request, VIEW("drain"))) {
        answer_drain(supervisor, reply->out);
    } else if (view_equal(request, VIEW("stop"))) {
        answer_drain(supervisor, reply->out);
        supervisor_stop(supervisor);
        reply->hold = true;
    } else {
        fputs("error: no such request\n", reply->out);
    }
}
