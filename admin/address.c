#include "admin/address.h"

#include "admin/check.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define IPV4_OFFSET 12 // where the four bytes of a v4-mapped address start
#define IPV4_BITS 96   // the length of ::ffff:0:0/96

static const uint8_t ipv4_prefix[IPV4_OFFSET] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool address_is_ipv4(const struct address *address) {
    return memcmp(address->bytes, ipv4_prefix, sizeof ipv4_prefix) == 0;
}

bool address_equal(const struct address *a, const struct address *b) {
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

bool endpoint_equal(const struct endpoint *a, const struct endpoint *b) {
    return a->port == b->port && a->scope == b->scope && address_equal(&a->address, &b->address);
}

// The bits of byte `index` that a prefix of `bits` bits covers.
static uint8_t mask_byte(unsigned bits, unsigned index) {
    if (bits >= 8 * (index + 1))
        return 0xff;
    return bits <= 8 * index ? 0 : (uint8_t)(0xff << (8 * (index + 1) - bits));
}

bool address_in_prefix(const struct address *address, const struct address *prefix, unsigned bits) {
    CHECK(bits <= 128);
    if (bits < IPV4_BITS && address_is_ipv4(address))
        return false;
    for (unsigned i = 0; i < 16; i++)
        if ((address->bytes[i] ^ prefix->bytes[i]) & mask_byte(bits, i))
            return false;
    return true;
}

void address_mask(struct address *address, unsigned bits) {
    CHECK(bits <= 128);
    for (unsigned i = 0; i < 16; i++)
        address->bytes[i] &= mask_byte(bits, i);
}

static void set_ipv4(struct address *address, const void *four_bytes) {
    memcpy(address->bytes, ipv4_prefix, IPV4_OFFSET);
    memcpy(address->bytes + IPV4_OFFSET, four_bytes, 4);
}

// inet_pton reads C strings: a NUL within the text, blanks and scopes are turned away before it. The leading
// zeros of IPv4 ("010.0.0.1", which some read as octal) are refused here, whatever the C library thinks.
static bool has_leading_zero(struct view text) {
    while (view_find(text, ':') < text.length)
        text = view_skip(text, view_find(text, ':') + 1);
    for (size_t i = 0; i + 1 < text.length; i++) {
        bool starts_number = i == 0 || text.data[i - 1] == '.';
        if (starts_number && text.data[i] == '0' && text.data[i + 1] >= '0' && text.data[i + 1] <= '9')
            return true;
    }
    return false;
}

static bool is_address_text(struct view text) {
    for (size_t i = 0; i < text.length; i++) {
        char lower = view_lower(text.data[i]);
        bool hex = (lower >= '0' && lower <= '9') || (lower >= 'a' && lower <= 'f');
        if (!hex && lower != ':' && lower != '.')
            return false;
    }
    return text.length > 0;
}

bool address_parse(struct view text, struct address *address) {
    char copy[INET6_ADDRSTRLEN];
    uint8_t bytes[16];
    if (text.length >= sizeof copy || !is_address_text(text))
        return false;
    memcpy(copy, text.data, text.length);
    copy[text.length] = '\0';
    bool dotted = view_find(text, '.') < text.length;
    if (dotted && has_leading_zero(text))
        return false;
    if (view_find(text, ':') < text.length) {
        if (inet_pton(AF_INET6, copy, bytes) != 1)
            return false;
        memcpy(address->bytes, bytes, sizeof bytes);
        return true;
    }
    if (inet_pton(AF_INET, copy, bytes) != 1)
        return false;
    set_ipv4(address, bytes);
    return true;
}

// The length of a netmask whose ones start at bit `from`; ADDRESS_NO_PREFIX when it has holes.
static unsigned netmask_bits(const struct address *netmask, unsigned from) {
    unsigned bits = from;
    while (bits < 128 && (netmask->bytes[bits / 8] >> (7 - bits % 8) & 1))
        bits++;
    for (unsigned i = bits; i < 128; i++)
        if (netmask->bytes[i / 8] >> (7 - i % 8) & 1)
            return ADDRESS_NO_PREFIX;
    return bits;
}

static bool is_number(struct view text) {
    uint64_t number;
    return view_number(text, &number);
}

// What stands after the slash, into `bits`.
static const char *parse_length(struct view text, bool ipv4, unsigned *bits) {
    struct address netmask;
    uint64_t number;
    if (is_number(text)) {
        if (text.length > 1 && text.data[0] == '0')
            return "the prefix length has a leading zero, write it without";
        if (!view_number(text, &number) || number > (ipv4 ? 32 : 128))
            return ipv4 ? "the prefix length is above 32, write 0 to 32 for IPv4"
                        : "the prefix length is above 128, write 0 to 128 for IPv6";
        *bits = (unsigned)number + (ipv4 ? IPV4_BITS : 0);
        return NULL;
    }
    if (!address_parse(text, &netmask))
        return "neither a prefix length nor a netmask after the slash, write for example 192.0.2.0/24 or "
               "192.0.2.0/255.255.255.0";
    if (ipv4 != (view_find(text, ':') == text.length))
        return "the netmask is of the other family than the address, write the prefix length";
    *bits = netmask_bits(&netmask, ipv4 ? IPV4_BITS : 0);
    return *bits == ADDRESS_NO_PREFIX ? "the netmask has holes, write ones followed by zeros or the prefix "
                                        "length"
                                      : NULL;
}

const char *address_parse_prefix(struct view text, struct address *prefix, unsigned *bits) {
    size_t slash = view_find(text, '/');
    struct view head = view_take(text, slash);
    struct address whole;
    unsigned length = 128;
    *bits = ADDRESS_NO_PREFIX;
    if (!address_parse(head, &whole))
        return "not an IP address, write for example 192.0.2.1, 192.0.2.0/24 or 2001:db8::/32";
    if (slash < text.length) {
        const char *why =
                parse_length(view_skip(text, slash + 1), view_find(head, ':') == head.length, &length);
        if (why)
            return why;
    }
    *prefix = whole;
    *bits = length;
    address_mask(prefix, length);
    return address_equal(prefix, &whole) ? NULL : "bits are set behind the prefix, clear them";
}

char *address_print(const struct address *address, char out[static ADDRESS_TEXT_BYTES]) {
    const char *done = address_is_ipv4(address)
                               ? inet_ntop(AF_INET, address->bytes + IPV4_OFFSET, out, ADDRESS_TEXT_BYTES)
                               : inet_ntop(AF_INET6, address->bytes, out, ADDRESS_TEXT_BYTES);
    CHECK(done);
    return out;
}

char *address_print_prefix(const struct address *prefix, unsigned bits, char out[static ADDRESS_TEXT_BYTES]) {
    bool ipv4 = bits >= IPV4_BITS && address_is_ipv4(prefix);
    address_print(prefix, out);
    size_t length = strlen(out);
    if (bits < 128)
        snprintf(out + length, ADDRESS_TEXT_BYTES - length, "/%u", ipv4 ? bits - IPV4_BITS : bits);
    return out;
}

char *endpoint_print(const struct endpoint *endpoint, char out[static ADDRESS_TEXT_BYTES]) {
    char text[ADDRESS_TEXT_BYTES], scope[16] = "";
    int length;
    address_print(&endpoint->address, text);
    if (endpoint->scope)
        snprintf(scope, sizeof scope, "%%%u", endpoint->scope);
    if (address_is_ipv4(&endpoint->address))
        length = snprintf(out, ADDRESS_TEXT_BYTES, "%.45s:%u", text, endpoint->port);
    else
        length = snprintf(out, ADDRESS_TEXT_BYTES, "[%.45s%s]:%u", text, scope, endpoint->port);
    CHECK(length > 0 && length < ADDRESS_TEXT_BYTES);
    return out;
}

bool endpoint_from_sockaddr(struct endpoint *endpoint, const struct sockaddr *sockaddr) {
    if (sockaddr->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, sockaddr, sizeof in);
        set_ipv4(&endpoint->address, &in.sin_addr);
        endpoint->port = ntohs(in.sin_port);
        endpoint->scope = 0;
        return true;
    }
    if (sockaddr->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, sockaddr, sizeof in6);
        memcpy(endpoint->address.bytes, &in6.sin6_addr, 16);
        endpoint->port = ntohs(in6.sin6_port);
        endpoint->scope = in6.sin6_scope_id;
        return true;
    }
    return false;
}

socklen_t endpoint_to_sockaddr(
        const struct endpoint *endpoint, bool dual_stack, struct sockaddr_storage *sockaddr) {
    memset(sockaddr, 0, sizeof *sockaddr);
    if (address_is_ipv4(&endpoint->address) && !dual_stack) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(endpoint->port)};
        memcpy(&in.sin_addr, endpoint->address.bytes + IPV4_OFFSET, 4);
        memcpy(sockaddr, &in, sizeof in);
        return sizeof in;
    }
    struct sockaddr_in6 in6 = {
            .sin6_family = AF_INET6, .sin6_port = htons(endpoint->port), .sin6_scope_id = endpoint->scope};
    memcpy(&in6.sin6_addr, endpoint->address.bytes, 16);
    memcpy(sockaddr, &in6, sizeof in6);
    return sizeof in6;
}
