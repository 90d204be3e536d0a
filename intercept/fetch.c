#include "intercept/fetch.h"

#include "admin/check.h"
#include "http/list.h"
#include "intercept/dial.h"
#include "intercept/fetch_head.h"
#include "intercept/request.h"
#include "intercept/tunnel.h"
#include "intercept/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define UPLOAD_BYTES 65536 // of a request body waiting to be sent
#define INTERIMS_MAXIMUM 32
#define ORPHAN_LOOK_MS 1000 // how often one whose client left looks whether anybody still reads
#define READS_A_RUN 16      // then others have their turn

enum fetch_step {
    FETCH_CONNECT, // until the connection stands
    FETCH_HEAD,    // sends the request and waits for the final response head
    FETCH_BODY,    // fills the response
};

struct fetch {
    struct task task;
    struct worker *worker;
    struct fetch *next, **link;
    struct settings *settings;
    struct session *session; // NULL once it left
    struct cache_fill *fill;
    struct upstream_key key;
    struct upstream *upstream;
    struct deadline deadline;
    struct letter letter; // room in the fill
    enum fetch_step step;
    bool late; // the deadline passed
    bool ended;
    // the request
    enum method_id method;
    bool wants_upgrade;
    bool expects_continue;
    bool upload_chunked;
    bool upload_begun;
    bool upload_over;
    bool upload_broken; // the origin takes no more of it
    bool retried;
    bool head_again; // once it was sent again
    char *head;
    size_t head_length, head_sent;
    struct buffer out; // request body, framed
    int64_t request_at_s;
    // the response
    unsigned interims;
    size_t seen;
    bool answered; // any byte of a response arrived
    bool keeps_alive;
    struct body_decoder body;
    int64_t content_length;
};

// ---- the end ----

static void fetch_free(struct fetch *fetch) {
    deadline_set(&fetch->deadline, 0);
    loop_cancel(fetch->worker->loop, &fetch->letter);
    worker_unmark(fetch->worker, &fetch->task);
    *fetch->link = fetch->next;
    if (fetch->next)
        fetch->next->link = fetch->link;
    body_decoder_fini(&fetch->body);
    buffer_release(&fetch->out);
    settings_put(fetch->settings);
    free(fetch->head);
    free(fetch);
}

static void let_go_of_session(struct fetch *fetch) {
    if (!fetch->session)
        return;
    fetch->session->fetch = NULL;
    session_wake(fetch->session, EVENT_FETCH);
    fetch->session = NULL;
}

static enum run give_up(struct fetch *fetch, int status, const char *reason, const char *text) {
    if (fetch->session && fetch->session->request && fetch->session->request->failure.status == 0)
        fetch->session->request->failure = (struct failure){status, reason, text};
    let_go_of_session(fetch);
    cache_fill_abandon(fetch->fill);
    if (fetch->upstream)
        upstream_close(fetch->upstream);
    return RUN_END;
}

static enum run connect_failed(struct fetch *fetch, int error) {
    counter_add(&fetch->worker->counters, COUNTER_upstream_failed, 1);
    switch (-error) {
    case ECONNREFUSED:
        return give_up(fetch, 502, "connect-refused", "The server refused the connection.");
    case ETIMEDOUT:
        return give_up(fetch, 504, "connect-timeout", "The server did not accept the connection in time.");
    case EHOSTUNREACH:
    case ENETUNREACH:
        return give_up(fetch, 502, "unreachable", "The server cannot be reached: there is no route to it.");
    case EUSERS:
        return give_up(fetch, 503, "upstream-limit",
                "The gateway has as many connections to servers as it may (upstream_connections).");
    case EMFILE:
    case ENFILE:
        return give_up(fetch, 503, "no-descriptor", "The gateway is out of descriptors.");
    default:
        return give_up(fetch, 502, "connect-failed", "The connection to the server failed.");
    }
}

// ---- waiting ----

