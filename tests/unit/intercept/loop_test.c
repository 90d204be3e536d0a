#include "intercept/loop.h"

#include "admin/clock.h"
#include "admin/container.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

// One of each, and what happened to them.
struct fixture {
    struct loop *loop;
    struct watch watch;
    struct deadline first, second, limit;
    struct letter letter, other;
    int events, fired_first, fired_second, delivered, delivered_other, rounds;
    int64_t fired_at_ms;
    bool timed_out;
};

static struct fixture fix;

static void limit_expired(struct deadline *deadline) {
    (void)deadline;
    fix.timed_out = true;
    loop_stop(fix.loop);
}

static void first_expired(struct deadline *deadline) {
    (void)deadline;
    fix.fired_first++;
    fix.fired_at_ms = loop_now_ms(fix.loop);
    loop_stop(fix.loop);
}

static void second_expired(struct deadline *deadline) {
    (void)deadline;
    fix.fired_second++;
}

static void ready(struct watch *watch, int events) {
    (void)watch;
    fix.events |= events;
    loop_stop(fix.loop);
}

static void deliver(struct letter *letter) {
    (void)letter;
    fix.delivered++;
    loop_stop(fix.loop);
}

static void deliver_other(struct letter *letter) {
    (void)letter;
    fix.delivered_other++;
}

static void begin(void) {
    fix = (struct fixture){.loop = loop_new()};
    CU_ASSERT_PTR_NOT_NULL_FATAL(fix.loop);
    watch_init(&fix.watch, fix.loop, ready);
    deadline_init(&fix.first, fix.loop, first_expired);
    deadline_init(&fix.second, fix.loop, second_expired);
    deadline_init(&fix.limit, fix.loop, limit_expired);
    letter_init(&fix.letter, deliver);
    letter_init(&fix.other, deliver_other);
    deadline_set(&fix.limit, clock_monotonic_ms() + 10000);
}

static void end(void) {
    CU_ASSERT_FALSE(fix.timed_out);
    watch_stop(&fix.watch);
    deadline_set(&fix.first, 0);
    deadline_set(&fix.second, 0);
    deadline_set(&fix.limit, 0);
    loop_free(fix.loop);
}

static void deadline_expires_once_and_not_early(void) {
    begin();
    int64_t at = clock_monotonic_ms() + 30;
    deadline_set(&fix.first, at);
    loop_run(fix.loop, NULL, NULL);
    CU_ASSERT_EQUAL(fix.fired_first, 1);
    CU_ASSERT_TRUE(fix.fired_at_ms >= at);
    CU_ASSERT_EQUAL(fix.first.at_ms, 0);
    end();
}

static void deadline_moved_later(void) {
    begin();
    int64_t now = clock_monotonic_ms();
    deadline_set(&fix.first, now + 10);
    deadline_set(&fix.first, now + 60);
    CU_ASSERT_EQUAL(fix.first.armed_ms, now + 10);
    loop_run(fix.loop, NULL, NULL);
    CU_ASSERT_EQUAL(fix.fired_first, 1);
    CU_ASSERT_TRUE(fix.fired_at_ms >= now + 60);
    end();
}

static void deadline_moved_earlier_and_stopped(void) {
    begin();
    int64_t now = clock_monotonic_ms();
    deadline_set(&fix.first, now + 5000);
    deadline_set(&fix.first, now + 20);
    deadline_set(&fix.second, now + 5);
    deadline_set(&fix.second, 0);
    loop_run(fix.loop, NULL, NULL);
    CU_ASSERT_EQUAL(fix.fired_first, 1);
    CU_ASSERT_EQUAL(fix.fired_second, 0);
    CU_ASSERT_TRUE(fix.fired_at_ms < now + 5000);
    end();
}

static void deadline_in_the_past_expires(void) {
    begin();
    deadline_set(&fix.first, 1);
    loop_run(fix.loop, NULL, NULL);
    CU_ASSERT_EQUAL(fix.fired_first, 1);
    end();
}

static void watch_reads_writes_and_changes(void) {
    begin();
    int pair[2];
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    watch_set(&fix.watch, pair[0], WATCH_WRITE);
    loop_run(fix.loop, NULL, NULL);
    CU_ASSERT_EQUAL(fix.events, WATCH_WRITE);
    fix.events = 0;
    watch_set(&fix.watch, pair[0], WATCH_READ);
    CU_ASSERT_EQUAL(write(pair[1], "x", 1), 1);
    loop_run(fix.loop, NULL, NULL);
    CU_ASSERT_EQUAL(fix.events, WATCH_READ);
    fix.events = 0;
    watch_set(&fix.watch, pair[0], WATCH_READ | WATCH_WRITE);
    loop_run(fix.loop, NULL, NULL);
    CU_ASSERT_EQUAL(fix.events, WATCH_READ | WATCH_WRITE);
    watch_stop(&fix.watch);
    close(pair[0]);
    close(pair[1]);
    end();
}

// The kernel forgets a closed descriptor; a new one under the same number must be watched again.
static void watch_sees_a_reused_number(void) {
    begin();
    int first[2], second[2];
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, first), 0);
    CU_ASSERT_EQUAL(write(first[1], "x", 1), 1);
    watch_set(&fix.watch, first[0], WATCH_READ);
    loop_run(fix.loop, NULL, NULL);
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, second), 0);
    watch_stop(&fix.watch);
    int number = first[0];
    close(first[0]);
    CU_ASSERT_EQUAL_FATAL(fcntl(second[0], F_DUPFD, number), number);
    close(second[0]);
    watch_set(&fix.watch, number, WATCH_READ);
    fix.events = 0;
    CU_ASSERT_EQUAL(write(second[1], "y", 1), 1);
    loop_run(fix.loop, NULL, NULL);
    CU_ASSERT_EQUAL(fix.events, WATCH_READ);
    watch_stop(&fix.watch);
    close(number);
    close(first[1]);
    close(second[1]);
    end();
}

