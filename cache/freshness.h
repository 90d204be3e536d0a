// How long a response may be used, and whether a request may have it now, [RFC 9111 §4.2, §5.2]. Pure: time
// is an argument.
#pragma once

#include "admin/clock.h"
#include "http/cache_control.h"
#include "http/head.h"

#include <stdbool.h>
#include <stdint.h>

#define FRESHNESS_HEURISTIC_MAXIMUM_S (7 * 24 * 3600) // of the tenth of Last-Modified's age [§4.2.2]

// What is kept of a response's head for deciding about its use. Seconds.
struct freshness {
    int64_t lifetime_s;        // 0: stale on arrival
    struct moment response_at; // when it arrived, or was last confirmed
    int64_t initial_age_s;     // corrected_initial_age [§4.2.3]
    int64_t date_s;            // Date, else when it arrived
    bool has_date;             // a Date that can be read
    bool has_age;              // the response came with Age
    bool is_explicit;          // s-maxage, max-age or Expires said so
    bool no_cache;             // confirm before every use [§5.2.2.4]
    bool must_revalidate;      // never stale, whatever the request says [§5.2.2.2, §5.2.2.8, §5.2.2.10]
};

// A shared cache's reading of a response head. `control` is the response's.
void freshness_of(struct freshness *freshness, const struct http_head *response,
        const struct cache_control *control, struct moment request_at, struct moment response_at);

// current_age [§4.2.3]; the wall clock may have been set meanwhile.
int64_t freshness_age(const struct freshness *freshness, struct moment now);

// Whether a request with this Cache-Control may have the response unconfirmed. `*reason`: "fresh",
// "stale-allowed"; or "expired", "no-cache", "request-no-cache", "request-max-age", "request-min-fresh".
bool freshness_usable(const struct freshness *freshness, const struct cache_control *request,
        struct moment now, const char **reason);

// Statuses that may be given a heuristic lifetime [RFC 9110 §15.1], 206 aside, which is never stored.
bool freshness_status_heuristic(int status);
