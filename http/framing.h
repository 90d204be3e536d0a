// Where a message ends, [RFC 9112 §6]: one unambiguous answer or an error.
#pragma once

#include "http/head.h"

enum framing_kind {
    FRAMING_NONE,    // no body
    FRAMING_LENGTH,  // exactly `length` bytes
    FRAMING_CHUNKED, // chunked, until the last chunk
    FRAMING_CLOSE,   // responses: until the sender closes
};

struct framing {
    enum framing_kind kind;
    uint64_t length; // FRAMING_LENGTH
};

static inline bool framing_is_empty(const struct framing *framing) { // nothing will follow the head
    return framing->kind == FRAMING_NONE || (framing->kind == FRAMING_LENGTH && framing->length == 0);
}

// PARSE_DONE or PARSE_BAD, never PARSE_MORE. Refused: Transfer-Encoding with Content-Length, with HTTP/1.0,
// not ending in chunked (400 even when the coding is unknown), chunked twice or with parameters, an empty
// member, or another coding before chunked (501 for a request); Content-Length that is not digits alone, is
// above INT64_MAX, or differs between lines or list members. Equal repeats become one: forward
// `framing.length`, never the field as it came.
enum parse framing_of_request(
        const struct http_head *head, struct framing *framing, struct http_error *error);

// `method` is the request's. HEAD, 1xx, 204, 304 and a 2xx to CONNECT have no body. For responses an
// unambiguous framing is as strict: Transfer-Encoding together with Content-Length is PARSE_BAD, in a
// response without a body too. `error` has status 502.
enum parse framing_of_response(const struct http_head *head, enum method_id method, struct framing *framing,
        struct http_error *error);

// The number that all Content-Length fields agree on, -1 when there is none; it says something about a
// response to HEAD and a 304 as well. False when they are malformed or differ.
bool framing_content_length(const struct http_head *head, int64_t *length);
