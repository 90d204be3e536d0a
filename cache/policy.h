// Which requests the store looks at and which responses it keeps, [RFC 9111 §3, §5.2]. Pure.
#pragma once

#include "cache/cache.h"
#include "cache/freshness.h"

struct cache_request { // what the store needs to know of a request
    struct cache_control control;
    bool is_get; // else it is HEAD, when it may be looked up at all
    bool has_range;
    bool has_condition; // one that only the origin could answer on a miss
    bool has_modified_since;
    bool has_authorization;
};

// False: not for the store, and `*reason` says why: "method", "not-allowed",
// "for-the-origin".
bool policy_read_request(
        const struct http_head *head, bool store_allowed, struct cache_request *request, const char **reason);

// freshness_use() for this request; "refresh-ims" besides. The rule may be NULL.
enum use policy_use(const struct cache_request *request, const struct freshness *freshness,
        const struct refresh_rule *rule, struct moment now, const char **reason);

struct policy_limits {
    uint64_t minimum_bytes, maximum_bytes; // of a body
};

struct policy_verdict {
    bool is_storable;
    bool is_general; // when not: another request for the same URL would most likely fare the same
    const char *reason;
};

// `request` is the one that was sent (GET). `vary_is_known`: vary_names() could read it. response->rules may
// be NULL. Storable: "stored", or the word of the refresh option (rules_option) without which it were not.
// Not: "no-store", "not-understood", "private", "status" (not final, never stored by its own standard, or
// neither explicit nor heuristic freshness), "partial", "set-cookie", "response-rule", "vary-any", "no-cache"
// and "no-lifetime" (nothing it could be used for), "too-large", "too-small", "authorization",
// "not-modified".
struct policy_verdict policy_storable(const struct http_head *request, const struct cache_response *response,
        const struct cache_control *control, const struct freshness *freshness, bool vary_is_known,
        const struct policy_limits *limits);

// Whether the answer to a POST may be kept as that to a later GET of its target, policy_storable()
// permitting: explicit freshness, and a Content-Location that is the target [RFC 9110 §9.3.3]. `authority`
// and `path` as in struct cache_query.
bool policy_post(const struct http_head *response, const struct freshness *freshness, struct view authority,
        struct view path);

#define POLICY_ETAG_BYTES 4096 // longer ones are not asked about

// The entity tag that the origin can be asked about, NULL when there is none.
const struct http_field *policy_etag(const struct http_head *response);
// That, or a readable Last-Modified: it can be confirmed.
bool policy_has_validator(const struct http_head *response);

// A status that tells of the origin's trouble, not of the resource.
bool policy_is_trouble(int status);
// Whether such an answer leaves in place what is stored: it does, unless it says how long it holds itself.
bool policy_keeps_stored(int status, const struct freshness *freshness);
