// Memory: every allocation of the store goes through here and is counted with what malloc adds to it.
#pragma once

#include "cache/memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cache;

struct budget {
    _Alignas(64) _Atomic uint64_t used;  // against the limit: what is stored, or arriving to be
    _Atomic uint64_t streams;            // what streams hold ahead of their readers; bounded by their windows
    _Alignas(64) _Atomic uint64_t limit; // 0: nothing is stored
};

// Counts `bytes`, making room by eviction when needed. False when there is none: nothing is counted then.
// Takes locks: hold none.
bool budget_take(struct cache *cache, uint64_t bytes);
// Counts small overhead unasked; a later budget_take or budget_settle makes up for it.
void budget_charge(struct cache *cache, uint64_t bytes);
void budget_give(struct cache *cache, uint64_t bytes);
// Evicts until what is used is within the limit, as far as anything can be evicted. Hold no lock.
void budget_settle(struct cache *cache);
