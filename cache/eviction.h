// S3-FIFO over whole objects, by bytes: new ones enter a small queue; who is hit there moves to the main one,
// who is not leaves, and is remembered by a fingerprint, so that its return goes to the main queue at once.
// Small and main share one budget: main gives only while it has more than its share.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define EVICTION_SMALL_PERCENT 20
#define EVICTION_FREQUENCY_MAXIMUM 3

enum eviction_queue { QUEUE_NONE, QUEUE_SMALL, QUEUE_MAIN };
enum eviction_kind { EVICTION_OBJECT, EVICTION_CHUNK }; // what the node is in

struct eviction_node { // in what may be evicted
    struct eviction_node *newer, *older;
    uint64_t fingerprint;
    uint64_t bytes;
    enum eviction_queue queue;
    enum eviction_kind kind;
    _Atomic uint8_t frequency; // hits since it was last looked at, saturating
};

struct eviction_list {
    struct eviction_node *newest, *oldest;
    uint64_t bytes, count;
};

struct eviction {
    pthread_mutex_t lock;
    struct eviction_list small, main;
    uint64_t *ghosts; // sets of fingerprint (high 32 bits) and the time it left, in departures
    uint64_t ghost_sets;
    uint32_t departures;
};

// Ghosts for about `objects` objects. Returns the bytes they take (not counted in any budget here).
uint64_t eviction_init(struct eviction *eviction, uint64_t objects);
void eviction_fini(struct eviction *eviction); // the queues must be empty

void eviction_add(struct eviction *eviction, struct eviction_node *node);
void eviction_remove(struct eviction *eviction, struct eviction_node *node); // idempotent
static inline void eviction_hit(struct eviction_node *node) { // no lock; writes only while it changes
    uint8_t frequency = atomic_load_explicit(&node->frequency, memory_order_relaxed);
    if (frequency < EVICTION_FREQUENCY_MAXIMUM)
        atomic_store_explicit(&node->frequency, (uint8_t)(frequency + 1), memory_order_relaxed);
}

// Takes the next victim out of its queue; NULL when a bounded search finds none. `claim` is called with the
// queues' lock held: it takes a reference and says true, or says false for one that is in use, whose removal
// would free nothing; that one counts as hit.
typedef bool eviction_claim(struct eviction_node *node);
struct eviction_node *eviction_victim(struct eviction *eviction, eviction_claim *claim);
