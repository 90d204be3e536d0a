// A response head as the store keeps it, and a request head as a fill remembers it: one allocation that
// points into nothing else and never changes.
#pragma once

#include "cache/freshness.h"
#include "http/head.h"

#include <stddef.h>

struct stored_head {
    struct http_head http;         // fields and text lie behind this struct
    const struct http_head *first; // NULL: none but `http`. What the client it was fetched for gets, and
                                   // nobody else: with the fields left out of `http`, behind the others
    struct freshness freshness;
    struct view vary, selectors; // cache/vary.h
    int64_t content_length;      // -1: not known in advance
    bool has_body;
    size_t bytes; // of the allocation
    struct http_field fields[];
};

struct stored_head_source {
    const struct http_head *head;
    const struct cache_control *control; // of `head`: what its private and no-cache name is left out
                                         // [RFC 9111 §5.2.2.4, §5.2.2.7]; NULL: nothing is
    int64_t date_s;                      // a Date to add, -1: none [RFC 9110 §6.6.1]
    struct view vary, selectors;
};

// A response: hop-by-hop fields, Content-Length, Transfer-Encoding and Age are left out. Freed with free().
struct stored_head *stored_head_new(const struct stored_head_source *source);

// A request, with all its fields.
struct stored_head *stored_head_new_request(const struct http_head *head);
