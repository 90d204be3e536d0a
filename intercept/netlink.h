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
