// step admit: holds client, target and destination against the policy.
#include "http/list.h"
#include "intercept/reply.h"
#include "intercept/request.h"
#include "intercept/worker.h"

#include <string.h>

#define HTTP_PORT 80

// ---- loops ----

// Whether one "protocol received-by [comment]" member of Via names us [RFC 9110 §7.6.3].
static bool member_is_ours(struct view member, struct view name) {
    struct view rest = view_trim(view_skip(member, view_find(member, ' ')));
    return view_equal(view_take(rest, view_find(rest, ' ')), name);
}

static bool came_from_us(const struct session *session) {
    struct view name = view_of(session->settings->via_name), member;
    struct list_walk walk = {.head = &session->request->head, .id = FIELD_VIA};
    while (list_walk_next(&walk, &member))
        if (member_is_ours(member, name))
            return true;
    return false;
}

// ---- refusals that need no destination ----

static enum run refuse_arrival(struct session *session) {
    if (session->arrival == ORIGDST_DIRECT)
        return reply_page(session, 403, RESULT_DENIED, "not-intercepted",
                "This port takes only connections that the gateway's rules intercepted.", VIEW(""));
    return reply_page(session, 403, RESULT_DENIED, "own-address",
            "The destination is this gateway itself; it is never fetched through the cache.", VIEW(""));
}

static enum run deny(struct session *session) {
    return reply_page(session, 403, RESULT_DENIED, "denied", "Cache access denied", VIEW(""));
}

static bool is_denied(struct session *session) {
    return acl_client(session->settings->acl, &session->peer.address, &session->request->match) == ACL_DENY;
}

// TRACE and OPTIONS with Max-Forwards: 0 end here [RFC 9110 §7.6.2].
static bool ends_here(const struct http_head *head) {
    const struct http_field *field = http_field_find(head, FIELD_MAX_FORWARDS, 0);
    uint64_t left;
    return (head->method_id == METHOD_TRACE || head->method_id == METHOD_OPTIONS) && field &&
           view_number(field->value, &left) && left == 0;
}

static enum run answer_last_forward(struct session *session) {
    if (session->request->head.method_id ==
            METHOD_TRACE) // echoing would show credentials: refused as not wanted here
        return reply_head(session, 405, RESULT_ERROR, "max-forwards",
                "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r\n");
    return reply_head(session, 200, RESULT_HIT, "max-forwards",
            "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r\n");
}

// ---- the destination of a forward request ----

static void on_answer(void *owner, const struct address *addresses, unsigned count, const char *why) {
    struct session *session = owner;
    unsigned most = sizeof session->resolved / sizeof *session->resolved;
    session->names = NULL;
    session->resolved_done = true;
    session->resolved_count = count < most ? count : most;
    memcpy(session->resolved, addresses, session->resolved_count * sizeof *addresses);
    session->request->failure.text = why;
    session_wake(session, EVENT_NAMES);
}

static enum run cannot_resolve(struct session *session) {
    const char *why = session->request->failure.text;
    return reply_page(session, 502, RESULT_ERROR, "name-unknown",
            why ? why : "The name could not be looked up.", session->request->target.authority.host);
}

static enum run begin_resolving(struct session *session) {
    struct worker *worker = session->worker;
    struct request *request = session->request;
    if (request->target.authority.host.length == 0) {
        const char *given = session->settings->config->forward_default;
        if (!given[0] || !authority_parse(view_of(given), &request->target.authority))
            return reply_page(session, 400, RESULT_BAD, "no-host",
                    "The request names no host, and the configuration has no forward_default.", VIEW(""));
        request->authority_length = authority_normalise(
                &request->target.authority, request->authority, sizeof request->authority);
    }
    if (!worker->names)
        worker->names = names_new(worker->loop, session->settings->config->timeout_ms[TIMEOUT_resolve]);
    if (!worker->names)
        return reply_page(session, 502, RESULT_ERROR, "no-resolver",
                "No name can be looked up on this gateway.", VIEW(""));
    session->resolved_done = false;
    session->names = names_resolve(worker->names, request->target.authority.host, on_answer, session);
    return RUN_NEXT;
}

static bool connect_port_allowed(const struct session *session) {
    return session->settings->connect_ports[session->request->target.authority.port];
}

