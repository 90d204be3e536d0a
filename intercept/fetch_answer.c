// The response head of a fetch: interim ones relayed, the final one handed to the store.
#include "intercept/fetch_own.h"

#include "admin/check.h"
#include "http/range.h"
#include "intercept/fetch_head.h"
#include "intercept/hole.h"
#include "intercept/request.h"
#include "intercept/tunnel.h"
#include "intercept/worker.h"

#include <errno.h>
#include <stdlib.h>

#define INTERIMS_MAXIMUM 32
#define READ_BYTES 16384

static bool may_retry(const struct fetch *fetch) {
    return fetch->upstream->reused && !fetch->answered && !fetch->retried && !fetch->upload_begun &&
           http_method_is_idempotent(fetch->method);
}

// The origin closed or reset before a whole head: a kept connection that went stale is no failure of the
// origin.
static enum run no_answer(struct fetch *fetch, const char *reason, const char *text) {
    if (!may_retry(fetch))
        return fetch_fail(fetch, 502, reason, text);
    counter_add(&fetch->worker->counters, COUNTER_upstream_retried, 1);
    upstream_close(fetch->upstream);
    fetch->upstream = NULL;
    fetch->retried = true;
    fetch->upload_broken = fetch->upload_reset = false;
    return fetch_connect_begin(fetch, false);
}

static enum run relay_interim(struct fetch *fetch, const struct http_head *head) {
    struct session *session = fetch->session;
    if (++fetch->interims > INTERIMS_MAXIMUM)
        return fetch_fail(fetch, 502, "too-many-interim", "The server sent too many interim responses.");
    if (session && session->request->head.minor_version == 1 && !session->request->answered)
        fetch_head_interim(session, head);
    if (session && head->status == 100)
        session->request->expects_continue = false;
    if (head->status == 100)
        fetch->expects_continue = false;
    fetch_set_deadline(fetch, TIMEOUT_first_byte);
    buffer_take(&fetch->upstream->in, head->head_length);
    return RUN_NEXT;
}

static enum run switch_protocols(struct fetch *fetch, const struct http_head *head) {
    struct session *session = fetch->session;
    if (!fetch->wants_upgrade || !session || session->request->answered)
        return fetch_give_up(
                fetch, 502, "unasked-upgrade", "The server switched protocols without being asked.");
    if (!tunnel_begin_upgraded(session) || !fetch_head_interim(session, head)) {
        tunnel_free(session); // the 101 was not written: a page may still be
        return fetch_give_up(fetch, 503, "no-memory", "The gateway is out of memory for this request.");
    }
    buffer_take(&fetch->upstream->in, head->head_length);
    session->request->answered = true;
    session->request->status = 101;
    tunnel_give_upstream(session, fetch->upstream);
    fetch->upstream = NULL;
    fetch_let_go(fetch);
    cache_fill_abandon(fetch->fill);
    return RUN_END;
}

static void tell_kind(struct fetch *fetch, int status, enum fill_kind kind, const char *reason) {
    struct request *request = fetch->session ? fetch->session->request : NULL;
    if (!request)
        return;
    request->origin_status = status;
    request->fill_kind = kind;
    if (request->lookup != LOOKUP_PASS && reason)
        request->lookup_reason = reason;
}

// What the answer means for other responses of the URL.
static void tell_store(struct fetch *fetch, const struct cache_response *response) {
    struct cache *cache = fetch->worker->daemon->cache;
    struct cache_query query;
    if (!fetch->session)
        return;
    request_query(fetch->session, &query);
    cache_invalidate(cache, &query, response->head);
    if (fetch->method == METHOD_HEAD)
        cache_update_by_head(cache, &query, response);
}

// What confirms or completes nothing: the same request, without the store's conditions.
static enum run ask_again(struct fetch *fetch, bool has_body) {
    fetch->again = true;
    fetch->keeps_alive &= !has_body; // nobody is going to read it
    fetch->answered = false;
    if (!fetch_head_replace(&fetch->head, cache_fill_fields(fetch->fill)))
        return fetch_give_up(fetch, 503, "no-memory", "The gateway is out of memory for this request.");
    fetch_connect_end(fetch);
    return fetch_connect_begin(fetch, true);
}

// What is stored stands in: the answer's content is of no use.
static enum run drop_answer(struct fetch *fetch) {
    cache_fill_finish(fetch->fill);
    fetch_let_go(fetch);
    upstream_close(fetch->upstream);
    return RUN_END;
}

// The answer brings nothing of what is missing. One that tells of the origin's trouble may be followed by
// another.
static enum run leave_hole(struct fetch *fetch, int status) {
    counter_add(&fetch->worker->counters, COUNTER_hole_fetches_failed, 1);
    if (fetch->asker && status < 500)
        hole_refuse(fetch->asker);
    return drop_answer(fetch);
}

// A client that asked for one range would take whatever comes for it.
static bool is_wrong_range(const struct fetch *fetch, const struct http_head *head, int64_t length) {
    return head->status == 206 && fetch->session && fetch->head.fields_length == 0 &&
           range_judge(&fetch->session->request->head, head, length) == RANGE_ANSWER_BAD;
}

