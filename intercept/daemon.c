// `weir run`: from a configuration to serving, and back. What can fail fails here, before it says that it is
// ready.
#include "intercept/daemon.h"

#include "admin/check.h"
#include "admin/command.h"
#include "admin/log.h"
#include "intercept/notify.h"
#include "intercept/privilege.h"
#include "intercept/store_volumes.h"
#include "intercept/supervisor.h"
#include "intercept/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// What is built on the way up, in this order, and taken down in the reverse one.
struct start {
    const char *file;
    struct config *config; // until `settings` owns it
    struct control *control;
    int *sockets;              // workers x points; -1: a worker's already
    struct settings *settings; // until the supervisor has them
    struct daemon daemon;
    unsigned started; // workers whose thread runs
    struct supervisor supervisor;
    bool supervised;
};

// ---- up ----

static void print_errors(struct config_errors *errors) {
    config_errors_print(errors, stderr);
    config_errors_fini(errors);
}

static bool load(struct start *start) {
    struct config_errors errors = {0};
    start->config = config_load(start->file, &errors);
    bool good = start->config && listen_parse(start->config, &start->daemon.listen, &errors);
    print_errors(&errors);
    if (good)
        start->daemon.worker_count = settings_workers(start->config);
    return good;
}

// The runtime folder, when neither systemd nor tmpfiles made it.
static void make_folder(const char *path) {
    char folder[256];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length == 0 || length >= sizeof folder)
        return;
    memcpy(folder, path, length);
    folder[length] = '\0';
    if (mkdir(folder, 0755) == 0)
        log_info("%s created", folder);
}

static bool open_control(struct start *start) {
    int error = 0;
    const char *path = start->config->control;
    make_folder(path);
    start->control = control_open(path, &error);
    if (start->control)
        return true;
    if (error == EADDRINUSE)
        log_error("another weir answers at %s: stop it first, or give this one its own control", path);
    else if (error == EEXIST)
        log_error("control %s is there and is no socket: choose another path", path);
    else
        log_error("control %s: %s; its folder must exist and be ours to write", path, strerror(error));
    return false;
}

static bool fail_socket(const struct listen_point *point, const char *what, int result) {
    char text[ADDRESS_TEXT_BYTES];
    const char *cure = result == -EPERM ? ": CAP_NET_ADMIN is missing in this network namespace; run as root"
                       : result == -EACCES ? ": CAP_NET_BIND_SERVICE is missing; choose a port from 1024 on"
                       : result == -EADDRINUSE ? ": another program has the port"
                                               : "";
    log_error("listen %s %s: %s: %s%s", endpoint_print(&point->address, text), listen_mode_name(point->mode),
            what, strerror(-result), cure);
    return false;
}

static bool open_sockets(struct start *start) {
    const struct listen_set *listen = &start->daemon.listen;
    unsigned count = start->daemon.worker_count * listen->count;
    start->sockets = malloc(count * sizeof *start->sockets);
    if (!start->sockets) {
        log_error("out of memory");
        return false;
    }
    for (unsigned i = 0; i < count; i++)
        start->sockets[i] = -1;
    for (unsigned i = 0; i < listen->count; i++)
        if (listen_probe(&listen->points[i]) < 0)
            return fail_socket(&listen->points[i], "bind", -EADDRINUSE);
    for (unsigned i = 0; i < count; i++) {
        const struct listen_point *point = &listen->points[i % listen->count];
        const char *what = "";
        start->sockets[i] = listen_open(point, &what);
        if (start->sockets[i] < 0)
            return fail_socket(point, what, start->sockets[i]);
    }
    return true;
}

// After the process has become who it stays: what could be opened now can be opened again by a reload.
static bool build_settings(struct start *start) {
    struct config_errors errors = {0};
    start->settings = settings_build(start->config, &errors);
    start->config = NULL;
    print_errors(&errors);
    return start->settings != NULL;
}

static bool build_daemon(struct start *start) {
    int error = 0;
    struct cache_limits limits;
    settings_cache_limits(start->settings, &limits);
    start->daemon.cache = cache_new(&limits);
    start->daemon.uplink = uplink_watch_new();
    start->daemon.workers = calloc(start->daemon.worker_count, sizeof(struct worker *));
    if (!start->daemon.cache || !start->daemon.uplink || !start->daemon.workers) {
        log_error("out of memory");
        return false;
    }
    if (!store_volumes_apply(&start->daemon, start->settings)) {
        log_error("out of memory");
        return false;
    }
    start->daemon.own = own_addresses_new(&error);
    if (!start->daemon.own)
        log_error("cannot read our own addresses (rtnetlink): %s", strerror(error));
    return start->daemon.own != NULL;
}