// Our own addresses are never dialled, whatever DNS says.
static void leave_out_own(struct session *session) {
    unsigned kept = 0;
    for (unsigned i = 0; i < session->resolved_count; i++)
        if (!own_addresses_has(session->worker->daemon->own, &session->resolved[i]))
            session->resolved[kept++] = session->resolved[i];
    session->resolved_count = kept;
}

static enum run take_destination(struct session *session) {
    uint16_t port = session->request->target.authority.port;
    if (session->resolved_count == 0)
        return cannot_resolve(session);
    leave_out_own(session);
    session->destination = (struct endpoint){.port = port ? port : HTTP_PORT};
    session->resolved_next = 0;
    if (session_next_destination(session))
        return RUN_NEXT;
    counter_add(&session->worker->counters, COUNTER_refused_own_address, 1);
    return reply_page(session, 403, RESULT_DENIED, "own-address",
            "The destination is this gateway itself; it is never fetched through the cache.", VIEW(""));
}

static enum run find_destination(struct session *session) {
    if (!session->entered)
        return begin_resolving(session);
    if (!session->resolved_done) {
        session->want_read = false;
        return RUN_WAIT;
    }
    return take_destination(session);
}

// ---- the verdict on the URL ----

static bool is_blocked_at(struct session *session, const struct address *address) {
    struct acl_request acl;
    request_acl(session, &acl);
    acl.destination.address = *address;
    return acl_url(session->settings->acl, &acl, &session->request->match) == ACL_BLOCK;
}

// A forward request may end up at any address of its name: none of them may be blocked.
static bool is_blocked(struct session *session) {
    bool blocked = is_blocked_at(session, &session->destination.address);
    if (session->arrival == ORIGDST_FORWARD)
        for (unsigned i = 0; i < session->resolved_count && !blocked; i++)
            blocked = is_blocked_at(session, &session->resolved[i]);
    return blocked;
}

static enum run go_on(struct session *session) {
    struct request *request = session->request;
    if (is_blocked(session))
        return reply_page(session, 403, RESULT_BLOCKED, "blocked",
                "This gateway's rules block this address:", request->match.rule);
    session_goto(session, request->head.method_id == METHOD_CONNECT ? STEP_tunnel : STEP_lookup);
    return RUN_NEXT;
}

static enum run refuse_early(struct session *session) {
    struct request *request = session->request;
    if (is_denied(session))
        return deny(session);
    if (session->arrival == ORIGDST_DIRECT || session->arrival == ORIGDST_OWN)
        return refuse_arrival(session);
    if (came_from_us(session))
        return reply_page(session, 508, RESULT_LOOP, "loop",
                "The request came back to this gateway: it would go in circles.", VIEW(""));
    if (request->head.method_id == METHOD_CONNECT && session->arrival != ORIGDST_FORWARD)
        return reply_head(session, 405, RESULT_BAD, "connect-intercepted",
                "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, TRACE, PATCH\r\n");
    if (request->head.method_id == METHOD_CONNECT && !connect_port_allowed(session))
        return reply_page(session, 403, RESULT_DENIED, "connect-port",
                "CONNECT may not reach this port (connect_ports).", request->head.target);
    if (ends_here(&request->head))
        return answer_last_forward(session);
    return RUN_WAIT; // nothing to refuse
}

// An HTTP/1.0 request without Host means the server at its destination [RFC 9112 §3.3].
static void name_by_address(struct session *session) {
    struct request *request = session->request;
    if (request->authority_length > 0)
        return;
    char text[ADDRESS_TEXT_BYTES];
    bool plain = session->destination.port == HTTP_PORT && address_is_ipv4(&session->destination.address);
    if (plain)
        address_print(&session->destination.address, text);
    else
        endpoint_print(&session->destination, text);
    request->authority_length = strlen(text);
    memcpy(request->authority, text, request->authority_length);
}

enum run step_admit(struct session *session) {
    if (!session->entered) {
        enum run refused = refuse_early(session);
        if (refused != RUN_WAIT)
            return refused;
    }
    if (session->arrival == ORIGDST_FORWARD) {
        enum run run = find_destination(session);
        if (run != RUN_NEXT || session->step != STEP_admit || !session->resolved_done)
            return run;
        if (session->resolved_count == 0 || !session->entered)
            return run;
    }
    name_by_address(session);
    return go_on(session);
}
