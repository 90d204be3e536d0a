#include "cache/ghosts.h"
#include "cache/table.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

static uint64_t seed;

static uint64_t dice(uint64_t sides) {
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (seed >> 24) % sides;
}

static struct cache_key key_number(uint64_t n) {
    return (struct cache_key){n, 0};
}

static uint64_t add(struct table *table, uint64_t key, uint64_t location) {
    uint64_t lost;
    table_add(table, key_number(key), location, &lost);
    return lost;
}

// The hits of an entry; -1: it is not found, or twice.
static int hits_of(const struct table *table, uint64_t key, uint64_t location) {
    struct table_entry entries[TABLE_CANDIDATES_MAX];
    unsigned found = table_find(table, key_number(key), entries), times = 0;
    int hits = -1;
    for (unsigned i = 0; i < found; i++)
        if (entries[i].location == location) {
            hits = entries[i].hits;
            times++;
        }
    return times == 1 ? hits : -1;
}

// ---- one at a time ----

static void what_was_added_is_found(void) {
    struct table *table = table_new(1000);
    struct table_entry entries[TABLE_CANDIDATES_MAX];
    CU_ASSERT_EQUAL(table_find(table, key_number(1), entries), 0);
    CU_ASSERT_EQUAL(add(table, 1, 0), UINT64_MAX);
    CU_ASSERT_EQUAL(add(table, 2, TABLE_LOCATION_MAXIMUM), UINT64_MAX);
    CU_ASSERT_EQUAL(hits_of(table, 1, 0), 0);
    CU_ASSERT_EQUAL(hits_of(table, 2, TABLE_LOCATION_MAXIMUM), 0);
    CU_ASSERT_EQUAL(table_find(table, key_number(3), entries), 0);
    CU_ASSERT_EQUAL(table_count(table), 2);
    CU_ASSERT_FALSE(table_remove(table, key_number(1), 1));
    CU_ASSERT_FALSE(table_remove(table, key_number(2), 0));
    CU_ASSERT_TRUE(table_remove(table, key_number(1), 0));
    CU_ASSERT_FALSE(table_remove(table, key_number(1), 0));
    CU_ASSERT_EQUAL(table_find(table, key_number(1), entries), 0);
    CU_ASSERT_EQUAL(table_count(table), 1);
    table_free(table);
}

static void adding_again_changes_nothing(void) {
    struct table *table = table_new(1000);
    add(table, 1, 7);
    table_hit(table, key_number(1), 7);
    CU_ASSERT_EQUAL(add(table, 1, 7), UINT64_MAX);
    CU_ASSERT_EQUAL(hits_of(table, 1, 7), 1);
    CU_ASSERT_EQUAL(table_count(table), 1);
    table_free(table);
}

static void hits_saturate(void) {
    struct table *table = table_new(1000);
    add(table, 1, 7);
    add(table, 1, 8);
    for (int n = 0; n < 300; n++) {
        CU_ASSERT_EQUAL(hits_of(table, 1, 7), n < TABLE_HITS_MAXIMUM ? n : TABLE_HITS_MAXIMUM);
        table_hit(table, key_number(1), 7);
    }
    CU_ASSERT_EQUAL(hits_of(table, 1, 8), 0);
    table_hit(table, key_number(1), 9); // is not there
    table_hit(table, key_number(2), 7);
    CU_ASSERT_EQUAL(hits_of(table, 1, 8), 0);
    CU_ASSERT_EQUAL(table_count(table), 2);
    table_free(table);
}

static void a_moved_entry_takes_its_new_hits(void) {
    struct table *table = table_new(1000);
    add(table, 1, 7);
    add(table, 1, 8);
    table_hit(table, key_number(1), 7);
    CU_ASSERT_TRUE(table_move(table, key_number(1), 7, 70, 3));
    CU_ASSERT_EQUAL(hits_of(table, 1, 70), 3);
    CU_ASSERT_EQUAL(hits_of(table, 1, 7), -1);
    CU_ASSERT_EQUAL(hits_of(table, 1, 8), 0);
    CU_ASSERT_FALSE(table_move(table, key_number(1), 7, 71, 0));
    CU_ASSERT_TRUE(table_move(table, key_number(1), 70, 70, 1));
    CU_ASSERT_EQUAL(hits_of(table, 1, 70), 1);
    CU_ASSERT_EQUAL(table_count(table), 2);
    table_free(table);
}

