// The connection of a fetch: a kept one or a new one.
#include "intercept/fetch_own.h"

#include "intercept/dial.h"
#include "intercept/worker.h"

#include <errno.h>

static enum run connect_failed(struct fetch *fetch, int error) {
    counter_add(&fetch->worker->counters, COUNTER_upstream_failed, 1);
    switch (-error) {
    case ECONNREFUSED:
        return fetch_give_up(fetch, 502, "connect-refused", "The server refused the connection.");
    case ETIMEDOUT:
        return fetch_give_up(
                fetch, 504, "connect-timeout", "The server did not accept the connection in time.");
    case EHOSTUNREACH:
    case ENETUNREACH:
        return fetch_give_up(
                fetch, 502, "unreachable", "The server cannot be reached: there is no route to it.");
    case EUSERS:
        return fetch_give_up(fetch, 503, "upstream-limit",
                "The gateway has as many connections to servers as it may (upstream_connections).");
    case EMFILE:
    case ENFILE:
        return fetch_give_up(fetch, 503, "no-descriptor", "The gateway is out of descriptors.");
    default:
        return fetch_give_up(fetch, 502, "connect-failed", "The connection to the server failed.");
    }
}

static void on_ready(struct upstream *upstream, int events) {
    struct fetch *fetch = upstream->owner;
    (void)events;
    worker_mark(fetch->worker, &fetch->task);
}

static void use(struct fetch *fetch, struct upstream *upstream) {
    fetch->upstream = upstream;
    upstream->owner = fetch;
    upstream->ready = on_ready;
    if (fetch->session && fetch->session->request)
        fetch->session->request->contacted = true;
}

static void begin_head(struct fetch *fetch) {
    fetch->step = FETCH_HEAD;
    fetch->head_sent = 0;
    fetch->seen = 0;
    fetch->request_at_s = loop_wall_ms(fetch->worker->loop) / 1000;
    fetch->upstream->requests++;
    fetch_set_deadline(fetch, TIMEOUT_first_byte);
}

enum run fetch_connect_begin(struct fetch *fetch, bool may_reuse) {
    struct upstream *upstream = may_reuse ? upstream_take(fetch->worker, &fetch->key) : NULL;
    if (upstream) {
        counter_add(&fetch->worker->counters, COUNTER_upstream_reused, 1);
        use(fetch, upstream);
        begin_head(fetch);
        return RUN_NEXT;
    }
    int error = 0;
    upstream = upstream_dial(fetch->worker, fetch->settings, &fetch->key, &error);
    if (!upstream)
        return connect_failed(fetch, error);
    use(fetch, upstream);
    fetch->step = FETCH_CONNECT;
    watch_set(&upstream->watch, upstream->fd, WATCH_WRITE);
    fetch_set_deadline(fetch, TIMEOUT_connect);
    return RUN_WAIT;
}

enum run fetch_connect_run(struct fetch *fetch) {
    if (!fetch->upstream)
        return fetch_connect_begin(fetch, true);
    if (fetch->late)
        return connect_failed(fetch, -ETIMEDOUT);
    int result = dial_result(fetch->upstream->fd);
    if (result == -EINPROGRESS || result == -EALREADY)
        return RUN_WAIT;
    if (result < 0)
        return connect_failed(fetch, result);
    fetch->upstream->connected = true;
    begin_head(fetch);
    return RUN_NEXT;
}
