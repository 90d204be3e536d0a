#include "intercept/loop.h"

#include "admin/check.h"
#include "admin/clock.h"

#include <stdlib.h>

struct loop {
    struct ev_loop *ev;
    ev_check woke;    // runs before every other callback of a round
    ev_async arrived; // letters, or a stop
    int64_t now_ms;
    int64_t wall_ms; // 0: not read in this round
    _Atomic bool stopping;
    pthread_mutex_t lock; // guards `inbox` and every letter's `posted` and `next`
    struct letter *inbox, **inbox_end;
    struct letter *batch; // what this round delivers; not in the inbox any more, still `posted`
};

static void note_time(struct ev_loop *ev, ev_check *woke, int events) {
    (void)ev;
    (void)events;
    struct loop *loop = woke->data;
    loop->now_ms = clock_monotonic_ms();
    loop->wall_ms = 0;
}

// ---- letters ----

static struct letter *take_first(struct loop *loop) {
    pthread_mutex_lock(&loop->lock);
    struct letter *letter = loop->batch;
    if (letter) {
        loop->batch = letter->next;
        letter->next = NULL;
        letter->posted = false;
    }
    pthread_mutex_unlock(&loop->lock);
    return letter;
}

// Letters posted by a delivery wait for the next round, so that two that post each other starve nobody.
static void deliver_letters(struct ev_loop *ev, ev_async *arrived, int events) {
    (void)ev;
    (void)events;
    struct loop *loop = arrived->data;
    CHECK(!loop->batch);
    pthread_mutex_lock(&loop->lock);
    loop->batch = loop->inbox;
    loop->inbox = NULL;
    loop->inbox_end = &loop->inbox;
    pthread_mutex_unlock(&loop->lock);
    for (struct letter *letter; (letter = take_first(loop));)
        letter->deliver(letter);
}

void letter_init(struct letter *letter, void (*deliver)(struct letter *letter)) {
    *letter = (struct letter){.deliver = deliver};
}

void loop_post(struct loop *loop, struct letter *letter) {
    pthread_mutex_lock(&loop->lock);
    if (!letter->posted) {
        letter->posted = true;
        letter->next = NULL;
        if (!loop->inbox)
            ev_async_send(loop->ev, &loop->arrived);
        *loop->inbox_end = letter;
        loop->inbox_end = &letter->next;
    }
    pthread_mutex_unlock(&loop->lock);
}

static bool unlink_letter(struct letter **list, struct letter *letter) {
    for (struct letter **link = list; *link; link = &(*link)->next)
        if (*link == letter) {
            *link = letter->next;
            return true;
        }
    return false;
}

static void find_inbox_end(struct loop *loop) {
    loop->inbox_end = &loop->inbox;
    while (*loop->inbox_end)
        loop->inbox_end = &(*loop->inbox_end)->next;
}

void loop_cancel(struct loop *loop, struct letter *letter) {
    pthread_mutex_lock(&loop->lock);
    if (letter->posted) {
        if (unlink_letter(&loop->inbox, letter))
            find_inbox_end(loop);
        else
            CHECK(unlink_letter(&loop->batch, letter));
        letter->posted = false;
        letter->next = NULL;
    }
    pthread_mutex_unlock(&loop->lock);
}

// ---- the loop ----

struct loop *loop_new(void) {
    struct loop *loop = calloc(1, sizeof *loop);
    if (!loop)
        return NULL;
    loop->ev = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    if (!loop->ev) {
        free(loop);
        return NULL;
    }
    loop->now_ms = clock_monotonic_ms();
    loop->inbox_end = &loop->inbox;
    pthread_mutex_init(&loop->lock, NULL);
    ev_check_init(&loop->woke, note_time);
    ev_set_priority(&loop->woke, EV_MAXPRI);
    loop->woke.data = loop;
    ev_check_start(loop->ev, &loop->woke);
    ev_async_init(&loop->arrived, deliver_letters);
    loop->arrived.data = loop;
    ev_async_start(loop->ev, &loop->arrived);
    return loop;
}

void loop_free(struct loop *loop) {
    if (!loop)
        return;
    pthread_mutex_lock(&loop->lock); // a loop_stop or loop_post that made us end may still be inside
    pthread_mutex_unlock(&loop->lock);
    ev_async_stop(loop->ev, &loop->arrived);
    ev_check_stop(loop->ev, &loop->woke);
    ev_loop_destroy(loop->ev);
    pthread_mutex_destroy(&loop->lock);
    free(loop);
}

