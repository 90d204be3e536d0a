// A fetch: its life, its runner, and what becomes of it without its client.
#include "intercept/fetch.h"

#include "admin/check.h"
#include "admin/container.h"
#include "intercept/fetch_head.h"
#include "intercept/fetch_own.h"
#include "intercept/hole.h"
#include "intercept/request.h"
#include "intercept/worker.h"

#include <stdlib.h>

#define STORE_EXTRA_BYTES (1 << 20) // the store rounds up to chunks
#define ORPHAN_LOOK_MS 1000         // how often one whose client left looks whether anybody still reads

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
    free(fetch->head.data);
    free(fetch);
}

void fetch_let_go(struct fetch *fetch) {
    if (fetch->asker)
        hole_end(fetch->asker, fetch);
    fetch->asker = NULL;
    if (!fetch->session)
        return;
    fetch->session->fetch = NULL;
    session_wake(fetch->session, EVENT_FETCH);
    fetch->session = NULL;
}

static struct request *request_of(const struct fetch *fetch) {
    return fetch->session ? fetch->session->request : NULL;
}

static enum run end(struct fetch *fetch) {
    fetch_let_go(fetch);
    if (fetch->upstream)
        upstream_close(fetch->upstream);
    return RUN_END;
}

static void note_failure(const struct fetch *fetch, int status, const char *reason, const char *text) {
    struct request *request = fetch->asker ? fetch->asker->request : request_of(fetch);
    if (request && request->failure.status == 0)
        request->failure = (struct failure){status, reason, text};
}

enum run fetch_give_up(struct fetch *fetch, int status, const char *reason, const char *text) {
    note_failure(fetch, status, reason, text);
    cache_fill_abandon(fetch->fill);
    return end(fetch);
}

enum run fetch_fail(struct fetch *fetch, int status, const char *reason, const char *text) {
    struct request *request = request_of(fetch);
    if (fetch->is_hole)
        counter_add(&fetch->worker->counters, COUNTER_hole_fetches_failed, 1);
    note_failure(fetch, cache_fill_confirms(fetch->fill) ? 504 : status, reason, text);
    if (cache_fill_fail(fetch->fill) && request)
        request->fill_kind = FILL_STALE;
    return end(fetch);
}

// ---- waiting ----

static void on_deadline(struct deadline *deadline) {
    struct fetch *fetch = CONTAINER_OF(deadline, struct fetch, deadline);
    fetch->late = !fetch->looks;
    fetch->looks = false;
    worker_mark(fetch->worker, &fetch->task);
}

static void on_letter(struct letter *letter) {
    struct fetch *fetch = CONTAINER_OF(letter, struct fetch, letter);
    worker_mark(fetch->worker, &fetch->task);
}

void fetch_on_room(void *owner) { // from any thread
    struct fetch *fetch = owner;
    loop_post(fetch->worker->loop, &fetch->letter);
}

void fetch_set_deadline(struct fetch *fetch, enum timeout_id timeout) {
    fetch->looks = false;
    deadline_set(&fetch->deadline,
            loop_now_ms(fetch->worker->loop) + fetch->settings->config->timeout_ms[timeout]);
}

void fetch_look_at(struct fetch *fetch, int64_t at_ms) {
    fetch->looks = true;
    deadline_set(&fetch->deadline, at_ms);
}

// ---- without its client ----

// Where the client has all that it asked for, nothing was aborted: what the store asked beyond it comes, too.
static bool is_for_the_store(const struct fetch *fetch, int64_t left) {
    return fetch->is_answered && left >= 0 && left <= STORE_EXTRA_BYTES;
}

static bool goes_on_alone(struct fetch *fetch) {
    int64_t left = body_left(&fetch->body), now_ms = loop_now_ms(fetch->worker->loop);
    uint64_t done = left >= 0 && fetch->content_length > left ? (uint64_t)(fetch->content_length - left) : 0;
    if (fetch->alone_since_ms == 0)
        fetch->alone_since_ms = now_ms;
    return (is_for_the_store(fetch, left) || quick_abort_goes_on(&fetch->settings->quick_abort,
                                                     fetch->is_answered, left, done, fetch->alone_bytes)) &&
           !quick_abort_is_trickle(fetch->alone_bytes, now_ms - fetch->alone_since_ms);
}

