// Our member of the Cache-Status response field, [RFC 9211 §2]. Pure.
//
// Only what is made of a stored or an origin's response carries one; weir's own pages do not [§2].
#pragma once

#include "admin/address.h"
#include "cache/cache.h"

#include <stdint.h>

struct cache_status {
    enum lookup lookup;
    enum cache_source source;
    const char *asked;                  // the lookup's reason
    const char *reason;                 // the access line's: why this response, or why it was not stored
    bool is_stored;                     // what the origin sent is being stored
    int origin_status;                  // of the origin's final response to this request; 0: none
    bool has_ttl;                       // a lifetime was worked out: stored, or on its way into the store
    int64_t ttl_s;                      // what is left of it; negative: stale for so long
    const struct endpoint *destination; // the scope under which it was looked up; NULL: it was not
};

#define CACHE_STATUS_BYTES 256 // a member is never longer

// "weir; hit; ttl=9" or "weir; fwd=stale; fwd-status=304; stored; ttl=60; key=\"192.0.2.1:80\"". Returns the
// length; no NUL. `detail` is left out where it would repeat what the others say.
size_t cache_status_compose(const struct cache_status *status, char out[static CACHE_STATUS_BYTES]);
