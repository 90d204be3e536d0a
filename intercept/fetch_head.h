// The heads a fetch writes: the request to the origin, and interim responses to the client.
#pragma once

#include "intercept/session.h"

// The request as it goes to the origin, in one heap block. NULL without memory.
char *fetch_head_compose(struct session *session, const struct cache_fill *fill, size_t *length);

// Appends a 1xx head to the client's `out` (hop-by-hop fields left out; for 101 Upgrade and Connection stay).
// False when it does not fit: an interim response may be dropped [RFC 9110 §15.2 lets a client miss it], a
// 101 may not.
bool fetch_head_interim(struct session *session, const struct http_head *head);
