// How long a response may be used, and whether a request may have it now, [RFC 9111 §4.2, §5.2], [RFC 5861],
// [RFC 8246]. Pure: time is an argument. All sums saturate far below what an int64_t holds: a date is within
// 0...9999, an Age within DELTA_MAXIMUM.
#pragma once

#include "admin/clock.h"
#include "cache/rules.h"
#include "http/cache_control.h"
#include "http/head.h"

#include <stdbool.h>
#include <stdint.h>

#define FRESHNESS_HEURISTIC_MAXIMUM_S (7 * 24 * 3600) // of the tenth of Last-Modified's age [§4.2.2]

// What is kept of a response's head for deciding about its use. Seconds.
struct freshness {
    int64_t lifetime_s; // by the standards alone, freshness_lifetime() without a rule; 0: stale on arrival
    int64_t explicit_s; // what s-maxage, max-age or Expires said; 0 when it cannot be read
    int64_t modified_age_s;    // from Last-Modified to Date; 0 when there is none, or it is not before Date
    struct moment response_at; // when it arrived, or was last confirmed
    int64_t initial_age_s;     // corrected_initial_age [§4.2.3]
    int64_t date_s;            // Date, else when it arrived
    int64_t while_revalidate_s, if_error_s; // stale-while-revalidate, stale-if-error; -1: not said
    bool has_date;                          // a Date that can be read, and no other one
    bool has_age;                           // the response came with an Age that can be read
    bool is_explicit;                       // s-maxage, max-age or Expires is there, readable or not
    bool is_heuristic;    // a heuristic lifetime is allowed: by its status, or it is public [§4.2.2]
    bool is_redirect;     // 301, 302, 303, 307, 308
    bool is_immutable;    // [RFC 8246]
    bool no_cache;        // confirm before every use [§5.2.2.4]
    bool must_revalidate; // never stale, whatever the request says [§5.2.2.2, §5.2.2.8, §5.2.2.10]
};

// A shared cache's reading of a response head. `control` is the response's.
void freshness_of(struct freshness *freshness, const struct http_head *response,
        const struct cache_control *control, struct moment request_at, struct moment response_at);

// current_age [§4.2.3]; the wall clock may have been set meanwhile.
int64_t freshness_age(const struct freshness *freshness, struct moment now);

// freshness_lifetime [§4.2.1], with the rule in force now (NULL: none). An option that lengthens it past an
// explicit or heuristic end does not do so for a response that must be revalidated.
int64_t freshness_lifetime(const struct freshness *freshness, const struct refresh_rule *rule);

enum use {
    USE_FRESH,   // as it is
    USE_STALE,   // past its lifetime, and the request accepts that
    USE_REFRESH, // past its lifetime: use it, and ask the origin meanwhile [RFC 5861 §3]
    USE_NOT,     // confirm it first
};

// Whether a request with this Cache-Control may have the response unconfirmed. `rule` may be NULL. `*reason`
// is a static word:
//   USE_FRESH    "fresh", "immutable", "ignore-reload", "reload", "override-expire", "override-lastmod",
//                "expire"
//   USE_STALE    "max-stale"
//   USE_REFRESH  "stale-while-revalidate"
//   USE_NOT      "expired", "no-cache", "request-no-cache", "request-max-age", "request-min-fresh",
//                "reload-into-ims"
// What a rule changed is said by its option's word (rules_option); "reload" and "expire" are Smart Cache's.
enum use freshness_use(const struct freshness *freshness, const struct cache_control *request,
        const struct refresh_rule *rule, struct moment now, const char **reason);

enum freshness_trouble {    // why the origin's own answer is not to be had
    FRESHNESS_ERROR,        // it says 500, 502, 503 or 504 [RFC 5861 §4]
    FRESHNESS_DISCONNECTED, // it cannot be reached, or broke off [RFC 9111 §4.2.4]
};

// Whether the response, which was to be confirmed, may stand in for the origin's answer. `*reason`:
// "stale-if-error", "disconnected", "refresh-max-stale" (the rule's max-stale= allows it), "fresh" (only the
// request wanted it confirmed); or when it may not: "no-cache", "must-revalidate", "request-no-cache",
// "expired", "refresh-max-stale" (too old for the rule).
bool freshness_on_error(const struct freshness *freshness, const struct cache_control *request,
        const struct refresh_rule *rule, struct moment now, enum freshness_trouble trouble,
        const char **reason);
bool freshness_status_is_error(int status); // what FRESHNESS_ERROR means