static void *post_from_a_thread(void *argument) {
    (void)argument;
    loop_post(fix.loop, &fix.letter);
    return NULL;
}

static void letter_from_a_thread_wakes(void) {
    begin();
    pthread_t thread;
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, post_from_a_thread, NULL), 0);
    loop_run(fix.loop, NULL, NULL);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(fix.delivered, 1);
    end();
}

static void letter_posted_twice_comes_once_and_cancelled_never(void) {
    begin();
    loop_post(fix.loop, &fix.other);
    loop_post(fix.loop, &fix.letter);
    loop_post(fix.loop, &fix.letter);
    loop_cancel(fix.loop, &fix.other);
    loop_cancel(fix.loop, &fix.other);
    loop_run(fix.loop, NULL, NULL);
    CU_ASSERT_EQUAL(fix.delivered, 1);
    CU_ASSERT_EQUAL(fix.delivered_other, 0);
    loop_cancel(fix.loop, &fix.letter);
    loop_post(fix.loop, &fix.other);
    loop_post(fix.loop, &fix.letter);
    loop_run(fix.loop, NULL, NULL);
    CU_ASSERT_EQUAL(fix.delivered, 2);
    CU_ASSERT_EQUAL(fix.delivered_other, 1);
    end();
}

static void deliver_and_cancel_other(struct letter *letter) {
    (void)letter;
    loop_cancel(fix.loop, &fix.other);
    loop_post(fix.loop, &fix.letter); // for the next round
    fix.delivered++;
    if (fix.delivered == 2)
        loop_stop(fix.loop);
}

static void letter_cancelled_by_the_one_before(void) {
    begin();
    letter_init(&fix.letter, deliver_and_cancel_other);
    loop_post(fix.loop, &fix.letter);
    loop_post(fix.loop, &fix.other);
    loop_run(fix.loop, NULL, NULL);
    CU_ASSERT_EQUAL(fix.delivered, 2);
    CU_ASSERT_EQUAL(fix.delivered_other, 0);
    end();
}

struct poster {
    pthread_t thread;
    struct letter letter;
    _Atomic int seen;
};

static struct poster posters[4];
static _Atomic int posters_done;

static void deliver_to_poster(struct letter *letter) {
    struct poster *poster = CONTAINER_OF(letter, struct poster, letter);
    atomic_fetch_add(&poster->seen, 1);
}

static void *post_many(void *argument) {
    struct poster *poster = argument;
    for (int i = 0; i < 2000; i++) {
        int before = atomic_load(&poster->seen);
        loop_post(fix.loop, &poster->letter);
        while (atomic_load(&poster->seen) == before) // each must arrive, none may be lost
            sched_yield();
    }
    if (atomic_fetch_add(&posters_done, 1) == 3)
        loop_stop(fix.loop);
    return NULL;
}

static void letters_of_many_threads_all_arrive(void) {
    begin();
    atomic_store(&posters_done, 0);
    for (int i = 0; i < 4; i++) {
        posters[i].seen = 0;
        letter_init(&posters[i].letter, deliver_to_poster);
        CU_ASSERT_EQUAL_FATAL(pthread_create(&posters[i].thread, NULL, post_many, &posters[i]), 0);
    }
    loop_run(fix.loop, NULL, NULL);
    for (int i = 0; i < 4; i++) {
        pthread_join(posters[i].thread, NULL);
        CU_ASSERT_EQUAL(posters[i].seen, 2000);
    }
    end();
}

static bool count_rounds(void *context) {
    (void)context;
    if (++fix.rounds == 5)
        loop_stop(fix.loop);
    return true;
}

static void after_that_is_busy_does_not_wait(void) {
    begin();
    int64_t before = clock_monotonic_ms();
    loop_post(fix.loop, &fix.other);        // the first round has an event
    loop_run(fix.loop, count_rounds, NULL); // nothing else would wake it for ten seconds
    CU_ASSERT_TRUE(clock_monotonic_ms() - before < 2500);
    CU_ASSERT_TRUE(fix.rounds <= 6);
    end();
}

static void stop_before_run_and_clocks(void) {
    begin();
    loop_stop(fix.loop);
    loop_run(fix.loop, NULL, NULL);
    int64_t wall = loop_wall_ms(fix.loop);
    CU_ASSERT_TRUE(clock_wall_ms() - wall < 5000);
    CU_ASSERT_EQUAL(loop_wall_ms(fix.loop), wall);
    CU_ASSERT_TRUE(clock_monotonic_ms() - loop_now_ms(fix.loop) < 5000);
    end();
}

SUITE(intercept_loop, CASE(deadline_expires_once_and_not_early), CASE(deadline_moved_later),
        CASE(deadline_moved_earlier_and_stopped), CASE(deadline_in_the_past_expires),
        CASE(watch_reads_writes_and_changes), CASE(watch_sees_a_reused_number),
        CASE(letter_from_a_thread_wakes), CASE(letter_posted_twice_comes_once_and_cancelled_never),
        CASE(letter_cancelled_by_the_one_before), CASE(letters_of_many_threads_all_arrive),
        CASE(after_that_is_busy_does_not_wait), CASE(stop_before_run_and_clocks))