// Variants have the same two buckets: the thirteenth finds no room, and the one that was hit least goes.
static void the_least_hit_of_one_key_is_lost(void) {
    for (uint64_t least = 0; least < TABLE_CANDIDATES_MAX; least++) {
        struct table *table = table_new(1000);
        for (uint64_t n = 0; n < TABLE_CANDIDATES_MAX; n++) {
            CU_ASSERT_EQUAL(add(table, 1, n), UINT64_MAX);
            for (unsigned hits = 0; hits < (n == least ? 1U : 2U); hits++)
                table_hit(table, key_number(1), n);
        }
        CU_ASSERT_EQUAL(add(table, 1, 500), least);
        CU_ASSERT_EQUAL(table_count(table), TABLE_CANDIDATES_MAX);
        CU_ASSERT_EQUAL(hits_of(table, 1, least), -1);
        CU_ASSERT_EQUAL(hits_of(table, 1, 500), 0);
        table_free(table);
    }
}

static void the_new_one_stays_when_all_were_hit(void) {
    struct table *table = table_new(1000);
    for (uint64_t n = 0; n < TABLE_CANDIDATES_MAX; n++) {
        add(table, 1, n);
        for (unsigned hits = 0; hits < TABLE_HITS_MAXIMUM; hits++)
            table_hit(table, key_number(1), n);
    }
    CU_ASSERT(add(table, 1, 500) < TABLE_CANDIDATES_MAX);
    CU_ASSERT_EQUAL(hits_of(table, 1, 500), 0);
    table_free(table);
}

static void a_range_of_locations_is_forgotten(void) {
    struct table *table = table_new(1000);
    for (uint64_t n = 0; n < 1000; n++)
        CU_ASSERT_EQUAL(add(table, n, n), UINT64_MAX);
    CU_ASSERT_EQUAL(table_forget(table, 100, 199), 100);
    CU_ASSERT_EQUAL(table_forget(table, 100, 199), 0);
    CU_ASSERT_EQUAL(table_count(table), 900);
    for (uint64_t n = 0; n < 1000; n++)
        CU_ASSERT_EQUAL(hits_of(table, n, n), n >= 100 && n < 200 ? -1 : 0);
    CU_ASSERT_EQUAL(table_forget(table, 0, TABLE_LOCATION_MAXIMUM), 900);
    CU_ASSERT_EQUAL(table_count(table), 0);
    table_free(table);
}

static void sizes_have_bounds(void) {
    table_free(NULL);
    struct table *table = table_new(0);
    CU_ASSERT_EQUAL(add(table, 1, 1), UINT64_MAX);
    CU_ASSERT(table_bytes(table) <= 8192);
    table_free(table);
    CU_ASSERT_PTR_NULL(table_new(UINT64_MAX));
    CU_ASSERT_PTR_NULL(table_new(UINT64_MAX / 100));
}

// ---- against a list that is searched from end to end ----

#define MODEL_MAXIMUM 4000
#define MODEL_KEYS 600

struct known {
    uint64_t key, location;
    unsigned hits;
};

struct model {
    struct table *table;
    struct known known[MODEL_MAXIMUM];
    unsigned count;
    uint64_t next_location;
    unsigned lost, false_candidates, wrong;
};

static unsigned model_at(const struct model *model, uint64_t location) {
    unsigned i = 0;
    while (i < model->count && model->known[i].location != location)
        i++;
    return i;
}

static void model_drop(struct model *model, unsigned i) {
    model->known[i] = model->known[--model->count];
}

static void model_add(struct model *model) {
    if (model->count == MODEL_MAXIMUM)
        return;
    uint64_t key = dice(MODEL_KEYS), location = model->next_location++,
             lost = add(model->table, key, location);
    if (lost != UINT64_MAX) {
        unsigned i = model_at(model, lost);
        model->lost++;
        model->wrong += i == model->count;
        if (i < model->count)
            model_drop(model, i);
    }
    model->known[model->count++] = (struct known){key, location, 0};
}

static void model_move(struct model *model) {
    struct known *known = &model->known[dice(model->count)];
    uint64_t to = model->next_location++;
    known->hits = (unsigned)dice(TABLE_HITS_MAXIMUM + 1);
    model->wrong +=
            !table_move(model->table, key_number(known->key), known->location, to, (uint8_t)known->hits);
    known->location = to;
}

static void model_remove(struct model *model) {
    unsigned i = (unsigned)dice(model->count);
    struct known known = model->known[i];
    model->wrong += !table_remove(model->table, key_number(known.key), known.location);
    model->wrong += table_remove(model->table, key_number(known.key), known.location);
    model_drop(model, i);
}

