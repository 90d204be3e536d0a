// How many connections each client address has open, over all workers.
#pragma once

#include "admin/address.h"

// Counts one more unless it already has `limit`: false then. Without memory it is not counted, and true: a
// limit must not stop traffic.
bool hosts_enter(const struct address *client, unsigned limit);
void hosts_leave(const struct address *client);
