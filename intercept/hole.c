#include "intercept/hole.h"

#include "admin/check.h"
#include "intercept/fetch.h"
#include "intercept/parts.h"
#include "intercept/request.h"
#include "intercept/worker.h"

#define TRIES 8                  // at one place, without a byte of progress
#define PAUSE_MS 100             // before the second of these; doubled for each further one
#define LOOK_BYTES (1024 * 1024) // so often it looks ahead

static struct fetch **free_place(struct request *request) {
    for (unsigned i = 0; i < HOLE_FETCHES; i++)
        if (!request->hole.fetches[i])
            return &request->hole.fetches[i];
    return NULL;
}

// The offset behind the last byte that goes out as things stand.
static uint64_t wanted_end(const struct request *request) {
    const struct parts *parts = request->parts;
    return parts && parts->next > 0 ? parts->ranges.all[parts->next - 1].last + 1 : UINT64_MAX;
}

static bool begin_one(struct session *session, const struct cache_query *query) {
    struct fetch **place = free_place(session->request);
    struct cache_fill *fill =
            place ? cache_reader_fill(&session->reader, query, wanted_end(session->request)) : NULL;
    if (!fill)
        return false;
    *place = fetch_hole(session, fill);
    if (!*place) {
        cache_fill_abandon(fill);
        return false;
    }
    session->request->contacted = true;
    counter_add(&session->worker->counters, COUNTER_hole_fetches, 1);
    return true;
}

static unsigned begin_all(struct session *session) {
    struct cache_query query;
    unsigned count = 0;
    request_query(session, &query);
    while (begin_one(session, &query))
        count++;
    return count;
}

enum hole_outcome hole_fill(struct session *session) {
    struct request *request = session->request;
    struct hole *hole = &request->hole;
    int64_t now_ms = loop_now_ms(session->worker->loop);
    if (request->content_sent != hole->at) {
        hole->at = request->content_sent;
        hole->tries = 0;
        hole->next_at_ms = 0;
    }
    if (hole->tries == 0)
        hole->until_ms = now_ms + session->settings->config->timeout_ms[TIMEOUT_first_byte];
    if (hole->is_refused)
        return HOLE_STAYS;
    if (!free_place(request) || now_ms < hole->next_at_ms)
        return HOLE_RESTS;
    if (hole->tries == TRIES || now_ms >= hole->until_ms || !lookup_may_go_out(session))
        return HOLE_STAYS;
    hole->next_at_ms = now_ms + (PAUSE_MS << hole->tries);
    hole->tries++;
    request->failure = (struct failure){0}; // what came of it last is what is told
    return begin_all(session) > 0 ? HOLE_FILLS : HOLE_RESTS;
}

void hole_rest(struct session *session) {
    struct hole *hole = &session->request->hole;
    if (session->wait_until_ms || hole->next_at_ms <= loop_now_ms(session->worker->loop))
        return;
    session->wait_until_ms = hole->next_at_ms;
    hole->is_resting = true;
}

void hole_wake(struct session *session) {
    struct hole *hole = &session->request->hole;
    if (hole->is_resting)
        session->wait_until_ms = 0;
    hole->is_resting = false;
}

void hole_look_ahead(struct session *session) {
    struct request *request = session->request;
    struct hole *hole = &request->hole;
    if (request->content_sent < hole->ahead_at || hole->is_refused)
        return;
    hole->ahead_at = request->content_sent + LOOK_BYTES;
    if (request->stored.content_length > LOOK_BYTES && lookup_may_go_out(session))
        begin_all(session);
}

void hole_refuse(struct session *session) {
    struct request *request = session->request;
    request->hole.is_refused = true;
    request->failure = (struct failure){502, "changed", "What the server has now is another response."};
}

void hole_end(struct session *session, struct fetch *fetch) {
    for (unsigned i = 0; i < HOLE_FETCHES; i++)
        if (session->request->hole.fetches[i] == fetch)
            session->request->hole.fetches[i] = NULL;
    session_wake(session, EVENT_FETCH);
}

void hole_leave(struct request *request) {
    for (unsigned i = 0; i < HOLE_FETCHES; i++) {
        if (request->hole.fetches[i])
            fetch_leave_hole(request->hole.fetches[i]);
        request->hole.fetches[i] = NULL;
    }
}
