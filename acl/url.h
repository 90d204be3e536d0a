// The form in which a URL is held against masks, so that no spelling of it gets past one:
//
// - host: letters in lower case, percent-encoding undone, dots at the end dropped. An IP address in its own
//   notation becomes its one canonical text [RFC 5952], IPv6 in brackets, v4-mapped IPv6 as IPv4. What only
//   some resolvers take for an address (0x7f.1, 2130706433, 010.0.0.1) stays a name; the destination it leads
//   to is looked at anyway. Bytes above 0x7f stay as they are.
// - port: a number apart from the text; when none was sent, 80 for http and 443 for https.
// - path and query: percent-encoding is undone once, except for the bytes that would then mean something else
//   or could not be seen: "/", "?", "#", "%", the blank and the control bytes, which keep it, in upper case
//   ("%2f" is "%2F" and not "/"). Once means that %2541 is "%2541": its "%25" is a percent sign. A "%" with
//   no two hex digits behind it stands for itself. Then dot segments are resolved [RFC 3986 §5.2.4] up to the
//   first "?"; a path with none starts with "/". "//" stays. A fragment is never sent.
//
// The form is never longer than what was sent, but for a leading "/" and an address as a host.
#pragma once

#include "acl/acl.h"

struct url {
    struct view text; // host, then path and query, in one piece
    struct view host, path;
    uint16_t port, other_port; // a mask's port may be either; 0: unknown
    bool is_address;           // the host is `address`
    bool is_destination;       // it is where the request really goes, not what it names
    struct address address;
};

#define URL_ROOM 1024 // requests up to about this many bytes need no allocation

// The URLs a request stands for: under the name it gives, and under the address it goes to. Either may be
// missing.
struct url_list {
    unsigned count;
    struct url url[2];
    char *heap;
    char room[URL_ROOM];
};

// Everything lives in the list: do not copy it. Aborts when there is no memory for a long URL.
void url_list_init(struct url_list *list, const struct acl_request *request);
void url_list_fini(struct url_list *list);

// For masks, which are normalised by the same rules. `out` has room for `text.length` bytes; returns how many
// were written.
size_t url_decode(struct view text, char *out);
size_t url_fold_host(struct view text, char *out);
// "192.0.2.1", "[2001:db8::1]"; the length without a NUL. And back, brackets being optional.
size_t url_write_address(const struct address *address, char out[static ADDRESS_TEXT_BYTES]);
bool url_host_is_address(struct view host, struct address *address);
