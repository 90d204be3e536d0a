#include "cache/ghosts.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define WAYS 32 // of 2 bytes: a cache line

struct ghosts {
    pthread_mutex_t lock;
    uint16_t (*sets)[WAYS]; // the newest first, without gaps; 0: none
    uint32_t set_count;
    unsigned ways; // that count
};

struct ghosts *ghosts_new(uint64_t objects) {
    uint64_t sets = objects / WAYS + 1;
    if (sets > UINT32_MAX || sets > SIZE_MAX / sizeof(uint16_t[WAYS]))
        return NULL;
    struct ghosts *ghosts = calloc(1, sizeof *ghosts);
    if (!ghosts)
        return NULL;
    void *memory = mmap(NULL, sets * sizeof *ghosts->sets, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        free(ghosts);
        return NULL;
    }
    pthread_mutex_init(&ghosts->lock, NULL);
    ghosts->sets = memory;
    ghosts->set_count = (uint32_t)sets;
    ghosts->ways = WAYS;
    return ghosts;
}

void ghosts_free(struct ghosts *ghosts) {
    if (!ghosts)
        return;
    munmap(ghosts->sets, ghosts->set_count * sizeof *ghosts->sets);
    pthread_mutex_destroy(&ghosts->lock);
    free(ghosts);
}

uint64_t ghosts_bytes(const struct ghosts *ghosts) {
    return sizeof *ghosts + ghosts->set_count * sizeof *ghosts->sets;
}

// The place in a set is an age: as many came to this set since, and to each other one on average.
void ghosts_limit(struct ghosts *ghosts, uint64_t objects) {
    uint64_t ways = objects / ghosts->set_count + (objects % ghosts->set_count != 0);
    pthread_mutex_lock(&ghosts->lock);
    ghosts->ways = ways > WAYS ? WAYS : (unsigned)ways;
    pthread_mutex_unlock(&ghosts->lock);
}

static uint16_t fingerprint(uint64_t bits) {
    uint16_t lowest = (uint16_t)bits;
    return lowest ? lowest : 1;
}

void ghosts_add(struct ghosts *ghosts, struct cache_key key) {
    uint64_t bits = key_fold(key);
    uint16_t *set = ghosts->sets[key_reduce(bits, ghosts->set_count)];
    pthread_mutex_lock(&ghosts->lock);
    memmove(set + 1, set, (WAYS - 1) * sizeof *set);
    set[0] = fingerprint(bits);
    pthread_mutex_unlock(&ghosts->lock);
}

static unsigned position(const uint16_t set[static WAYS], uint16_t wanted) {
    unsigned at = 0;
    while (at < WAYS && set[at] != wanted)
        at++;
    return at;
}

bool ghosts_take(struct ghosts *ghosts, struct cache_key key) {
    uint64_t bits = key_fold(key);
    uint16_t *set = ghosts->sets[key_reduce(bits, ghosts->set_count)];
    pthread_mutex_lock(&ghosts->lock);
    unsigned at = position(set, fingerprint(bits));
    bool found = at < ghosts->ways;
    if (at < WAYS) {
        memmove(set + at, set + at + 1, (WAYS - 1 - at) * sizeof *set);
        set[WAYS - 1] = 0;
    }
    pthread_mutex_unlock(&ghosts->lock);
    return found;
}
