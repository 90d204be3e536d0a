#include "http/target.h"

#include "http/octet.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define HOST_BYTES 255
#define PORT_HTTP 80

static enum parse refuse(struct http_error *error, int status, const char *why) {
    *error = (struct http_error){status, why};
    return PARSE_BAD;
}

// inet_pton wants a NUL.
static bool read_ipv6(struct view text, struct in6_addr *address) {
    char copy[INET6_ADDRSTRLEN];
    if (text.length == 0 || text.length >= sizeof copy)
        return false;
    memcpy(copy, text.data, text.length);
    copy[text.length] = '\0';
    return strlen(copy) == text.length && inet_pton(AF_INET6, copy, address) == 1;
}

static struct view without_dot(struct view host) {
    if (host.length > 1 && host.data[host.length - 1] == '.')
        host.length--;
    return host;
}

static bool is_host(struct view host) {
    if (host.length == 0 || host.length > HOST_BYTES || octet_run(host, OCTET_HOST) != host.length)
        return false;
    host = without_dot(host);
    for (size_t i = 0, label = 0; i <= host.length; i++)
        if (i == host.length || host.data[i] == '.') {
            if (label == 0)
                return false;
            label = 0;
        } else {
            label++;
        }
    return true;
}

// ":" or ":port" or nothing.
static bool read_port(struct view text, uint16_t *port) {
    uint64_t number = 0;
    *port = 0;
    if (text.length <= 1)
        return text.length == 0 || text.data[0] == ':';
    if (text.data[0] != ':' || !view_number(view_skip(text, 1), &number) || number < 1 || number > 65535)
        return false;
    *port = (uint16_t)number;
    return true;
}

bool authority_parse(struct view text, struct authority *authority) {
    struct in6_addr address;
    *authority = (struct authority){.is_ipv6 = text.length > 0 && text.data[0] == '['};
    if (!authority->is_ipv6) {
        authority->host = view_take(text, view_find(text, ':'));
        return is_host(authority->host) &&
               read_port(view_skip(text, authority->host.length), &authority->port);
    }
    size_t end = view_find(text, ']');
    if (end == text.length)
        return false;
    authority->host = view_skip(view_take(text, end), 1);
    return read_ipv6(authority->host, &address) && read_port(view_skip(text, end + 1), &authority->port);
}

// Writes the host alone. Returns the length, 0 when it does not fit.
static size_t normalise_host(const struct authority *authority, char *out, size_t size) {
    struct view host = without_dot(authority->host);
    struct in6_addr address;
    char text[INET6_ADDRSTRLEN];
    if (authority->is_ipv6 && read_ipv6(host, &address)) {
        int length = snprintf(out, size, "[%s]", inet_ntop(AF_INET6, &address, text, sizeof text));
        return length > 0 && (size_t)length < size ? (size_t)length : 0;
    }
    if (host.length > size)
        return 0;
    for (size_t i = 0; i < host.length; i++)
        out[i] = view_lower(host.data[i]);
    return host.length;
}

size_t authority_normalise(const struct authority *authority, char *out, size_t size) {
    size_t length = normalise_host(authority, out, size);
    if (length == 0 || authority->port == 0 || authority->port == PORT_HTTP)
        return length;
    char port[8];
    size_t port_length = (size_t)snprintf(port, sizeof port, ":%u", authority->port);
    if (port_length > size - length)
        return 0;
    memcpy(out + length, port, port_length);
    return length + port_length;
}

static bool is_same(const struct authority *a, const struct authority *b) {
    char a_text[AUTHORITY_BYTES], b_text[AUTHORITY_BYTES];
    size_t a_length = authority_normalise(a, a_text, sizeof a_text);
    size_t b_length = authority_normalise(b, b_text, sizeof b_text);
    return a_length > 0 && a_length == b_length && memcmp(a_text, b_text, a_length) == 0;
}

