// What the kernel would say of addresses and routes. netlink.c is linked in place of intercept/netlink.c.
#pragma once

#include "intercept/netlink.h"

#define REPLAY_ADDRESS "10.0.0.1" // the gateway's only one

void netlink_set_route(bool has_route); // there is one at first
