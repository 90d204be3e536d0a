// Message heads: the request line or status line and the field section, [RFC 9112 §2-5]. Strict where
// looseness is an attack: bare CR or LF, NUL, folded fields, blanks before the colon and empty names are
// refused.
#pragma once

#include "admin/view.h"

#include <stdbool.h>
#include <stdint.h>

enum parse {
    PARSE_MORE, // a head that is not whole yet
    PARSE_DONE,
    PARSE_BAD,
};

enum method_id { // other methods are METHOD_OTHER and are relayed [RFC 9110 §9]
    METHOD_OTHER,
    METHOD_GET,
    METHOD_HEAD,
    METHOD_POST,
    METHOD_PUT,
    METHOD_DELETE,
    METHOD_CONNECT,
    METHOD_OPTIONS,
    METHOD_TRACE,
    METHOD_PATCH,
};

enum field_id {
    FIELD_OTHER,
#define FIELD(id, name, flags) FIELD_##id,
#include "http/field.tbl"
    FIELD_COUNT
};

struct http_field {
    struct view name;  // as sent
    struct view value; // without OWS at both ends; obs-text is kept
    enum field_id id;
    bool hop; // hop-by-hop: by its name, or nominated by Connection [RFC 9110 §7.6.1]; the fields of
              // field.tbl that are end to end cannot be nominated
};

#define HTTP_FIELDS_MAX 1024 // the largest `fields` limit a configuration may set
#define HTTP_METHOD_BYTES 32 // a longer method is refused with 501

struct http_limits {
    size_t head_bytes;   // start line and fields: 431 for a request, a bad gateway for a response
    size_t target_bytes; // 414
    unsigned fields;     // 431; at most the capacity of the head below
};

// A parsed head. Every view points into the parsed bytes: the head is valid as long as they stand still.
struct http_head {
    struct view method; // requests
    struct view target;
    enum method_id method_id;
    int status; // responses: 100 to 599, 600-999 are taken as they are
    struct view reason;
    int minor_version;  // 0 or 1; HTTP/1.2 and above are taken as 1 [RFC 9110 §2.5]
    size_t head_length; // bytes from the first one parsed to the end of the empty line (skipped leading CRLFs
                        // too)
    unsigned field_count;
    unsigned field_capacity;
    struct http_field *fields; // caller's array
};

struct http_error {
    int status;      // what a client would be told: 400, 414, 431, 501, 505; 502 for what a response did
    const char *why; // a static sentence
};

// Parses the head at the start of `input`. At most two empty lines (CRLF) before a request line are skipped.
// `head->fields` and `field_capacity` are set by the caller; everything else is written. PARSE_BAD fills
// `error`. PARSE_MORE is never returned once `input` holds more than the limits allow. A caller that keeps
// reading into one buffer may pass the length that was already seen without an end, to make repeated calls
// linear: `seen`, 0 at first. Such a call looks at whole new lines only; too many fields are then told at the
// latest with the head's end or `head_bytes`. A request line may have a method, a target and a version of
// their longest, no more: 414. Also refused: a Connection field with more than CONNECTION_OPTIONS_MAX
// options.
enum parse http_parse_request(struct view input, size_t seen, const struct http_limits *limits,
        struct http_head *head, struct http_error *error);
enum parse http_parse_response(struct view input, size_t seen, const struct http_limits *limits,
        struct http_head *head, struct http_error *error);

enum field_id http_field_id(struct view name);
enum method_id http_method_id(struct view name); // exactly: "get" is METHOD_OTHER

// The first field with this id at or after index `from`; NULL when there is none.
const struct http_field *http_field_find(const struct http_head *head, enum field_id id, unsigned from);
unsigned http_field_total(const struct http_head *head, enum field_id id);

// Whether a comma list over all lines of this field has `token` (case folded, quoted strings skipped).
bool http_field_has_token(const struct http_head *head, enum field_id id, struct view token);

// Whether the sender wants the connection kept: [RFC 9112 §9.3] (Proxy-Connection is not looked at).
bool http_keeps_alive(const struct http_head *head);
// Upgrade in HTTP/1.1, nominated by Connection; not to HTTP/2, which would leave our sight [RFC 9110 §7.8].
bool http_asks_for_upgrade(const struct http_head *head);

// What are the first bytes of an intercepted connection?
enum sniff {
    SNIFF_MORE,  // cannot tell yet
    SNIFF_HTTP,  // an HTTP/1 request line, good or bad: parse it
    SNIFF_OTHER, // TLS, SSH, HTTP/2 preface, anything else: relay it untouched
};
// HTTP when the first line (leading CRLF and blanks aside) has " HTTP/1." or " HTTP/0." or any " HTTP/" other
// than the HTTP/2 preface, or starts with a known method and a blank. Bounded: never SNIFF_MORE above
// `target_bytes` bytes
// + 256.
enum sniff http_sniff(struct view input, size_t target_bytes);

bool http_method_is_safe(enum method_id method);       // [RFC 9110 §9.2.1]
bool http_method_is_idempotent(enum method_id method); // [RFC 9110 §9.2.2]
