// What the kernel's tables say of the gateway, kept current.
//
// The gateway's own addresses, all interfaces, both families, kept current by rtnetlink (RTNLGRP_IPV4_IFADDR,
// RTNLGRP_IPV6_IFADDR) through libmnl; a thread of its own listens, readers take no lock for longer than a
// look-up.
#pragma once

#include "admin/address.h"

struct own_addresses;

// Reads the addresses once and follows changes from then on (on ENOBUFS it reads them all again). NULL with
// *error an errno.
struct own_addresses *own_addresses_new(int *error);
void own_addresses_free(struct own_addresses *own);

// Any thread. True for every local address, 127.0.0.0/8, ::1, the unspecified addresses, broadcast included.
bool own_addresses_has(const struct own_addresses *own, const struct address *address);

// Any thread. Whether there is a default route of either family, in any table, whose link is up
// (administratively and by its carrier). Kept current by RTNLGRP_LINK, RTNLGRP_IPV4_ROUTE and
// RTNLGRP_IPV6_ROUTE; the tables are read again only when a link or a default route changes, since they can
// be large.
bool own_addresses_has_route(const struct own_addresses *own);
