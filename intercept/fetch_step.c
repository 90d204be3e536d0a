// step fetch: waits for the response head while the request body goes out.
#include "admin/check.h"
#include "intercept/fetch.h"
#include "intercept/reply.h"
#include "intercept/request.h"
#include "intercept/tunnel.h"
#include "intercept/worker.h"

#include <errno.h>

#define VAIN_LOOKUPS_MAXIMUM 3

static enum run answer_failure(struct session *session) {
    struct request *request = session->request;
    struct failure failure = request->failure;
    if (failure.status == 0)
        failure = (struct failure){502, "fetch-ended", "The fetch of this response ended before it began."};
    char origin[ADDRESS_TEXT_BYTES];
    return reply_page(session, failure.status, RESULT_ERROR, failure.reason, failure.text,
            view_of(endpoint_print(&session->destination, origin)));
}

// The exchange was over before the request was: what the client still sends is dropped, so that one that
// writes before it reads comes to read. The connection closes after the response.
static bool drop_body(struct session *session) {
    ssize_t got = 1;
    for (int i = 0; i < 16 && got > 0; i++) {
        buffer_take(&session->in, buffer_length(&session->in));
        got = session_receive(session, SESSION_READ_BYTES);
    }
    session->want_read = !session->read_over;
    return got >= 0 || got == -EAGAIN;
}

// Reads ahead while there is nothing else to read, so that a client that resets is noticed. Only when the
// socket has something: the watcher tells of what comes later.
bool session_read_ahead(struct session *session) {
    struct request *request = session->request;
    if (!request->body_done && !request->body_bad)
        return session->fetch ? true : drop_body(session); // with a fetch, the upload reads
    ssize_t got = 0;
    while (session->events & EVENT_SOCKET && !session->read_over &&
            buffer_length(&session->in) < SESSION_AHEAD_BYTES &&
            (got = session_receive(session, SESSION_AHEAD_BYTES)) > 0)
        continue;
    session->want_read = !session->read_over && buffer_length(&session->in) < SESSION_AHEAD_BYTES;
    return got >= 0 || got == -EAGAIN;
}

// A range of a response that is stored or just arriving: where to begin, or the origin is asked for it.
static bool is_unreachable_range(struct session *session) {
    struct request *request = session->request;
    if (request->lookup != LOOKUP_HIT && request->lookup != LOOKUP_JOIN)
        return false;
    const struct http_field *range = http_field_find(&request->head, FIELD_RANGE, 0);
    return range && request->head.method_id == METHOD_GET && request->stored.status == 200 &&
           request->stored.content_length < 0;
}

static enum run on_head(struct session *session) {
    if (is_unreachable_range(session))
        return lookup_alone(session, "range-of-unknown-length");
    session_goto(session, STEP_deliver);
    return RUN_NEXT;
}

static enum run body_is_late(struct session *session) {
    fetch_leave(session->fetch);
    session->fetch = NULL;
    session->request->body_bad = true;
    return reply_page(
            session, 408, RESULT_BAD, "body-timeout", "The request body stopped arriving.", VIEW(""));
}

// What another request's fetch brought is not for this one: the store is asked again, which sends no request
// to wait a second time for a head.
static enum run look_up_again(struct session *session) {
    if (++session->request->vain_lookups == VAIN_LOOKUPS_MAXIMUM)
        return lookup_alone(session, "joined-in-vain");
    session->request->stored = (struct cache_head){0}; // lived as long as the reader was attached
    session_detach(session);
    session_goto(session, STEP_lookup);
    return RUN_NEXT;
}

static enum run look_at_head(struct session *session) {
    struct request *request = session->request;
    struct cache_query query;
    request_query(session, &query);
    switch (cache_reader_head(&session->reader, &query, &request->stored)) {
    case READ_READY:
        return on_head(session);
    case READ_BROKEN:
        return answer_failure(session);
    case READ_GONE:
        return look_up_again(session);
    case READ_WAIT:
        return RUN_WAIT;
    case READ_END:
    case READ_HOLE:
        break;
    }
    UNREACHABLE("a head does not end");
}

enum run step_fetch(struct session *session) {
    if (session->tunnel) { // the origin accepted an upgrade
        session_goto(session, STEP_tunnel);
        return RUN_NEXT;
    }
    if (session_is_late(session) && session->fetch)
        return body_is_late(session);
    if (!request_upload(session))
        return RUN_NEXT;
    int flushed = session_flush(session); // interim responses
    if ((flushed < 0 && flushed != -EAGAIN) || !session_read_ahead(session))
        return request_client_left(session);
    return look_at_head(session);
}
