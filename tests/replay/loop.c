// intercept/loop.h without waiting: one thread, poll(2), a clock that the driver moves. Everything happens in
// the order in which it was asked for, so that the same script gives the same bytes.
#include "tests/replay/loop.h"

#include "admin/check.h"
#include "tests/replay/clock.h"
#include "tests/replay/network.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MAXIMUM 8192     // watches, and deadlines
#define ROUNDS_MAXIMUM 200000 // to settle in: more means that something spins

struct loop {
    void *watches[LIST_MAXIMUM], *deadlines[LIST_MAXIMUM]; // active ones, the oldest first
    unsigned watch_count, deadline_count;
    struct deadline *ignored;
    pthread_mutex_t lock; // of the letters
    struct letter *inbox, **inbox_end;
    _Atomic bool stopping;
    bool (*after)(void *context);
    void *context;
};

// ---- lists of what is active ----

static bool list_has(void *const *list, unsigned count, const void *one) {
    for (unsigned i = 0; i < count; i++)
        if (list[i] == one)
            return true;
    return false;
}

static void list_add(void **list, unsigned *count, void *one) {
    CHECK(*count < LIST_MAXIMUM);
    list[(*count)++] = one;
}

static void list_remove(void **list, unsigned *count, const void *one) {
    unsigned i = 0;
    while (i < *count && list[i] != one)
        i++;
    if (i == *count)
        return;
    memmove(list + i, list + i + 1, (*count - i - 1) * sizeof *list);
    --*count;
}

// ---- letters ----

void letter_init(struct letter *letter, void (*deliver)(struct letter *letter)) {
    *letter = (struct letter){.deliver = deliver};
}

void loop_post(struct loop *loop, struct letter *letter) {
    pthread_mutex_lock(&loop->lock);
    if (!letter->posted) {
        letter->posted = true;
        letter->next = NULL;
        *loop->inbox_end = letter;
        loop->inbox_end = &letter->next;
    }
    pthread_mutex_unlock(&loop->lock);
}

static void unlink_letter(struct loop *loop, struct letter **link) {
    struct letter *letter = *link;
    *link = letter->next;
    if (!letter->next)
        loop->inbox_end = link;
    letter->next = NULL;
    letter->posted = false;
}

void loop_cancel(struct loop *loop, struct letter *letter) {
    pthread_mutex_lock(&loop->lock);
    for (struct letter **link = &loop->inbox; *link; link = &(*link)->next)
        if (*link == letter) {
            unlink_letter(loop, link);
            break;
        }
    CHECK(!letter->posted);
    pthread_mutex_unlock(&loop->lock);
}

static struct letter *take_letter(struct loop *loop) {
    pthread_mutex_lock(&loop->lock);
    struct letter *letter = loop->inbox;
    if (letter)
        unlink_letter(loop, &loop->inbox);
    pthread_mutex_unlock(&loop->lock);
    return letter;
}

static unsigned count_letters(struct loop *loop) {
    unsigned count = 0;
    pthread_mutex_lock(&loop->lock);
    for (struct letter *letter = loop->inbox; letter; letter = letter->next)
        count++;
    pthread_mutex_unlock(&loop->lock);
    return count;
}

// What a delivery posts waits for the next round; what it cancels is not delivered.
static bool deliver_letters(struct loop *loop) {
    unsigned count = count_letters(loop);
    struct letter *letter;
    for (unsigned i = 0; i < count && (letter = take_letter(loop)); i++)
        letter->deliver(letter);
    return count > 0;
}

// ---- descriptors ----

void watch_init(struct watch *watch, struct loop *loop, void (*ready)(struct watch *watch, int events)) {
    *watch = (struct watch){.loop = loop, .ready = ready};
    watch->io.fd = -1;
}

void watch_set(struct watch *watch, int fd, int events) {
    struct loop *loop = watch->loop;
    if (events == 0) {
        watch_stop(watch);
        return;
    }
    CHECK(fd >= 0);
    if (!list_has(loop->watches, loop->watch_count, watch))
        list_add(loop->watches, &loop->watch_count, watch);
    watch->io.fd = fd;
    watch->io.events = events;
}

void watch_stop(struct watch *watch) {
    if (watch->loop)
        list_remove(watch->loop->watches, &watch->loop->watch_count, watch);
}

// As libev's epoll backend has it: an error or a hang-up is both.
static int events_of(short revents) {
    int both = revents & (POLLERR | POLLHUP) ? WATCH_READ | WATCH_WRITE : 0;
    return both | (revents & POLLIN ? WATCH_READ : 0) | (revents & POLLOUT ? WATCH_WRITE : 0);
}

