#include "intercept/control_answer.h"

#include "admin/clock.h"
#include "intercept/explain.h"
#include "intercept/supervisor.h"
#include "intercept/url_argument.h"
#include "intercept/worker.h"

#include <inttypes.h>
#include <stdlib.h>

// ---- stats ----

// Everything that is told of the daemon beside the counters: name, value, meaning.
#define GENERAL_COUNT 16
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
    cache_stats(daemon->cache, &cache);
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
            {"cache_evictions", cache.evictions, "responses dropped to make room"},
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

// ---- purge ----

static void answer_dropped(unsigned dropped, FILE *out) {
    fprintf(out, "ok\n%u response%s dropped\n", dropped, dropped == 1 ? "" : "s");
}

// The path and query as a request has them: "/" at least.
static struct view path_of(struct view rest, char *out, size_t size) {
    if (rest.length && rest.data[0] == '/')
        return rest;
    int length = snprintf(out, size, "/" VIEW_FORMAT, VIEW_ARGUMENT(rest));
    return (struct view){out, (size_t)length < size ? (size_t)length : size - 1};
}

static void purge_url(struct cache *cache, struct view text, FILE *out) {
    char name[AUTHORITY_BYTES], path[CONTROL_REQUEST_BYTES];
    struct url_argument url;
    const char *why = url_argument_read(text, &url);
    if (why) {
        fprintf(out, "error: %s\n", why);
        return;
    }
    size_t length = authority_normalise(&url.authority, name, sizeof name);
    answer_dropped(
            cache_purge_url(cache, (struct view){name, length}, path_of(url.path, path, sizeof path)), out);
}

static void purge_host(struct cache *cache, struct view host, FILE *out) {
    char name[AUTHORITY_BYTES];
    struct authority authority;
    size_t length =
            authority_parse(host, &authority) ? authority_normalise(&authority, name, sizeof name) : 0;
    if (length == 0)
        fputs("error: that is no host; write NAME or NAME:PORT\n", out);
    else
        answer_dropped(cache_purge_host(cache, (struct view){name, length}), out);
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
    } else if (view_starts(request, VIEW("purge url "))) {
        purge_url(cache, view_skip(request, 10), reply->out);
    } else if (view_starts(request, VIEW("purge host "))) {
        purge_host(cache, view_skip(request, 11), reply->out);
    } else if (view_starts(request, VIEW("explain\t"))) {
        explain_answer(supervisor, request, reply->out);
    } else if (view_equal(request, VIEW("purge all"))) {
        answer_dropped(cache_purge_all(cache), reply->out);
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
