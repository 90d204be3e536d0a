#include "intercept/uplink_watch.h"

#include "admin/check.h"
#include "admin/container.h"
#include "admin/log.h"
#include "admin/mark.h"
#include "intercept/dial.h"
#include "intercept/uplink.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define GOOD_EVERY_MS 1000 // a destination that answers is remembered

struct uplink_watch {
    pthread_mutex_t lock; // guards `uplink`
    struct uplink uplink;
    _Atomic bool is_auto; // else what is told is not listened to
    _Atomic bool is_down;
    _Atomic bool has_failures;
    _Atomic int64_t good_at_ms; // when a destination that answers was last remembered
    // the main thread's: the probe
    int fd; // -1: none
    struct watch watch;
    struct deadline deadline;
};

struct uplink_watch *uplink_watch_new(void) {
    struct uplink_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return NULL;
    pthread_mutex_init(&watch->lock, NULL);
    uplink_init(&watch->uplink);
    watch->fd = -1;
    return watch;
}

void uplink_watch_free(struct uplink_watch *watch) {
    if (!watch)
        return;
    CHECK(watch->fd < 0);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

bool uplink_watch_is_offline(const struct uplink_watch *watch, const struct config *config) {
    return config->offline == OFFLINE_ON ||
           (config->offline == OFFLINE_AUTO && atomic_load_explicit(&watch->is_down, memory_order_relaxed));
}

// ---- changes ----

static void tell(enum uplink_change change, bool is_down) {
    if (change == UPLINK_SAME)
        return;
    if (is_down)
        log_warning(
                "offline: %s; what is stored is served, and nothing is asked", uplink_change_text(change));
    else
        log_info("online again: %s", uplink_change_text(change));
}

// The lock is held; it is given back.
static void settle(struct uplink_watch *watch, enum uplink_change change) {
    bool is_down = watch->uplink.is_down;
    atomic_store_explicit(&watch->is_down, is_down, memory_order_relaxed);
    atomic_store_explicit(&watch->has_failures, watch->uplink.failures > 0, memory_order_relaxed);
    pthread_mutex_unlock(&watch->lock);
    tell(change, is_down);
}

static bool is_failure_of_the_way(int result) {
    return result == -ETIMEDOUT || result == -EHOSTUNREACH || result == -ENETUNREACH ||
           result == -EHOSTDOWN || result == -ENETDOWN;
}

// Whether all is well, and has been said to be a moment ago.
static bool is_known_good(struct uplink_watch *watch, int64_t now_ms) {
    if (atomic_load_explicit(&watch->is_down, memory_order_relaxed) ||
            atomic_load_explicit(&watch->has_failures, memory_order_relaxed))
        return false;
    int64_t good_at_ms = atomic_load_explicit(&watch->good_at_ms, memory_order_relaxed);
    if (good_at_ms && now_ms - good_at_ms < GOOD_EVERY_MS)
        return true;
    atomic_store_explicit(&watch->good_at_ms, now_ms, memory_order_relaxed);
    return false;
}

void uplink_watch_told(
        struct uplink_watch *watch, const struct endpoint *destination, int result, int64_t now_ms) {
    bool is_failure = is_failure_of_the_way(result);
    if (!atomic_load_explicit(&watch->is_auto, memory_order_relaxed) || (result != 0 && !is_failure))
        return;
    if (!is_failure && is_known_good(watch, now_ms))
        return; // as nearly always
    if (!is_failure && dial_is_on_link(destination))
        return; // says nothing of the way out
    pthread_mutex_lock(&watch->lock);
    if (!is_failure)
        uplink_good(&watch->uplink, destination, now_ms);
    settle(watch, is_failure ? uplink_failed(&watch->uplink, destination, now_ms)
                             : uplink_answered(&watch->uplink));
}

void uplink_watch_want(struct uplink_watch *watch, const struct endpoint *destination) {
    if (!atomic_load_explicit(&watch->is_auto, memory_order_relaxed))
        return;
    pthread_mutex_lock(&watch->lock);
    uplink_want(&watch->uplink, destination);
    pthread_mutex_unlock(&watch->lock);
}

// ---- the probe ----

static void end_probe(struct uplink_watch *watch, bool answered) {
    watch_stop(&watch->watch);
    deadline_set(&watch->deadline, 0);
    close(watch->fd);
    watch->fd = -1;
    pthread_mutex_lock(&watch->lock);
    settle(watch, uplink_probed(&watch->uplink, answered));
}

// A refusal says that somebody is there, and here that is all that is asked.
static void probe_ready(struct watch *one, int events) {
    struct uplink_watch *watch = CONTAINER_OF(one, struct uplink_watch, watch);
    (void)events;
    int result = dial_result(watch->fd);
    if (result != -EINPROGRESS && result != -EALREADY)
        end_probe(watch, result == 0 || result == -ECONNREFUSED);
}

static void probe_late(struct deadline *deadline) {
    end_probe(CONTAINER_OF(deadline, struct uplink_watch, deadline), false);
}

// Of an on-link destination nothing could be learned.
static void begin_probe(struct uplink_watch *watch, struct loop *loop, const struct settings *settings,
        const struct endpoint *target, int64_t now_ms) {
    struct dial dial = {
            .destination = *target,
            .mark = mark_upstream(settings->config),
            .mask = (uint32_t)settings->config->rule_mask,
    };
    int fd = dial_is_on_link(target) ? -1 : dial_begin(&dial);
    if (fd < 0) {
        pthread_mutex_lock(&watch->lock);
        settle(watch, uplink_probed(&watch->uplink, false));
        return;
    }
    watch->fd = fd;
    watch_init(&watch->watch, loop, probe_ready);
    deadline_init(&watch->deadline, loop, probe_late);
    watch_set(&watch->watch, fd, WATCH_WRITE);
    deadline_set(&watch->deadline, now_ms + settings->config->timeout_ms[TIMEOUT_connect]);
}

void uplink_watch_stop(struct uplink_watch *watch) {
    if (watch->fd >= 0)
        end_probe(watch, false);
}

// ---- the tick ----

static void forget(struct uplink_watch *watch) {
    uplink_watch_stop(watch);
    pthread_mutex_lock(&watch->lock);
    uplink_init(&watch->uplink);
    settle(watch, UPLINK_SAME);
}

void uplink_watch_tick(struct uplink_watch *watch, struct loop *loop, const struct own_addresses *own,
        const struct settings *settings, int64_t now_ms) {
    bool is_auto = settings->config->offline == OFFLINE_AUTO;
    struct endpoint target;
    if (atomic_exchange(&watch->is_auto, is_auto) && !is_auto)
        forget(watch);
    if (!is_auto)
        return;
    pthread_mutex_lock(&watch->lock);
    enum uplink_change change = uplink_route(&watch->uplink, own_addresses_has_route(own), now_ms);
    bool is_time = uplink_probe(&watch->uplink, now_ms, &target);
    settle(watch, change);
    if (is_time)
        begin_probe(watch, loop, settings, &target, now_ms);
}
