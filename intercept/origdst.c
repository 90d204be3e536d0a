#include "intercept/origdst.h"

#include <errno.h>
#include <linux/in6.h>
#include <linux/netfilter_ipv4.h>
#include <string.h>

// linux/netfilter_ipv6/ip6_tables.h has it, but cannot be included with the C library's headers.
#define IP6T_SO_ORIGINAL_DST 80

#define DSCP_BITS 0xfc

static int ask_conntrack(int fd, const struct endpoint *peer, struct endpoint *destination) {
    bool ipv4 = address_is_ipv4(&peer->address);
    struct sockaddr_storage answer = {0};
    socklen_t length = ipv4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    if (getsockopt(fd, ipv4 ? SOL_IP : SOL_IPV6, ipv4 ? SO_ORIGINAL_DST : IP6T_SO_ORIGINAL_DST, &answer,
                &length) < 0)
        return -errno;
    if (!endpoint_from_sockaddr(destination, (struct sockaddr *)&answer))
        return -EAFNOSUPPORT;
    return 0;
}

static int ask_socket(int fd, struct endpoint *local) {
    struct sockaddr_storage answer = {0};
    socklen_t length = sizeof answer;
    if (getsockname(fd, (struct sockaddr *)&answer, &length) < 0)
        return -errno;
    return endpoint_from_sockaddr(local, (struct sockaddr *)&answer) ? 0 : -EAFNOSUPPORT;
}

static bool is_link_local(const struct address *address) {
    return address->bytes[0] == 0xfe && (address->bytes[1] & 0xc0) == 0x80;
}

// A link-local destination lies on the link the client came from.
static void complete_scope(struct endpoint *destination, const struct endpoint *peer) {
    if (is_link_local(&destination->address) && destination->scope == 0)
        destination->scope = peer->scope;
}

static enum origdst fail(int result, int *error) {
    *error = -result;
    return ORIGDST_FAILED;
}

// No entry in conntrack, and no conntrack at all, say the same: netfilter did not redirect this connection.
static bool is_unknown(int result) {
    return result == -ENOENT || result == -ENOPROTOOPT;
}

static enum origdst find_redirected(int fd, enum listen_mode mode, const struct endpoint *peer,
        struct endpoint *destination, int *error) {
    enum origdst direct = mode == LISTEN_ANY ? ORIGDST_FORWARD : ORIGDST_DIRECT;
    struct endpoint local = {0};
    int result = ask_conntrack(fd, peer, destination);
    if (is_unknown(result))
        return direct;
    if (result < 0)
        return fail(result, error);
    result = ask_socket(fd, &local);
    if (result < 0)
        return fail(result, error);
    if (address_equal(&local.address, &destination->address) && local.port == destination->port)
        return direct;
    return ORIGDST_INTERCEPTED;
}

enum origdst origdst_find(int fd, enum listen_mode mode, const struct endpoint *peer,
        const struct own_addresses *own, struct endpoint *destination, int *error) {
    enum origdst found = ORIGDST_INTERCEPTED;
    *error = 0;
    *destination = (struct endpoint){0};
    if (mode == LISTEN_FORWARD)
        return ORIGDST_FORWARD;
    if (mode == LISTEN_TPROXY) {
        int result = ask_socket(fd, destination);
        if (result < 0)
            return fail(result, error);
    } else {
        found = find_redirected(fd, mode, peer, destination, error);
    }
    if (found != ORIGDST_INTERCEPTED)
        return found;
    complete_scope(destination, peer);
    return own_addresses_has(own, &destination->address) ? ORIGDST_OWN : ORIGDST_INTERCEPTED;
}

// ---- the client's mark and DSCP ----

static uint8_t tos_of_options(int fd, bool ipv4) {
    union {
        struct cmsghdr align;
        char bytes[256];
    } options = {0};
    socklen_t length = sizeof options;
    int level = ipv4 ? SOL_IP : SOL_IPV6;
    if (getsockopt(fd, level, ipv4 ? IP_PKTOPTIONS : IPV6_2292PKTOPTIONS, &options, &length) < 0)
        return 0;
    struct msghdr message = {.msg_control = &options, .msg_controllen = length};
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
        if (one->cmsg_level != level || one->cmsg_type != (ipv4 ? IP_TOS : IPV6_TCLASS))
            continue;
        int value = 0; // a byte or an int, by family
        if (one->cmsg_len >= CMSG_LEN(sizeof value))
            memcpy(&value, CMSG_DATA(one), sizeof value);
        else if (one->cmsg_len > CMSG_LEN(0))
            value = *CMSG_DATA(one);
        return (uint8_t)(value & DSCP_BITS);
    }
    return 0;
}

void origdst_class(int fd, const struct endpoint *peer, struct client_class *class) {
    socklen_t length = sizeof class->mark;
    *class = (struct client_class){0};
    if (getsockopt(fd, SOL_SOCKET, SO_MARK, &class->mark, &length) < 0)
        class->mark = 0;
    class->tos = tos_of_options(fd, address_is_ipv4(&peer->address));
}