static void model_hit(struct model *model) {
    struct known *known = &model->known[dice(model->count)];
    table_hit(model->table, key_number(known->key), known->location);
    known->hits += known->hits < TABLE_HITS_MAXIMUM;
}

// Everything known of the key is found, with its hits, and nothing else but what shares its tag.
static void model_find(struct model *model, uint64_t key) {
    struct table_entry entries[TABLE_CANDIDATES_MAX];
    unsigned found = table_find(model->table, key_number(key), entries), expected = 0, seen = 0;
    for (unsigned i = 0; i < model->count; i++)
        expected += model->known[i].key == key;
    for (unsigned i = 0; i < found; i++) {
        unsigned at = model_at(model, entries[i].location);
        model->wrong += at == model->count;
        if (at < model->count && model->known[at].key == key) {
            seen++;
            model->wrong += entries[i].hits != model->known[at].hits;
        } else {
            model->false_candidates++;
        }
    }
    model->wrong += seen != expected;
}

static void model_step(struct model *model, unsigned adds_percent) {
    unsigned what = (unsigned)dice(100);
    if (what < adds_percent || model->count == 0)
        model_add(model);
    else if (what < adds_percent + 10)
        model_move(model);
    else if (what < adds_percent + 30)
        model_remove(model);
    else if (what < adds_percent + 50)
        model_hit(model);
    else
        model_find(model, dice(MODEL_KEYS));
}

static void play_model(struct model *model, uint64_t objects, unsigned adds_percent, unsigned steps) {
    *model = (struct model){.table = table_new(objects)};
    seed = objects * 100 + adds_percent;
    for (unsigned n = 0; n < steps; n++) {
        model_step(model, adds_percent);
        model->wrong += table_count(model->table) != model->count;
    }
    for (uint64_t key = 0; key < MODEL_KEYS; key++)
        model_find(model, key);
    CU_ASSERT_EQUAL(model->wrong, 0);
    CU_ASSERT(model->false_candidates <= 1);
    table_free(model->table);
}

static void it_agrees_with_a_list(void) {
    static struct model model;
    play_model(&model, 4000, 22, 40000); // some variants of each key, much room
    CU_ASSERT_EQUAL(model.lost, 0);
    play_model(&model, 250, 40, 40000); // 64 buckets, full: nearly all moves and losses there are
    CU_ASSERT(model.lost > 1000 && model.count > 330);
}

// ---- what it is rated for ----

#define RATED 1000000

// A queue: the oldest leaves for each new one. Few entries are lost, and 16 bytes an object are enough.
static void few_are_lost_at_the_rated_number(void) {
    struct table *table = table_new(RATED);
    struct ghosts *ghosts = ghosts_new(RATED);
    CU_ASSERT(table_bytes(table) + ghosts_bytes(ghosts) <= UINT64_C(16) * RATED);
    unsigned lost = 0, missing = 0;
    for (uint64_t n = 0; n < RATED * 2; n++) {
        if (n >= RATED)
            table_remove(table, key_number(n - RATED), n - RATED);
        lost += add(table, n, n) != UINT64_MAX;
    }
    for (uint64_t n = RATED; n < RATED * 2; n++)
        missing += hits_of(table, n, n) != 0;
    CU_ASSERT(lost * 1000 <= 3 * RATED * 2);
    CU_ASSERT(missing <= lost);
    CU_ASSERT(table_count(table) + lost >= RATED);
    ghosts_free(ghosts);
    table_free(table);
}

// 12 places, 80 % taken, 24 bits: 6 in ten million.
static void few_candidates_are_false(void) {
    struct table *table = table_new(RATED);
    struct table_entry entries[TABLE_CANDIDATES_MAX];
    for (uint64_t n = 0; n < RATED; n++)
        add(table, n, n);
    unsigned candidates = 0;
    for (uint64_t n = 0; n < RATED * 2; n++)
        candidates += table_find(table, key_number(n + (UINT64_C(1) << 40)), entries);
    CU_ASSERT(candidates <= 10);
    table_free(table);
}

SUITE(cache_table, CASE(what_was_added_is_found), CASE(adding_again_changes_nothing), CASE(hits_saturate),
        CASE(a_moved_entry_takes_its_new_hits), CASE(the_least_hit_of_one_key_is_lost),
        CASE(the_new_one_stays_when_all_were_hit), CASE(a_range_of_locations_is_forgotten),
        CASE(sizes_have_bounds), CASE(it_agrees_with_a_list), CASE(few_are_lost_at_the_rated_number),
        CASE(few_candidates_are_false))