static bool build_workers(struct start *start) {
    struct daemon *daemon = &start->daemon;
    for (unsigned i = 0; i < daemon->worker_count; i++) {
        int *sockets = start->sockets + (size_t)i * daemon->listen.count;
        daemon->workers[i] = worker_new(daemon, i, start->settings, sockets);
        for (unsigned p = 0; p < daemon->listen.count; p++)
            sockets[p] = -1;
        if (!daemon->workers[i]) {
            log_error("cannot make worker %u: out of memory or descriptors", i);
            return false;
        }
    }
    return true;
}

static bool start_workers(struct start *start) {
    for (; start->started < start->daemon.worker_count; start->started++) {
        int result = worker_start(start->daemon.workers[start->started]);
        if (result < 0) {
            log_error("cannot start worker %u: %s", start->started, strerror(-result));
            return false;
        }
    }
    return true;
}

static bool supervise(struct start *start) {
    int result =
            supervisor_init(&start->supervisor, &start->daemon, start->settings, start->file, start->control);
    start->supervised = result == 0;
    if (result < 0) {
        log_error("cannot watch signals: %s", strerror(-result));
        return false;
    }
    settings_put(start->settings); // a reload is to free them
    start->settings = NULL;
    return true;
}

static bool bring_up(struct start *start) {
    if (!load(start) || !privilege_suffices(start->config, &start->daemon.listen))
        return false;
    if (supervisor_block_signals() < 0)
        return false;
    umask(027);
    privilege_raise_descriptors();
    store_volumes_make(start->config);
    return open_control(start) && open_sockets(start) && privilege_give_up(start->config) == 0 &&
           build_settings(start) && build_daemon(start) && build_workers(start) && supervise(start) &&
           start_workers(start);
}

static void announce(const struct start *start) {
    char places[512] = "", text[ADDRESS_TEXT_BYTES];
    const struct listen_set *listen = &start->daemon.listen;
    const struct settings *settings = start->supervisor.settings;
    size_t used = 0;
    for (unsigned i = 0; i < listen->count && used < sizeof places - 1; i++) {
        const struct listen_point *point = &listen->points[i];
        snprintf(text, sizeof text, "%u", point->address.port);
        if (!point->any_address)
            endpoint_print(&point->address, text);
        used += (size_t)snprintf(places + used, sizeof places - used, "%s%s %s", i ? ", " : "", text,
                listen_mode_name(point->mode));
    }
    char plan[MEMORY_PLAN_TEXT_BYTES];
    log_info("memory %s", memory_plan_print(&settings->memory, plan));
    log_info("version %s: listen %s; %u workers; at most %u client connections, %u a host, %u upstream; "
             "cache_mem %lld MiB; via %s; control %s",
            WEIR_VERSION, places, start->daemon.worker_count, settings->client_connections,
            settings->client_connections_per_host, settings->upstream_connections,
            (long long)(settings->memory.cache_bytes >> 20), settings->via_name, settings->config->control);
}

// ---- down ----

static void close_sockets(struct start *start) {
    unsigned count = start->sockets ? start->daemon.worker_count * start->daemon.listen.count : 0;
    for (unsigned i = 0; i < count; i++)
        if (start->sockets[i] >= 0)
            close(start->sockets[i]);
    free(start->sockets);
}

// The control socket goes last: its end tells `weir stop` that everything else is gone.
static void take_down(struct start *start) {
    struct daemon *daemon = &start->daemon;
    for (unsigned i = 0; i < start->started; i++)
        worker_stop(daemon->workers[i]);
    for (unsigned i = 0; daemon->workers && i < daemon->worker_count; i++)
        worker_free(daemon->workers[i]);
    free(daemon->workers);
    own_addresses_free(daemon->own);
    if (daemon->cache)
        cache_free(daemon->cache);
    store_volumes_close(daemon);
    settings_put(start->settings);
    close_sockets(start);
    config_free(start->config);
    control_close(start->control);
    if (start->supervised)
        supervisor_fini(&start->supervisor);
    uplink_watch_free(daemon->uplink);
}

int run_command(const struct command_call *call) {
    if (call->argc > 0)
        return command_usage_error(call, "\"%s\" is one word too many", call->argv[0]);
    struct start *start = calloc(1, sizeof *start);
    if (!start)
        return COMMAND_PROBLEM;
    start->file = call->config_file;
    bool up = bring_up(start);
    if (up) {
        announce(start);
        notify_status("%u workers", start->daemon.worker_count);
        notify_ready();
        supervisor_run(&start->supervisor);
        log_info("stopped");
    }
    take_down(start);
    free(start);
    return up ? COMMAND_DONE : COMMAND_PROBLEM;
}
