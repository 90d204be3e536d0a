// An IP address of either family, and an address with a port. IPv4 is held as v4-mapped IPv6
// (::ffff:a.b.c.d), so that a dual-stack socket's peer and a table of prefixes need one form only.
#pragma once

#include "admin/view.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESS_TEXT_BYTES 72 // the longest "[v6%scope]:port" with its NUL

struct address {
    uint8_t bytes[16]; // network order
};

struct endpoint {
    struct address address;
    uint16_t port;  // host order
    uint32_t scope; // interface index of a link-local IPv6 address, else 0
};

bool address_is_ipv4(const struct address *address);
bool address_equal(const struct address *a, const struct address *b);
bool endpoint_equal(const struct endpoint *a, const struct endpoint *b);

// A prefix: the first `bits` bits (0 to 128; an IPv4 /24 is 96 + 24) of an address.
bool address_in_prefix(const struct address *address, const struct address *prefix, unsigned bits);
void address_mask(struct address *address, unsigned bits);

// "192.0.2.1", "2001:db8::1" (without brackets), strictly: no leading zeros, no blanks, no scope.
bool address_parse(struct view text, struct address *address);

// "ADDRESS", "ADDRESS/BITS" or "ADDRESS/NETMASK" ("10.0.0.0/255.0.0.0"). `bits` counts from the v4-mapped
// form. NULL when it is well formed, else a static sentence that says what is wrong and what to write instead
// (bits out of range, a netmask with holes, host bits set).
const char *address_parse_prefix(struct view text, struct address *prefix, unsigned *bits);

// Text forms; IPv4 without ::ffff:. Returns `out`. Port form: "192.0.2.1:80", "[2001:db8::1]:80".
char *address_print(const struct address *address, char out[static ADDRESS_TEXT_BYTES]);
char *endpoint_print(const struct endpoint *endpoint, char out[static ADDRESS_TEXT_BYTES]);

// From and to the kernel's form. False for a family other than AF_INET and AF_INET6.
bool endpoint_from_sockaddr(struct endpoint *endpoint, const struct sockaddr *sockaddr);
// IPv4 becomes AF_INET unless `dual_stack`, which asks for AF_INET6 always. Returns the length used.
socklen_t endpoint_to_sockaddr(
        const struct endpoint *endpoint, bool dual_stack, struct sockaddr_storage *sockaddr);
