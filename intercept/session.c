#include "intercept/session.h"

#include "admin/check.h"
#include "admin/container.h"
#include "intercept/accept.h"
#include "intercept/fetch.h"
#include "intercept/hole.h"
#include "intercept/request.h"
#include "intercept/tunnel.h"
#include "intercept/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define STEPS_A_WAKE 32 // then others have their turn

// ---- events ----

void session_wake(struct session *session, unsigned events) {
    session->events |= events;
    worker_mark(session->worker, &session->task);
}

static void on_socket(struct watch *watch, int events) {
    (void)events;
    session_wake(CONTAINER_OF(watch, struct session, watch), EVENT_SOCKET);
}

static void on_deadline(struct deadline *deadline) {
    session_wake(CONTAINER_OF(deadline, struct session, deadline), EVENT_DEADLINE);
}

static void on_letter(struct letter *letter) {
    session_wake(CONTAINER_OF(letter, struct session, letter), EVENT_READER);
}

// From any thread, possibly under the store's lock.
static void on_reader(struct cache_reader *reader) {
    struct session *session = CONTAINER_OF(reader, struct session, reader);
    loop_post(session->worker->loop, &session->letter);
}

// ---- the runner ----

void session_goto(struct session *session, enum step step) {
    session->step = step;
    session->moved = true;
    session->step_at_ms = loop_now_ms(session->worker->loop);
    session->wait_until_ms = 0;
}

void session_wait(struct session *session, enum timeout_id timeout) {
    session->step_at_ms = loop_now_ms(session->worker->loop);
    session->waits_for = timeout;
    session->wait_until_ms = session->step_at_ms + session->settings->config->timeout_ms[timeout];
}

bool session_is_late(const struct session *session) {
    return session->events & EVENT_DEADLINE && session->wait_until_ms &&
           loop_now_ms(session->worker->loop) >= session->wait_until_ms;
}

static void session_rearm(struct session *session) {
    int events = 0;
    if (session->want_read && !session->read_over)
        events |= WATCH_READ;
    if (session->want_write)
        events |= WATCH_WRITE;
    watch_set(&session->watch, session->fd, events);
    int64_t until = session->wait_until_ms;
    if (session->request && (until == 0 || session->request->total_at_ms < until))
        until = session->request->total_at_ms;
    deadline_set(&session->deadline, until);
}

static enum run run_step(struct session *session) {
    switch (session->step) {
#define STEP(id, file, meaning)                                                                              \
    case STEP_##id:                                                                                          \
        return step_##id(session);
#include "intercept/steps.tbl"
    }
    UNREACHABLE("step");
}

static void session_destroy(struct session *session) {
    struct worker *worker = session->worker;
    session_drop_request(session);
    tunnel_free(session);
    watch_stop(&session->watch);
    deadline_set(&session->deadline, 0);
    loop_cancel(worker->loop, &session->letter);
    worker_unmark(worker, &session->task);
    if (session->reset) {
        struct linger linger = {.l_onoff = 1, .l_linger = 0};
        setsockopt(session->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    }
    close(session->fd);
    buffer_release(&session->in);
    buffer_release(&session->out);
    *session->link = session->next;
    if (session->next)
        session->next->link = session->link;
    worker->session_count--;
    accept_release(worker, &session->peer.address);
    settings_put(session->settings);
    free(session);
}

static bool total_is_over(const struct session *session) {
    return session->request && session->events & EVENT_DEADLINE &&
           loop_now_ms(session->worker->loop) >= session->request->total_at_ms;
}

static void session_run(struct task *task) {
    struct session *session = CONTAINER_OF(task, struct session, task);
    enum run run = RUN_NEXT;
    for (int i = 0; i < STEPS_A_WAKE && run == RUN_NEXT; i++) {
        session->moved = false;
        if (total_is_over(session))
            run = request_give_up(session, "total-timeout");
        else
            run = run_step(session);
        session->entered = !session->moved;
        session->events = 0;
    }
    if (run == RUN_END) {
        session_destroy(session);
        return;
    }
    if (run == RUN_NEXT)
        worker_mark(session->worker, &session->task);
    session_rearm(session);
}

// ---- life ----

struct session *session_new(struct worker *worker, int fd, const struct listen_point *listen,
        const struct endpoint *peer, const struct endpoint *local) {
    struct session *session = calloc(1, sizeof *session);
    if (!session) {
        close(fd);
        return NULL;
    }
    session->worker = worker;
    session->task.run = session_run;
    session->settings = settings_get(worker->settings);
    session->listen = listen;
    session->fd = fd;
    session->peer = *peer;
    session->local = *local;
    session->began_at_ms = loop_now_ms(worker->loop);
    session->reader.wake = on_reader;
    watch_init(&session->watch, worker->loop, on_socket);
    deadline_init(&session->deadline, worker->loop, on_deadline);
    letter_init(&session->letter, on_letter);
    session->next = worker->sessions;
    session->link = &worker->sessions;
    if (session->next)
        session->next->link = &session->next;
    worker->sessions = session;
    worker->session_count++;
    session_goto(session, STEP_origdst);
    session_wake(session, 0);
    return session;
}

void session_end_all(struct worker *worker) {
    for (struct session *session = worker->sessions, *next; session; session = next) {
        next = session->next;
        request_interrupted(session);
        session_destroy(session);
    }
    fetch_end_all(worker);
}

void session_detach(struct session *session) {
    cache_reader_detach(&session->reader);
    loop_cancel(session->worker->loop, &session->letter);
}

void session_drop_request(struct session *session) {
    session_detach(session);
    if (session->fetch)
        fetch_leave(session->fetch);
    session->fetch = NULL;
    if (session->request)
        hole_leave(session->request);
    names_cancel(session->names);
    session->names = NULL;
    request_free(session->request);
    session->request = NULL;
}

bool session_next_destination(struct session *session) {
    if (session->arrival != ORIGDST_FORWARD || session->resolved_next >= session->resolved_count)
        return false;
    session->destination.address = session->resolved[session->resolved_next++];
    return true;
}

// ---- the socket ----

void session_count_out(struct session *session, size_t bytes) {
    session->bytes_out += bytes;
    counter_add(&session->worker->counters, COUNTER_client_bytes_out, bytes);
}

int session_flush(struct session *session) {
    session->want_write = false;
    while (buffer_length(&session->out) > 0) {
        ssize_t sent = buffer_send(&session->out, session->fd);
        if (sent == -EAGAIN) {
            session->want_write = true;
            return -EAGAIN;
        }
        if (sent == -EINTR)
            continue;
        if (sent < 0)
            return (int)sent;
        session_count_out(session, (size_t)sent);
    }
    return 0;
}

// Most heads fit into a page, and those who drip theirs shall not cost more: only a full buffer grows.
static size_t want_for_head(const struct buffer *in) {
    size_t spare = in->size - in->end;
    return spare > 0 ? spare : in->size > 0 ? in->size : SESSION_HEAD_BYTES;
}

ssize_t session_receive(struct session *session, size_t limit) {
    if (session->read_over)
        return 0;
    size_t want = session->request ? SESSION_READ_BYTES : want_for_head(&session->in);
    ssize_t got;
    do
        got = buffer_receive(&session->in, session->fd, want, limit);
    while (got == -EINTR);
    if (got > 0) {
        session->bytes_in += (uint64_t)got;
        counter_add(&session->worker->counters, COUNTER_client_bytes_in, (uint64_t)got);
    } else if (got == 0) {
        session->read_over = true;
    }
    return got;
}
