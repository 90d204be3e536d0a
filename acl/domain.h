// Domain names; an entry stands for the name and everything below it. A look-up walks the labels of a host
// from the right and costs the number of labels, not the number of entries. An entry costs 16 bytes and 11
// to 21 for its slot, besides its name in the pool.
#pragma once

#include "acl/pool.h"

#define DOMAIN_NONE UINT32_MAX
#define DOMAIN_NAME_MAX 253 // bytes [RFC 1035 §2.3.4]

struct domain_set;

// Names are kept as offsets into `pool`, which must outlive the set. NULL: out of memory.
struct domain_set *domain_set_new(const struct pool *pool);
void domain_set_free(struct domain_set *set);

// What an entry stands for besides its name.
struct domain_scope {
    uint16_t port;   // 0: every port
    bool below_only; // not the name itself
};

// Adds the normalised name of `length` bytes (1 to DOMAIN_NAME_MAX) at `offset`. An entry that is there
// already keeps its value. False when out of memory.
bool domain_set_add(
        struct domain_set *set, uint32_t offset, size_t length, struct domain_scope scope, uint32_t value);

void domain_set_trim(struct domain_set *set); // once nothing more is added

// The value of the longest entry that holds for this normalised host with this port or that one, else
// DOMAIN_NONE.
uint32_t domain_set_find(const struct domain_set *set, struct view host, uint16_t port, uint16_t other_port);

// The value of an entry that holds for everything that this name and scope stands for, else DOMAIN_NONE.
uint32_t domain_set_cover(const struct domain_set *set, struct view name, struct domain_scope scope);

size_t domain_set_count(const struct domain_set *set);
size_t domain_set_bytes(const struct domain_set *set); // without the names
