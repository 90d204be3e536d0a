#include "cache/freshness.h"

#include "http/date.h"

bool freshness_status_heuristic(int status) {
    switch (status) {
    case 200:
    case 203:
    case 204:
    case 300:
    case 301:
    case 308:
    case 404:
    case 405:
    case 410:
    case 414:
    case 501:
        return true;
    default:
        return false;
    }
}

static int64_t at_least_zero(int64_t value) {
    return value > 0 ? value : 0;
}

static int64_t date_field(const struct http_head *head, enum field_id id, int64_t now_s) {
    const struct http_field *field = http_field_find(head, id, 0);
    return field ? date_parse(field->value, now_s) : -1;
}

// Age in seconds; a value that is no number is ignored [RFC 9111 §5.1].
static int64_t age_field(const struct http_head *head, bool *present) {
    const struct http_field *field = http_field_find(head, FIELD_AGE, 0);
    uint64_t age;
    *present = field && view_number(view_take(field->value, view_find(field->value, ',')), &age);
    if (!*present)
        return 0;
    return age > (uint64_t)DELTA_MAXIMUM ? DELTA_MAXIMUM : (int64_t)age;
}

static int64_t heuristic_lifetime(
        const struct http_head *head, const struct cache_control *control, int64_t date_s) {
    if (!freshness_status_heuristic(head->status) && !control->is_public)
        return 0;
    int64_t modified_s = date_field(head, FIELD_LAST_MODIFIED, date_s);
    if (modified_s < 0 || modified_s >= date_s)
        return 0;
    int64_t lifetime = (date_s - modified_s) / 10;
    return lifetime < FRESHNESS_HEURISTIC_MAXIMUM_S ? lifetime : FRESHNESS_HEURISTIC_MAXIMUM_S;
}

// [§4.2.1], the first that is there: s-maxage, max-age, Expires; an unreadable one means stale.
static int64_t lifetime_of(const struct http_head *head, const struct cache_control *control, int64_t date_s,
        bool *is_explicit) {
    *is_explicit = true;
    if (control->s_maxage != DELTA_NONE)
        return at_least_zero(control->s_maxage);
    if (control->max_age != DELTA_NONE)
        return at_least_zero(control->max_age);
    if (http_field_find(head, FIELD_EXPIRES, 0)) {
        if (http_field_total(head, FIELD_EXPIRES) > 1)
            return 0; // contradictory: not to be trusted [§4.2.1]
        int64_t expires_s = date_field(head, FIELD_EXPIRES, date_s);
        return expires_s < 0 ? 0 : at_least_zero(expires_s - date_s);
    }
    *is_explicit = false;
    return heuristic_lifetime(head, control, date_s);
}

void freshness_of(struct freshness *freshness, const struct http_head *response,
        const struct cache_control *control, struct moment request_at, struct moment response_at) {
    *freshness = (struct freshness){.response_at = response_at};
    int64_t date_s = date_field(response, FIELD_DATE, response_at.wall_s);
    freshness->has_date = date_s >= 0;
    freshness->date_s = freshness->has_date ? date_s : response_at.wall_s;
    freshness->lifetime_s = lifetime_of(response, control, freshness->date_s, &freshness->is_explicit);
    int64_t apparent = at_least_zero(response_at.wall_s - freshness->date_s);
    int64_t corrected = age_field(response, &freshness->has_age) +
                        at_least_zero(response_at.steady_s - request_at.steady_s);
    freshness->initial_age_s = apparent > corrected ? apparent : corrected;
    freshness->no_cache = control->no_cache || control->no_cache_fields;
    if (!control->present && http_field_has_token(response, FIELD_PRAGMA, VIEW("no-cache")))
        freshness->no_cache = true; // undefined in responses; who sends it means this
    freshness->must_revalidate =
            control->must_revalidate || control->proxy_revalidate || control->s_maxage != DELTA_NONE;
}

int64_t freshness_age(const struct freshness *freshness, struct moment now) {
    return freshness->initial_age_s + at_least_zero(now.steady_s - freshness->response_at.steady_s);
}

// max-stale [§5.2.1.2]: how long past its lifetime the request would take it.
static bool stale_allowed(
        const struct freshness *freshness, const struct cache_control *request, int64_t overdue_s) {
    if (freshness->must_revalidate)
        return false;
    return request->max_stale_any || (request->max_stale >= 0 && overdue_s <= request->max_stale);
}

bool freshness_usable(const struct freshness *freshness, const struct cache_control *request,
        struct moment now, const char **reason) {
    int64_t age = freshness_age(freshness, now), left = freshness->lifetime_s - age;
    if (freshness->no_cache)
        return *reason = "no-cache", false;
    if (request->no_cache)
        return *reason = "request-no-cache", false;
    if (request->max_age != DELTA_NONE && age > at_least_zero(request->max_age))
        return *reason = "request-max-age", false;
    if (request->min_fresh >= 0 && left < request->min_fresh)
        return *reason = "request-min-fresh", false;
    if (left > 0)
        return *reason = "fresh", true;
    if (stale_allowed(freshness, request, -left))
        return *reason = "stale-allowed", true;
    return *reason = "expired", false;
}