static void on_ready(struct upstream *upstream, int events) {
    struct fetch *fetch = upstream->owner;
    (void)events;
    worker_mark(fetch->worker, &fetch->task);
}

static void on_deadline(struct deadline *deadline) {
    struct fetch *fetch = (struct fetch *)((char *)deadline - offsetof(struct fetch, deadline));
    fetch->late = true;
    worker_mark(fetch->worker, &fetch->task);
}

static void on_letter(struct letter *letter) {
    struct fetch *fetch = (struct fetch *)((char *)letter - offsetof(struct fetch, letter));
    worker_mark(fetch->worker, &fetch->task);
}

static void on_room(void *owner) { // from any thread
    struct fetch *fetch = owner;
    loop_post(fetch->worker->loop, &fetch->letter);
}

static void set_deadline(struct fetch *fetch, enum timeout_id timeout) {
    deadline_set(&fetch->deadline,
            loop_now_ms(fetch->worker->loop) + fetch->settings->config->timeout_ms[timeout]);
}

// ---- connect ----

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
    set_deadline(fetch, TIMEOUT_first_byte);
}

static enum run begin_connect(struct fetch *fetch, bool may_reuse) {
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
    set_deadline(fetch, TIMEOUT_connect);
    return RUN_WAIT;
}

static enum run run_connect(struct fetch *fetch) {
    if (!fetch->upstream)
        return begin_connect(fetch, true);
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

// ---- sending the request ----

static void count_out(struct fetch *fetch, size_t bytes) {
    counter_add(&fetch->worker->counters, COUNTER_upstream_bytes_out, bytes);
}

// 0, -EAGAIN, or another -errno.
static int send_request(struct fetch *fetch) {
    while (fetch->head_sent < fetch->head_length) {
        ssize_t sent = send(fetch->upstream->fd, fetch->head + fetch->head_sent,
                fetch->head_length - fetch->head_sent, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return -errno;
        fetch->head_sent += (size_t)sent;
        count_out(fetch, (size_t)sent);
    }
    bool was_full = buffer_length(&fetch->out) >= UPLOAD_BYTES / 2;
    while (buffer_length(&fetch->out) > 0) {
        ssize_t sent = buffer_send(&fetch->out, fetch->upstream->fd);
        if (sent == -EINTR)
            continue;
        if (sent < 0)
            return (int)sent;
        count_out(fetch, (size_t)sent);
        set_deadline(fetch, TIMEOUT_first_byte);
    }
    if (fetch->session && !fetch->upload_over && (was_full || fetch->head_sent == fetch->head_length))
        session_wake(fetch->session, EVENT_FETCH);
    return 0;
}

// An origin that answers early may stop reading: its answer counts, not our failure to send.
static bool push_request(struct fetch *fetch, int *events) {
    if (fetch->upload_broken)
        return true;
    bool had_upload = buffer_length(&fetch->out) > 0 || fetch->head_sent < fetch->head_length;
    if (!had_upload)
        return true;
    int result = send_request(fetch);
    if (result == -EAGAIN) {
        *events |= WATCH_WRITE;
        return true;
    }
    if (result < 0) {
        fetch->upload_broken = true;
        buffer_release(&fetch->out);
        if (fetch->session)
            session_wake(fetch->session, EVENT_FETCH);
    }
    return true;
}

size_t fetch_upload_room(struct fetch *fetch) {
    if (fetch->upload_broken)
        return UPLOAD_BYTES; // taken and dropped
    if (fetch->step == FETCH_CONNECT)
        return 0;
    size_t waiting = buffer_length(&fetch->out);
    return waiting >= UPLOAD_BYTES ? 0 : UPLOAD_BYTES - waiting;
}

static void put(struct fetch *fetch, struct view bytes) {
    if (!fetch->upload_broken && !buffer_append(&fetch->out, bytes, SIZE_MAX)) {
        fetch->upload_broken = true; // no memory: the origin sees an unfinished request
        buffer_release(&fetch->out);
    }
}

void fetch_upload(struct fetch *fetch, struct view content) {
    fetch->upload_begun = true;
    if (fetch->upload_chunked) {
        char head[BODY_CHUNK_HEAD_BYTES];
        put(fetch, (struct view){head, body_chunk_head(content.length, head)});
    }
    put(fetch, content);
    if (fetch->upload_chunked)
        put(fetch, VIEW("\r\n"));
    worker_mark(fetch->worker, &fetch->task);
}

void fetch_upload_end(struct fetch *fetch, struct view trailers) {
    fetch->upload_over = true;
    if (fetch->upload_chunked) {
        put(fetch, VIEW("0\r\n"));
        put(fetch, trailers);
        put(fetch, VIEW("\r\n"));
    }
    if (fetch->step == FETCH_HEAD)
        set_deadline(fetch, TIMEOUT_first_byte);
    worker_mark(fetch->worker, &fetch->task);
}

// ---- the response head ----

static bool may_retry(const struct fetch *fetch) {
    return fetch->upstream->reused && !fetch->answered && !fetch->retried && !fetch->upload_begun &&
           http_method_is_idempotent(fetch->method);
}

// The origin closed or reset before a whole head: a kept connection that went stale is no failure of the
// origin.
static enum run no_answer(struct fetch *fetch, const char *reason, const char *text) {
    if (!may_retry(fetch))
        return give_up(fetch, 502, reason, text);
    counter_add(&fetch->worker->counters, COUNTER_upstream_retried, 1);
    upstream_close(fetch->upstream);
    fetch->upstream = NULL;
    fetch->retried = true;
    fetch->upload_broken = false;
    return begin_connect(fetch, false);
}

static enum run relay_interim(struct fetch *fetch, const struct http_head *head) {
    struct session *session = fetch->session;
    if (++fetch->interims > INTERIMS_MAXIMUM)
        return give_up(fetch, 502, "too-many-interim", "The server sent too many interim responses.");
    if (session && session->request->head.minor_version == 1 && !session->request->answered)
        fetch_head_interim(session, head);
    if (session)
        session->request->expects_continue = false;
    fetch->expects_continue = false;
    set_deadline(fetch, TIMEOUT_first_byte);
    buffer_take(&fetch->upstream->in, head->head_length);
    return RUN_NEXT;
}

static enum run switch_protocols(struct fetch *fetch, const struct http_head *head) {
    struct session *session = fetch->session;
    if (!fetch->wants_upgrade || !session || session->request->answered)
        return give_up(fetch, 502, "unasked-upgrade", "The server switched protocols without being asked.");
    if (!fetch_head_interim(session, head) || !tunnel_begin_upgraded(session))
        return give_up(fetch, 503, "no-memory", "The gateway is out of memory for this request.");
    buffer_take(&fetch->upstream->in, head->head_length);
    session->request->answered = true;
    session->request->status = 101;
    tunnel_give_upstream(session, fetch->upstream);
    fetch->upstream = NULL;
    let_go_of_session(fetch);
    cache_fill_abandon(fetch->fill);
    return RUN_END;
}

static void tell_kind(struct fetch *fetch, enum fill_kind kind, const char *reason) {
    struct request *request = fetch->session ? fetch->session->request : NULL;
    if (!request)
        return;
    request->fill_kind = kind;
    request->fill_kind_known = true;
    if (request->lookup != LOOKUP_PASS && reason)
        request->lookup_reason = reason;
}

static void invalidate(struct fetch *fetch, const struct http_head *head) {
    if (http_method_is_safe(fetch->method) || head->status < 200 || head->status >= 400 || !fetch->session)
        return;
    struct cache_query query;
    request_query(fetch->session, &query);
    cache_invalidate(fetch->worker->daemon->cache, &query);
}

static enum run take_final(struct fetch *fetch, const struct http_head *head) {
    struct framing framing;
    struct http_error error = {502, "The server's answer has a Content-Length that is no length."};
    int64_t length = -1;
    if (framing_of_response(head, fetch->method, &framing, &error) == PARSE_BAD ||
            !framing_content_length(head, &length))
        return give_up(fetch, 502, "bad-response", error.why);
    if (framing.kind == FRAMING_CHUNKED || framing.kind == FRAMING_CLOSE || head->status == 204)
        length = -1;
    body_decoder_init(&fetch->body, &framing);
    fetch->content_length = length;
    fetch->keeps_alive = http_keeps_alive(head) && framing.kind != FRAMING_CLOSE;
    invalidate(fetch, head);
    struct cache_response response = {
            .head = head,
            .content_length = length,
            .request_at_s = fetch->request_at_s,
            .response_at_s = loop_wall_ms(fetch->worker->loop) / 1000,
            .has_body = framing.kind != FRAMING_NONE,
    };
    const char *reason = NULL;
    enum fill_kind kind = cache_fill_head(fetch->fill, &response, &reason);
    tell_kind(fetch, kind, reason);
    buffer_take(&fetch->upstream->in, head->head_length);
    fetch->step = FETCH_BODY;
    set_deadline(fetch, TIMEOUT_upstream_idle);
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
        return give_up(fetch, 502, "bad-response", error.why);
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

// While the client owes its body, its own deadline holds; one that waits for a 100 owes nothing.
static bool origin_owes(const struct fetch *fetch) {
    return fetch->upload_over || fetch->upload_broken || !fetch->session || fetch->expects_continue;
}

static enum run run_head(struct fetch *fetch) {
    int events = WATCH_READ;
    if (fetch->late && origin_owes(fetch))
        return give_up(fetch, 504, "first-byte-timeout", "The server did not answer in time.");
    if (fetch->late)
        set_deadline(fetch, TIMEOUT_first_byte);
    fetch->late = false;
    push_request(fetch, &events);
    for (;;) {
        enum run run = parse_head(fetch);
        if (run == RUN_NEXT && fetch->step == FETCH_HEAD)
            continue; // an interim response
        if (run != RUN_WAIT)
            return run;
        ssize_t got = receive(fetch, 16384, (size_t)fetch->settings->config->head_bytes + 16384);
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

// ---- the response body ----

static bool is_clean(const struct fetch *fetch) {
    return fetch->keeps_alive && fetch->upload_over && !fetch->upload_broken &&
           buffer_length(&fetch->out) == 0 && fetch->head_sent == fetch->head_length &&
           buffer_length(&fetch->upstream->in) == 0;
}

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
    struct upstream *upstream = fetch->upstream;
    watch_stop(&upstream->watch);
    if (is_clean(fetch))
        upstream_keep(upstream, fetch->settings);
    else
        upstream_close(upstream);
    let_go_of_session(fetch);
    return RUN_END;
}

static enum run cut_short(struct fetch *fetch, const char *reason) {
    return give_up(fetch, 502, reason, "The server's answer ended early.");
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
    if (got < 0)
        return cut_short(fetch, "origin-reset");
    if (got == 0)
        return body_decode_close(&fetch->body) == BODY_END ? end_well(fetch)
                                                           : cut_short(fetch, "origin-closed-early");
    counter_add(&worker->counters, COUNTER_upstream_bytes_in, (uint64_t)got);
    set_deadline(fetch, TIMEOUT_upstream_idle);
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

static enum run read_body(struct fetch *fetch, int *events) {
    if (body_left(&fetch->body) == 0)
        return decode(fetch, SIZE_MAX);
    for (int i = 0; i < READS_A_RUN; i++) {
        size_t room = cache_fill_room(fetch->fill, on_room, fetch);
        if (room == 0) { // the readers are slower than the origin
            *events &= ~WATCH_READ;
            deadline_set(&fetch->deadline, 0);
            return RUN_WAIT;
        }
        bool buffered = buffer_length(&fetch->upstream->in) > 0;
        enum run run = buffered ? decode(fetch, room) : read_some(fetch, room);
        if (run == RUN_END)
            return RUN_END;
        if (run == RUN_WAIT && !buffered) {
            if (fetch->deadline.at_ms == 0)
                set_deadline(fetch, TIMEOUT_upstream_idle);
            return RUN_WAIT;
        }
    }
    return RUN_NEXT;
}

static enum run run_body(struct fetch *fetch) {
    int events = WATCH_READ;
    if (fetch->late)
        return cut_short(fetch, "upstream-idle-timeout");
    push_request(fetch, &events);
    enum run run = read_body(fetch, &events);
    if (run == RUN_WAIT)
        watch_set(&fetch->upstream->watch, fetch->upstream->fd, events);
    return run;
}

// ---- without its client ----

static bool little_is_left(const struct fetch *fetch) {
    int64_t left = body_left(&fetch->body);
    return left >= 0 && (left <= FETCH_REST_BYTES || left <= fetch->content_length / FETCH_REST_SHARE);
}

static bool is_wanted(struct fetch *fetch) {
    if (fetch->session || fetch->ended)
        return true;
    if (!fetch->upload_over)
        return false;
    if (cache_fill_readers(fetch->fill) > 0)
        return true;
    return fetch->step == FETCH_BODY && cache_fill_stores(fetch->fill) && little_is_left(fetch);
}

static enum run run_step(struct fetch *fetch) {
    if (!is_wanted(fetch))
        return give_up(fetch, 502, "client-left", "");
    switch (fetch->step) {
    case FETCH_CONNECT:
        return run_connect(fetch);
    case FETCH_HEAD:
        return run_head(fetch);
    case FETCH_BODY:
        return run_body(fetch);
    }
    UNREACHABLE("fetch step");
}

static void fetch_run(struct task *task) {
    struct fetch *fetch = (struct fetch *)((char *)task - offsetof(struct fetch, task));
    enum run run = RUN_NEXT;
    for (int i = 0; i < 4 && run == RUN_NEXT; i++) {
        run = run_step(fetch);
        if (run != RUN_END)
            fetch->late = false;
    }
    if (run == RUN_END) {
        fetch_free(fetch);
        return;
    }
    if (run == RUN_NEXT)
        worker_mark(fetch->worker, &fetch->task);
    if (!fetch->session && fetch->deadline.at_ms == 0)
        deadline_set(&fetch->deadline, loop_now_ms(fetch->worker->loop) + ORPHAN_LOOK_MS);
}

// ---- life ----

struct fetch *fetch_begin(struct session *session, struct cache_fill *fill) {
    struct request *request = session->request;
    struct worker *worker = session->worker;
    struct fetch *fetch = calloc(1, sizeof *fetch);
    if (!fetch || !(fetch->head = fetch_head_compose(session, fill, &fetch->head_length))) {
        free(fetch);
        return NULL;
    }
    fetch->worker = worker;
    fetch->settings = settings_get(session->settings);
    fetch->session = session;
    fetch->fill = fill;
    fetch->task.run = fetch_run;
    fetch->method = request->head.method_id;
    fetch->wants_upgrade = request->wants_upgrade;
    fetch->expects_continue = request->expects_continue;
    fetch->upload_chunked = request->framing.kind == FRAMING_CHUNKED;
    fetch->upload_over = request->body_done;
    upstream_key_of_session(session, &fetch->key);
    deadline_init(&fetch->deadline, worker->loop, on_deadline);
    letter_init(&fetch->letter, on_letter);
    fetch->next = worker->fetches;
    fetch->link = &worker->fetches;
    if (fetch->next)
        fetch->next->link = &fetch->next;
    worker->fetches = fetch;
    worker_mark(worker, &fetch->task);
    return fetch;
}

void fetch_leave(struct fetch *fetch) {
    fetch->session = NULL;
    worker_mark(fetch->worker, &fetch->task);
}

void fetch_end_all(struct worker *worker) {
    while (worker->fetches) {
        give_up(worker->fetches, 502, "stopped", "");
        fetch_free(worker->fetches);
    }
}
