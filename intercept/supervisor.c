#include "intercept/supervisor.h"

#include "intercept/store_volumes.h"

#include "admin/check.h"
#include "admin/clock.h"
#include "admin/container.h"
#include "admin/log.h"
#include "intercept/control_answer.h"
#include "intercept/notify.h"
#include "intercept/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define TICK_MS 500
#define STOPPING_TICK_MS 20
#define CUT_MS 1000       // what is cut at the end of a drain has this long to be gone
#define HEARTBEAT_MS 5000 // a worker that is silent for longer hangs
#define REPORT_MS 60000

static void fill_signals(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
    sigaddset(set, SIGUSR1);
}

int supervisor_block_signals(void) {
    sigset_t set;
    fill_signals(&set);
    signal(SIGPIPE, SIG_IGN);
    return -pthread_sigmask(SIG_BLOCK, &set, NULL);
}

// ---- reload ----

static bool same_points(const struct listen_set *a, const struct listen_set *b) {
    if (a->count != b->count)
        return false;
    for (unsigned i = 0; i < a->count; i++)
        if (a->points[i].mode != b->points[i].mode || a->points[i].any_address != b->points[i].any_address ||
                !endpoint_equal(&a->points[i].address, &b->points[i].address))
            return false;
    return true;
}

static void name_restart(const char *what, FILE *out) {
    fprintf(out, "%s changed: that needs a restart\n", what);
    log_warning("reload: %s changed: that needs a restart", what);
}

static void name_restarts(const struct supervisor *supervisor, const struct settings *next, FILE *out) {
    const struct config *then = next->config;
    struct config_errors none = {0};
    struct listen_set listen;
    if (listen_parse(then, &listen, &none) && !same_points(&listen, &supervisor->daemon->listen))
        name_restart("listen", out);
    config_errors_fini(&none);
    if (settings_workers(then) != supervisor->daemon->worker_count)
        name_restart("workers", out);
    if (strcmp(supervisor->started_user, then->user) != 0)
        name_restart("user", out);
    if (strcmp(supervisor->started_control, then->control) != 0)
        name_restart("control", out);
}

// ---- what the rules are made of ----

static const struct directive *next_of(const struct config *config, enum directive_id id, size_t *at) {
    while (*at < config->directive_count)
        if (config->directives[(*at)++].id == id)
            return &config->directives[*at - 1];
    return NULL;
}

static bool same_words(const struct config *a, const struct config *b, enum directive_id id) {
    size_t at_a = 0, at_b = 0;
    for (;;) {
        const struct directive *one = next_of(a, id, &at_a), *other = next_of(b, id, &at_b);
        if (!one || !other)
            return one == other;
        if (one->word_count != other->word_count)
            return false;
        for (unsigned i = 0; i < one->word_count; i++)
            if (strcmp(one->words[i].text, other->words[i].text) != 0)
                return false;
    }
}

static void name_rules(const struct config *now, const struct config *then, FILE *out) {
    bool same = same_words(now, then, DIRECTIVE_lan) && same_words(now, then, DIRECTIVE_listen) &&
                now->on_failure == then->on_failure && now->spoof_client == then->spoof_client &&
                now->rule_mark == then->rule_mark && now->rule_mask == then->rule_mask &&
                now->rule_table == then->rule_table;
    if (!same)
        fputs("what the rules are made of changed: weir rules apply brings them up to date\n", out);
}

static void free_retired(struct supervisor *supervisor) {
    for (struct settings **link = &supervisor->retired, *one; (one = *link);) {
        if (!settings_is_last(one)) {
            link = &one->next_retired;
            continue;
        }
        *link = one->next_retired;
        settings_put(one);
    }
}

static void put_in_force(struct supervisor *supervisor, struct settings *next) {
    struct daemon *daemon = supervisor->daemon;
    struct cache_limits limits;
    settings_cache_limits(next, &limits);
    cache_set_limits(daemon->cache, &limits);
    store_volumes_apply(daemon, next);
    for (unsigned i = 0; i < daemon->worker_count; i++)
        worker_reload(daemon->workers[i], next);
    supervisor->settings->next_retired = supervisor->retired;
    supervisor->retired = supervisor->settings;
    supervisor->settings = next;
    uplink_watch_tick(daemon->uplink, supervisor->loop, daemon->own, next, clock_monotonic_ms());
}

static void log_lines(const char *text) {
    while (text && *text) {
        size_t length = strcspn(text, "\n");
        log_error("%.*s", (int)length, text);
        text += length + (text[length] == '\n');
    }
}

bool supervisor_reload(struct supervisor *supervisor, FILE *out) {
    struct config_errors errors = {0};
    notify_reloading();
    struct settings *next = settings_load(supervisor->file, &errors);
    if (next) {
        name_restarts(supervisor, next, out);
        name_rules(supervisor->settings->config, next->config, out);
        put_in_force(supervisor, next);
        log_info("reload: %s is in force", next->config->file);
    } else {
        log_lines(errors.text);
        log_error("reload: %u errors: the old configuration stays in force", errors.count);
        config_errors_print(&errors, out);
    }
    config_errors_fini(&errors);
    notify_ready();
    return next != NULL;
}

static void reload_by_signal(struct supervisor *supervisor) {
    char *text = NULL; // everything in it is in the log already
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out) {
        log_error("reload: out of memory");
        return;
    }
    supervisor_reload(supervisor, out);
    fclose(out);
    free(text);
}

// ---- drain and stop ----

