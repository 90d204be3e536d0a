#include "cache/eviction.h"

#include "admin/check.h"
#include "cache/budget.h"

#include <stdlib.h>
#include <string.h>

#define GHOST_WAYS 4
#define GHOST_SETS_MINIMUM 64
#define GHOST_SETS_MAXIMUM (1 << 20)
#define STEPS_PER_LOCK 64
#define STEPS_PER_SEARCH 16384

uint64_t eviction_init(struct eviction *eviction, uint64_t objects) {
    *eviction = (struct eviction){.ghost_sets = GHOST_SETS_MINIMUM};
    pthread_mutex_init(&eviction->lock, NULL);
    while (eviction->ghost_sets * GHOST_WAYS < objects && eviction->ghost_sets < GHOST_SETS_MAXIMUM)
        eviction->ghost_sets *= 2;
    size_t bytes = eviction->ghost_sets * GHOST_WAYS * sizeof *eviction->ghosts;
    eviction->ghosts = memory_new(bytes);
    memset(eviction->ghosts, 0, bytes);
    return memory_cost(bytes);
}

void eviction_fini(struct eviction *eviction) {
    CHECK(eviction->small.count == 0 && eviction->main.count == 0);
    free(eviction->ghosts);
    pthread_mutex_destroy(&eviction->lock);
}

// ---- ghosts: a fingerprint is remembered for as many departures as there are objects ----

static uint64_t *ghost_set(struct eviction *eviction, uint64_t fingerprint) {
    return &eviction->ghosts[(fingerprint & (eviction->ghost_sets - 1)) * GHOST_WAYS];
}

static uint32_t ghost_tag(uint64_t fingerprint) {
    return (uint32_t)(fingerprint >> 32) | 1; // never 0, which is an empty place
}

static uint32_t ghost_age(const struct eviction *eviction, uint64_t ghost) {
    return ghost ? eviction->departures - (uint32_t)ghost : UINT32_MAX;
}

static void remember(struct eviction *eviction, uint64_t fingerprint) {
    uint64_t *set = ghost_set(eviction, fingerprint), *oldest = set;
    for (unsigned i = 1; i < GHOST_WAYS; i++)
        if (ghost_age(eviction, set[i]) > ghost_age(eviction, *oldest))
            oldest = &set[i];
    *oldest = (uint64_t)ghost_tag(fingerprint) << 32 | ++eviction->departures;
}

static bool forget(struct eviction *eviction, uint64_t fingerprint) {
    uint64_t *set = ghost_set(eviction, fingerprint), most = eviction->small.count + eviction->main.count;
    for (unsigned i = 0; i < GHOST_WAYS; i++) {
        if (set[i] == 0 || set[i] >> 32 != ghost_tag(fingerprint))
            continue;
        bool recent = ghost_age(eviction, set[i]) <= most;
        set[i] = 0;
        return recent;
    }
    return false;
}

// ---- the queues ----

static struct eviction_list *list_of(struct eviction *eviction, enum eviction_queue queue) {
    return queue == QUEUE_SMALL ? &eviction->small : &eviction->main;
}

static void push(struct eviction *eviction, enum eviction_queue queue, struct eviction_node *node) {
    struct eviction_list *list = list_of(eviction, queue);
    node->queue = queue;
    node->newer = NULL;
    node->older = list->newest;
    *(list->newest ? &list->newest->newer : &list->oldest) = node;
    list->newest = node;
    list->bytes += node->bytes;
    list->count++;
}

static void unlink_node(struct eviction *eviction, struct eviction_node *node) {
    struct eviction_list *list = list_of(eviction, node->queue);
    *(node->newer ? &node->newer->older : &list->newest) = node->older;
    *(node->older ? &node->older->newer : &list->oldest) = node->newer;
    list->bytes -= node->bytes;
    list->count--;
    node->queue = QUEUE_NONE;
}

void eviction_add(struct eviction *eviction, struct eviction_node *node) {
    pthread_mutex_lock(&eviction->lock);
    CHECK(node->queue == QUEUE_NONE);
    push(eviction, forget(eviction, node->fingerprint) ? QUEUE_MAIN : QUEUE_SMALL, node);
    pthread_mutex_unlock(&eviction->lock);
}

void eviction_remove(struct eviction *eviction, struct eviction_node *node) {
    pthread_mutex_lock(&eviction->lock);
    if (node->queue != QUEUE_NONE)
        unlink_node(eviction, node);
    pthread_mutex_unlock(&eviction->lock);
}

static struct eviction_node *candidate(const struct eviction *eviction) {
    uint64_t total = eviction->small.bytes + eviction->main.bytes;
    bool small_has_its_share = eviction->small.bytes * 100 >= total * EVICTION_SMALL_PERCENT;
    if (eviction->small.oldest && (small_has_its_share || !eviction->main.oldest))
        return eviction->small.oldest;
    return eviction->main.oldest;
}

// One step: the candidate leaves and is returned, or finds its new place.
static struct eviction_node *step(
        struct eviction *eviction, struct eviction_node *node, eviction_claim *claim) {
    enum eviction_queue queue = node->queue;
    uint8_t frequency = atomic_load_explicit(&node->frequency, memory_order_relaxed);
    unlink_node(eviction, node);
    if (frequency == 0 && claim(node)) {
        if (queue == QUEUE_SMALL)
            remember(eviction, node->fingerprint);
        return node;
    }
    uint8_t left = queue == QUEUE_SMALL || frequency == 0 ? 0 : (uint8_t)(frequency - 1);
    atomic_store_explicit(&node->frequency, left, memory_order_relaxed);
    push(eviction, QUEUE_MAIN, node);
    return NULL;
}

struct eviction_node *eviction_victim(struct eviction *eviction, eviction_claim *claim) {
    struct eviction_node *victim = NULL, *node = NULL;
    pthread_mutex_lock(&eviction->lock);
    // Everyone may have to be passed over until its frequency is used up.
    uint64_t steps = (eviction->small.count + eviction->main.count) * (EVICTION_FREQUENCY_MAXIMUM + 2);
    if (steps > STEPS_PER_SEARCH)
        steps = STEPS_PER_SEARCH;
    for (uint64_t i = 1; i <= steps && !victim && (node = candidate(eviction)); i++) {
        victim = step(eviction, node, claim);
        if (!victim && i % STEPS_PER_LOCK == 0) {
            pthread_mutex_unlock(&eviction->lock);
            pthread_mutex_lock(&eviction->lock);
        }
    }
    pthread_mutex_unlock(&eviction->lock);
    return victim;
}
