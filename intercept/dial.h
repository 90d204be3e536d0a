// A connection to an origin, begun.
#pragma once

#include "admin/address.h"
#include "intercept/origdst.h"

struct dial {
    struct endpoint destination;
    bool spoof;            // bind to the client's address first (IP_TRANSPARENT; port chosen by the kernel)
    struct address client; // when spoofing
    struct client_class class; // mark (within the mask that is not ours) and DSCP to carry along
    uint32_t mark;             // our own upstream mark bits, SO_MARK = (class.mark & ~mask) | mark
    uint32_t mask;
};

// A non-blocking, close-on-exec, TCP_NODELAY socket whose connect(2) has begun. The descriptor or -errno; a
// refused SO_MARK (no CAP_NET_ADMIN) is tolerated once the daemon's start has warned of it.
int dial_begin(const struct dial *dial);
// Whether the destination is known to be reached without a gateway, as the routing table stands. Of IPv6 ones
// it is not known: the kernel does not hold SO_DONTROUTE against them.
bool dial_is_on_link(const struct endpoint *destination);
// 0 when the connection stands, -EINPROGRESS while it is under way, else -errno of the attempt.
int dial_result(int fd);
