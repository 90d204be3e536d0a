// Cache-Control of a request or response, [RFC 9111 §5.2]. All lines together; quoted and token arguments
// alike.
#pragma once

#include "http/head.h"

#define DELTA_NONE (-1)            // the directive is not there
#define DELTA_INVALID (-2)         // there, with an argument that is no number: treat as stale (0)
#define DELTA_MAXIMUM 2147483648LL // larger ones saturate [RFC 9111 §1.2.2]

#define CACHE_CONTROL_NAMES_MAX 16 // fields that no-cache and private name; with more they mean the whole

struct cache_control {
    bool present; // any Cache-Control line at all
    bool no_store, no_cache, no_transform, only_if_cached, must_revalidate, proxy_revalidate, is_public,
            is_private, must_understand, immutable;
    bool no_cache_fields; // no-cache="field, field" [§5.2.2.4]: not the whole response
    bool private_fields;  // [§5.2.2.7]
    int64_t max_age, s_maxage, min_fresh, max_stale, stale_while_revalidate,
            stale_if_error; // seconds or DELTA_*
    bool max_stale_any;     // max-stale without an argument
    unsigned name_count;    // of the fields that no-cache and private name: no shared cache may keep them
    struct view names[CACHE_CONTROL_NAMES_MAX]; // into the head
};

void cache_control_parse(const struct http_head *head, struct cache_control *control);

// Whether the response must be kept without this field: its no-cache or private names it.
bool cache_control_leaves_out(const struct cache_control *control, struct view name);

// delta-seconds [§1.2.2]: digits alone, saturated at DELTA_MAXIMUM. DELTA_INVALID for anything else.
int64_t cache_control_delta(struct view digits);
