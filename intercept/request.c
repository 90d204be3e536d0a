// step request: reads a request head, or finds that it is none.
#include "intercept/request.h"

#include "admin/check.h"
#include "intercept/fetch.h"
#include "intercept/reply.h"
#include "intercept/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BAD_LINE_BYTES 256 // of a request that could not be read, for the log

// ---- life ----

static struct request *request_new(struct session *session, unsigned field_count) {
    struct request *request = calloc(1, sizeof *request + field_count * sizeof(struct http_field));
    if (!request)
        return NULL;
    int64_t now = loop_now_ms(session->worker->loop);
    request->began_at_ms =
            session->wait_until_ms && session->waits_for == TIMEOUT_request_head ? session->step_at_ms : now;
    request->began_wall_ms = loop_wall_ms(session->worker->loop) - (now - request->began_at_ms);
    request->total_at_ms = now + session->settings->config->timeout_ms[TIMEOUT_total];
    request->client_in_before = session->bytes_in - buffer_length(&session->in);
    request->client_out_before = session->bytes_out;
    request->head.fields = request->fields;
    request->head.field_capacity = field_count;
    request->reason = "-";
    return request;
}

void request_free(struct request *request) {
    if (!request)
        return;
    body_decoder_fini(&request->body);
    free(request->parts);
    free(request->trailers);
    free(request->head_bytes);
    free(request);
}

// ---- the log line ----

static void count(struct worker *worker, enum result result) {
    static const enum counter_id counters[] = {
            [RESULT_HIT] = COUNTER_hits,
            [RESULT_STALE] = COUNTER_stale,
            [RESULT_REVALIDATED] = COUNTER_revalidated,
            [RESULT_JOINED] = COUNTER_joined,
            [RESULT_MISS] = COUNTER_misses,
            [RESULT_PASS] = COUNTER_passed,
            [RESULT_TUNNEL] = COUNTER_tunnels,
            [RESULT_DENIED] = COUNTER_denied,
            [RESULT_BLOCKED] = COUNTER_blocked,
            [RESULT_BAD] = COUNTER_bad_requests,
            [RESULT_LOOP] = COUNTER_loops,
            [RESULT_ERROR] = COUNTER_errors,
            [RESULT_ABORTED] = COUNTER_aborted,
    };
    counter_add(&worker->counters, COUNTER_requests, 1);
    counter_add(&worker->counters, counters[result], 1);
}

static struct view field_value(const struct request *request, enum field_id id) {
    const struct http_field *field = http_field_find(&request->head, id, 0);
    return field ? field->value : VIEW("");
}

static void fill_from_request(struct access_entry *entry, const struct session *session) {
    const struct request *request = session->request;
    entry->began_at_ms = request->began_wall_ms;
    entry->duration_ms = loop_now_ms(session->worker->loop) - request->began_at_ms;
    entry->method = request->head.method;
    entry->scheme = VIEW("http");
    entry->host = (struct view){request->authority, request->authority_length};
    entry->target = request->target.path.length ? request->target.path : request->head.target;
    entry->minor_version = request->head.minor_version;
    entry->status = request->status;
    entry->bytes_out = session->bytes_out - request->client_out_before;
    entry->bytes_in = session->bytes_in - buffer_length(&session->in) - request->client_in_before;
    entry->body_bytes = request->content_sent;
    entry->rule = request->match.rule;
    entry->contacted = request->contacted;
    entry->asked = request->asked;
    entry->is_confirming = request->asked && request->lookup == LOOKUP_STALE;
    entry->referer = field_value(request, FIELD_REFERER);
    entry->user_agent = field_value(request, FIELD_USER_AGENT);
    if (request->stored.head) {
        const struct http_field *type = http_field_find(request->stored.head, FIELD_CONTENT_TYPE, 0);
        entry->content_type = type ? type->value : VIEW("");
    }
}

