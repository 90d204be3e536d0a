#include "intercept/worker.h"

#include "admin/check.h"
#include "admin/container.h"
#include "intercept/accept.h"
#include "intercept/session.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define TICK_MS 500

// ---- tasks ----

void worker_mark(struct worker *worker, struct task *task) {
    if (task->link)
        return;
    task->next = NULL;
    task->round = worker->round;
    task->link = worker->tasks_end;
    *worker->tasks_end = task;
    worker->tasks_end = &task->next;
}

void worker_unmark(struct worker *worker, struct task *task) {
    if (!task->link)
        return;
    *task->link = task->next;
    if (task->next)
        task->next->link = task->link;
    else
        worker->tasks_end = task->link;
    task->link = NULL;
}

// Runs what is marked now; what is marked meanwhile waits for the next round, so that events are not starved.
static bool run_tasks(void *context) {
    struct worker *worker = context;
    unsigned round = worker->round++;
    while (worker->tasks && worker->tasks->round == round) {
        struct task *task = worker->tasks;
        worker_unmark(worker, task);
        task->run(task); // may free the task, and others that are marked
    }
    atomic_store_explicit(&worker->heartbeat_ms, loop_now_ms(worker->loop), memory_order_relaxed);
    return worker->tasks != NULL;
}

// ---- drain and reload ----

static void wake_all(struct worker *worker, unsigned events) {
    for (struct session *session = worker->sessions; session; session = session->next)
        session_wake(session, events);
}

static void note_idle(struct worker *worker) {
    if (worker->draining && !worker->sessions)
        atomic_store(&worker->idle, true);
}

static void on_tick(struct deadline *deadline) {
    struct worker *worker = CONTAINER_OF(deadline, struct worker, tick);
    int64_t now = loop_now_ms(worker->loop);
    atomic_store_explicit(&worker->heartbeat_ms, now, memory_order_relaxed);
    if (worker_drain_is_over(worker))
        wake_all(worker, EVENT_DRAIN);
    note_idle(worker);
    deadline_set(&worker->tick, now + (worker->draining ? 50 : TICK_MS));
}

static void close_listeners(struct worker *worker) {
    for (unsigned i = 0; i < worker->listener_count; i++) {
        watch_stop(&worker->listeners[i].watch);
        if (worker->listeners[i].fd >= 0)
            close(worker->listeners[i].fd);
        worker->listeners[i].fd = -1;
    }
    deadline_set(&worker->accept_again, 0);
}

static void on_drain(struct letter *letter) {
    struct worker *worker = CONTAINER_OF(letter, struct worker, drain_letter);
    pthread_mutex_lock(&worker->lock);
    worker->drain_until_ms = worker->next_drain_until_ms;
    pthread_mutex_unlock(&worker->lock);
    worker->draining = true;
    close_listeners(worker);
    upstream_pool_close(&worker->pool);
    wake_all(worker, EVENT_DRAIN);
    deadline_set(&worker->tick, loop_now_ms(worker->loop) + 1);
}

static void on_reload(struct letter *letter) {
    struct worker *worker = CONTAINER_OF(letter, struct worker, reload_letter);
    pthread_mutex_lock(&worker->lock);
    struct settings *next = worker->next_settings;
    worker->next_settings = NULL;
    pthread_mutex_unlock(&worker->lock);
    if (!next)
        return;
    settings_put(worker->settings);
    worker->settings = next;
}

void worker_drain(struct worker *worker, int64_t until_ms) {
    pthread_mutex_lock(&worker->lock);
    worker->next_drain_until_ms = until_ms;
    pthread_mutex_unlock(&worker->lock);
    loop_post(worker->loop, &worker->drain_letter);
}

void worker_reload(struct worker *worker, struct settings *settings) {
    pthread_mutex_lock(&worker->lock);
    struct settings *skipped = worker->next_settings;
    worker->next_settings = settings_get(settings);
    pthread_mutex_unlock(&worker->lock);
    settings_put(skipped);
    loop_post(worker->loop, &worker->reload_letter);
}

