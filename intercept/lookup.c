// step lookup: asks the store.
#include "admin/check.h"
#include "http/cache_control.h"
#include "intercept/fetch.h"
#include "intercept/reply.h"
#include "intercept/request.h"
#include "intercept/worker.h"

static enum run ask_origin(struct session *session, struct cache_fill *fill) {
    session->fetch = fetch_begin(session, fill);
    if (!session->fetch) {
        cache_fill_abandon(fill);
        return reply_page(session, 503, RESULT_ERROR, "no-memory",
                "The gateway is out of memory for this request.", VIEW(""));
    }
    session_goto(session, STEP_fetch);
    return RUN_NEXT;
}

static enum run answer_unavailable(struct session *session, const char *reason) {
    struct uplink_watch *uplink = session->worker->daemon->uplink;
    bool is_offline = uplink_watch_is_offline(uplink, session->settings->config);
    if (is_offline)
        uplink_watch_want(uplink, &session->destination);
    return reply_page(session, 504, RESULT_ERROR, reason,
            is_offline ? "The gateway is offline, and nothing that is stored answers this request."
                       : "Only a stored answer was asked for (only-if-cached), and there is none.",
            VIEW(""));
}

bool lookup_may_go_out(struct session *session) {
    struct cache_query query;
    struct cache_control control;
    request_query(session, &query);
    cache_control_parse(query.head, &control);
    return !query.is_offline && !control.only_if_cached;
}

enum run lookup_alone(struct session *session, const char *reason) {
    struct cache_fill *fill;
    if (!lookup_may_go_out(session))
        return answer_unavailable(session, reason);
    session->request->lookup = LOOKUP_PASS;
    session->request->asked = session->request->lookup_reason = reason;
    session->request->stored = (struct cache_head){0}; // lived as long as the reader was attached
    cache_stream(session->worker->daemon->cache, &session->reader, &fill);
    return ask_origin(session, fill);
}

// What is stored lies on a disk, and is being read. A request body is left where it is meanwhile.
static enum run wait_for_disk(struct session *session) {
    if (!session->entered) {
        counter_add(&session->worker->counters, COUNTER_disk_waits, 1);
        session_wait(session, TIMEOUT_disk);
    }
    if (session->request->body_done && !session_read_ahead(session))
        return request_client_left(session);
    return RUN_WAIT;
}

// The client's patience is for the origin: a disk that takes longer is done without.
static void skip_disk(struct session *session) {
    counter_add(&session->worker->counters, COUNTER_disk_late, 1);
    session->request->skips_disk = true;
    session_detach(session);
}

enum run step_lookup(struct session *session) {
    struct request *request = session->request;
    if (session->entered && !(session->events & EVENT_READER)) { // it waits for a disk
        if (!session_is_late(session))
            return wait_for_disk(session);
        skip_disk(session);
    }
    struct cache_query query;
    struct cache_fill *fill = NULL;
    request_query(session, &query);
    session->want_read = false;
    request->lookup = cache_lookup(
            session->worker->daemon->cache, &query, &session->reader, &fill, &request->lookup_reason);
    request_count_rule(session->worker, request->lookup_reason);
    if (request->skips_disk && request->lookup == LOOKUP_MISS)
        request->lookup_reason = "disk-slow"; // rather than absent
    request->asked = request->lookup_reason;
    switch (request->lookup) {
    case LOOKUP_HIT:
        if (fill && !fetch_refresh(session, fill))
            cache_fill_abandon(fill); // what is stored may be used all the same
        session_goto(session, STEP_fetch);
        return RUN_NEXT;
    case LOOKUP_JOIN:
        session_goto(session, STEP_fetch);
        return RUN_NEXT;
    case LOOKUP_STALE:
    case LOOKUP_MISS:
        return ask_origin(session, fill);
    case LOOKUP_WAIT:
        if (request->skips_disk)
            break;
        return wait_for_disk(session);
    case LOOKUP_PASS:
        if (!fill)
            return answer_unavailable(session, request->lookup_reason);
        return ask_origin(session, fill);
    }
    UNREACHABLE("lookup");
}
