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

// PARSE_DONE or PARSE_BAD, never PARSE_MORE. Refused: Transfer-Encoding with Content-Length, with HTTP/1.0,
// not ending in chunked, chunked twice, or with another coding (501 for a request); Content-Length that is
// not digits alone, overflows, or differs between lines or list members (equal repeats become one).
enum parse framing_of_request(
        const struct http_head *head, struct framing *framing, struct http_error *error);

// `method` is the request's. HEAD, 1xx, 204, 304 and a 2xx to CONNECT have no body. For responses an
// unambiguous framing is as strict: Transfer-Encoding together with Content-Length is PARSE_BAD.
enum parse framing_of_response(const struct http_head *head, enum method_id method, struct framing *framing,
        struct http_error *error);
