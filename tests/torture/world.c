#include "tests/torture/world.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double world_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void world_count(struct world *world, enum counter counter, uint64_t more) {
    atomic_fetch_add_explicit(&world->counters[counter], more, memory_order_relaxed);
}

// ---- dice ----

static uint64_t mix(uint64_t value) {
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

uint64_t dice_throw(struct dice *dice) {
    return mix(dice->state += UINT64_C(0x9e3779b97f4a7c15));
}

uint64_t dice_below(struct dice *dice, uint64_t limit) {
    return limit > 0 ? dice_throw(dice) % limit : 0;
}

bool dice_chance(struct dice *dice, double probability) {
    return (double)dice_below(dice, 1 << 24) < probability * (1 << 24);
}

// ---- places ----

static uint64_t hash(const struct world *world, const struct place *place, unsigned salt) {
    uint64_t value = mix(world->seed + salt);
    value = mix(value + place->url);
    value = mix(value + place->version);
    return mix(value + place->variant);
}

static uint64_t hash_url(const struct world *world, unsigned url, unsigned salt) {
    return hash(world, &(struct place){.url = url}, salt);
}

// Time as the versions know it: without the calms.
static double version_time(const struct world *world, double at) {
    double calm = 0;
    for (uint32_t i = 0, count = atomic_load(&world->calm_count); i < count; i++) {
        double until = world->calms[i].until < at ? world->calms[i].until : at;
        calm += until > world->calms[i].from ? until - world->calms[i].from : 0;
    }
    return at - world->start - calm;
}

unsigned place_version(const struct world *world, unsigned url, double at) {
    static const double periods[] = {3, 10, 30, 100, 1e6, 1e6};
    double period = periods[hash_url(world, url, 1) % 6];
    double phase = (double)(hash_url(world, url, 2) % 1000) / 1000;
    return 1 + (unsigned)floor(version_time(world, at) / period + phase);
}

static const uint64_t borders[] = {0, 1, 16384, 65536, 131072, 262144, 1 << 20, 2 << 20};

uint64_t place_size(const struct world *world, const struct place *place) {
    uint64_t dice = hash(world, place, 3);
    if (place->url % 100 == 0)
        return (20 << 20) - dice % 100000;
    if (place->url % 100 < 8)
        return (1 << 20) + dice % (4 << 20);
    if (place->url % 100 < 26)
        return 60000 + dice % 340000;
    if (dice >> 60 == 0 && place->url % 100 < 40) // around where the store has borders
        return borders[dice % 8] + (dice >> 32) % 3 - (borders[dice % 8] > 0);
    return dice % 16000;
}

static unsigned char *pool;

static void fill_pool(void) {
    pool = malloc(POOL_BYTES);
    if (!pool)
        abort();
    struct dice dice = {12345};
    for (uint64_t i = 0; i < POOL_BYTES / 8; i++)
        ((uint64_t *)(void *)pool)[i] = dice_throw(&dice);
}

const unsigned char *place_body(const struct world *world, const struct place *place) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_pool);
    return pool + hash(world, place, 4) % (POOL_BYTES - place_size(world, place));
}

static const struct {
    const char *text;
    double lifetime_s;
} controls[] = {
        {"max-age=600", 600},
        {"max-age=60", 60},
        {"public, s-maxage=20, max-age=1", 20},
        {"max-age=5", 5},
        {"max-age=5, must-revalidate", 5},
        {"max-age=2, stale-while-revalidate=10", 12},
        {"max-age=1, stale-if-error=20", 21},
        {"max-age=3600, immutable", 3600},
        {"max-age=0", 0},
        {"no-cache", 0},
        {"", 0},
        {"no-store", 0},
        {"private, max-age=60", 0},
};
#define CONTROLS (sizeof controls / sizeof *controls)

// The long ones more often.
static unsigned control_of(const struct world *world, const struct place *place) {
    uint64_t dice = hash(world, &(struct place){place->url, place->version, 0}, 5);
    return dice % 3 > 0 ? (unsigned)(dice >> 8) % 4 : (unsigned)((dice >> 8) % CONTROLS);
}

const char *place_control(const struct world *world, const struct place *place) {
    return controls[control_of(world, place)].text;
}

double place_lifetime_s(const struct world *world, const struct place *place) {
    return controls[control_of(world, place)].lifetime_s;
}

bool place_may_stand_in(const struct world *world, const struct place *place) {
    const char *control = place_control(world, place);
    return !strstr(control, "must-") && !strstr(control, "no-") && !strstr(control, "s-maxage") &&
           !strstr(control, "private");
}

bool place_has_ranges(const struct world *world, const struct place *place) {
    return hash_url(world, place->url, 6) % 8 > 0;
}

bool url_varies(unsigned url) {
    return url % 100 >= 8 && url % 9 == 0;
}