void loop_run(struct loop *loop, bool (*after)(void *context), void *context) {
    bool busy = false;
    while (!atomic_load(&loop->stopping)) {
        ev_run(loop->ev, busy ? EVRUN_NOWAIT : EVRUN_ONCE);
        busy = after && after(context);
    }
    atomic_store(&loop->stopping, false);
}

void loop_stop(struct loop *loop) {
    // Under the lock, so that whoever frees the loop after loop_run has returned can wait for us by taking
    // it.
    pthread_mutex_lock(&loop->lock);
    atomic_store(&loop->stopping, true);
    ev_async_send(loop->ev, &loop->arrived);
    pthread_mutex_unlock(&loop->lock);
}

int64_t loop_now_ms(const struct loop *loop) {
    return loop->now_ms;
}

int64_t loop_wall_ms(struct loop *loop) {
    if (loop->wall_ms == 0)
        loop->wall_ms = clock_wall_ms();
    return loop->wall_ms;
}

// ---- descriptors ----

static void io_ready(struct ev_loop *ev, ev_io *io, int events) {
    (void)ev;
    struct watch *watch = io->data;
    watch->ready(watch, (events & EV_READ ? WATCH_READ : 0) | (events & EV_WRITE ? WATCH_WRITE : 0));
}

void watch_init(struct watch *watch, struct loop *loop, void (*ready)(struct watch *watch, int events)) {
    ev_io_init(&watch->io, io_ready, -1, 0);
    watch->io.data = watch;
    watch->loop = loop;
    watch->ready = ready;
}

void watch_set(struct watch *watch, int fd, int events) {
    int wanted = (events & WATCH_READ ? EV_READ : 0) | (events & WATCH_WRITE ? EV_WRITE : 0);
    bool active = ev_is_active(&watch->io);
    if (wanted == 0) {
        watch_stop(watch);
        return;
    }
    if (active && watch->io.fd == fd && (watch->io.events & (EV_READ | EV_WRITE)) == wanted)
        return;
    CHECK(fd >= 0);
    if (active)
        ev_io_stop(watch->loop->ev, &watch->io);
    // A stopped watch may see a new descriptor under an old number: only ev_io_set makes libev tell the
    // kernel.
    if (active && watch->io.fd == fd)
        ev_io_modify(&watch->io, wanted);
    else
        ev_io_set(&watch->io, fd, wanted);
    ev_io_start(watch->loop->ev, &watch->io);
}

void watch_stop(struct watch *watch) {
    if (watch->loop)
        ev_io_stop(watch->loop->ev, &watch->io);
}

// ---- deadlines ----

static void arm(struct deadline *deadline) {
    int64_t after_ms = deadline->at_ms - deadline->loop->now_ms;
    if (after_ms < 0)
        after_ms = 0;
    ev_timer_stop(deadline->loop->ev, &deadline->timer);
    ev_timer_set(&deadline->timer, (double)after_ms / 1000, 0);
    ev_timer_start(deadline->loop->ev, &deadline->timer);
    deadline->armed_ms = deadline->at_ms;
}

static void timer_fired(struct ev_loop *ev, ev_timer *timer, int events) {
    (void)ev;
    (void)events;
    struct deadline *deadline = timer->data;
    if (deadline->at_ms > deadline->loop->now_ms) { // was moved later meanwhile
        arm(deadline);
        return;
    }
    deadline->at_ms = 0;
    deadline->expired(deadline);
}

void deadline_init(struct deadline *deadline, struct loop *loop, void (*expired)(struct deadline *deadline)) {
    ev_timer_init(&deadline->timer, timer_fired, 0, 0);
    deadline->timer.data = deadline;
    deadline->loop = loop;
    deadline->at_ms = 0;
    deadline->armed_ms = 0;
    deadline->expired = expired;
}

void deadline_set(struct deadline *deadline, int64_t at_ms) {
    if (at_ms == deadline->at_ms && (at_ms == 0 || ev_is_active(&deadline->timer)))
        return;
    deadline->at_ms = at_ms;
    if (at_ms == 0) {
        if (deadline->loop)
            ev_timer_stop(deadline->loop->ev, &deadline->timer);
    } else if (!ev_is_active(&deadline->timer) || at_ms < deadline->armed_ms) {
        arm(deadline);
    }
}
