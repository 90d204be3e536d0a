// Where traffic arrives: the `listen` directives, and their sockets.
#pragma once

#include "admin/address.h"
#include "admin/config.h"

enum listen_mode {
    LISTEN_REDIRECT, // only connections that netfilter redirected
    LISTEN_TPROXY,   // only connections that TPROXY handed over; the socket is IP_TRANSPARENT
    LISTEN_FORWARD,  // proxy requests, CONNECT, accelerator requests
    LISTEN_ANY,      // redirected or forward, told apart by the original destination
};

#define LISTEN_MAXIMUM 64

struct listen_point {
    struct endpoint address; // any address: `::`, dual-stack, when the directive names none
    bool any_address;
    enum listen_mode mode;
    const struct directive *directive; // for messages
};

struct listen_set {
    unsigned count;
    struct listen_point points[LISTEN_MAXIMUM];
};

// Reads the directives; the table's default is one of them when the file has none. False with errors added: a
// port out of range or twice, an unknown mode, a redirect or any port on a loopback address (netfilter
// redirects to the interface's own address, so it would never see a packet).
bool listen_parse(const struct config *config, struct listen_set *set, struct config_errors *errors);
bool listen_validate(const struct config *config, struct config_errors *errors);

// Opens one SO_REUSEPORT listening socket: non-blocking, close-on-exec, dual-stack when no address was named,
// IP_TRANSPARENT and IPV6_TRANSPARENT for tproxy, IP_RECVTOS and IPV6_RECVTCLASS (so that accepted sockets
// know their client's DSCP). The descriptor or -errno; `*what` names the call that failed.
int listen_open(const struct listen_point *point, const char **what);

// Whether the port is free: 0, or -EADDRINUSE when some socket listens there, SO_REUSEPORT or not (another
// weir would share the clients with us and nobody would notice).
int listen_probe(const struct listen_point *point);

const char *listen_mode_name(enum listen_mode mode);