static bool call_ready(struct loop *loop, struct watch *watch, const struct pollfd *polled) {
    if (!polled->revents || !list_has(loop->watches, loop->watch_count, watch))
        return false; // stopped meanwhile, perhaps freed
    int events = events_of(polled->revents) & watch->io.events;
    CHECK(!(polled->revents & POLLNVAL)); // closed before its watch was stopped
    if (watch->io.fd != polled->fd || !events)
        return false;
    watch->ready(watch, events);
    return true;
}

static bool poll_watches(struct loop *loop) {
    static struct pollfd polled[LIST_MAXIMUM];
    static void *watches[LIST_MAXIMUM];
    unsigned count = loop->watch_count;
    bool any = false;
    memcpy(watches, loop->watches, count * sizeof *watches);
    for (unsigned i = 0; i < count; i++) {
        const struct watch *watch = watches[i];
        short wanted =
                (watch->io.events & WATCH_READ ? POLLIN : 0) | (watch->io.events & WATCH_WRITE ? POLLOUT : 0);
        polled[i] = (struct pollfd){.fd = watch->io.fd, .events = wanted};
    }
    if (poll(polled, count, 0) <= 0)
        return false;
    for (unsigned i = 0; i < count; i++)
        any = call_ready(loop, watches[i], &polled[i]) || any;
    return any;
}

// ---- deadlines ----

void deadline_init(struct deadline *deadline, struct loop *loop, void (*expired)(struct deadline *deadline)) {
    *deadline = (struct deadline){.loop = loop, .expired = expired};
}

void deadline_set(struct deadline *deadline, int64_t at_ms) {
    struct loop *loop = deadline->loop;
    if (!loop || at_ms == deadline->at_ms)
        return;
    list_remove(loop->deadlines, &loop->deadline_count, deadline);
    deadline->at_ms = at_ms;
    if (at_ms != 0)
        list_add(loop->deadlines, &loop->deadline_count, deadline);
}

// The first to expire, or NULL; of two at one time the one that was set first.
static struct deadline *first_deadline(const struct loop *loop, const struct deadline *ignored) {
    struct deadline *first = NULL;
    for (unsigned i = 0; i < loop->deadline_count; i++) {
        struct deadline *one = loop->deadlines[i];
        if (one != ignored && (!first || one->at_ms < first->at_ms))
            first = one;
    }
    return first;
}

// One that is set again at once waits for the next round.
static bool expire_deadlines(struct loop *loop) {
    struct deadline *due;
    unsigned most = loop->deadline_count;
    bool any = false;
    while (most-- > 0 && (due = first_deadline(loop, NULL)) && due->at_ms <= clock_monotonic_ms()) {
        deadline_set(due, 0);
        due->expired(due);
        any = true;
    }
    return any;
}

void loop_ignore(struct loop *loop, struct deadline *deadline) {
    loop->ignored = deadline;
}

// ---- the loop ----

struct loop *loop_new(void) {
    struct loop *loop = calloc(1, sizeof *loop);
    if (!loop)
        return NULL;
    loop->inbox_end = &loop->inbox;
    pthread_mutex_init(&loop->lock, NULL);
    return loop;
}

void loop_free(struct loop *loop) {
    if (!loop)
        return;
    CHECK(loop->watch_count == 0 && loop->deadline_count == 0 && !loop->inbox);
    pthread_mutex_destroy(&loop->lock);
    free(loop);
}

int64_t loop_now_ms(const struct loop *loop) {
    (void)loop;
    return clock_monotonic_ms();
}

int64_t loop_wall_ms(struct loop *loop) {
    (void)loop;
    return clock_wall_ms();
}

static bool run_round(struct loop *loop) {
    bool any = network_move();
    any = deliver_letters(loop) || any;
    any = poll_watches(loop) || any;
    any = expire_deadlines(loop) || any;
    return loop->after(loop->context) || any;
}

// A round says nothing of the tasks it ran to the end, and these may have made something ready: only a second
// quiet round proves that all is quiet.
void loop_settle(struct loop *loop) {
    unsigned quiet = 0;
    for (unsigned i = 0; i < ROUNDS_MAXIMUM; i++) {
        quiet = run_round(loop) ? 0 : quiet + 1;
        if (quiet == 2)
            return;
    }
    UNREACHABLE("settles never: something is ready and nobody takes it");
}

void loop_advance(struct loop *loop, int64_t by_ms) {
    int64_t until_ms = clock_monotonic_ms() + by_ms;
    struct deadline *next;
    loop_settle(loop);
    while ((next = first_deadline(loop, loop->ignored)) && next->at_ms <= until_ms) {
        replay_clock_set(next->at_ms);
        loop_settle(loop);
    }
    replay_clock_set(until_ms);
    loop_settle(loop);
}

void loop_run(struct loop *loop, bool (*after)(void *context), void *context) {
    loop->after = after;
    loop->context = context;
    while (!atomic_load(&loop->stopping))
        replay_next(context);
    atomic_store(&loop->stopping, false);
}

void loop_stop(struct loop *loop) {
    atomic_store(&loop->stopping, true);
}
