// What was purged from a volume, as rules: every record up to a rule's sequence that it matches is gone. And
// the journal they are kept in. Pure: bytes in, bytes out. Not thread-safe.
//
// A rule counts as long as a segment may hold a record from before it: one with a lower number than the
// rule's. A lookup takes as long however many rules of URLs, hosts and keys there are.
//
// The journal: PURGE_UNIT_BYTES of header, then records, each at a multiple of that, all little-endian:
//   header   magic "WEIRPURG" (8)  format (4)  zeros (4)  volume (8)  zeros (36)  CRC32C of all before (4)
//   record   magic "PURG" (4)  kind (1)  zeros (1)  text bytes (2)  sequence (8)  number (8)  id (16)
//            host (16)  zeros (4)  CRC32C of all before and the text (4)  text, zeros up to a whole unit
// What follows the last record is zeros, or what a power cut left of a record. One that is broken with others
// after it was a purge of something nobody knows any more: of everything, then.
#pragma once

#include "cache/key.h"
#include "cache/volume.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PURGE_UNIT_BYTES 64
#define PURGE_PATTERNS_MAX 128  // prefixes and masks
#define PURGE_TEXT_MAXIMUM 4096 // of a mask; a longer prefix purges its whole host
#define PURGE_PENDING UINT64_MAX

struct purge_rule {
    enum volume_purge kind;
    struct cache_key id;   // of a URL, a host, or the key itself
    struct cache_key host; // of a URL or a prefix: what it becomes when there are too many
    uint64_t sequence;     // PURGE_PENDING: up to whatever there is, which is not known yet
    uint64_t number;       // counts while there are segments of lower ones; PURGE_PENDING: not known yet
    char *text;            // of a prefix or a mask; owned
    uint32_t length;
};

struct purge;

struct purge *purge_new(uint64_t seed, uint64_t bytes_most); // of its journal
void purge_free(struct purge *purge);                        // NULL is allowed

// A rule, without sequence and number, its text a copy. 0, -EINVAL: a mask that is too long.
int purge_make(const struct purge *purge, struct purge_rule *rule, enum volume_purge kind,
        struct view authority, struct view path);
// Takes the rule's text over. Beyond the bounds the oldest become coarser.
void purge_add(struct purge *purge, struct purge_rule *rule);
// Those that are pending get their sequence and number. False: there were none.
bool purge_settle(struct purge *purge, uint64_t sequence, uint64_t number);
// Forgets what is not needed when `oldest` is the lowest number of a segment. False: nothing changed.
bool purge_retire(struct purge *purge, uint64_t oldest);

uint64_t purge_count(const struct purge *purge);
uint64_t purge_newest(const struct purge *purge);  // the highest sequence; 0: no rule
uint64_t purge_settled(const struct purge *purge); // the highest that is not pending

struct purge_asked {
    struct cache_key key;
    struct view authority, path;
    uint64_t sequence;
};
typedef bool purge_match(void *context, struct view mask, struct view authority, struct view path);
bool purge_matches(
        const struct purge *purge, const struct purge_asked *asked, purge_match *matches, void *context);

// ---- the journal ----

uint64_t purge_rule_bytes(const struct purge_rule *rule);
void purge_rule_encode(const struct purge_rule *rule, unsigned char *out);
// `visit` for each, the one of everything first; the oldest need not come first.
void purge_each(
        const struct purge *purge, void visit(void *context, const struct purge_rule *rule), void *context);
uint64_t purge_bytes(const struct purge *purge);                                   // of the whole journal
void purge_encode(const struct purge *purge, uint64_t volume, unsigned char *out); // purge_bytes() of them

// Adds what the journal says. *end: where the next record goes. False: it needs to be written anew: it is of
// another volume (nothing is added), or broken within.
bool purge_read(struct purge *purge, uint64_t volume, struct view journal, uint64_t *end);