void worker_ask_for_room(struct worker *worker) {
    struct daemon *daemon = worker->daemon;
    for (unsigned i = 0; i < daemon->worker_count; i++)
        if (daemon->workers[i] != worker)
            loop_post(daemon->workers[i]->loop, &daemon->workers[i]->room_letter);
}

bool worker_drain_is_over(const struct worker *worker) {
    return worker->draining && loop_now_ms(worker->loop) >= worker->drain_until_ms;
}

struct moment worker_now(struct worker *worker) {
    return moment_of_ms(loop_wall_ms(worker->loop), loop_now_ms(worker->loop));
}

bool worker_idle(const struct worker *worker) {
    return atomic_load(&worker->idle);
}

// ---- life ----

static void on_accept_again(struct deadline *deadline) {
    accept_resume(CONTAINER_OF(deadline, struct worker, accept_again));
}

static bool set_up(struct worker *worker) {
    worker->loop = loop_new();
    if (!worker->loop || upstream_pool_init(&worker->pool) != 0)
        return false;
    deadline_init(&worker->accept_again, worker->loop, on_accept_again);
    deadline_init(&worker->tick, worker->loop, on_tick);
    letter_init(&worker->reload_letter, on_reload);
    letter_init(&worker->drain_letter, on_drain);
    letter_init(&worker->room_letter, accept_make_room);
    return true;
}

struct worker *worker_new(
        struct daemon *daemon, unsigned number, struct settings *settings, const int *sockets) {
    struct worker *worker = aligned_alloc(64, (sizeof *worker + 63) / 64 * 64);
    if (worker)
        *worker = (struct worker){.daemon = daemon, .number = number, .lock = PTHREAD_MUTEX_INITIALIZER};
    if (!worker || !set_up(worker)) {
        for (unsigned i = 0; i < daemon->listen.count; i++)
            close(sockets[i]);
        if (worker)
            loop_free(worker->loop);
        free(worker);
        return NULL;
    }
    worker->settings = settings_get(settings);
    worker->tasks_end = &worker->tasks;
    for (unsigned i = 0; i < daemon->listen.count; i++) {
        struct listener *listener = &worker->listeners[worker->listener_count++];
        *listener = (struct listener){.worker = worker, .point = &daemon->listen.points[i], .fd = sockets[i]};
        watch_init(&listener->watch, worker->loop, accept_ready);
    }
    atomic_store(&worker->heartbeat_ms, loop_now_ms(worker->loop));
    return worker;
}

void worker_run(struct worker *worker) {
    accept_resume(worker);
    deadline_set(&worker->tick, loop_now_ms(worker->loop) + TICK_MS);
    loop_run(worker->loop, run_tasks, worker);
}

static void *run(void *context) {
    worker_run(context);
    return NULL;
}

int worker_start(struct worker *worker) {
    int error = pthread_create(&worker->thread, NULL, run, worker);
    worker->started = error == 0;
    return -error;
}

void worker_stop(struct worker *worker) {
    if (!worker->started)
        return;
    loop_stop(worker->loop);
    pthread_join(worker->thread, NULL);
    worker->started = false;
}

void worker_free(struct worker *worker) {
    if (!worker)
        return;
    CHECK(!worker->started);
    close_listeners(worker);
    session_end_all(worker);
    upstream_pool_fini(&worker->pool);
    names_free(worker->names);
    deadline_set(&worker->tick, 0);
    loop_cancel(worker->loop, &worker->reload_letter);
    loop_cancel(worker->loop, &worker->drain_letter);
    loop_cancel(worker->loop, &worker->room_letter);
    loop_free(worker->loop);
    settings_put(worker->next_settings);
    settings_put(worker->settings);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
}

int64_t worker_heartbeat_ms(const struct worker *worker) {
    return atomic_load_explicit(&worker->heartbeat_ms, memory_order_relaxed);
}

struct counter_row *worker_counters(struct worker *worker) {
    return &worker->counters;
}