// A refresh is for nobody in particular, as long as something is to be stored.
static bool is_refreshing(const struct fetch *fetch) {
    return fetch->is_refresh && loop_now_ms(fetch->worker->loop) < fetch->refresh_until_ms &&
           (fetch->step != FETCH_BODY || cache_fill_stores(fetch->fill));
}

static bool is_wanted(struct fetch *fetch) {
    if (fetch->session || fetch->asker || is_refreshing(fetch))
        return true;
    if (!fetch->upload_over)
        return false;
    if (cache_fill_readers(fetch->fill) > 0) {
        fetch->alone_since_ms = 0;
        fetch->alone_bytes = 0;
        return true;
    }
    return fetch->step == FETCH_BODY && cache_fill_stores(fetch->fill) && goes_on_alone(fetch);
}

static enum run run_step(struct fetch *fetch) {
    if (!is_wanted(fetch) && (!fetch->upload_over || cache_fill_leave(fetch->fill))) {
        counter_add(&fetch->worker->counters, COUNTER_orphans_aborted, 1);
        return fetch_give_up(fetch, 502, "client-left", "");
    }
    switch (fetch->step) {
    case FETCH_CONNECT:
        return fetch_connect_run(fetch);
    case FETCH_HEAD:
        return fetch_answer_run(fetch);
    case FETCH_BODY:
        return fetch_body_run(fetch);
    }
    UNREACHABLE("fetch step");
}

static void fetch_run(struct task *task) {
    struct fetch *fetch = CONTAINER_OF(task, struct fetch, task);
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
        fetch_look_at(fetch, loop_now_ms(fetch->worker->loop) + ORPHAN_LOOK_MS);
}

// ---- life ----

static void take_request(struct fetch *fetch, const struct request *request) {
    fetch->method = request->head.method_id;
    fetch->wants_upgrade = request->wants_upgrade;
    fetch->expects_continue = request->expects_continue;
    fetch->upload_chunked = request->framing.kind == FRAMING_CHUNKED;
    fetch->upload_over = request->body_done;
}

static struct fetch *fetch_new(struct session *session, struct cache_fill *fill, bool is_refresh) {
    struct worker *worker = session->worker;
    struct fetch *fetch = calloc(1, sizeof *fetch);
    if (!fetch || !fetch_head_compose(session, fill, is_refresh, &fetch->head)) {
        free(fetch);
        return NULL;
    }
    fetch->rules = *request_rules(session);
    fetch->worker = worker;
    fetch->settings = settings_get(session->settings);
    fetch->fill = fill;
    fetch->task.run = fetch_run;
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

struct fetch *fetch_begin(struct session *session, struct cache_fill *fill) {
    struct fetch *fetch = fetch_new(session, fill, false);
    if (!fetch)
        return NULL;
    fetch->session = session;
    take_request(fetch, session->request);
    session->request->is_asked_by_store = fetch->head.fields_length > 0;
    return fetch;
}

bool fetch_refresh(struct session *session, struct cache_fill *fill) {
    struct fetch *fetch = fetch_new(session, fill, true);
    if (!fetch)
        return false;
    fetch->method = METHOD_GET;
    fetch->upload_over = true;
    fetch->is_refresh = true;
    fetch->refresh_until_ms =
            loop_now_ms(fetch->worker->loop) + fetch->settings->config->timeout_ms[TIMEOUT_total];
    return true;
}

struct fetch *fetch_hole(struct session *session, struct cache_fill *fill) {
    struct fetch *fetch = fetch_new(session, fill, true);
    if (!fetch)
        return NULL;
    fetch->method = METHOD_GET;
    fetch->upload_over = true;
    fetch->is_hole = true;
    fetch->asker = session;
    return fetch;
}

void fetch_leave_hole(struct fetch *fetch) {
    fetch->is_answered = fetch->asker->request->body_over;
    fetch->asker = NULL;
    worker_mark(fetch->worker, &fetch->task);
}

void fetch_leave(struct fetch *fetch) {
    const struct request *request = request_of(fetch);
    fetch->is_answered = request && request->body_over;
    fetch->session = NULL;
    worker_mark(fetch->worker, &fetch->task);
}

void fetch_end_all(struct worker *worker) {
    for (struct fetch *fetch = worker->fetches, *next; fetch; fetch = next) {
        next = fetch->next;
        fetch_give_up(fetch, 502, "stopped", "");
        fetch_free(fetch);
    }
}
