// Message heads for tests: parsed whole and byte by byte, from memory that ends at a page that cannot be
// read.
#pragma once

#include "http/head.h"

#define MESSAGE_FIELDS 64

struct message {
    struct http_head head;
    struct http_error error;
    struct http_field fields[MESSAGE_FIELDS];
};

extern const struct http_limits message_limits; // 2048 bytes, targets of 512, 40 fields

// A copy of `text` (at most 64 KiB) whose end is the end of readable memory. One of four places, taken in
// turns.
struct view message_guarded(struct view text);

// Parses a guarded copy, first byte by byte, then whole; fails the test when the two differ. The message's
// views stay good for three more calls.
enum parse message_request(struct message *message, struct view text, const struct http_limits *limits);
enum parse message_response(struct message *message, struct view text, const struct http_limits *limits);

// A head that must be good, without the checks: for tests of what comes after parsing.
const struct http_head *message_good_request(struct message *message, const char *text);
const struct http_head *message_good_response(struct message *message, const char *text);
