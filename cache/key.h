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

static inline bool key_equal(struct cache_key a, struct cache_key b) {
    return a.low == b.low && a.high == b.high;
}
