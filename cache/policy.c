#include "cache/policy.h"

#include "http/date.h"
#include "http/reference.h"

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
    if (has(head, FIELD_IF_MATCH) || has(head, FIELD_IF_UNMODIFIED_SINCE))
        return *reason = "for-the-origin", false; // a cache must not judge these [RFC 9111 §4.3.2]
    request->has_range = has(head, FIELD_RANGE);
    request->has_condition = has(head, FIELD_IF_NONE_MATCH) || has(head, FIELD_IF_MODIFIED_SINCE);
    request->has_modified_since = has(head, FIELD_IF_MODIFIED_SINCE);
    request->has_authorization = has(head, FIELD_AUTHORIZATION);
    return true;
}

enum use policy_use(const struct cache_request *request, const struct freshness *freshness,
        const struct refresh_rule *rule, struct moment now, const char **reason) {
    enum use use = freshness_use(freshness, &request->control, rule, now, reason);
    if (use != USE_NOT && request->has_modified_since && rule && rule->options[REFRESH_OPTION_refresh_ims])
        return *reason = rules_option_word(REFRESH_OPTION_refresh_ims), USE_NOT;
    return use;
}

const struct http_field *policy_etag(const struct http_head *response) {
    const struct http_field *etag = http_field_find(response, FIELD_ETAG, 0);
    return etag && etag->value.length > 0 && etag->value.length <= POLICY_ETAG_BYTES ? etag : NULL;
}

bool policy_has_validator(const struct http_head *response) {
    const struct http_field *modified = http_field_find(response, FIELD_LAST_MODIFIED, 0);
    return policy_etag(response) || (modified && date_parse(modified->value, 0) >= 0);
}

bool policy_is_trouble(int status) {
    return status >= 500 || status == 408 || status == 421 || status == 425 || status == 429;
}

bool policy_keeps_stored(int status, const struct freshness *freshness) {
    return policy_is_trouble(status) && !freshness->is_explicit;
}

// ---- storing ----

struct judged { // a response on its way into the store
    const struct http_head *request, *head;
    const struct cache_response *response;
    const struct cache_control *control;
    const struct freshness *freshness;
    const struct policy_limits *limits;
    const struct cache_rules *rules; // or NULL
    const char *word;                // of the option that made it storable
};

// The final statuses of [RFC 9110 §15], whose caching requirements this store meets; for must-understand
// [RFC 9111 §5.2.2.3].
static bool is_understood(const struct judged *judged) {
    int status = judged->head->status;
    return (status >= 200 && status <= 205) || (status >= 300 && status <= 303) || status == 305 ||
           status == 307 || status == 308 || (status >= 400 && status <= 417) || status == 421 ||
           status == 422 || status == 426 || (status >= 500 && status <= 505);
}

// Never stored, whatever they say [RFC 6585 §3-6].
static bool is_never_stored(int status) {
    return status == 428 || status == 429 || status == 431 || status == 511;
}

static bool use_option(struct judged *judged, enum refresh_option option) {
    const struct refresh_rule *rule = judged->rules ? judged->rules->refresh : NULL;
    if (!rule || !rule->options[option])
        return false;
    judged->word = rules_option_word(option);
    return true;
}

// Set-Cookie names a client [RFC 9111 §7.3]: it wants a word of the origin's that it may be shared.
static bool cookie_allowed(const struct judged *judged) {
    const struct cache_control *control = judged->control;
    enum store_cookies cookies = judged->rules ? judged->rules->cookies : STORE_COOKIES_EXPLICIT;
    if (!has(judged->head, FIELD_SET_COOKIE) || cache_control_leaves_out(control, VIEW("Set-Cookie")))
        return true;
    bool is_shared = control->is_public || control->s_maxage >= 0;
    switch (cookies) {
    case STORE_COOKIES_EXPLICIT:
        return is_shared || control->max_age >= 0;
    case STORE_COOKIES_SHARED:
        return is_shared;
    case STORE_COOKIES_OFF:
        return false;
    }
    return false;
}

// Whether it is the answer to this request alone: to its range or its condition.
static bool is_partial(const struct judged *judged) {
    const struct http_head *request = judged->request;
    switch (judged->head->status) {
    case 206: // one that can be kept is judged as the whole it is a part of
        return true;
    case 412:
        return has(request, FIELD_IF_NONE_MATCH) || has(request, FIELD_IF_MODIFIED_SINCE);
    case 416:
        return has(request, FIELD_RANGE);
    default: // Content-Range means nothing [RFC 9110 §14.4], but beside a Range it is suspicious
        return has(judged->head, FIELD_CONTENT_RANGE) && has(request, FIELD_RANGE);
    }
}

