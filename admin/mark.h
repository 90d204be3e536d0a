// The packet and socket marks weir uses. All of them lie within rule_mask; a bit outside the mask belongs to
// somebody else (multi-WAN routing, shaping) and is neither set, cleared nor compared.
//
// Two values: *intercept* on a packet that weir is to take, and *upstream* on weir's own sockets towards
// origins, which the rules let pass. With net.ipv4.tcp_fwmark_accept an accepted socket inherits the
// intercept mark together with the client's bits; only those outside the mask may go along to the origin.
#pragma once

#include "admin/config.h"

#include <stdint.h>

uint32_t mark_intercept(const struct config *config);
uint32_t mark_upstream(const struct config *config); // never 0, never the intercept mark

// NULL when rule_mark and rule_mask can work together, else what is wrong and what to write instead. The
// functions above ask for a configuration of which this says NULL.
const char *mark_problem(const struct config *config);
