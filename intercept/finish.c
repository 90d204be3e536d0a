// step finish: sends what is left, logs the request, then the next one or a lingering close.
#include "intercept/request.h"
#include "intercept/worker.h"

#include <errno.h>
#include <sys/socket.h>

#define LINGER_BYTES (64 << 20) // read and dropped at the most, so that a sender without end is cut off
#define LINGER_SPELLS 12        // a client that goes on sending has so many times `timeout linger` altogether

// The deadline is for silence; the sum is bounded too.
static void wait_for_rest(struct session *session) {
    session_wait(session, TIMEOUT_linger);
    if (session->wait_until_ms > session->linger_until_ms)
        session->wait_until_ms = session->linger_until_ms;
}

static enum run linger(struct session *session) {
    struct worker *worker = session->worker;
    for (int i = 0; i < 16; i++) {
        ssize_t got = recv(session->fd, worker->scratch, sizeof worker->scratch, 0);
        if (got < 0 && errno == EAGAIN)
            return RUN_WAIT;
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return RUN_END;
        wait_for_rest(session);
        session->lingered_bytes += (uint64_t)got;
        if (session->lingered_bytes > LINGER_BYTES)
            return RUN_END;
    }
    return RUN_NEXT;
}

// Closing while the client still sends would answer its bytes with RST, and the client's kernel would throw
// away the page that says why: half-close, then read until it closes.
static enum run begin_linger(struct session *session) {
    session_drop_request(session);
    buffer_release(&session->in);
    if (session->read_over || shutdown(session->fd, SHUT_WR) != 0)
        return RUN_END;
    session->lingering = true;
    session->want_read = true;
    session->linger_until_ms = loop_now_ms(session->worker->loop) +
                               LINGER_SPELLS * session->settings->config->timeout_ms[TIMEOUT_linger];
    wait_for_rest(session);
    return RUN_NEXT;
}

static enum run next_request(struct session *session) {
    session_drop_request(session);
    session->requests++;
    session_goto(session, STEP_request);
    return RUN_NEXT;
}

static enum run finish(struct session *session) {
    struct request *request = session->request;
    if (session->gone && request->result != RESULT_ABORTED && !request->body_over && !request->cut)
        request->reason = "client-left";
    if (request->cut)
        counter_add(&session->worker->counters, COUNTER_cut_short, 1);
    request_log(session, request->result, request->reason);
    if (session->gone || session->reset || request->cut)
        return RUN_END;
    if (session->closing || session->worker->draining || !request->body_done)
        return begin_linger(session);
    return next_request(session);
}

static bool must_go(const struct session *session) {
    return session->events & EVENT_EVICT || worker_drain_is_over(session->worker);
}

enum run step_finish(struct session *session) {
    if (session->lingering)
        return session_is_late(session) || must_go(session) ? RUN_END : linger(session);
    session->want_read = false;
    int flushed = session->gone ? 0 : session_flush(session);
    if (flushed == -EAGAIN && !session_is_late(session) && !must_go(session)) {
        if (!session->entered || session->events & EVENT_SOCKET)
            session_wait(session, TIMEOUT_client_write);
        return RUN_WAIT;
    }
    if (flushed < 0)
        session->gone = true;
    return finish(session);
}