void request_log(struct session *session, enum result result, const char *reason) {
    struct request *request = session->request;
    if (request && request->logged)
        return;
    struct access_entry entry = {
            .began_at_ms = loop_wall_ms(session->worker->loop) -
                           (loop_now_ms(session->worker->loop) - session->began_at_ms),
            .duration_ms = loop_now_ms(session->worker->loop) - session->began_at_ms,
            .client = session->peer,
            .destination = session->destination,
            .bytes_in = session->bytes_in,
            .bytes_out = session->bytes_out,
            .contacted = session->tunnel != NULL,
    };
    struct acl_request acl = {.destination = session->destination};
    if (request) {
        request->logged = true;
        fill_from_request(&entry, session);
        request_acl(session, &acl);
    }
    entry.result = result;
    entry.reason = reason;
    count(session->worker, result);
    access_log_write(session->settings->access_log, &entry, &acl);
}

void request_interrupted(struct session *session) {
    struct request *request = session->request;
    if (request)
        request_log(session, request->answered ? request->result : RESULT_ABORTED, "stopped");
    else if (session->tunnel)
        request_log(session, RESULT_TUNNEL, "stopped");
}

enum run request_give_up(struct session *session, const char *reason) {
    struct request *request = session->request;
    request->total_at_ms = INT64_MAX;
    if (session->step == STEP_finish) { // sending what is left of an answer
        request_log(session, request->result, reason);
        return RUN_END;
    }
    if (!request->answered && !session->tunnel)
        return reply_page(session, 504, RESULT_ERROR, reason,
                "The request took longer than this gateway allows.", VIEW(""));
    request->reason = reason;
    request->cut = true;
    session->reset = true;
    request_log(session, session->tunnel ? RESULT_TUNNEL : request->result, reason);
    return RUN_END;
}

enum run request_client_left(struct session *session) {
    struct request *request = session->request;
    session->gone = true;
    request->answered = true;
    request->result = RESULT_ABORTED;
    request->reason = "client-left";
    session_goto(session, STEP_finish);
    return RUN_NEXT;
}

// ---- the body ----

enum upload {
    UPLOAD_MORE,   // another piece may follow at once
    UPLOAD_CLIENT, // the client's turn
    UPLOAD_ORIGIN, // the origin's: the fetch wakes us, and has a deadline of its own
    UPLOAD_OVER,
    UPLOAD_BROKEN, // the step was changed
};

static enum upload client_left(struct session *session) {
    struct request *request = session->request;
    request->body_bad = true;
    session->gone = true;
    request->reason = "client-left";
    if (!request->answered)
        request->result = RESULT_ABORTED;
    request->answered = true;
    session_goto(session, STEP_finish);
    return UPLOAD_BROKEN;
}

static enum upload body_is_bad(struct session *session) {
    struct request *request = session->request;
    request->body_bad = true;
    if (session->fetch)
        fetch_leave(session->fetch);
    session->fetch = NULL; // the reader stays until the access line is written: it holds the response's head
    if (!request->answered) {
        reply_page(session, 400, RESULT_BAD, "bad-body", request->body.error, VIEW(""));
    } else {
        session->reset = true;
        request->reason = "bad-body";
        session_goto(session, STEP_finish);
    }
    return UPLOAD_BROKEN;
}

// One read's worth.
static enum upload upload_some(struct session *session) {
    struct request *request = session->request;
    size_t room = fetch_upload_room(session->fetch);
    if (room == 0)
        return UPLOAD_ORIGIN;
    if (buffer_length(&session->in) == 0) {
        ssize_t got = session_receive(session, SESSION_READ_BYTES);
        if (got == -EAGAIN)
            return UPLOAD_CLIENT;
        if (got <= 0)
            return client_left(session);
        session_wait(session, TIMEOUT_client_body);
    }
    request->body_begun = true;
    struct view all = view_take(buffer_view(&session->in), room), input = all, content;
    enum body body;
    while ((body = body_decode(&request->body, &input, &content)) == BODY_DATA)
        fetch_upload(session->fetch, content);
    buffer_take(&session->in, all.length - input.length);
    if (body == BODY_BAD)
        return body_is_bad(session);
    if (body == BODY_MORE)
        return UPLOAD_MORE;
    request->body_done = true;
    fetch_upload_end(session->fetch, body_trailers(&request->body));
    return UPLOAD_OVER;
}

