// What the gateway's settings say about storing and using a URL's responses, beside the standards. Built by
// intercept/store_rules.c, read by the policy of this folder; all of it stays as it is while a query or a
// response points to it.
#pragma once

#include "admin/view.h"
#include "http/head.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum refresh_option {
#define REFRESH_OPTION(member, word, meaning) REFRESH_OPTION_##member,
#include "cache/refresh_option.tbl"
    REFRESH_OPTION_COUNT // also: none
};

// One refresh_pattern line. Its MIN, PERCENT and MAX stand in for the heuristic lifetime [RFC 9111 §4.2.2]
// where a response says nothing explicit: stale when older than MAX; else with a Last-Modified fresh while
// younger than PERCENT of its age at the arrival, without one while younger than MIN. Only of what may have a
// heuristic lifetime at all.
struct refresh_rule {
    int64_t min_s;
    int64_t max_s;
    unsigned percent;
    int64_t max_stale_s; // how long after expiry it may stand in for an origin that fails, in place of what
                         // the response and the request say of it; -1: not said
    bool options[REFRESH_OPTION_COUNT];
    // Smart Cache's, -1: not said
    int64_t reload_s;   // a reload of something younger is answered from the store
    int64_t expire_s;   // the least lifetime of what carries an explicit one
    int64_t redirect_s; // the lifetime of redirects without an explicit one
};

enum store_cookies {        // of responses with Set-Cookie [RFC 9111 §7.3]
    STORE_COOKIES_EXPLICIT, // stored when public, s-maxage or max-age says so
    STORE_COOKIES_SHARED,   // only when public or s-maxage does
    STORE_COOKIES_OFF,
};

// Smart Cache's pragma_no_cache: of which responses no-cache is not seen, Pragma's and Cache-Control's (there
// without field names) [RFC 9111 §5.2.2.4, §5.4]. no-store and private are other things.
enum no_cache_rule {
    NO_CACHE_OBEYED,
    NO_CACHE_IGNORED,
    NO_CACHE_IGNORED_OF_IMAGES,     // image/*
    NO_CACHE_IGNORED_BUT_TEXT,      // all but text/* and what has no Content-Type
    NO_CACHE_IGNORED_BUT_REDIRECTS, // all but what has a Location
};

// Which responses the admin wants stored, the standards permitting. The first that matches decides; none:
// stored.
struct response_rule {
    struct view type; // "image/png", "image/" for all of them, "": any; lower case
    int status;       // 0: any
    bool is_stored;
};

struct cache_rules {
    const struct refresh_rule *refresh; // NULL: no line matches this URL
    const struct response_rule *responses;
    size_t response_count;
    enum store_cookies cookies;
    enum no_cache_rule no_cache;
};

const char *rules_option_word(enum refresh_option option); // one of them, not the count
// The option that a decision's reason names: for counting what fires. REFRESH_OPTION_COUNT: none.
enum refresh_option rules_option(const char *reason);

// Whether `rules->responses` want a response of this status and Content-Type ("" without one) stored.
bool rules_store_response(const struct cache_rules *rules, int status, struct view content_type);

// Whether `rules` (NULL: none) have the no-cache of this response not seen.
bool rules_ignore_no_cache(const struct cache_rules *rules, const struct http_head *response);
