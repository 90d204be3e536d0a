// What origin, clients and run.py agree on, in a shared file: which bytes stand under an URL at a time, what
// has happened to the store, and counts. Everything an origin says follows from the URL, the version (which
// follows from the time) and the variant, so that whoever receives a byte can tell whether it may be there.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define URLS 400
#define HOSTS 4
#define FOLDERS 8
#define VARIANTS 3
#define CALMS 64
#define POOL_BYTES (UINT64_C(48) << 20)

enum counter {
#define COUNTER(name) COUNT_##name,
#include "tests/torture/counter.tbl"
#undef COUNTER
    COUNTERS
};

enum phase {
    PHASE_RUN,
    PHASE_QUIET, // no new operations
    PHASE_CALM,  // every URL once by each client, and nothing may fail
    PHASE_END,
};

struct purge {           // run.py: `done` infinite, `from`, then `done`
    _Atomic double done; // whoever asks later ...
    _Atomic double from; // ... gets nothing that the origin has given before
};

struct calm { // no version ends in it
    double from, until;
};

struct world { // run.py: World
    uint64_t seed;
    double start;                             // of the monotonic clock, as all times
    _Atomic double outage_from, outage_until; // the last time the daemon was down
    _Atomic uint32_t phase;
    _Atomic uint32_t active;   // operations that run
    _Atomic uint32_t mischief; // of the origin
    uint32_t hang_s;
    _Atomic uint64_t counters[COUNTERS];
    struct purge purges[URLS];
    struct calm calms[CALMS];
    _Atomic uint32_t calm_count;
    _Atomic uint32_t was_damaged; // bits were flipped: where an origin does not answer ranges, what is found
                                  // broken amid a body is cut off, in calm as well
};

struct place { // what stands under an URL at a time, for one variant
    unsigned url;
    unsigned version;
    unsigned variant;
};

struct dice {
    uint64_t state;
};

double world_now(void); // seconds, monotonic
void world_count(struct world *world, enum counter counter, uint64_t more);

uint64_t dice_throw(struct dice *dice);
uint64_t dice_below(struct dice *dice, uint64_t limit); // 0: 0
bool dice_chance(struct dice *dice, double probability);

unsigned place_version(const struct world *world, unsigned url, double at);
uint64_t place_size(const struct world *world, const struct place *place);
const unsigned char *place_body(const struct world *world, const struct place *place);
const char *place_control(const struct world *world, const struct place *place); // "": none
// How long after the origin has spoken it may still be served, without asking again.
double place_lifetime_s(const struct world *world, const struct place *place);
// Whether it may be served for longer while the origin breaks off [RFC 9111 4.2.4].
bool place_may_stand_in(const struct world *world, const struct place *place);
bool place_has_ranges(const struct world *world, const struct place *place);
bool url_varies(unsigned url);
