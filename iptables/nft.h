// Our table in nf_tables, `inet weir`: created, replaced and deleted as a whole, a transaction each.
#pragma once

#include "iptables/plan.h"
#include "iptables/problem.h"

#include <stdbool.h>

// The table as nft lists it, without counters; NULL when there is none, or no nft. The caller owns it.
int nft_capture(char **listing, struct problem *problem);

// From `live` (just captured, under the lock; may be NULL) to `target`: a listing, a filled template, or
// NULL.
int nft_install(const char *live, const char *target, struct problem *problem);

// Packets that the second stage has handed over.
int nft_count(enum family family, unsigned long long *packets, struct problem *problem);

// Whether the nft program runs; with `kernel`, also whether the kernel answers it.
bool nft_works(bool kernel);
