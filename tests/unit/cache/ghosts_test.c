#include "cache/ghosts.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdlib.h>

#define OBJECTS 100000

static struct cache_key key_number(uint64_t n) {
    return (struct cache_key){n, n << 7};
}

static void a_ghost_is_taken_once(void) {
    struct ghosts *ghosts = ghosts_new(OBJECTS);
    CU_ASSERT_FALSE(ghosts_take(ghosts, key_number(1)));
    ghosts_add(ghosts, key_number(1));
    ghosts_add(ghosts, key_number(2));
    CU_ASSERT_TRUE(ghosts_take(ghosts, key_number(1)));
    CU_ASSERT_FALSE(ghosts_take(ghosts, key_number(1)));
    CU_ASSERT_TRUE(ghosts_take(ghosts, key_number(2)));
    ghosts_free(ghosts);
}

static void two_bytes_an_object(void) {
    struct ghosts *ghosts = ghosts_new(OBJECTS);
    CU_ASSERT(ghosts_bytes(ghosts) <= OBJECTS * 2 + 4096);
    ghosts_free(ghosts);
    ghosts = ghosts_new(0);
    ghosts_add(ghosts, key_number(1));
    CU_ASSERT_TRUE(ghosts_take(ghosts, key_number(1)));
    ghosts_free(ghosts);
    ghosts_free(NULL);
    CU_ASSERT_PTR_NULL(ghosts_new(UINT64_MAX));
}

// How many of `count` ghosts are still there when `age` came after the first of them, in per mille.
static unsigned remain(uint64_t limit, uint64_t age, unsigned count) {
    struct ghosts *ghosts = ghosts_new(OBJECTS);
    ghosts_limit(ghosts, limit);
    for (uint64_t n = 0; n < age; n++)
        ghosts_add(ghosts, key_number(n));
    unsigned found = 0;
    for (uint64_t n = 0; n < count; n++)
        found += ghosts_take(ghosts, key_number(n));
    ghosts_free(ghosts);
    return found * 1000 / count;
}

static void about_so_many_of_the_latest_stay(void) {
    CU_ASSERT(remain(OBJECTS, OBJECTS / 2, 1000) >= 985);
    unsigned half = remain(OBJECTS, OBJECTS, 1000);
    CU_ASSERT(half > 350 && half < 650);
    CU_ASSERT(remain(OBJECTS, OBJECTS * 2, 1000) <= 5);
    CU_ASSERT(remain(OBJECTS * 9, OBJECTS / 2, 1000) >= 985);
}

static void fewer_count_when_there_are_fewer_objects(void) {
    CU_ASSERT(remain(OBJECTS / 4, OBJECTS / 10, 1000) >= 950);
    unsigned half = remain(OBJECTS / 4, OBJECTS / 4, 1000);
    CU_ASSERT(half > 300 && half < 700);
    CU_ASSERT(remain(OBJECTS / 4, OBJECTS / 2, 1000) <= 30);
    CU_ASSERT_EQUAL(remain(0, 1000, 1000), 0);
}

static void strangers_are_seldom_mistaken(void) {
    struct ghosts *ghosts = ghosts_new(OBJECTS);
    for (uint64_t n = 0; n < OBJECTS * 2; n++)
        ghosts_add(ghosts, key_number(n));
    unsigned mistaken = 0;
    for (uint64_t n = 0; n < OBJECTS; n++)
        mistaken += ghosts_take(ghosts, key_number(n + (UINT64_C(1) << 40)));
    CU_ASSERT(mistaken < OBJECTS / 1000); // 32 of 65535 are 1 of 2048
    ghosts_free(ghosts);
}

static void *haunt(void *context) {
    struct ghosts *ghosts = context;
    uintptr_t taken = 0;
    for (uint64_t n = 0; n < 20000; n++) {
        ghosts_add(ghosts, key_number(n % 500));
        taken += ghosts_take(ghosts, key_number((n + 250) % 500));
        if (n % 1000 == 0)
            ghosts_limit(ghosts, OBJECTS);
    }
    return (void *)taken; // NOLINT(performance-no-int-to-ptr)
}

// Each taking takes one adding: nothing is doubled, and what is left over is still there.
static void threads_share_them(void) {
    struct ghosts *ghosts = ghosts_new(OBJECTS);
    pthread_t threads[3];
    uintptr_t taken = 0, added = 3 * 20000;
    for (unsigned i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, haunt, ghosts);
    for (unsigned i = 0; i < 3; i++) {
        void *its;
        pthread_join(threads[i], &its);
        taken += (uintptr_t)its;
    }
    for (uint64_t n = 0; n < 500; n++)
        while (ghosts_take(ghosts, key_number(n)))
            taken++;
    CU_ASSERT(taken <= added && taken > added / 2);
    for (uint64_t n = 0; n < 500; n++)
        CU_ASSERT_FALSE(ghosts_take(ghosts, key_number(n)));
    ghosts_free(ghosts);
}

SUITE(cache_ghosts, CASE(a_ghost_is_taken_once), CASE(two_bytes_an_object),
        CASE(about_so_many_of_the_latest_stay), CASE(fewer_count_when_there_are_fewer_objects),
        CASE(strangers_are_seldom_mistaken), CASE(threads_share_them))
