// The index of a volume: where the records of a key lie. Of a fixed size, 16 bytes an object at most, all in
// memory; readers take no lock. It knows 24 bits of a key: whoever reads a record compares the whole key, and
// the URL.
//
// Buckets of 64 bytes hold six entries of ten bytes: tag (24 bits), location (46, in units of
// RECORD_ALIGNMENT), hits (2), queue (1), spare. A key has two candidate buckets. When both are full the
// entry that was hit least is lost: so is its object.
#pragma once

#include "cache/key.h"

#include <stdbool.h>
#include <stdint.h>

#define TABLE_CANDIDATES_MAX 12
#define TABLE_HITS_MAXIMUM 3
#define TABLE_LOCATION_MAXIMUM ((UINT64_C(1) << 46) - 1)

struct table;

struct table_entry {
    uint64_t location; // in units of RECORD_ALIGNMENT
    uint8_t hits;      // since it was last looked at, saturating
};

struct table *table_new(uint64_t objects); // room for about so many; NULL without memory
void table_free(struct table *table);      // NULL is allowed
uint64_t table_bytes(const struct table *table);
uint64_t table_count(const struct table *table);

// From any thread. The entries that may be the key's, at most TABLE_CANDIDATES_MAX.
unsigned table_find(const struct table *table, struct cache_key key,
        struct table_entry entries[static TABLE_CANDIDATES_MAX]);
// One more hit. No write when it is at its most.
void table_hit(struct table *table, struct cache_key key, uint64_t location);

// From any thread; a bucket's lock bit is held for a few instructions.
// `*lost`: a location whose entry had to go, UINT64_MAX: none.
void table_add(struct table *table, struct cache_key key, uint64_t location, uint64_t *lost);
// The same record lies elsewhere now, and its hits are set to `hits`. False when it is not there any more.
bool table_move(struct table *table, struct cache_key key, uint64_t from, uint64_t to, uint8_t hits);
bool table_remove(struct table *table, struct cache_key key, uint64_t location);

// Everything as bytes, for a clean stop; the other side checks length and checksum. 0 or -errno.
int table_save(const struct table *table, int fd);
int table_load(struct table *table, int fd); // into a new one of the same size; -EBADMSG: not what was saved

// ---- ghosts: fingerprints of what left the small queue without a hit, 2 bytes each ----

struct ghosts;
struct ghosts *ghosts_new(uint64_t objects);
void ghosts_free(struct ghosts *ghosts);
void ghosts_add(struct ghosts *ghosts, struct cache_key key);
bool ghosts_take(struct ghosts *ghosts, struct cache_key key); // whether it was there; it is forgotten
