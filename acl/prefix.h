// Address prefixes, the longest wins. Built once: the prefixes are cut into intervals that do not overlap,
// each with the value of the longest prefix over it, and a look-up is one binary search. An interval costs 8
// bytes for IPv4 and 20 for IPv6; n prefixes make at most 2n + 1 intervals, and about n when they lie side by
// side. The families stay apart, as address.h says: ::/0 does not cover IPv4.
#pragma once

#include "admin/address.h"

#include <stddef.h>

#define PREFIX_NONE UINT32_MAX

struct prefix_table;

struct prefix_table *prefix_table_new(void); // NULL: out of memory
void prefix_table_free(struct prefix_table *table);

// Adds a prefix whose host bits are clear. Values are numbers below PREFIX_NONE, one a rule, given in the
// order of the file: of two equal prefixes the later value wins. False when out of memory.
bool prefix_table_add(
        struct prefix_table *table, const struct address *prefix, unsigned bits, uint32_t value);

// Called for each prefix that decides for no address: because `winner` is the same prefix, or because longer
// ones cover all of it (`winner` PREFIX_NONE).
typedef void prefix_lost(void *context, uint32_t loser, uint32_t winner);

// Makes the table ready for look-ups; nothing can be added afterwards. `lost` may be NULL. False when out of
// memory.
bool prefix_table_finish(struct prefix_table *table, prefix_lost *lost, void *context);

// The value of the longest prefix that holds the address, or PREFIX_NONE. O(log n).
uint32_t prefix_table_find(const struct prefix_table *table, const struct address *address);

// Whether every address of this prefix is in some prefix of the table: the value at its first address, else
// PREFIX_NONE.
uint32_t prefix_table_cover(const struct prefix_table *table, const struct address *prefix, unsigned bits);

size_t prefix_table_bytes(const struct prefix_table *table);
