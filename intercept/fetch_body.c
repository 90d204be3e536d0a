// The response body of a fetch: off the socket, out of its framing, into the fill.
#include "intercept/fetch_own.h"

#include "admin/check.h"
#include "intercept/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define READS_A_RUN 16  // then others have their turn
#define LAGGARD_MS 3000 // without taking a quarter of the window, while others wait

static void pass_trailers(struct fetch *fetch) {
    struct view trailers = body_trailers(&fetch->body);
    struct request *request = fetch->session ? fetch->session->request : NULL;
    if (!request || trailers.length == 0 || !(request->trailers = malloc(trailers.length)))
        return;
    memcpy(request->trailers, trailers.data, trailers.length);
    request->trailer_length = trailers.length;
}

static enum run end_well(struct fetch *fetch) {
    pass_trailers(fetch);
    cache_fill_finish(fetch->fill);
    if (fetch->alone_since_ms)
        counter_add(&fetch->worker->counters, COUNTER_orphans_finished, 1);
    fetch_connect_end(fetch);
    fetch_let_go(fetch);
    return RUN_END;
}

static enum run cut_short(struct fetch *fetch, const char *reason) {
    return fetch_fail(fetch, 502, reason, "The server's answer ended early.");
}

// Decodes what `in` holds, at most `room` bytes of it. RUN_WAIT: it is used up and the body goes on.
static enum run decode(struct fetch *fetch, size_t room) {
    struct view all = view_take(buffer_view(&fetch->upstream->in), room), input = all, content;
    enum body body;
    while ((body = body_decode(&fetch->body, &input, &content)) == BODY_DATA)
        cache_fill_append(fetch->fill, content.data, content.length);
    buffer_take(&fetch->upstream->in, all.length - input.length);
    switch (body) {
    case BODY_END:
        return end_well(fetch);
    case BODY_BAD:
        return cut_short(fetch, "bad-response-body");
    case BODY_MORE:
    case BODY_DATA:
        return RUN_WAIT;
    }
    UNREACHABLE("body");
}

// Straight from the socket to the fill, through the worker's scratch memory.
static enum run read_some(struct fetch *fetch, size_t room) {
    struct worker *worker = fetch->worker;
    struct upstream *upstream = fetch->upstream;
    ssize_t got = recv(
            upstream->fd, worker->scratch, room < sizeof worker->scratch ? room : sizeof worker->scratch, 0);
    if (got < 0 && errno == EINTR)
        return RUN_NEXT;
    if (got < 0 && errno == EAGAIN)
        return RUN_WAIT;
    if (got < 0 || (got == 0 && fetch->upload_reset))
        return cut_short(fetch, "origin-reset");
    if (got == 0)
        return body_decode_close(&fetch->body) == BODY_END ? end_well(fetch)
                                                           : cut_short(fetch, "origin-closed-early");
    counter_add(&worker->counters, COUNTER_upstream_bytes_in, (uint64_t)got);
    fetch->alone_bytes += fetch->alone_since_ms ? (uint64_t)got : 0;
    fetch_set_deadline(fetch, TIMEOUT_upstream_idle);
    struct view input = {worker->scratch, (size_t)got}, content;
    enum body body;
    while ((body = body_decode(&fetch->body, &input, &content)) == BODY_DATA)
        cache_fill_append(fetch->fill, content.data, content.length);
    if (body == BODY_BAD)
        return cut_short(fetch, "bad-response-body");
    if (body == BODY_MORE)
        return RUN_NEXT;
    if (input.length > 0) // surplus bytes: what follows on this connection cannot be trusted
        fetch->keeps_alive = false;
    return end_well(fetch);
}

// The readers are slower than the origin. One that all but stands still must not hold up the others.
static void wait_for_room(struct fetch *fetch) {
    int64_t now_ms = loop_now_ms(fetch->worker->loop);
    if (fetch->held_until_ms && now_ms >= fetch->held_until_ms) {
        cache_fill_shed(fetch->fill);
        fetch->held_until_ms = 0;
    }
    if (fetch->held_until_ms == 0)
        fetch->held_until_ms = now_ms + LAGGARD_MS;
    fetch_look_at(fetch, fetch->held_until_ms);
}

static enum run read_body(struct fetch *fetch, int *events) {
    if (body_left(&fetch->body) == 0)
        return decode(fetch, SIZE_MAX);
    for (int i = 0; i < READS_A_RUN; i++) {
        size_t room = cache_fill_room(fetch->fill, fetch_on_room, fetch);
        if (room == 0) {
            *events &= ~WATCH_READ;
            wait_for_room(fetch);
            return RUN_WAIT;
        }
        fetch->held_until_ms = 0;
        bool buffered = buffer_length(&fetch->upstream->in) > 0;
        enum run run = buffered ? decode(fetch, room) : read_some(fetch, room);
        if (run == RUN_END)
            return RUN_END;
        if (run == RUN_WAIT && !buffered) {
            if (fetch->deadline.at_ms == 0 || fetch->looks)
                fetch_set_deadline(fetch, TIMEOUT_upstream_idle);
            return RUN_WAIT;
        }
    }
    return RUN_NEXT;
}

enum run fetch_body_run(struct fetch *fetch) {
    int events = WATCH_READ;
    if (fetch->late)
        return cut_short(fetch, "upstream-idle-timeout");
    fetch_send_push(fetch, &events);
    enum run run = read_body(fetch, &events);
    if (run == RUN_WAIT)
        watch_set(&fetch->upstream->watch, fetch->upstream->fd, events);
    return run;
}