bool request_upload(struct session *session) {
    struct request *request = session->request;
    session->want_read = false;
    if (!session->fetch || request->body_done || request->body_bad)
        return true;
    enum upload upload = UPLOAD_MORE;
    for (int i = 0; i < 16 && upload == UPLOAD_MORE; i++)
        upload = upload_some(session);
    if (upload == UPLOAD_BROKEN)
        return false;
    session->want_read = upload == UPLOAD_MORE || upload == UPLOAD_CLIENT;
    bool is_owed = session->want_read && (request->body_begun || !request->expects_continue) &&
                   !fetch_upload_is_held(session->fetch); // else the origin is awaited, not the client
    if (!is_owed)
        session->wait_until_ms = 0;
    else if (session->wait_until_ms == 0)
        session_wait(session, TIMEOUT_client_body);
    return true;
}

// ---- the head ----

static enum run answer_bad(struct session *session, const struct http_error *error) {
    static const char *const words[] = {
            "bad-request", "bad-version", "not-implemented", "head-too-large", "target-too-long"};
    int status = error->status;
    const char *word = words[status == 505   ? 1
                             : status == 501 ? 2
                             : status == 431 ? 3
                             : status == 414 ? 4
                                             : 0];
    return reply_page(session, status, RESULT_BAD, word, error->why, VIEW(""));
}

// A request whose head cannot be read still has its line in the log: with what its first line holds.
static enum run bad_head(struct session *session, const struct http_error *error) {
    struct request *request = session->request = request_new(session, 0);
    if (!request)
        return RUN_END;
    struct view seen = buffer_view(&session->in);
    while (seen.length && (seen.data[0] == '\r' || seen.data[0] == '\n'))
        seen = view_skip(seen, 1);
    seen = view_take(view_take(seen, view_find(seen, '\n')), BAD_LINE_BYTES);
    request->head_bytes = seen.length ? malloc(seen.length) : NULL;
    if (request->head_bytes) {
        memcpy(request->head_bytes, seen.data, seen.length);
        request->head.target = (struct view){request->head_bytes, seen.length};
    }
    request->framing.kind = FRAMING_NONE;
    buffer_take(&session->in, buffer_length(&session->in));
    return answer_bad(session, error);
}

static enum run take_head(struct session *session, const struct http_head *head) {
    struct request *request = request_new(session, head->field_count);
    size_t offset;
    if (!request || !(request->head_bytes = buffer_detach(&session->in, head->head_length, &offset))) {
        request_free(request);
        return RUN_END;
    }
    session->request = request;
    session->seen = 0;
    unsigned count = head->field_count;
    request->head = *head;
    request->head.fields = request->fields;
    request->head.field_capacity = count;
    memcpy(request->fields, head->fields, count * sizeof *head->fields);
    struct http_error error;
    if (target_of_request(&request->head, &request->target, &error) == PARSE_BAD ||
            framing_of_request(&request->head, &request->framing, &error) == PARSE_BAD)
        return answer_bad(session, &error);
    request->authority_length =
            authority_normalise(&request->target.authority, request->authority, sizeof request->authority);
    body_decoder_init(&request->body, &request->framing);
    request->body_done = framing_is_empty(&request->framing);
    request->expects_continue = !request->body_done && request->head.minor_version == 1 &&
                                http_field_has_token(&request->head, FIELD_EXPECT, VIEW("100-continue"));
    // A switch in the middle of a body would leave both sides with another idea of where the new protocol
    // begins: with a body the request goes on without Upgrade [RFC 9110 §7.8 lets us ignore it].
    request->wants_upgrade = request->body_done && http_asks_for_upgrade(&request->head);
    if (!http_keeps_alive(&request->head) || session->worker->draining)
        session->closing = true;
    session_goto(session, STEP_admit);
    return RUN_NEXT;
}

static void limits_of(const struct session *session, struct http_limits *limits) {
    const struct config *config = session->settings->config;
    *limits = (struct http_limits){
            .head_bytes = (size_t)config->head_bytes,
            .target_bytes = (size_t)config->target_bytes,
            .fields = (unsigned)config->fields,
    };
}

static bool may_be_tunnelled(const struct session *session) {
    return session->requests == 0 && session->arrival == ORIGDST_INTERCEPTED;
}

