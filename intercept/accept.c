#include "intercept/accept.h"

#include "admin/container.h"
#include "admin/log.h"
#include "intercept/hosts.h"
#include "intercept/session.h"
#include "intercept/tunnel.h"

#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPT_ROUND 64    // connections taken in one wake, so that sessions get their turn
#define ACCEPT_PAUSE_MS 50 // before the next try when nothing can be taken
#define EVICT_GRACE_MS 250 // a connection younger than this is not closed in favour of another
#define EVICT_ROUND 16     // connections asked to go at once

static struct log_limit limit_log;

// Stops listening for a moment: nothing more can be taken.
static void pause_accepting(struct worker *worker) {
    worker->accept_paused = true;
    for (unsigned i = 0; i < worker->listener_count; i++)
        watch_stop(&worker->listeners[i].watch);
    deadline_set(&worker->accept_again, loop_now_ms(worker->loop) + ACCEPT_PAUSE_MS);
}

void accept_resume(struct worker *worker) {
    worker->accept_paused = false;
    for (unsigned i = 0; i < worker->listener_count; i++)
        if (worker->listeners[i].fd >= 0)
            watch_set(&worker->listeners[i].watch, worker->listeners[i].fd, WATCH_READ);
}

// Asks up to `most` of the connections that have waited longest without a whole request to go, so that those
// who connect and say nothing cannot keep the others out. With `host` only that host's own. How many were
// asked; one that was asked before, and has not gone yet, makes no further room.
static int evict_waiting(struct worker *worker, const struct address *host, int most) {
    struct session *oldest[EVICT_ROUND] = {0};
    int64_t before = loop_now_ms(worker->loop) - EVICT_GRACE_MS;
    for (struct session *session = worker->sessions; session; session = session->next) {
        bool waits = session->step == STEP_request || session->lingering || tunnel_is_waiting(session);
        bool is_asked = session->events & EVENT_EVICT;
        if (!waits || is_asked || session->began_at_ms > before ||
                (host && !address_equal(&session->peer.address, host)))
            continue;
        struct session *carried = session;
        for (int i = 0; i < most && carried; i++) // kept in order, the longest waiting first
            if (!oldest[i] || carried->step_at_ms < oldest[i]->step_at_ms) {
                struct session *pushed = oldest[i];
                oldest[i] = carried;
                carried = pushed;
            }
    }
    int count = 0;
    for (; count < most && oldest[count]; count++)
        session_wake(oldest[count], EVENT_EVICT);
    return count;
}

void accept_make_room(struct letter *letter) {
    struct worker *worker = CONTAINER_OF(letter, struct worker, room_letter);
    if (!upstream_evict(worker))
        evict_waiting(worker, NULL, EVICT_ROUND);
}

void accept_release(struct worker *worker, const struct address *client) {
    hosts_leave(client);
    atomic_fetch_sub(&worker->daemon->sessions, 1);
    counter_subtract(&worker->counters, COUNTER_sessions_open, 1);
    if (worker->accept_paused)
        deadline_set(&worker->accept_again, loop_now_ms(worker->loop) + 1);
}

// Sends RST rather than leaving the client to wait for a time-out.
static void refuse(int fd) {
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(fd);
}

static bool host_is_full(struct worker *worker, const struct endpoint *peer) {
    if (hosts_enter(&peer->address, worker->settings->client_connections_per_host))
        return false;
    if (evict_waiting(worker, &peer->address, 1) > 0) // one of its own silent ones makes room
        return !hosts_enter(&peer->address, UINT_MAX);
    counter_add(&worker->counters, COUNTER_refused_limit, 1);
    char text[ADDRESS_TEXT_BYTES];
    log_limited(&limit_log, 10000,
            "%s has %u connections open: refused a further one (client_connections_per_host)",
            address_print(&peer->address, text), worker->settings->client_connections_per_host);
    return true;
}

void accept_connection(
        struct listener *listener, int fd, const struct endpoint *peer, const struct endpoint *local) {
    struct worker *worker = listener->worker;
    if (host_is_full(worker, peer)) {
        refuse(fd);
        return;
    }
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    atomic_fetch_add(&worker->daemon->sessions, 1);
    counter_add(&worker->counters, COUNTER_sessions_open, 1);
    counter_add(&worker->counters, COUNTER_connections, 1);
    if (!session_new(worker, fd, listener->point, peer, local))
        accept_release(worker, &peer->address);
}

static void take(struct listener *listener, int fd, const struct sockaddr_storage *from) {
    struct endpoint peer, local;
    struct sockaddr_storage here;
    socklen_t length = sizeof here;
    if (endpoint_from_sockaddr(&peer, (const struct sockaddr *)from) &&
            getsockname(fd, (struct sockaddr *)&here, &length) == 0 &&
            endpoint_from_sockaddr(&local, (struct sockaddr *)&here))
        accept_connection(listener, fd, &peer, &local);
    else
        refuse(fd);
}

// Room for one more? If not, somebody who only waits is asked to go, and the newcomer waits in the kernel's
// queue.
static bool is_full(struct worker *worker) {
    if (atomic_load(&worker->daemon->sessions) < worker->settings->client_connections)
        return false;
    if (evict_waiting(worker, NULL, EVICT_ROUND) == 0)
        worker_ask_for_room(worker);
    pause_accepting(worker);
    return true;
}

static void on_no_descriptor(struct worker *worker, int error) {
    counter_add(&worker->counters, COUNTER_refused_limit, 1);
    log_limited(&limit_log, 10000, "cannot accept connections: %s",
            error == EMFILE   ? "out of descriptors (LimitNOFILE)"
            : error == ENFILE ? "the system is out of descriptors"
                              : "the system is out of memory");
    if (!upstream_evict(worker) && evict_waiting(worker, NULL, EVICT_ROUND) == 0)
        worker_ask_for_room(worker);
    pause_accepting(worker);
}

void accept_ready(struct watch *watch, int events) {
    struct listener *listener = CONTAINER_OF(watch, struct listener, watch);
    struct worker *worker = listener->worker;
    (void)events;
    for (int i = 0; i < ACCEPT_ROUND && !worker->accept_paused; i++) {
        if (is_full(worker))
            return;
        struct sockaddr_storage from;
        socklen_t length = sizeof from;
        int fd = accept4(listener->fd, (struct sockaddr *)&from, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            take(listener, fd, &from);
        else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            on_no_descriptor(worker, errno);
        else if (errno == EAGAIN)
            return; // anything else concerns the one connection that was to be taken
    }
}
