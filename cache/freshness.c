#include "cache/freshness.h"

#include "http/date.h"

// Those that may be given a heuristic lifetime [RFC 9110 §15.1].
static bool is_heuristic(int status) {
    switch (status) {
    case 200:
    case 203:
    case 204:
    case 206:
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

bool freshness_status_is_error(int status) {
    return status == 500 || (status >= 502 && status <= 504);
}

static bool is_redirect(int status) {
    return (status >= 301 && status <= 303) || status == 307 || status == 308;
}

static int64_t at_least_zero(int64_t value) {
    return value > 0 ? value : 0;
}

static int64_t lesser(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// ---- what a response says ----

// -1 without a date that can be read, and when several lines say different things: all of them are singletons
// [RFC 9110 §5.3], and one said twice contradicts nothing.
static int64_t date_field(const struct http_head *head, enum field_id id, int64_t now_s) {
    const struct http_field *field = http_field_find(head, id, 0);
    int64_t date_s = field ? date_parse(field->value, now_s) : -1;
    while (field && (field = http_field_find(head, id, (unsigned)(field - head->fields) + 1)))
        if (date_parse(field->value, now_s) != date_s)
            return -1;
    return date_s;
}

// The first member counts, and one that is no number is ignored [RFC 9111 §5.1].
static int64_t age_field(const struct http_head *head, bool *present) {
    const struct http_field *field = http_field_find(head, FIELD_AGE, 0);
    int64_t age = DELTA_INVALID;
    if (field)
        age = cache_control_delta(view_trim(view_take(field->value, view_find(field->value, ','))));
    *present = age >= 0;
    return at_least_zero(age);
}

// [§4.2.1], the first that is there: s-maxage, max-age, Expires; an unreadable one means stale.
static bool read_explicit(const struct http_head *head, const struct cache_control *control, int64_t date_s,
        int64_t *lifetime_s) {
    *lifetime_s = 0;
    if (control->s_maxage != DELTA_NONE)
        *lifetime_s = at_least_zero(control->s_maxage);
    else if (control->max_age != DELTA_NONE)
        *lifetime_s = at_least_zero(control->max_age);
    else if (http_field_find(head, FIELD_EXPIRES, 0))
        *lifetime_s = at_least_zero(date_field(head, FIELD_EXPIRES, date_s) - date_s);
    else
        return false;
    return true;
}

static void read_age(
        struct freshness *freshness, const struct http_head *response, struct moment request_at) {
    struct moment at = freshness->response_at;
    int64_t apparent = at_least_zero(at.wall_s - freshness->date_s);
    int64_t corrected =
            age_field(response, &freshness->has_age) + at_least_zero(at.steady_s - request_at.steady_s);
    freshness->initial_age_s = apparent > corrected ? apparent : corrected;
}

static void read_lifetime(
        struct freshness *freshness, const struct http_head *response, const struct cache_control *control) {
    int64_t modified_s = date_field(response, FIELD_LAST_MODIFIED, freshness->date_s);
    freshness->is_explicit = read_explicit(response, control, freshness->date_s, &freshness->explicit_s);
    freshness->modified_age_s = modified_s < 0 ? 0 : at_least_zero(freshness->date_s - modified_s);
    freshness->is_heuristic = is_heuristic(response->status) || control->is_public;
    freshness->is_redirect = is_redirect(response->status);
    freshness->lifetime_s = freshness_lifetime(freshness, NULL);
}

void freshness_of(struct freshness *freshness, const struct http_head *response,
        const struct cache_control *control, struct moment request_at, struct moment response_at) {
    *freshness = (struct freshness){.response_at = response_at,
            .while_revalidate_s = control->stale_while_revalidate,
            .if_error_s = control->stale_if_error,
            .is_immutable = control->immutable,
            .no_cache = control->no_cache};
    int64_t date_s = date_field(response, FIELD_DATE, response_at.wall_s);
    freshness->has_date = date_s >= 0;
    freshness->date_s = freshness->has_date ? date_s : response_at.wall_s;
    read_age(freshness, response, request_at);
    read_lifetime(freshness, response, control);
    if (!control->present && http_field_has_token(response, FIELD_PRAGMA, VIEW("no-cache")))
        freshness->no_cache = true; // undefined in responses [§5.4]; who sends it means this
    freshness->must_revalidate =
            control->must_revalidate || control->proxy_revalidate || control->s_maxage != DELTA_NONE;
}

int64_t freshness_age(const struct freshness *freshness, struct moment now) {
    return freshness->initial_age_s + at_least_zero(now.steady_s - freshness->response_at.steady_s);
}

// ---- the lifetime ----

struct lifetime {
    int64_t plain_s; // without the options of a rule that lengthen it
    int64_t whole_s;
    const char *word; // of the option that made the difference
};

static void lengthen(struct lifetime *lifetime, int64_t least_s, const char *word) {
    if (lifetime->whole_s < least_s) {
        lifetime->whole_s = least_s;
        lifetime->word = word;
    }
}

// PERCENT of Last-Modified's age, up to MAX.
static int64_t share_of(int64_t modified_age_s, const struct refresh_rule *rule) {
    int64_t product;
    if (__builtin_mul_overflow(modified_age_s, (int64_t)rule->percent, &product))
        return rule->max_s;
    return lesser(product / 100, rule->max_s);
}

static struct lifetime plain(int64_t seconds) {
    return (struct lifetime){seconds, seconds, "fresh"};
}

static struct lifetime explicit_lifetime(const struct freshness *freshness, const struct refresh_rule *rule) {
    struct lifetime lifetime = plain(freshness->explicit_s);
    if (rule && !freshness->must_revalidate) {
        if (rule->options[REFRESH_OPTION_override_expire])
            lengthen(&lifetime, rule->min_s, rules_option_word(REFRESH_OPTION_override_expire));
        lengthen(&lifetime, rule->expire_s, "expire");
    }
    return lifetime;
}

static struct lifetime heuristic_lifetime(
        const struct freshness *freshness, const struct refresh_rule *rule) {
    if (rule && freshness->is_redirect && rule->redirect_s >= 0)
        return plain(rule->redirect_s);
    if (!freshness->is_heuristic)
        return plain(0);
    if (!rule)
        return plain(lesser(freshness->modified_age_s / 10, FRESHNESS_HEURISTIC_MAXIMUM_S));
    if (freshness->modified_age_s == 0)
        return plain(lesser(rule->min_s, rule->max_s));
    struct lifetime lifetime = plain(share_of(freshness->modified_age_s, rule));
    if (rule->options[REFRESH_OPTION_override_lastmod] && !freshness->must_revalidate)
        lengthen(&lifetime, lesser(rule->min_s, rule->max_s),
                rules_option_word(REFRESH_OPTION_override_lastmod));
    return lifetime;
}

static struct lifetime lifetime_of(const struct freshness *freshness, const struct refresh_rule *rule) {
    return freshness->is_explicit ? explicit_lifetime(freshness, rule) : heuristic_lifetime(freshness, rule);
}

int64_t freshness_lifetime(const struct freshness *freshness, const struct refresh_rule *rule) {
    return lifetime_of(freshness, rule).whole_s;
}

// ---- the use ----

struct asked { // a request, beside a response
    const struct freshness *freshness;
    const struct cache_control *control;
    const struct refresh_rule *rule;
    struct lifetime lifetime;
    int64_t age_s;
    const char *word; // why a reload is none
};

static bool has_option(const struct refresh_rule *rule, enum refresh_option option) {
    return rule && rule->options[option];
}

static bool is_reload(const struct cache_control *control) {
    return control->no_cache || control->max_age == 0;
}

// A reload that a rule, or the response itself, lets pass as none: the word for it, else NULL.
static const char *reload_waived(const struct asked *asked) {
    const struct refresh_rule *rule = asked->rule;
    if (!is_reload(asked->control))
        return NULL;
    if (has_option(rule, REFRESH_OPTION_ignore_reload))
        return rules_option_word(REFRESH_OPTION_ignore_reload);
    if (rule && asked->age_s < rule->reload_s)
        return "reload";
    // [RFC 8246 §2]: only no-cache is a sign that the client really wants it confirmed
    if (!asked->control->no_cache && asked->freshness->is_immutable && asked->age_s < asked->lifetime.whole_s)
        return "immutable";
    return NULL;
}

// What the request wants newer than stored [§5.2.1.1, §5.2.1.4]: the word for it, else NULL.
static const char *reload_wanted(const struct asked *asked) {
    const struct cache_control *control = asked->control;
    const char *word = NULL;
    if (control->no_cache)
        word = "request-no-cache";
    else if (control->max_age != DELTA_NONE && asked->age_s > at_least_zero(control->max_age))
        word = "request-max-age";
    if (word && is_reload(control) && has_option(asked->rule, REFRESH_OPTION_reload_into_ims))
        return rules_option_word(REFRESH_OPTION_reload_into_ims);
    return word;
}

// max-stale [§5.2.1.2].
static bool accepts_stale(const struct cache_control *control, int64_t overdue_s) {
    return control->max_stale_any || overdue_s <= control->max_stale;
}

// Who asks for an age or a remainder does not want a stale response [§5.2.1.1, §5.2.1.3].
static bool minds_stale(const struct asked *asked) {
    bool has_age = asked->control->max_age != DELTA_NONE && !asked->word;
    return has_age || asked->control->min_fresh != DELTA_NONE;
}

static enum use use_stale(const struct asked *asked, const char **reason) {
    const struct freshness *freshness = asked->freshness;
    int64_t overdue_s = asked->age_s - asked->lifetime.whole_s;
    *reason = "expired";
    if (freshness->must_revalidate)
        return USE_NOT;
    bool is_accepted = accepts_stale(asked->control, overdue_s);
    if (overdue_s <= freshness->while_revalidate_s && (is_accepted || !minds_stale(asked)))
        return *reason = "stale-while-revalidate", USE_REFRESH;
    if (is_accepted)
        return *reason = "max-stale", USE_STALE;
    return USE_NOT;
}

enum use freshness_use(const struct freshness *freshness, const struct cache_control *request,
        const struct refresh_rule *rule, struct moment now, const char **reason) {
    struct asked asked = {.freshness = freshness,
            .control = request,
            .rule = rule,
            .lifetime = lifetime_of(freshness, rule),
            .age_s = freshness_age(freshness, now)};
    int64_t left_s = asked.lifetime.whole_s - asked.age_s;
    if (freshness->no_cache)
        return *reason = "no-cache", USE_NOT;
    asked.word = reload_waived(&asked);
    if (!asked.word && (*reason = reload_wanted(&asked)))
        return USE_NOT;
    // a remainder that cannot be read asks for more than there is
    if (request->min_fresh != DELTA_NONE && (request->min_fresh < 0 || left_s < request->min_fresh))
        return *reason = "request-min-fresh", USE_NOT;
    if (left_s <= 0)
        return use_stale(&asked, reason);
    *reason = asked.word ? asked.word : asked.age_s < asked.lifetime.plain_s ? "fresh" : asked.lifetime.word;
    return USE_FRESH;
}

bool freshness_on_error(const struct freshness *freshness, const struct cache_control *request,
        const struct refresh_rule *rule, struct moment now, enum freshness_trouble trouble,
        const char **reason) {
    int64_t overdue_s = freshness_age(freshness, now) - freshness_lifetime(freshness, rule);
    if (freshness->no_cache)
        return *reason = "no-cache", false;
    if (request->no_cache && !has_option(rule, REFRESH_OPTION_ignore_reload))
        return *reason = "request-no-cache", false;
    if (overdue_s < 0)
        return *reason = "fresh", true;
    if (freshness->must_revalidate)
        return *reason = "must-revalidate", false;
    if (rule && rule->max_stale_s >= 0)
        return *reason = "refresh-max-stale", overdue_s <= rule->max_stale_s;
    if (overdue_s <= freshness->if_error_s || overdue_s <= request->stale_if_error)
        return *reason = "stale-if-error", true;
    if (trouble == FRESHNESS_DISCONNECTED)
        return *reason = "disconnected", true;
    return *reason = "expired", false;
}