// What `in` holds: a head (the step changes), too little (RUN_WAIT), or no HTTP.
static enum run parse(struct session *session) {
    struct http_limits limits;
    limits_of(session, &limits);
    struct view input = buffer_view(&session->in);
    if (may_be_tunnelled(session)) {
        switch (http_sniff(input, limits.target_bytes)) {
        case SNIFF_OTHER:
            session_goto(session, STEP_tunnel);
            return RUN_NEXT;
        case SNIFF_MORE:
            return RUN_WAIT;
        case SNIFF_HTTP:
            break;
        }
    }
    struct worker *worker = session->worker;
    struct http_head head = {.fields = worker->fields, .field_capacity = HTTP_FIELDS_MAX};
    struct http_error error;
    switch (http_parse_request(input, session->seen, &limits, &head, &error)) {
    case PARSE_MORE:
        session->seen = input.length;
        return RUN_WAIT;
    case PARSE_BAD:
        return bad_head(session, &error);
    case PARSE_DONE:
        return take_head(session, &head);
    }
    UNREACHABLE("parse");
}

// Looking whether the server speaks first takes a second descriptor: not when they run short.
static bool may_probe(const struct session *session) {
    unsigned limit = session->settings->client_connections;
    return atomic_load(&session->worker->daemon->sessions) < limit - limit / 4;
}

static enum run head_is_late(struct session *session) {
    if (session->waits_for == TIMEOUT_server_first && may_probe(session)) {
        session_goto(session, STEP_tunnel);
        return RUN_NEXT;
    }
    if (session->waits_for == TIMEOUT_server_first) {
        session_wait(session, TIMEOUT_client_idle);
        return RUN_WAIT;
    }
    if (session->waits_for == TIMEOUT_client_idle)
        return RUN_END;
    // Also when the bytes may still become something else than HTTP: a tunnel would take the rest of a
    // request past the rules.
    struct http_error error = {408, "The request was not complete in time."};
    return bad_head(session, &error);
}

static void begin_waiting(struct session *session) {
    bool first = session->requests == 0 && !session->probed;
    if (buffer_length(&session->in) > 0)
        session_wait(session, TIMEOUT_request_head);
    else if (first && session->arrival == ORIGDST_INTERCEPTED)
        session_wait(session, TIMEOUT_server_first);
    else
        session_wait(session, TIMEOUT_client_idle);
    session->want_read = true;
    session->want_write = false;
}

static enum run client_ended(struct session *session) {
    bool partly = buffer_length(&session->in) > 0;
    if (partly && may_be_tunnelled(session) &&
            http_sniff(buffer_view(&session->in), (size_t)session->settings->config->target_bytes) ==
                    SNIFF_MORE) {
        session_goto(session, STEP_tunnel);
        return RUN_NEXT;
    }
    if (partly) {
        struct http_error error = {400, "The request ended before its head was complete."};
        return bad_head(session, &error);
    }
    return RUN_END;
}

static bool is_told_to_go(struct session *session) {
    if (session->events & EVENT_EVICT)
        return true;
    if (!session->worker->draining)
        return false;
    return buffer_length(&session->in) == 0 || worker_drain_is_over(session->worker);
}

// A connection that waits holds no memory for what may come.
static enum run nothing_yet(struct session *session) {
    if (buffer_length(&session->in) == 0)
        buffer_release(&session->in);
    return RUN_WAIT;
}

enum run step_request(struct session *session) {
    if (!session->entered) {
        begin_waiting(session);
        if (buffer_length(&session->in) > 0) { // pipelined, or left by the tunnel's probe
            enum run run = parse(session);
            if (run != RUN_WAIT || session->step != STEP_request)
                return run;
        }
    }
    if (is_told_to_go(session))
        return RUN_END;
    if (session_is_late(session))
        return head_is_late(session);
    if (!session->entered && session->requests > 0 && !session->read_over)
        return nothing_yet(session); // the answer has just gone out: the next request takes a while
    bool had_none = buffer_length(&session->in) == 0;
    ssize_t got =
            session_receive(session, (size_t)session->settings->config->head_bytes + SESSION_READ_BYTES);
    if (got == -EAGAIN)
        return nothing_yet(session);
    if (got == 0)
        return client_ended(session);
    if (got < 0)
        return RUN_END;
    if (had_none)
        session_wait(session, TIMEOUT_request_head);
    return parse(session) == RUN_END ? RUN_END : RUN_NEXT; // RUN_NEXT: read on until the socket is empty
}
