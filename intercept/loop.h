// The event loop of one thread: descriptors, deadlines, letters from other threads. The only door to libev:
// nobody else names an ev_ symbol. Everything here belongs to the loop's own thread, loop_post and loop_stop
// aside.
#pragma once

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct loop;

enum watch_events {
    WATCH_READ = 1,
    WATCH_WRITE = 2,
};

// Readiness of one descriptor. In place in its owner. `ready` must only record the events and mark its owner
// runnable.
struct watch {
    ev_io io;
    struct loop *loop;
    void (*ready)(struct watch *watch, int events);
};

// A point in monotonic time. In place in its owner. Moving one that runs to a later time costs a store: it is
// looked at again when it would have expired. Stop it (0) before its owner goes.
struct deadline {
    ev_timer timer;
    struct loop *loop;
    int64_t at_ms;    // 0: not set
    int64_t armed_ms; // when libev will look next
    void (*expired)(struct deadline *deadline);
};

// Something another thread wants done on the loop's thread. In place in its owner; posting one that is
// already posted does nothing.
struct letter {
    struct letter *next;
    bool posted; // under the loop's lock
    void (*deliver)(struct letter *letter);
};

struct loop *loop_new(void); // NULL without memory or descriptors
void loop_free(struct loop *loop);

// Runs until loop_stop. After the events of each round `after` is called (may be NULL); while it returns true
// the next round polls without waiting.
void loop_run(struct loop *loop, bool (*after)(void *context), void *context);
void loop_stop(struct loop *loop);            // from any thread, also before loop_run
int64_t loop_now_ms(const struct loop *loop); // CLOCK_MONOTONIC when this round woke up
int64_t loop_wall_ms(struct loop *loop);      // CLOCK_REALTIME, read at most once a round

void watch_init(struct watch *watch, struct loop *loop, void (*ready)(struct watch *watch, int events));
void watch_set(
        struct watch *watch, int fd, int events); // events 0 stops; nothing happens when nothing changed
void watch_stop(struct watch *watch);             // before the descriptor is closed; idempotent

void deadline_init(struct deadline *deadline, struct loop *loop, void (*expired)(struct deadline *deadline));
void deadline_set(struct deadline *deadline, int64_t at_ms); // absolute monotonic milliseconds; 0 stops it

void letter_init(struct letter *letter, void (*deliver)(struct letter *letter));
void loop_post(struct loop *loop, struct letter *letter);   // from any thread; wakes the loop
void loop_cancel(struct loop *loop, struct letter *letter); // on the loop's thread: it will not be delivered
