// step lookup: asks the store.
#include "admin/check.h"
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

// Nothing that is stored will do, and nobody may be asked.
static enum run answer_unstored(struct session *session, bool is_offline) {
    const char *text = is_offline ? "The gateway is offline, and has no stored answer to this request."
                                  : "Only a stored answer was asked for (only-if-cached), and there is none.";
    if (is_offline)
        uplink_watch_want(session->worker->daemon->uplink, &session->destination);
    return reply_page(session, 504, RESULT_ERROR, session->request->lookup_reason, text, VIEW(""));
}

enum run lookup_alone(struct session *session, const char *reason) {
    struct cache_fill *fill;
    bool is_offline = uplink_watch_is_offline(session->worker->daemon->uplink, session->settings->config);
    session->request->lookup = LOOKUP_PASS;
    session->request->asked = session->request->lookup_reason = is_offline ? "offline" : reason;
    session->request->stored = (struct cache_head){0}; // lived as long as the reader was attached
    if (is_offline) {
        cache_reader_detach(&session->reader);
        return answer_unstored(session, true);
    }
    cache_stream(session->worker->daemon->cache, &session->reader, &fill);
    return ask_origin(session, fill);
}

enum run step_lookup(struct session *session) {
    struct request *request = session->request;
    struct cache_query query;
    struct cache_fill *fill = NULL;
    request_query(session, &query);
    session->want_read = false;
    request->lookup = cache_lookup(
            session->worker->daemon->cache, &query, &session->reader, &fill, &request->lookup_reason);
    request_count_rule(session->worker, request->lookup_reason);
    request->asked = request->lookup_reason;
    switch (request->lookup) {
    case LOOKUP_HIT:
    case LOOKUP_JOIN:
        session_goto(session, STEP_fetch);
        return RUN_NEXT;
    case LOOKUP_STALE:
    case LOOKUP_MISS:
        return ask_origin(session, fill);
    case LOOKUP_PASS:
        if (!fill)
            return answer_unstored(session, query.is_offline);
        return ask_origin(session, fill);
    }
    UNREACHABLE("lookup");
}
