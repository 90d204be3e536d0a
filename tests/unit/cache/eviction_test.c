#include "cache/eviction.h"
#include "tests/unit/unit.h"

#include <string.h>

#define NODES 1000

static struct eviction_node nodes[NODES];
static const struct eviction_node *in_use;

static bool claim(struct eviction_node *node) {
    return node != in_use;
}

static void begin(struct eviction *eviction) {
    in_use = NULL;
    memset(nodes, 0, sizeof nodes);
    eviction_init(eviction, NODES);
    for (unsigned i = 0; i < NODES; i++) {
        nodes[i].fingerprint = (i + 1) * 0x9e3779b97f4a7c15;
        nodes[i].bytes = 10;
    }
}

static void end(struct eviction *eviction) {
    while (eviction_victim(eviction, claim))
        continue;
    eviction_fini(eviction);
}

static void oldest_first(void) {
    struct eviction eviction;
    begin(&eviction);
    CU_ASSERT_PTR_NULL(eviction_victim(&eviction, claim));
    for (int i = 0; i < 10; i++)
        eviction_add(&eviction, &nodes[i]);
    eviction_remove(&eviction, &nodes[1]);
    eviction_remove(&eviction, &nodes[1]);
    CU_ASSERT_EQUAL(eviction.small.bytes, 90);
    CU_ASSERT_PTR_EQUAL(eviction_victim(&eviction, claim), &nodes[0]);
    CU_ASSERT_PTR_EQUAL(eviction_victim(&eviction, claim), &nodes[2]);
    CU_ASSERT_EQUAL(nodes[2].queue, QUEUE_NONE);
    end(&eviction);
}

static void hit_ones_move_to_main(void) {
    struct eviction eviction;
    begin(&eviction);
    for (int i = 0; i < 10; i++)
        eviction_add(&eviction, &nodes[i]);
    for (int i = 0; i < 100; i++)
        eviction_hit(&nodes[0]);
    CU_ASSERT_EQUAL(nodes[0].frequency, EVICTION_FREQUENCY_MAXIMUM);
    CU_ASSERT_PTR_EQUAL(eviction_victim(&eviction, claim), &nodes[1]);
    CU_ASSERT_EQUAL(nodes[0].queue, QUEUE_MAIN);
    for (int i = 2; i < 10; i++)
        CU_ASSERT_PTR_EQUAL(eviction_victim(&eviction, claim), &nodes[i]);
    CU_ASSERT_PTR_EQUAL(eviction_victim(&eviction, claim), &nodes[0]); // the last one left
    end(&eviction);
}

// Main gives only while it has more than its share.
static void shares(void) {
    struct eviction eviction;
    begin(&eviction);
    for (int i = 0; i < 100; i++) {
        eviction_add(&eviction, &nodes[i]);
        eviction_hit(&nodes[i]);
    }
    eviction_add(&eviction, &nodes[100]);
    CU_ASSERT_PTR_EQUAL(
            eviction_victim(&eviction, claim), &nodes[0]); // all hit: the oldest once main is too big
    CU_ASSERT_TRUE(eviction.small.bytes * 100 <= (eviction.small.bytes + eviction.main.bytes) * 20);
    CU_ASSERT_EQUAL(nodes[100].queue, QUEUE_SMALL);
    end(&eviction);
}

static void ghosts(void) {
    struct eviction eviction;
    begin(&eviction);
    for (int i = 0; i < 20; i++)
        eviction_add(&eviction, &nodes[i]);
    CU_ASSERT_PTR_EQUAL(eviction_victim(&eviction, claim), &nodes[0]);
    eviction_add(&eviction, &nodes[0]); // back soon
    CU_ASSERT_EQUAL(nodes[0].queue, QUEUE_MAIN);
    CU_ASSERT_PTR_EQUAL(eviction_victim(&eviction, claim), &nodes[1]);
    for (int i = 20; i < 60; i++) { // more leave than there are objects
        eviction_add(&eviction, &nodes[i]);
        eviction_victim(&eviction, claim);
    }
    eviction_add(&eviction, &nodes[1]);
    CU_ASSERT_EQUAL(nodes[1].queue, QUEUE_SMALL);
    end(&eviction);
}

static void in_use_ones_stay(void) {
    struct eviction eviction;
    begin(&eviction);
    for (int i = 0; i < 3; i++)
        eviction_add(&eviction, &nodes[i]);
    in_use = &nodes[0];
    CU_ASSERT_PTR_EQUAL(eviction_victim(&eviction, claim), &nodes[1]);
    CU_ASSERT_PTR_EQUAL(eviction_victim(&eviction, claim), &nodes[2]);
    CU_ASSERT_PTR_NULL(eviction_victim(&eviction, claim));
    CU_ASSERT_EQUAL(eviction.main.count, 1);
    in_use = NULL;
    CU_ASSERT_PTR_EQUAL(eviction_victim(&eviction, claim), &nodes[0]);
    end(&eviction);
}

SUITE(cache_eviction, CASE(oldest_first), CASE(hit_ones_move_to_main), CASE(shares), CASE(ghosts),
        CASE(in_use_ones_stay))
