// What a response is filed under: the original destination and the URL, as 128 bits. The only door to xxHash.
// XXH3 resists no attacker, so whoever finds an entry by its key compares the whole URL as well.
#pragma once

#include "admin/address.h"
#include "admin/view.h"

#include <stdint.h>

struct cache_key {
    uint64_t low, high;
};

// Destination scope: address, port, interface of a link-local address, normalised Host, path and query.
struct cache_key key_of(
        uint64_t seed, const struct endpoint *destination, struct view authority, struct view path);

// Of a piece of the representation `generation` of what is filed under `key`.
struct cache_key key_of_chunk(struct cache_key key, uint64_t generation, uint32_t number);

// 64 bits that say nothing about key_fold's.
uint64_t key_rank(struct cache_key key);

static inline bool key_equal(struct cache_key a, struct cache_key b) {
    return a.low == b.low && a.high == b.high;
}

// 64 well mixed bits of it, for tables of our own. All of the key counts, even one that is no hash.
static inline uint64_t key_fold(struct cache_key key) {
    uint64_t bits = key.low ^ (key.high * UINT64_C(0x9e3779b97f4a7c15));
    bits = (bits ^ bits >> 32) * UINT64_C(0xd6e8feb86659fd93);
    bits = (bits ^ bits >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return bits ^ bits >> 32;
}

// A number below `count`, evenly, by the upper half of 64 mixed bits.
static inline uint32_t key_reduce(uint64_t bits, uint32_t count) {
    return (uint32_t)((bits >> 32) * count >> 32);
}
