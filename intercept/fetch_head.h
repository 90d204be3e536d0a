// The heads a fetch writes: the request to the origin, and interim responses to the client.
#pragma once

#include "intercept/session.h"

struct fetch_head {
    char *data; // heap
    size_t length;
    size_t fields_at, fields_length; // where the store's own fields lie (cache_fill_fields)
};

// The request as it goes to the origin. `is_refresh`: for the store alone, a GET without the client's
// conditions and range. False without memory.
bool fetch_head_compose(
        struct session *session, const struct cache_fill *fill, bool is_refresh, struct fetch_head *head);
// Others in place of the store's own fields, which count as the client's from then on. False without memory.
bool fetch_head_replace(struct fetch_head *head, struct view fields);

// Appends a 1xx head to the client's `out` (hop-by-hop fields left out; for 101 Upgrade and Connection stay).
// False when it does not fit: an interim response may be dropped [RFC 9110 §15.2 lets a client miss it], a
// 101 may not.
bool fetch_head_interim(struct session *session, const struct http_head *head);
