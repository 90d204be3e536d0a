// The connection of a fetch: a kept one or a new one.
#include "intercept/fetch_own.h"

#include "intercept/dial.h"
#include "intercept/worker.h"

#include <errno.h>

#define PLACE_WAITS 20 // times, when there are as many connections as there may be
#define PLACE_WAIT_MS 50

static bool is_for_want_of_ours(int error) { // another address would not help
    return error == -EUSERS || error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

static void tell_uplink(const struct fetch *fetch, int result) {
    uplink_watch_told(
            fetch->worker->daemon->uplink, &fetch->key.destination, result, loop_now_ms(fetch->worker->loop));
}

static enum run connect_failed(struct fetch *fetch, int error) {
    tell_uplink(fetch, error);
    if (fetch->upstream)
        upstream_close(fetch->upstream);
    fetch->upstream = NULL;
    if (!is_for_want_of_ours(error) && fetch->session && session_next_destination(fetch->session)) {
        upstream_key_of_session(fetch->session, &fetch->key);
        return RUN_NEXT; // begins anew
    }
    counter_add(&fetch->worker->counters, COUNTER_upstream_failed, 1);
    switch (-error) {
    case ECONNREFUSED:
        return fetch_fail(fetch, 502, "connect-refused", "The server refused the connection.");
    case ETIMEDOUT:
        return fetch_fail(fetch, 504, "connect-timeout", "The server did not accept the connection in time.");
    case EHOSTUNREACH:
    case ENETUNREACH:
        return fetch_fail(
                fetch, 502, "unreachable", "The server cannot be reached: there is no route to it.");
    case EUSERS:
        return fetch_fail(fetch, 503, "upstream-limit",
                "The gateway has as many connections to servers as it may (upstream_connections).");
    case EMFILE:
    case ENFILE:
        return fetch_fail(fetch, 503, "no-descriptor", "The gateway is out of descriptors.");
    default:
        return fetch_fail(fetch, 502, "connect-failed", "The connection to the server failed.");
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
    fetch->request_at = worker_now(fetch->worker);
    fetch->upstream->requests++;
    fetch_set_deadline(fetch, TIMEOUT_first_byte);
}

// On a kept connection only what may be sent again when it turns out to be dead.
static bool may_be_sent_again(const struct fetch *fetch) {
    return http_method_is_idempotent(fetch->method) && fetch->upload_over && !fetch->upload_begun;
}

// All places are taken, perhaps by connections that nobody uses on other workers: those are asked for one.
static bool waits_for_place(struct fetch *fetch, int error) {
    if ((error != -EUSERS && error != -EMFILE && error != -ENFILE) || fetch->place_waits == PLACE_WAITS)
        return false;
    fetch->place_waits++;
    worker_ask_for_room(fetch->worker);
    deadline_set(&fetch->deadline, loop_now_ms(fetch->worker->loop) + PLACE_WAIT_MS);
    return true;
}

enum run fetch_connect_begin(struct fetch *fetch, bool may_reuse) {
    fetch->step = FETCH_CONNECT;
    struct upstream *upstream = may_reuse ? upstream_take(fetch->worker, &fetch->key) : NULL;
    if (upstream) {
        counter_add(&fetch->worker->counters, COUNTER_upstream_reused, 1);
        use(fetch, upstream);
        upstream_doubt(upstream, fetch->settings);
        begin_head(fetch);
        return RUN_NEXT;
    }
    int error = 0;
    upstream = upstream_dial(fetch->worker, fetch->settings, &fetch->key, &error);
    if (!upstream && waits_for_place(fetch, error))
        return RUN_WAIT;
    if (!upstream)
        return connect_failed(fetch, error);
    use(fetch, upstream);
    watch_set(&upstream->watch, upstream->fd, WATCH_WRITE);
    fetch_set_deadline(fetch, TIMEOUT_connect);
    return RUN_WAIT;
}

static bool is_clean(const struct fetch *fetch) {
    return fetch->keeps_alive && fetch->upload_over && !fetch->upload_broken &&
           buffer_length(&fetch->out) == 0 && fetch->head_sent == fetch->head.length &&
           buffer_length(&fetch->upstream->in) == 0;
}

void fetch_connect_end(struct fetch *fetch) {
    struct upstream *upstream = fetch->upstream;
    bool is_kept = is_clean(fetch);
    fetch->upstream = NULL;
    if (is_kept)
        upstream_keep(upstream, fetch->settings);
    else
        upstream_close(upstream);
}

enum run fetch_connect_run(struct fetch *fetch) {
    if (!fetch->upstream)
        return fetch_connect_begin(fetch, may_be_sent_again(fetch));
    if (fetch->late)
        return connect_failed(fetch, -ETIMEDOUT);
    int result = dial_result(fetch->upstream->fd);
    if (result == -EINPROGRESS || result == -EALREADY)
        return RUN_WAIT;
    if (result < 0)
        return connect_failed(fetch, result);
    tell_uplink(fetch, 0);
    fetch->upstream->connected = true;
    begin_head(fetch);
    return RUN_NEXT;
}
