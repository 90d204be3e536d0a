// The index of a volume: where the records of a key lie. Of a fixed size, 16 bytes an object at most, all in
// memory; readers take no lock. It knows 24 bits of a key: whoever reads a record compares the whole key, and
// the URL. A key may have several entries, its variants and chunks that fell on it by chance.
//
// Buckets of 64 bytes hold six entries of ten bytes: tag (24 bits), location (46, in units of
// RECORD_ALIGNMENT), hits (2), spare (8). A key has two candidate buckets, and a new entry goes to the
// emptier one. When both are full, one entry there moves to its own other bucket; when none can, the one that
// was hit least is lost: so is its object. At the rated number of objects four places of five are taken,
// which costs 13.3 bytes an object.
#pragma once

#include "cache/ghosts.h"
#include "cache/key.h"

#include <stdbool.h>
#include <stdint.h>

#define TABLE_CANDIDATES_MAX 12
#define TABLE_HITS_MAXIMUM 3
#define TABLE_LOCATION_MAXIMUM ((UINT64_C(1) << 46) - 1)

struct table;

struct table_entry {
    uint64_t location; // in units of RECORD_ALIGNMENT
    uint8_t hits;      // since table_add or table_move, saturating
};

// Room for about so many; NULL without memory. What no entry ever touched takes none.
struct table *table_new(uint64_t objects);
void table_free(struct table *table); // NULL is allowed
uint64_t table_bytes(const struct table *table);
uint64_t table_count(const struct table *table);

// From any thread. The entries that may be the key's, at most TABLE_CANDIDATES_MAX, in no order: every one
// that is there throughout the call, also while it moves to its other bucket.
unsigned table_find(const struct table *table, struct cache_key key,
        struct table_entry entries[static TABLE_CANDIDATES_MAX]);
// One more hit. No write when it is at its most.
void table_hit(struct table *table, struct cache_key key, uint64_t location);

// From any thread; a bucket's lock bit is held for a few instructions. Adding what is there already changes
// nothing. `*lost`: a location whose entry had to go, never the new one; UINT64_MAX: none.
void table_add(struct table *table, struct cache_key key, uint64_t location, uint64_t *lost);
// The same record lies elsewhere now, and its hits are set to `hits`. False when it is not there any more.
bool table_move(struct table *table, struct cache_key key, uint64_t from, uint64_t to, uint8_t hits);
bool table_remove(struct table *table, struct cache_key key, uint64_t location);
// Removes every entry from location `first` to `last`, both included, and says how many there were: for a
// segment whose keys cannot be read any more. Looks through the whole table (about 10 ms for a million). An
// entry that another thread's table_add moves just then may stay.
uint64_t table_forget(struct table *table, uint64_t first, uint64_t last);

// Everything as bytes at the descriptor's position, for a clean stop, in little-endian and with checksums.
// Nobody should write meanwhile; hits may come. 0 or -errno.
int table_save(const struct table *table, int fd);
// Into a new one of the same size, up to the last byte of what was saved and no further. 0, -errno, or
// -EBADMSG: not what was saved; on any failure the table is empty afterwards. Each part is entered once its
// checksum is right: table_find may run meanwhile, and finds what is loaded so far.
int table_load(struct table *table, int fd);

// The same into a new one of the size that was saved: for whoever knows of none. `bytes`: how many there are
// to be read at most, which bounds its memory (64 times as much). NULL, and *error as above.
struct table *table_restore(int fd, uint64_t bytes, int *error);
