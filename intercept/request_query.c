// What a request asks of the policy and of the store.
#include "acl/url.h"
#include "intercept/request.h"
#include "intercept/uplink_watch.h"
#include "intercept/worker.h"

#include <stdio.h>
#include <string.h>

#define HTTP_PORT 80

void request_acl(const struct session *session, struct acl_request *acl) {
    const struct request *request = session->request;
    *acl = (struct acl_request){
            .scheme = VIEW("http"),
            .host = request->target.authority.host,
            .port = request->target.authority.port,
            .path = request->target.path,
            .destination = session->destination,
    };
}

// The store knows nothing of request bodies; but the answer to a POST may be one to GET.
static bool has_unfit_body(const struct http_head *head, const struct framing *framing) {
    return framing->kind != FRAMING_NONE && head->method_id != METHOD_POST;
}

bool request_fits_store(const struct http_head *head, const struct framing *framing) {
    return !has_unfit_body(head, framing) && !(framing_is_empty(framing) && http_asks_for_upgrade(head));
}

// Without a Host the URL is that of the destination [RFC 9110 §7.1].
static struct view authority_of(const struct session *session, char room[static ADDRESS_TEXT_BYTES]) {
    const struct request *request = session->request;
    const struct endpoint *destination = &session->destination;
    if (request->authority_length)
        return (struct view){request->authority, request->authority_length};
    size_t length = url_write_address(&destination->address, room);
    if (destination->port != HTTP_PORT)
        length += (size_t)snprintf(room + length, ADDRESS_TEXT_BYTES - length, ":%u", destination->port);
    return (struct view){room, length};
}

const struct cache_rules *request_rules(struct session *session) {
    struct request *request = session->request;
    char room[ADDRESS_TEXT_BYTES];
    if (request->has_rules)
        return &request->store_rules;
    if (!store_rules_find(session->settings->store_rules, authority_of(session, room), request->target.path,
                &request->store_rules))
        counter_add(&session->worker->counters, COUNTER_refresh_gave_up, 1);
    request->has_rules = true;
    return &request->store_rules;
}

void request_count_rule(struct worker *worker, const char *reason) {
    static const enum counter_id counters[] = {
#define REFRESH_OPTION(member, word, meaning) [REFRESH_OPTION_##member] = COUNTER_refresh_##member,
#include "cache/refresh_option.tbl"
            [REFRESH_OPTION_COUNT] = COUNTER_COUNT,
    };
    enum counter_id counter = reason ? counters[rules_option(reason)] : COUNTER_COUNT;
    if (counter != COUNTER_COUNT)
        counter_add(&worker->counters, counter, 1);
}

void request_query(struct session *session, struct cache_query *query) {
    struct request *request = session->request;
    struct acl_request acl;
    request_acl(session, &acl);
    *query = (struct cache_query){
            .head = &request->head,
            .destination = session->destination,
            .authority = {request->authority, request->authority_length},
            .path = request->target.path,
            .now = worker_now(session->worker),
            .rules = request_rules(session),
            .store_allowed = request_fits_store(&request->head, &request->framing) &&
                             !acl_no_cache(session->settings->acl, &acl),
            .is_offline = uplink_watch_is_offline(session->worker->daemon->uplink, session->settings->config),
            .is_again = request->vain_lookups > 0,
            .skips_disk = request->skips_disk,
    };
}