// Host's authority, empty when Host is empty or (HTTP/1.0) absent.
static enum parse read_host(
        const struct http_head *head, struct authority *authority, struct http_error *error) {
    unsigned total = http_field_total(head, FIELD_HOST);
    *authority = (struct authority){.host = VIEW("")};
    if (total > 1)
        return refuse(error, 400, "several Host fields");
    if (total == 0)
        return head->minor_version == 0 ? PARSE_DONE : refuse(error, 400, "no Host field");
    struct view value = http_field_find(head, FIELD_HOST, 0)->value;
    if (value.length > 0 && !authority_parse(value, authority))
        return refuse(error, 400, "an invalid Host field");
    return PARSE_DONE;
}

static bool is_letter(char byte) {
    return view_lower(byte) >= 'a' && view_lower(byte) <= 'z';
}

// ALPHA *( ALPHA / DIGIT / "+" / "-" / "." ) [RFC 3986 §3.1]; 0 when there is none.
static size_t scheme_length(struct view text) {
    size_t length = 0;
    if (text.length == 0 || !is_letter(text.data[0]))
        return 0;
    while (length < text.length && text.data[length] != '_' &&
            (octet_is(text.data[length], OCTET_HOST) || text.data[length] == '+'))
        length++;
    return length;
}

// scheme "://" authority [ path ] [ "?" query ].
static enum parse read_absolute(const struct authority *host, struct http_target *target, struct view text,
        struct http_error *error) {
    struct view rest = view_skip(text, scheme_length(text));
    target->form = TARGET_ABSOLUTE;
    target->scheme = view_take(text, text.length - rest.length);
    if (target->scheme.length == 0 || !view_starts(rest, VIEW(":")))
        return refuse(error, 400, "a malformed request target");
    if (!view_equal_fold(target->scheme, VIEW("http")))
        return refuse(error, 501, "a scheme other than http");
    if (!view_starts(rest, VIEW("://")))
        return refuse(error, 400, "a malformed request target");
    rest = view_skip(rest, 3);
    size_t length = 0;
    while (length < rest.length && rest.data[length] != '/' && rest.data[length] != '?')
        length++;
    if (!authority_parse(view_take(rest, length), &target->authority))
        return refuse(error, 400, "an invalid authority in the request target");
    target->path = length == rest.length ? VIEW("/") : view_skip(rest, length);
    if (target->path.data[0] == '?')
        return refuse(error, 400, "a request target with a query and no path");
    if (host && !is_same(host, &target->authority))
        return refuse(error, 400, "a request target that contradicts Host");
    return PARSE_DONE;
}

static enum parse read_connect(struct http_target *target, struct view text, struct http_error *error) {
    target->form = TARGET_AUTHORITY;
    if (!authority_parse(text, &target->authority) || target->authority.port == 0)
        return refuse(error, 400, "a CONNECT target that is not host:port");
    return PARSE_DONE;
}

enum parse target_of_request(
        const struct http_head *head, struct http_target *target, struct http_error *error) {
    struct view text = head->target;
    *target = (struct http_target){.scheme = VIEW(""), .path = VIEW("")};
    if (read_host(head, &target->authority, error) == PARSE_BAD)
        return PARSE_BAD;
    if (head->method_id == METHOD_CONNECT)
        return read_connect(target, text, error);
    if (view_find(text, '#') < text.length)
        return refuse(error, 400, "a fragment in the request target");
    if (view_equal(text, VIEW("*"))) {
        target->form = TARGET_ASTERISK;
        target->path = text;
        return head->method_id == METHOD_OPTIONS ? PARSE_DONE
                                                 : refuse(error, 400, "a target of * without OPTIONS");
    }
    if (text.length > 0 && text.data[0] == '/') {
        target->form = TARGET_ORIGIN;
        target->path = text;
        return PARSE_DONE;
    }
    struct authority host = target->authority;
    bool has_host = http_field_find(head, FIELD_HOST, 0) != NULL;
    return read_absolute(has_host ? &host : NULL, target, text, error);
}
