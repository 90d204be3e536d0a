// The few questions and deletions of nf_tables that iptables-nft cannot express: whether a table or a base
// chain exists (asking iptables would create nothing, but tells nothing either), and deleting one only if
// nothing is in it. Linux >= 4.18 (NLM_F_NONREC on chains and tables).
#pragma once

#include "iptables/plan.h"

#include <stdbool.h>

// 1, 0, or -errno. A kernel without nf_tables has no table.
int nfnetlink_has_table(enum family family, const char *table);
int nfnetlink_has_inet_table(const char *table); // of family inet, which is both
int nfnetlink_has_chain(enum family family, const char *table, const char *chain);

// True for a base chain whose policy is accept.
bool nfnetlink_chain_accepts(enum family family, const char *table, const char *chain);

// Deletes chain `first`, and with it, in the same transaction, chain `second` (NULL: none) and the table
// itself
// (`with_table`). Each of them only if it is empty and unused; else nothing happens and -EBUSY comes back.
int nfnetlink_delete(
        enum family family, const char *table, const char *first, const char *second, bool with_table);
