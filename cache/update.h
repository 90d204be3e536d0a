// Freshening a stored response with a 304, [RFC 9111 §3.2, §4.3.4]. Pure, the allocation aside.
#pragma once

#include "http/head.h"

// Whether the 304 speaks of the stored response: no validator in it contradicts.
bool update_matches(const struct http_head *stored, const struct http_head *not_modified);

// The stored head with the 304's fields in place of its own of the same names, those that describe the stored
// bytes (Content-Length, Content-Encoding, Content-Range) aside; without Date when the 304 has none. Views
// point into both; `merged->fields` is heap memory: free it.
void update_merge(
        struct http_head *merged, const struct http_head *stored, const struct http_head *not_modified);
