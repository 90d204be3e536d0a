// Which addresses a name has, by DNS that is trusted: whether a client that asks an address for a name may
// share what is stored under the name alone. Asked in the background by a thread of its own; whoever looks a
// pair up never waits. One for the whole process; every function from any thread.
//
// A name's answers are kept as a set: an address stays in it for its TTL, but at least PAIRS_LIFE_LEAST_S and
// at most PAIRS_LIFE_MOST_S after it was last seen in an answer, because a name with many addresses shows a
// few at a time. Failed and empty answers are kept as well, for PAIRS_FAILED_S.
#pragma once

#include "admin/address.h"
#include "admin/view.h"

#include <stdbool.h>
#include <stdint.h>

#define PAIRS_NAMES_MAX 16384  // the one asked for longest ago makes room
#define PAIRS_ADDRESSES_MAX 64 // of one name; the one seen longest ago makes room
#define PAIRS_LIFE_LEAST_S 300
#define PAIRS_LIFE_MOST_S 3600
#define PAIRS_FAILED_S 30
#define PAIRS_AGAIN_S 1      // a name is not asked for again sooner, whatever its TTL
#define PAIRS_QUERIES_MAX 64 // under way at once; more wait in a queue
#define PAIRS_QUEUE_MAX 1024 // one more is forgotten: the next request asks again
#define PAIRS_NAME_BYTES 254 // a longer host is never verified

struct pairs;

enum pair {
    PAIR_VERIFIED, // the name has the address
    PAIR_OTHER,    // the name is known, and this address is none of those seen so far
    PAIR_UNKNOWN,  // nothing is known (yet): being asked, failed, or no host name at all
};

// `servers`: as names_set_servers has them; empty: the system's. NULL without memory or descriptors.
struct pairs *pairs_new(struct view servers, int64_t timeout_ms);
void pairs_set_servers(struct pairs *pairs, struct view servers); // after a reload
void pairs_free(struct pairs *pairs);

// `host`: normalised, without port and trailing dot. Asks in the background for what is unknown, for an
// address that is not in the set, and for what is soon to go from it; never more than one query (A and AAAA)
// a name under way. An address literal is verified when it is the address.
enum pair pairs_check(struct pairs *pairs, struct view host, const struct address *address);

// An answer that crossed the gateway from a resolver the admin trusts (learn_dns).
void pairs_learn(struct pairs *pairs, struct view host, const struct address *addresses, unsigned count,
        uint32_t ttl_s);

struct pairs_stats {
    uint64_t names, addresses; // known now
    uint64_t queries, failed, learned;
    unsigned under_way, queued;
};
void pairs_stats(struct pairs *pairs, struct pairs_stats *stats);