static enum run take_final(struct fetch *fetch, const struct http_head *head) {
    struct framing framing;
    struct http_error error = {502, "The server's answer has a Content-Length that is no length."};
    int64_t length = -1;
    if (framing_of_response(head, fetch->method, &framing, &error) == PARSE_BAD ||
            !framing_content_length(head, &length))
        return fetch_fail(fetch, 502, "bad-response", error.why);
    if (fetch->again && head->status == 304)
        return fetch_fail(fetch, 502, "unasked-304", "The server answered a condition that was not asked.");
    if (framing.kind == FRAMING_CHUNKED || framing.kind == FRAMING_CLOSE || head->status == 204)
        length = -1;
    if (is_wrong_range(fetch, head, length))
        return fetch_give_up(
                fetch, 502, "bad-range", "The server answered with another range than it was asked for.");
    body_decoder_init(&fetch->body, &framing);
    fetch->content_length = length;
    fetch->keeps_alive = http_keeps_alive(head) && framing.kind != FRAMING_CLOSE;
    struct cache_response response = {
            .head = head,
            .content_length = length,
            .request_at = fetch->request_at,
            .response_at = worker_now(fetch->worker),
            .rules = &fetch->rules,
            .has_body = framing.kind != FRAMING_NONE,
    };
    tell_store(fetch, &response);
    const char *reason = NULL;
    enum fill_kind kind = cache_fill_head(fetch->fill, &response, &reason);
    request_count_rule(fetch->worker, reason);
    tell_kind(fetch, head->status, kind, reason);
    buffer_take(&fetch->upstream->in, head->head_length);
    if (fetch->is_hole && kind != FILL_STORE && kind != FILL_STREAM)
        return leave_hole(fetch, head->status);
    if (kind == FILL_AGAIN)
        return ask_again(fetch, response.has_body && length != 0);
    if (kind == FILL_STALE && response.has_body && length != 0)
        return drop_answer(fetch);
    fetch->step = FETCH_BODY;
    fetch_set_deadline(fetch, TIMEOUT_upstream_idle);
    if (fetch->session)
        session_wake(fetch->session, EVENT_FETCH);
    return RUN_NEXT;
}

static enum run parse_head(struct fetch *fetch) {
    struct worker *worker = fetch->worker;
    struct view input = buffer_view(&fetch->upstream->in);
    if (input.length == 0)
        return RUN_WAIT;
    const struct config *config = fetch->settings->config;
    struct http_limits limits = {
            .head_bytes = (size_t)config->head_bytes,
            .target_bytes = (size_t)config->target_bytes,
            .fields = (unsigned)config->fields,
    };
    struct http_head head = {.fields = worker->fields, .field_capacity = HTTP_FIELDS_MAX};
    struct http_error error;
    switch (http_parse_response(input, fetch->seen, &limits, &head, &error)) {
    case PARSE_MORE:
        fetch->seen = input.length;
        return RUN_WAIT;
    case PARSE_BAD:
        return fetch_fail(fetch, 502, "bad-response", error.why);
    case PARSE_DONE:
        break;
    }
    fetch->seen = 0;
    if (head.status == 101)
        return switch_protocols(fetch, &head);
    if (head.status < 200)
        return relay_interim(fetch, &head);
    return take_final(fetch, &head);
}

static ssize_t receive(struct fetch *fetch, size_t want, size_t limit) {
    ssize_t got;
    do
        got = buffer_receive(&fetch->upstream->in, fetch->upstream->fd, want, limit);
    while (got == -EINTR);
    if (got > 0) {
        fetch->answered = true;
        counter_add(&fetch->worker->counters, COUNTER_upstream_bytes_in, (uint64_t)got);
    }
    return got;
}

// While the client owes its body, its own deadline holds; one that waits for a 100, or for the origin to take
// what was sent, owes nothing.
static bool origin_owes(const struct fetch *fetch) {
    return fetch->upload_over || fetch_upload_is_held(fetch) || fetch->upload_broken || !fetch->session ||
           fetch->expects_continue;
}

enum run fetch_answer_run(struct fetch *fetch) {
    int events = WATCH_READ;
    bool begins = fetch->head_sent == 0;
    fetch_send_push(fetch, &events); // first: what came this moment is not stuck
    if (fetch->late && origin_owes(fetch))
        return fetch_fail(fetch, 504, "first-byte-timeout", "The server did not answer in time.");
    if (fetch->late)
        fetch_set_deadline(fetch, TIMEOUT_first_byte);
    fetch->late = false;
    bool may_have_come = !begins || fetch->upload_broken; // else the watcher tells
    while (may_have_come) {
        enum run run = parse_head(fetch);
        if (run == RUN_NEXT && fetch->step == FETCH_HEAD && fetch->head_sent > 0)
            continue; // an interim response
        if (run != RUN_WAIT || fetch->step != FETCH_HEAD)
            return run;
        ssize_t got = receive(fetch, READ_BYTES, (size_t)fetch->settings->config->head_bytes + READ_BYTES);
        if (got == -EAGAIN)
            break;
        if (got == 0)
            return no_answer(
                    fetch, "origin-closed", "The server closed the connection without a whole answer.");
        if (got < 0)
            return no_answer(fetch, "origin-reset", "The server broke the connection off without an answer.");
    }
    watch_set(&fetch->upstream->watch, fetch->upstream->fd, events);
    return RUN_WAIT;
}
