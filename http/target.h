// Request targets and authorities, [RFC 9112 §3.2], [RFC 3986 §3.2], [RFC 9110 §7.2].
#pragma once

#include "http/head.h"

enum target_form {
    TARGET_ORIGIN,    // "/path?query"
    TARGET_ABSOLUTE,  // "http://host:port/path?query"
    TARGET_AUTHORITY, // "host:port", CONNECT alone
    TARGET_ASTERISK,  // "*", OPTIONS alone
};

struct authority {
    struct view host; // as sent, IPv6 without its brackets
    uint16_t port;    // 0 when none was sent
    bool is_ipv6;     // was in brackets
};

struct http_target {
    enum target_form form;
    struct view scheme; // "http" (as sent, compared folded) for TARGET_ABSOLUTE, else empty
    struct authority
            authority; // the effective one: the target's, else Host's; empty host when neither has any
    struct view path;  // path and query, as sent; "/" when an absolute form has no path
};

// Reads the target and Host together. PARSE_BAD (400): no Host or several in HTTP/1.1, an invalid Host or
// target (userinfo, blanks, control bytes, fragments, ports out of range), an absolute form whose authority
// differs from Host (folded, port 80 the default), a form that does not go with the method, an absolute form
// with a query but no path (its origin form is no part of the bytes sent). 501 for a scheme other than http.
// CONNECT's target must have a port, and stands whatever Host says [RFC 9112 §3.2.2]. An empty Host is a
// valid one and names nothing.
enum parse target_of_request(
        const struct http_head *head, struct http_target *target, struct http_error *error);

// "host", "host:", "host:port", "[IPv6]:port". Host: labels of letters, digits, "-" and "_", one trailing
// dot, at most 255 bytes; no percent-encoding (a name spelt in two ways would get past a rule), no zone.
// False when it is empty or anything else.
bool authority_parse(struct view text, struct authority *authority);

// "host", "host:port" (port left out when 0 or 80), brackets round IPv6 in its shortest form, lower case, one
// trailing dot dropped. No NUL. Returns the length, or 0 when `out` is too small or the host is empty.
#define AUTHORITY_BYTES 264 // always enough
size_t authority_normalise(const struct authority *authority, char *out, size_t size);
