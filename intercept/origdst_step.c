// step origdst: recovers the original destination of a connection.
#include "admin/log.h"
#include "intercept/session.h"
#include "intercept/worker.h"

#include <string.h>

#define LOG_INTERVAL_MS 10000

static struct log_limit direct_log, own_log, failed_log;

static void report(const struct session *session, int error) {
    char peer[ADDRESS_TEXT_BYTES], destination[ADDRESS_TEXT_BYTES];
    endpoint_print(&session->peer, peer);
    switch (session->arrival) {
    case ORIGDST_DIRECT:
        log_limited(&direct_log, LOG_INTERVAL_MS,
                "%s connected to port %u (%s) directly, not by interception: refused", peer,
                session->local.port, listen_mode_name(session->listen->mode));
        counter_add(&session->worker->counters, COUNTER_refused_not_intercepted, 1);
        return;
    case ORIGDST_OWN:
        log_limited(&own_log, LOG_INTERVAL_MS,
                "%s was intercepted on its way to %s, which is this gateway: refused; exempt "
                "the gateway's own addresses in the rules (weir rules apply does)",
                peer, endpoint_print(&session->destination, destination));
        counter_add(&session->worker->counters, COUNTER_refused_own_address, 1);
        return;
    case ORIGDST_FAILED:
        log_limited(&failed_log, LOG_INTERVAL_MS, "%s: no original destination (%s): closed", peer,
                strerror(error));
        counter_add(&session->worker->counters, COUNTER_refused_not_intercepted, 1);
        return;
    case ORIGDST_INTERCEPTED:
    case ORIGDST_FORWARD:
        return;
    }
}

enum run step_origdst(struct session *session) {
    int error = 0;
    session->arrival = origdst_find(session->fd, session->listen->mode, &session->peer,
            session->worker->daemon->own, &session->destination, &error);
    report(session, error);
    if (session->arrival == ORIGDST_FAILED) {
        session->reset = true;
        return RUN_END;
    }
    origdst_class(session->fd, &session->peer, &session->class);
    session->class.mark &= ~(uint32_t)session->settings->config->rule_mask;
    session_goto(session, STEP_request);
    return RUN_NEXT;
}
