#include "cache/penalty.h"

#include <math.h>

#define DAY_S 86400.0
#define DIGITS_MAX 9

// ---- reading ----

// The digits at the start of `text`, taken off it; how many there were.
static unsigned take_digits(struct view *text, double *number) {
    unsigned count = 0;
    for (; text->length && text->data[0] >= '0' && text->data[0] <= '9'; *text = view_skip(*text, 1)) {
        *number = *number * 10 + (text->data[0] - '0');
        count++;
    }
    return count;
}

static bool read_number(struct view text, double *number) {
    double whole = 0, fraction = 0;
    unsigned digits = take_digits(&text, &whole), decimals = 0;
    bool has_point = view_starts(text, VIEW("."));
    if (has_point) {
        text = view_skip(text, 1);
        decimals = take_digits(&text, &fraction);
    }
    *number = whole + fraction / pow(10, decimals);
    return text.length == 0 && digits <= DIGITS_MAX && decimals <= DIGITS_MAX && digits + decimals > 0 &&
           (!has_point || decimals > 0);
}

static bool read_sign(struct view text, enum penalty_sign *sign) {
    static const char signs[] = {[PENALTY_ADD] = '+',
            [PENALTY_SUBTRACT] = '-',
            [PENALTY_MULTIPLY] = '*',
            [PENALTY_DIVIDE] = '/',
            [PENALTY_DROP_AT] = '='};
    for (unsigned i = 0; text.length && i < sizeof signs; i++)
        if (text.data[0] == signs[i]) {
            *sign = (enum penalty_sign)i;
            return true;
        }
    return false;
}

const char *penalty_action_read(struct view text, struct penalty_action *action) {
    if (!read_sign(text, &action->sign) || !read_number(view_skip(text, 1), &action->number))
        return "write +N, -N, *N or /N for its age in days, or =N for the age at which it is dropped";
    if (action->sign == PENALTY_DIVIDE && action->number == 0)
        return "nothing can be divided by 0";
    return NULL;
}

bool penalty_action_is_bonus(const struct penalty_action *action) {
    switch (action->sign) {
    case PENALTY_SUBTRACT:
        return action->number > 0;
    case PENALTY_MULTIPLY:
        return action->number < 1;
    case PENALTY_DIVIDE:
        return action->number > 1;
    case PENALTY_ADD:
    case PENALTY_DROP_AT:
        break;
    }
    return false;
}

// ---- ages ----

// `times` times in a row. An age is never below 0, and infinite once it is to be dropped.
static double apply_often(double days, const struct penalty_action *action, double times) {
    double number = action->number;
    if (times == 0 || isinf(days))
        return days;
    switch (action->sign) {
    case PENALTY_ADD:
        return days + number * times;
    case PENALTY_SUBTRACT:
        return fmax(days - number * times, 0);
    case PENALTY_MULTIPLY: // 0 x infinity is 0
        return days == 0 || number == 0 ? 0 : days * pow(number, times);
    case PENALTY_DIVIDE: // by less than one often enough, 0 would become nothing at all
        return days == 0 ? 0 : days / pow(number, times);
    case PENALTY_DROP_AT:
        return days >= number ? INFINITY : days;
    }
    return days;
}

static double apply(double days, const struct penalty_action *action) {
    return apply_often(days, action, 1);
}

static double apply_size(double days, const struct penalties *penalties, int64_t body_bytes) {
    const struct penalty_size *large = &penalties->large, *small = &penalties->small;
    if (body_bytes < 0)
        return days;
    uint64_t bytes = (uint64_t)body_bytes;
    if (large->is_set && bytes > large->bytes) {
        uint64_t steps = large->step ? (bytes - large->bytes - 1) / large->step : 0;
        return apply_often(apply(days, &large->action), &large->step_action, (double)steps);
    }
    if (small->is_set && bytes <= small->bytes) {
        uint64_t below = small->bytes - bytes;
        uint64_t steps = small->step ? below / small->step + (below % small->step != 0) : 0;
        return apply_often(apply(days, &small->action), &small->step_action, (double)steps);
    }
    return days;
}

static const struct penalty_action *kind_of(
        const struct penalties *penalties, const struct penalty_facts *facts) {
    if (facts->status >= 400)
        return &penalties->negative_cached;
    if (facts->has_explicit_lifetime && facts->is_expired)
        return facts->has_validator ? &penalties->expired_but_checkable : &penalties->expired;
    if (facts->is_redirect)
        return &penalties->redirect;
    return facts->has_validator ? NULL : &penalties->not_checkable;
}

double penalty_age(const struct penalties *penalties, const struct penalty_facts *facts, double age_s) {
    double days = apply_size(age_s / DAY_S, penalties, facts->body_bytes);
    const struct penalty_action *action = kind_of(penalties, facts);
    if (action)
        days = apply(days, action);
    action = penalties->find_mask ? penalties->find_mask(penalties->context, facts->authority, facts->path)
                                  : NULL;
    return action ? apply(days, action) : days;
}

// ---- verdicts ----

enum penalty_verdict penalty_judge(
        const struct penalties *penalties, const struct penalty_facts *facts, unsigned hits, bool is_new) {
    double unused_s = facts->age_s > 0 ? (double)facts->age_s : 1;
    double days = penalty_age(penalties, facts, unused_s / (hits + 1));
    if (isinf(days) || (penalties->reference_days > 0 && days >= penalties->reference_days))
        return PENALTY_DROP;
    return days < unused_s / DAY_S && (hits > 0 || is_new) ? PENALTY_KEEP : PENALTY_PASS;
}

void penalty_facts_of(struct penalty_facts *facts, const struct stored_head *head, int64_t body_length,
        struct view authority, struct view path, const struct refresh_rule *rule, struct moment now) {
    const struct freshness *freshness = &head->freshness;
    *facts = (struct penalty_facts){
            .status = head->http.status,
            .body_bytes = body_length,
            .has_explicit_lifetime = freshness->is_explicit,
            .is_expired = freshness_age(freshness, now) >= freshness_lifetime(freshness, rule),
            .has_validator = http_field_find(&head->http, FIELD_ETAG, 0) != NULL ||
                             http_field_find(&head->http, FIELD_LAST_MODIFIED, 0) != NULL,
            .is_redirect = freshness->is_redirect,
            .age_s = now.steady_s - freshness->response_at.steady_s,
            .authority = authority,
            .path = path,
    };
}