static bool is_wanted(const struct judged *judged) {
    const struct http_field *type = http_field_find(judged->head, FIELD_CONTENT_TYPE, 0);
    return !judged->rules ||
           rules_store_response(judged->rules, judged->head->status, type ? type->value : VIEW(""));
}

// Why the response may not be stored, whoever asked; NULL when nothing in it forbids it.
static const char *forbidden(struct judged *judged) {
    const struct cache_control *control = judged->control;
    int status = judged->head->status;
    if (control->must_understand && !is_understood(judged))
        return "not-understood";
    if (control->no_store && !control->must_understand && !use_option(judged, REFRESH_OPTION_ignore_no_store))
        return "no-store";
    if (control->is_private && !use_option(judged, REFRESH_OPTION_ignore_private))
        return "private";
    if (status < 200 || status >= 600 || is_never_stored(status))
        return "status";
    if (!cookie_allowed(judged))
        return "set-cookie";
    return is_wanted(judged) ? NULL : "response-rule";
}

// Something that it can be used for: fresh for a while, past that by its own word, or once confirmed.
static const char *useless(struct judged *judged) {
    const struct freshness *freshness = judged->freshness;
    const struct refresh_rule *rule = judged->rules ? judged->rules->refresh : NULL;
    int64_t lifetime_s = freshness_lifetime(freshness, rule);
    bool is_redirect = rule && rule->redirect_s > 0 && freshness->is_redirect;
    if (!freshness->is_explicit && !freshness->is_heuristic && !is_redirect)
        return "status";
    if (policy_has_validator(judged->head))
        return NULL;
    if (freshness->no_cache)
        return "no-cache";
    // For who takes a stale response, and for when the origin cannot be reached. A lifetime of 0 is no wish
    // to be kept.
    bool is_useful_stale =
            !freshness->must_revalidate && (freshness->while_revalidate_s > 0 || freshness->if_error_s > 0 ||
                                                   (freshness->is_explicit && lifetime_s > 0));
    if (lifetime_s > freshness->initial_age_s || is_useful_stale ||
            use_option(judged, REFRESH_OPTION_store_stale))
        return NULL;
    return "no-lifetime";
}

static const char *unfit(const struct judged *judged) {
    const struct cache_response *response = judged->response;
    const struct policy_limits *limits = judged->limits;
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

static struct policy_verdict judge(struct judged *judged, bool vary_is_known) {
    if (judged->head->status == 304) // it answers the client's own condition
        return (struct policy_verdict){false, false, "not-modified"};
    if (is_partial(judged))
        return (struct policy_verdict){false, judged->head->status == 206, "partial"};
    const char *reason = forbidden(judged);
    if (!reason && !vary_is_known)
        reason = "vary-any";
    if (!reason)
        reason = useless(judged);
    if (!reason)
        reason = unfit(judged);
    if (reason)
        return (struct policy_verdict){false, true, reason};
    if (has(judged->request, FIELD_AUTHORIZATION) && !authorization_allowed(judged->control))
        return (struct policy_verdict){false, false, "authorization"};
    return (struct policy_verdict){true, false, judged->word ? judged->word : "stored"};
}

struct policy_verdict policy_storable(const struct http_head *request, const struct cache_response *response,
        const struct cache_control *control, const struct freshness *freshness, bool vary_is_known,
        const struct policy_limits *limits) {
    struct judged judged = {.request = request,
            .head = response->head,
            .response = response,
            .control = control,
            .freshness = freshness,
            .limits = limits,
            .rules = response->rules};
    return judge(&judged, vary_is_known);
}

// ---- POST ----

static bool names_target(struct view reference, struct view authority, struct view path) {
    char buffer[REFERENCE_BYTES];
    struct reference_target target;
    bool has_fragment = view_find(reference, '#') < reference.length; // none is allowed there
    return reference.length > 0 && !has_fragment &&
           reference_resolve(authority, path, reference, buffer, &target) &&
           view_equal(target.authority, authority) && view_equal(target.path, path);
}

bool policy_post(const struct http_head *response, const struct freshness *freshness, struct view authority,
        struct view path) {
    const struct http_field *location = http_field_find(response, FIELD_CONTENT_LOCATION, 0);
    return location && http_field_total(response, FIELD_CONTENT_LOCATION) == 1 && freshness->is_explicit &&
           freshness->explicit_s > 0 && names_target(location->value, authority, path);
}
