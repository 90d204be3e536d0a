// Policy routing for TPROXY: what carries the intercept mark is delivered here, whatever its address. Done by
// `ip rule` and one route in a table of our own, all of them tagged with a routing protocol number of ours,
// by which they are found again.
//
//     57: fwmark MARK/MASK iif lo goto 59    what this host sends is never ours to take: an accepted socket
//     can
//                                            carry the mark (net.ipv4.tcp_fwmark_accept), and so can the
//                                            look-up of the reverse path (src_valid_mark)
//     58: fwmark MARK/MASK lookup TABLE
//     59: nop
#pragma once

#include "iptables/plan.h"
#include "iptables/problem.h"

#include <stdbool.h>
#include <stdio.h>

#define POLICY_PROTOCOL 57 // tags our rules and routes, Linux >= 4.17
#define POLICY_PRIORITY 57 // and the two after it

// A line each, "rule priority 58 fwmark ... lookup 5700" or "route local default dev lo table 5700", in the
// order in which they are added. Empty text for none. The caller owns *lines.
void policy_make(const struct plan *plan, enum family family, char **lines);
int policy_capture(enum family family, char **lines, struct problem *problem);

// Adds what `target` has and `live` has not / deletes what `live` has and `target` has not.
int policy_add(enum family family, const char *live, const char *target, struct problem *problem);
int policy_delete(enum family family, const char *live, const char *target, struct problem *problem);

// The lines, whatever their order.
bool policy_equal(const char *a, const char *b);

// As commands of ip(8), for people to read.
void policy_print(FILE *out, enum family family, const char *lines);
