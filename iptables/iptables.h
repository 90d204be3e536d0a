// Our part of the iptables and ip6tables rulesets: chains WEIR_*, and the jumps to them.
//
// With iptables-nft, a table or base chain that did not exist before comes into being with the first rule and
// stays for good. Those that came with our rules must go with them, and those that others made must stay,
// even empty. So each one made for us is on record in the kernel itself, as an empty chain beside our rules,
// WEIR_MADE_TABLE or WEIR_MADE_<base chain>; the record is dropped in the very transaction that drops what it
// stands for. iptables-legacy has no way to drop a table: its record is empty and an empty table stays.
#pragma once

#include "iptables/plan.h"
#include "iptables/problem.h"

#include <stdbool.h>

enum iptables_table { IPTABLES_MANGLE, IPTABLES_NAT, IPTABLES_TABLE_COUNT };

struct iptables_rules {
    // Chain declarations and rules as iptables-save writes them, a line each; "" for none. Without the
    // record.
    char *text[IPTABLES_TABLE_COUNT];
    // The record: bit 0 the table, the others its base chains.
    unsigned made[IPTABLES_TABLE_COUNT];
};

// Our lines of a text in iptables-save's language, comments dropped. The caller owns `rules`.
void iptables_parse(const char *text, struct iptables_rules *rules);
void iptables_fini(struct iptables_rules *rules);
bool iptables_is_empty(const struct iptables_rules *rules);

// What is in the kernel now. Without the iptables tools, or without iptables in the kernel: nothing.
int iptables_capture(enum family family, struct iptables_rules *rules, struct problem *problem);

// Takes the kernel from `live` (just captured, under the lock) to `target`; one transaction a table.
int iptables_install(enum family family, const struct iptables_rules *live,
        const struct iptables_rules *target, struct problem *problem);

// Packets that the second stage has handed over, from the kernel's counters.
int iptables_count(enum family family, unsigned long long *packets, struct problem *problem);
