// Which requests the store looks at and which responses it keeps, [RFC 9111 §3, §5.2]. Pure.
#pragma once

#include "cache/cache.h"
#include "cache/freshness.h"

struct cache_request { // what the store needs to know of a request
    struct cache_control control;
    bool is_get; // else it is HEAD, when it may be looked up at all
    bool has_range;
    bool has_condition; // one that only the origin could answer on a miss
    bool has_authorization;
};

// False: not for the store, and `*reason` says why: "method", "not-allowed", "no-store".
bool policy_read_request(
        const struct http_head *head, bool store_allowed, struct cache_request *request, const char **reason);

struct policy_limits {
    uint64_t minimum_bytes, maximum_bytes; // of a body
};

struct policy_verdict {
    bool is_storable;
    bool is_general; // when not: another request for the same URL would most likely fare the same
    const char *reason;
};

// `request` is the one that was sent (GET). `vary_is_known`: vary_names() could read it.
struct policy_verdict policy_storable(const struct http_head *request, const struct cache_response *response,
        const struct cache_control *control, const struct freshness *freshness, bool vary_is_known,
        const struct policy_limits *limits);

// ETag or a readable Last-Modified: it can be confirmed.
bool policy_has_validator(const struct http_head *response);

// An answer that tells of the origin's trouble, not of the resource: it replaces nothing that is stored.
bool policy_is_trouble(int status);
