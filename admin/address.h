// An IP address of either family, and an address with a port. IPv4 is held as v4-mapped IPv6
// (::ffff:a.b.c.d), so that a dual-stack socket's peer and a table of prefixes need one form only.
#pragma once

#include "admin/view.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESS_TEXT_BYTES 72 // the longest "[v6%scope]:port" with its NUL
#define ADDRESS_NO_PREFIX 255u

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

// A prefix: the first `bits` bits (0 to 128; an IPv4 /24 is 96 + 24) of an address. The families stay apart:
// an IPv4 address is in no prefix of fewer than 96 bits, so ::/0 is all of IPv6 and 0.0.0.0/0 all of IPv4.
bool address_in_prefix(const struct address *address, const struct address *prefix, unsigned bits);
void address_mask(struct address *address, unsigned bits);

// "192.0.2.1", "2001:db8::1" (without brackets), strictly: no leading zeros, no blanks, no scope.
bool address_parse(struct view text, struct address *address);

// "ADDRESS", "ADDRESS/BITS" or "ADDRESS/NETMASK" ("10.0.0.0/255.0.0.0"). `bits` counts from the v4-mapped
// form. NULL when it is well formed, else a static sentence that says what is wrong and what to write instead
// (bits out of range, a netmask with holes, host bits set). For host bits alone, `prefix` and `bits` are
// filled all the same, with the bits cleared, so that the message can name the right prefix; for every other
// error `bits` is ADDRESS_NO_PREFIX. An IPv6 netmask is taken too.
const char *address_parse_prefix(struct view text, struct address *prefix, unsigned *bits);

// Text forms [RFC 5952]; IPv4 without ::ffff:. Returns `out`. Port form: "192.0.2.1:80", "[2001:db8::1]:80",
// "[fe80::1%2]:80". Prefix form: "192.0.2.0/24", without the length for a single address.
char *address_print(const struct address *address, char out[static ADDRESS_TEXT_BYTES]);
char *address_print_prefix(const struct address *prefix, unsigned bits, char out[static ADDRESS_TEXT_BYTES]);
char *endpoint_print(const struct endpoint *endpoint, char out[static ADDRESS_TEXT_BYTES]);

// From and to the kernel's form. False for a family other than AF_INET and AF_INET6.
bool endpoint_from_sockaddr(struct endpoint *endpoint, const struct sockaddr *sockaddr);
// IPv4 becomes AF_INET unless `dual_stack`, which asks for AF_INET6 always. Returns the length used.
socklen_t endpoint_to_sockaddr(
        const struct endpoint *endpoint, bool dual_stack, struct sockaddr_storage *sockaddr);
