#include "cache/stale.h"

// Of the request alone: whether it asks for something younger than this, staleness aside.
static bool is_refused_by(const struct cache_control *request, int64_t age_s) {
    return request->no_cache || (request->max_age != DELTA_NONE && age_s > request->max_age) ||
           request->min_fresh >= 0;
}

static bool is_forbidden(const struct stored_head *head) {
    return head->freshness.no_cache || head->freshness.must_revalidate;
}

static int64_t overdue_s(const struct stored_head *head, struct moment now) {
    return freshness_age(&head->freshness, now) - head->freshness.lifetime_s;
}

bool stale_while_refreshing(
        const struct stored_head *head, const struct cache_control *request, struct moment now) {
    struct cache_control control;
    if (is_forbidden(head) || is_refused_by(request, freshness_age(&head->freshness, now)))
        return false;
    cache_control_parse(&head->http, &control);
    return control.stale_while_revalidate >= 0 && overdue_s(head, now) <= control.stale_while_revalidate;
}

bool stale_on_trouble(const struct stored_head *head, const struct cache_control *request, struct moment now,
        enum trouble trouble) {
    struct cache_control control;
    if (is_forbidden(head) || request->no_cache)
        return false;
    if (trouble == TROUBLE_DISCONNECTED)
        return true;
    cache_control_parse(&head->http, &control);
    int64_t allowed_s = control.stale_if_error > request->stale_if_error ? control.stale_if_error
                                                                         : request->stale_if_error;
    return allowed_s >= 0 && overdue_s(head, now) <= allowed_s;
}