void supervisor_drain(struct supervisor *supervisor) {
    struct daemon *daemon = supervisor->daemon;
    int64_t drain_ms = supervisor->settings->config->timeout_ms[TIMEOUT_drain];
    if (supervisor->draining)
        return;
    supervisor->draining = true;
    supervisor->until_ms = clock_monotonic_ms() + drain_ms;
    for (unsigned i = 0; i < daemon->worker_count; i++)
        worker_drain(daemon->workers[i], supervisor->until_ms);
    unsigned sessions = atomic_load(&daemon->sessions);
    notify_status("Draining: %u connections", sessions);
    log_info("draining: %u connections may finish within %lld s", sessions, (long long)drain_ms / 1000);
}

void supervisor_stop(struct supervisor *supervisor) {
    if (supervisor->stopping)
        return;
    notify_stopping();
    supervisor->stopping = true;
    supervisor_drain(supervisor);
    deadline_set(&supervisor->tick, clock_monotonic_ms() + STOPPING_TICK_MS);
}

static bool all_idle(const struct daemon *daemon) {
    for (unsigned i = 0; i < daemon->worker_count; i++)
        if (!worker_idle(daemon->workers[i]))
            return false;
    return true;
}

// ---- ticks ----

static bool all_alive(const struct daemon *daemon, int64_t now_ms) {
    static struct log_limit limit;
    bool alive = true;
    for (unsigned i = 0; i < daemon->worker_count; i++) {
        int64_t silent_ms = now_ms - worker_heartbeat_ms(daemon->workers[i]);
        if (silent_ms <= HEARTBEAT_MS)
            continue;
        alive = false;
        log_limited(&limit, REPORT_MS, "worker %u hangs: silent for %lld s", i, (long long)silent_ms / 1000);
    }
    return alive;
}

static int64_t tick_after_ms(const struct supervisor *supervisor) {
    if (supervisor->stopping)
        return STOPPING_TICK_MS;
    if (supervisor->watchdog_ms > 0 && supervisor->watchdog_ms / 4 < TICK_MS)
        return supervisor->watchdog_ms / 4 + 1;
    return TICK_MS;
}

static void on_tick(struct deadline *deadline) {
    struct supervisor *supervisor = CONTAINER_OF(deadline, struct supervisor, tick);
    int64_t now_ms = clock_monotonic_ms();
    free_retired(supervisor);
    uplink_watch_tick(supervisor->daemon->uplink, supervisor->loop, supervisor->daemon->own,
            supervisor->settings, now_ms);
    if (all_alive(supervisor->daemon, now_ms) && supervisor->watchdog_ms > 0)
        notify_alive();
    if (supervisor->stopping && (all_idle(supervisor->daemon) || now_ms > supervisor->until_ms + CUT_MS))
        loop_stop(supervisor->loop);
    else
        deadline_set(&supervisor->tick, now_ms + tick_after_ms(supervisor));
}

// ---- signals ----

// A session that began before a reload writes to the log it began with.
static void reopen_logs(struct supervisor *supervisor) {
    access_log_reopen(supervisor->settings->access_log);
    for (struct settings *one = supervisor->retired; one; one = one->next_retired)
        access_log_reopen(one->access_log);
}

static void take_signal(struct supervisor *supervisor, uint32_t number) {
    switch (number) {
    case SIGHUP:
        reload_by_signal(supervisor);
        break;
    case SIGUSR1:
        reopen_logs(supervisor);
        log_info("access logs opened again");
        break;
    default: // SIGTERM, SIGINT
        if (supervisor->stopping) {
            log_warning("stopping at once");
            loop_stop(supervisor->loop);
        } else {
            supervisor_stop(supervisor);
        }
    }
}

static void signals_ready(struct watch *watch, int events) {
    (void)events;
    struct supervisor *supervisor = CONTAINER_OF(watch, struct supervisor, signal_watch);
    struct signalfd_siginfo info;
    while (read(supervisor->signals, &info, sizeof info) == sizeof info)
        take_signal(supervisor, info.ssi_signo);
}

// ---- life ----

static void release(struct supervisor *supervisor) {
    if (supervisor->signals >= 0)
        close(supervisor->signals);
    loop_free(supervisor->loop);
    supervisor->loop = NULL;
    free(supervisor->started_user);
    free(supervisor->started_control);
}

int supervisor_init(struct supervisor *supervisor, struct daemon *daemon, struct settings *settings,
        const char *file, struct control *control) {
    sigset_t set;
    fill_signals(&set);
    *supervisor = (struct supervisor){.daemon = daemon, .file = file, .signals = -1};
    supervisor->began_at_ms = clock_monotonic_ms();
    supervisor->watchdog_ms = notify_watchdog_ms();
    supervisor->loop = loop_new();
    supervisor->started_user = strdup(settings->config->user);
    supervisor->started_control = strdup(settings->config->control);
    supervisor->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    int error = supervisor->signals < 0 ? errno : ENOMEM;
    if (!supervisor->loop || !supervisor->started_user || !supervisor->started_control ||
            supervisor->signals < 0) {
        release(supervisor);
        return -error;
    }
    watch_init(&supervisor->signal_watch, supervisor->loop, signals_ready);
    watch_set(&supervisor->signal_watch, supervisor->signals, WATCH_READ);
    deadline_init(&supervisor->tick, supervisor->loop, on_tick);
    control_serve(control, supervisor->loop, control_answer, supervisor);
    supervisor->settings = settings_get(settings);
    return 0;
}

void supervisor_run(struct supervisor *supervisor) {
    deadline_set(&supervisor->tick, clock_monotonic_ms() + tick_after_ms(supervisor));
    loop_run(supervisor->loop, NULL, NULL);
}

void supervisor_fini(struct supervisor *supervisor) {
    watch_stop(&supervisor->signal_watch);
    deadline_set(&supervisor->tick, 0);
    uplink_watch_stop(supervisor->daemon->uplink);
    free_retired(supervisor);
    CHECK(!supervisor->retired); // the workers are gone
    settings_put(supervisor->settings);
    release(supervisor);
}
