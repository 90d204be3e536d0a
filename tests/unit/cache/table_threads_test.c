// Readers and writers of one index at once, in so few buckets that entries move and are lost all the time.
// Each location says whose it is, so that a reader knows a torn one.
#include "cache/table.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define WRITERS 3
#define READERS 3
#define ROUNDS 400000
#define STEADY 40 // keys that are there all the time
#define KEYS 180  // of each writer
#define FIRST_OF(writer) (1000 * ((writer) + 1))

static struct table *table;
static _Atomic bool finished;
static _Atomic unsigned torn, strangers, missing, found, steady_lost, unknown;
static _Atomic uint64_t last_lost[FIRST_OF(WRITERS)]; // the latest of each owner's that an adding cost

static struct cache_key key_number(uint64_t n) {
    return (struct cache_key){n * 77, n};
}

static uint64_t check_of(uint64_t owner_and_version) {
    return owner_and_version * UINT64_C(0x9e3779b97f4a7c15) >> 50;
}

// version (12, enough for ROUNDS / KEYS), owner (20), check (14): a later version is a greater number
static uint64_t location_of(uint64_t owner, uint64_t version) {
    uint64_t both = (version & 0xfff) << 20 | owner;
    return both << 14 | check_of(both);
}

static bool is_whole(uint64_t location) {
    return location <= TABLE_LOCATION_MAXIMUM && check_of(location >> 14) == (location & 0x3fff);
}

static uint64_t owner_of(uint64_t location) {
    return location >> 14 & 0xfffff;
}

static unsigned dice(unsigned *random, unsigned sides) {
    *random = *random * 1103515245 + 12345;
    return (*random >> 12) % sides;
}

static void raise_to(_Atomic uint64_t *number, uint64_t least) {
    uint64_t now = *number;
    while (now < least && !atomic_compare_exchange_weak(number, &now, least))
        ;
}

static void note_lost(uint64_t location) {
    if (location == UINT64_MAX)
        return;
    uint64_t owner = owner_of(location);
    if (!is_whole(location) || owner >= FIRST_OF(WRITERS))
        unknown++;
    else if (owner < STEADY)
        steady_lost++;
    else
        raise_to(&last_lost[owner], location);
}

struct writer {
    pthread_t thread;
    unsigned number, kept;
    bool has[KEYS];
    unsigned versions[KEYS];
    unsigned wrong;
};

static void write_one(struct writer *writer, unsigned i, unsigned what) {
    uint64_t owner = FIRST_OF(writer->number) + i, lost;
    uint64_t now = location_of(owner, writer->versions[i]),
             next = location_of(owner, writer->versions[i] + 1);
    bool stays = false;
    if (!writer->has[i]) {
        table_add(table, key_number(owner), next, &lost);
        note_lost(lost);
        writer->versions[i]++;
        stays = true;
    } else if (what == 0) {
        stays = table_move(table, key_number(owner), now, next, 0);
        writer->versions[i] += stays;
        writer->kept += stays;
    } else {
        table_remove(table, key_number(owner), now);
    }
    writer->has[i] = stays;
}

static void *write_many(void *context) {
    struct writer *writer = context;
    unsigned random = writer->number + 1;
    for (unsigned n = 0; n < ROUNDS; n++)
        write_one(writer, dice(&random, KEYS), dice(&random, 3));
    return NULL;
}

static void look(uint64_t owner, bool is_steady) {
    struct table_entry entries[TABLE_CANDIDATES_MAX];
    unsigned count = table_find(table, key_number(owner), entries), own = 0;
    for (unsigned i = 0; i < count; i++) {
        torn += !is_whole(entries[i].location);
        own += owner_of(entries[i].location) == owner;
    }
    strangers += count - own;
    found += own;
    if (is_steady)
        missing += own != 1;
    else
        missing += own > 1;                         // one entry, not two while it moves
    if (own && (is_steady || entries[0].hits == 0)) // the steady ones stay those hit most
        table_hit(table, key_number(owner), entries[0].location);
}

static void *read_many(void *context) {
    unsigned random = *(unsigned *)context;
    while (!finished) {
        look(dice(&random, STEADY), true);
        look(FIRST_OF(dice(&random, WRITERS)) + dice(&random, KEYS), false);
    }
    return NULL;
}

static void add_steady(void) {
    uint64_t lost;
    for (uint64_t owner = 0; owner < STEADY; owner++) {
        table_add(table, key_number(owner), location_of(owner, 0), &lost);
        for (unsigned n = 0; n < TABLE_HITS_MAXIMUM; n++)
            table_hit(table, key_number(owner), location_of(owner, 0));
    }
}

// When all is quiet: what its owner believes to be there is there, but for what was told to be lost.
static void check_writer(const struct writer *writer, uint64_t *count) {
    struct table_entry entries[TABLE_CANDIDATES_MAX];
    for (unsigned i = 0; i < KEYS; i++) {
        uint64_t owner = FIRST_OF(writer->number) + i, location = location_of(owner, writer->versions[i]);
        unsigned is_there = table_find(table, key_number(owner), entries);
        bool expected = writer->has[i] && last_lost[owner] != location;
        CU_ASSERT_EQUAL(is_there, expected);
        if (is_there && expected)
            CU_ASSERT_EQUAL(entries[0].location, location);
        *count += expected;
    }
}

static void no_reader_sees_half_an_entry(void) {
    static struct writer writers[WRITERS];
    pthread_t readers[READERS];
    unsigned seeds[READERS];
    uint64_t count = STEADY;
    table = table_new(1); // 384 places for up to 580 entries
    add_steady();
    for (unsigned i = 0; i < READERS; i++) {
        seeds[i] = i + 100;
        pthread_create(&readers[i], NULL, read_many, &seeds[i]);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i].number = i;
        pthread_create(&writers[i].thread, NULL, write_many, &writers[i]);
    }
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(writers[i].thread, NULL);
    finished = true;
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    CU_ASSERT_EQUAL(torn, 0);
    CU_ASSERT_EQUAL(strangers, 0);
    CU_ASSERT_EQUAL(missing, 0);
    CU_ASSERT_EQUAL(unknown, 0);
    CU_ASSERT_EQUAL(steady_lost, 0);
    CU_ASSERT(found > 0);
    for (unsigned i = 0; i < WRITERS; i++) {
        CU_ASSERT(writers[i].kept > 0);
        check_writer(&writers[i], &count);
    }
    CU_ASSERT_EQUAL(table_count(table), count);
    table_free(table);
}

SUITE(cache_table_threads, CASE(no_reader_sees_half_an_entry))
