// One request's life: from its parsed head to its line in the access log.
#pragma once

#include "intercept/session.h"

void request_free(struct request *request); // NULL is allowed

// Writes the access line of the session's request (or, without one, of its tunnel) and counts it. Once a
// request.
void request_log(struct session *session, enum result result, const char *reason);

// The total deadline passed: answers 504 when nothing was sent yet, else cuts the response.
enum run request_give_up(struct session *session, const char *reason);

// The client's socket failed before a response began.
enum run request_client_left(struct session *session);

// The session is ended from outside (stop): the line is written.
void request_interrupted(struct session *session);

// What the request asks of the policy and of the store. Views live as long as the request.
void request_acl(const struct session *session, struct acl_request *acl);
void request_query(struct session *session, struct cache_query *query);
// Whether the store may be asked at all, by what the request is: its content, and no wish for an upgrade.
bool request_fits_store(const struct http_head *head, const struct framing *framing);

// What the configuration says about storing this URL's responses. Looked up once a request; what it points to
// lives as long as the session's settings.
const struct cache_rules *request_rules(struct session *session);
// Counts the refresh option that a decision's reason names, if it does; NULL is allowed. Once a decision.
void request_count_rule(struct worker *worker, const char *reason);

// Decodes the request body from `in` and hands it to the fetch, as far as there is room; sets want_read, and
// the deadline while the client owes more. False: the body is broken or the client left in its middle, and
// the step was changed to what follows (run it with RUN_NEXT).
bool request_upload(struct session *session);
