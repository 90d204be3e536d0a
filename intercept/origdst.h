// The original destination of an accepted connection: where the client wanted to go, by the kernel's word.
#pragma once

#include "admin/address.h"
#include "intercept/listen.h"
#include "intercept/netlink.h"

enum origdst {
    ORIGDST_INTERCEPTED, // `destination` is set
    ORIGDST_FORWARD,     // a forward request (LISTEN_FORWARD, or LISTEN_ANY that was not redirected)
    ORIGDST_DIRECT,      // netfilter did not send it: a direct connection to an intercepting port
    ORIGDST_OWN,         // intercepted, but the destination is one of our own addresses: never dialled
    ORIGDST_FAILED,      // the look-up failed otherwise; `*error` is the errno
};

// SO_ORIGINAL_DST for an IPv4 peer (v4-mapped too), IP6T_SO_ORIGINAL_DST for an IPv6 one, under redirect and
// any (Linux nf_conntrack); getsockname under tproxy. A look-up that succeeds but answers the socket's own
// local address and port is a direct connection (facts 2 and 3).
enum origdst origdst_find(int fd, enum listen_mode mode, const struct endpoint *peer,
        const struct own_addresses *own, struct endpoint *destination, int *error);

// What the client's packets carried: the socket's mark (SO_MARK, with net.ipv4.tcp_fwmark_accept) and the
// DSCP of its SYN (IP_PKTOPTIONS / IPV6_2292PKTOPTIONS). Zero where the kernel does not say.
struct client_class {
    uint32_t mark;
    uint8_t tos; // DSCP in the upper six bits, ECN bits cleared
};
void origdst_class(int fd, const struct endpoint *peer, struct client_class *class);
