#include "cache/policy.h"

#include "http/date.h"

static bool has(const struct http_head *head, enum field_id id) {
    return http_field_find(head, id, 0) != NULL;
}

bool policy_read_request(const struct http_head *head, bool store_allowed, struct cache_request *request,
        const char **reason) {
    *request = (struct cache_request){.is_get = head->method_id == METHOD_GET};
    cache_control_parse(head, &request->control);
    if (!request->control.present && http_field_has_token(head, FIELD_PRAGMA, VIEW("no-cache")))
        request->control.no_cache = true; // [RFC 9111 §5.4]
    if (!request->is_get && head->method_id != METHOD_HEAD)
        return *reason = "method", false;
    if (!store_allowed)
        return *reason = "not-allowed", false;
    if (request->control.no_store)
        return *reason = "no-store", false;
    if (has(head, FIELD_IF_MATCH) || has(head, FIELD_IF_UNMODIFIED_SINCE))
        return *reason = "for-the-origin", false; // a cache must not judge these [RFC 9111 §4.3.2]
    request->has_range = has(head, FIELD_RANGE);
    request->has_condition = has(head, FIELD_IF_NONE_MATCH) || has(head, FIELD_IF_MODIFIED_SINCE);
    request->has_authorization = has(head, FIELD_AUTHORIZATION);
    return true;
}

bool policy_has_validator(const struct http_head *response) {
    const struct http_field *modified = http_field_find(response, FIELD_LAST_MODIFIED, 0);
    return http_field_find(response, FIELD_ETAG, 0) || (modified && date_parse(modified->value, 0) >= 0);
}

bool policy_is_trouble(int status) {
    return status >= 500 || status == 408 || status == 421 || status == 425 || status == 429;
}

static bool is_understood(int status) { // for must-understand [RFC 9111 §5.2.2.3]
    return freshness_status_heuristic(status) || status == 302 || status == 303 || status == 307;
}

// Why the response may not be stored, whoever asked; NULL when nothing in it forbids it.
static const char *forbidden(const struct http_head *head, const struct cache_control *control) {
    if (control->no_store)
        return "no-store";
    if (control->is_private)
        return "private";
    if (head->status < 200 || head->status == 206 || head->status == 304 ||
            http_field_find(head, FIELD_CONTENT_RANGE, 0))
        return "partial";
    if (control->must_understand && !is_understood(head->status))
        return "not-understood";
    if (http_field_find(head, FIELD_SET_COOKIE, 0) && !control->is_public && control->s_maxage < 0)
        return "set-cookie";
    return NULL;
}

static const char *pointless(const struct cache_response *response, const struct cache_control *control,
        const struct freshness *freshness, const struct policy_limits *limits) {
    if (!freshness->is_explicit && !control->is_public && !freshness_status_heuristic(response->head->status))
        return "status";
    if ((freshness->lifetime_s <= freshness->initial_age_s || freshness->no_cache) &&
            !policy_has_validator(response->head))
        return freshness->no_cache ? "no-cache" : "no-lifetime";
    if (response->content_length >= 0 && (uint64_t)response->content_length > limits->maximum_bytes)
        return "too-large";
    if (response->has_body ? response->content_length >= 0 &&
                                     (uint64_t)response->content_length < limits->minimum_bytes
                           : limits->minimum_bytes > 0)
        return "too-small";
    return NULL;
}

static bool authorization_allowed(const struct cache_control *control) { // [RFC 9111 §3.5]
    return control->is_public || control->must_revalidate || control->s_maxage >= 0;
}

struct policy_verdict policy_storable(const struct http_head *request, const struct cache_response *response,
        const struct cache_control *control, const struct freshness *freshness, bool vary_is_known,
        const struct policy_limits *limits) {
    if (response->head->status == 304) // it answers the client's own condition
        return (struct policy_verdict){false, false, "not-modified"};
    const char *reason = forbidden(response->head, control);
    if (!reason && !vary_is_known)
        reason = "vary-any";
    if (!reason)
        reason = pointless(response, control, freshness, limits);
    if (reason)
        return (struct policy_verdict){false, true, reason};
    if (http_field_find(request, FIELD_AUTHORIZATION, 0) && !authorization_allowed(control))
        return (struct policy_verdict){false, false, "authorization"};
    return (struct policy_verdict){true, false, "stored"};
}
