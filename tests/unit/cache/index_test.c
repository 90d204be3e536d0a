#include "cache/budget.h"
#include "cache/index.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>

static const struct endpoint origin = {.address = {{[15] = 1}}, .port = 80};

static struct entry *add(struct shard *shard, const struct entry_name *name) {
    struct entry *entry = index_entry_new(name);
    index_add(shard, entry);
    return entry;
}

// XXH3 can be made to collide: the whole URL decides.
static void equal_keys(void) {
    struct index index;
    index_init(&index, 1, 1000);
    struct cache_key key = {5, 7};
    struct endpoint other = origin;
    other.port = 81;
    struct entry_name names[] = {{key, &origin, VIEW("a"), VIEW("/b")}, {key, &origin, VIEW("a/"), VIEW("b")},
            {key, &origin, VIEW("a"), VIEW("/c")}, {key, &other, VIEW("a"), VIEW("/b")}};
    struct shard *shard = index_shard(&index, key);
    struct entry *entries[4];
    for (int i = 0; i < 4; i++) {
        CU_ASSERT_PTR_NULL(index_find(shard, &names[i]));
        entries[i] = add(shard, &names[i]);
    }
    for (int i = 0; i < 4; i++)
        CU_ASSERT_PTR_EQUAL(index_find(shard, &names[i]), entries[i]);
    for (int i = 0; i < 4; i++)
        CU_ASSERT_TRUE(index_release(shard, entries[i]) > 0);
    index_fini(&index);
}

static void resizing(void) {
    struct index index;
    struct entry *entries[1000];
    char paths[1000][8];
    uint64_t bytes = index_init(&index, 1, 0);
    for (int i = 0; i < 1000; i++) {
        struct entry_name name = {.destination = &origin, .authority = VIEW("a")};
        name.path = (struct view){paths[i], (size_t)snprintf(paths[i], sizeof paths[i], "/%d", i)};
        name.key = key_of(1, &origin, name.authority, name.path);
        entries[i] = add(index_shard(&index, name.key), &name);
    }
    int64_t growth = index_resize(&index, 100000);
    CU_ASSERT_TRUE(growth > 0);
    CU_ASSERT_EQUAL(index_resize(&index, 100000), 0);
    for (int i = 0; i < 1000; i++) {
        struct entry_name name = {.key = entries[i]->key,
                .destination = &origin,
                .authority = VIEW("a"),
                .path = entries[i]->path};
        CU_ASSERT_PTR_EQUAL(index_find(index_shard(&index, name.key), &name), entries[i]);
    }
    CU_ASSERT_EQUAL(index_resize(&index, 0), -growth);
    CU_ASSERT_EQUAL(bytes, INDEX_SHARDS * memory_cost(16 * sizeof(void *)));
    for (int i = 0; i < 1000; i++)
        index_release(index_shard(&index, entries[i]->key), entries[i]);
    index_fini(&index);
}

static void markers(void) {
    struct index index;
    index_init(&index, 1, 0);
    struct shard *shard = &index.shards[0];
    struct entry *entries[INDEX_MARKERS_MAX + 1];
    struct entry_name name = {.destination = &origin, .authority = VIEW("a"), .path = VIEW("/")};
    for (int i = 0; i <= INDEX_MARKERS_MAX; i++) {
        name.key.low = (uint64_t)i;
        entries[i] = add(shard, &name);
        size_t freed = index_mark(shard, entries[i], MARKER_ALONE, 100);
        CU_ASSERT_EQUAL(freed > 0, i == INDEX_MARKERS_MAX); // the oldest made room, and its entry with it
    }
    CU_ASSERT_EQUAL(shard->markers, INDEX_MARKERS_MAX);
    CU_ASSERT_EQUAL(index_release(shard, entries[1]), 0); // its marker keeps it
    CU_ASSERT_EQUAL(index_marker(shard, entries[1], 100 + INDEX_MARKER_SECONDS - 1), MARKER_ALONE);
    CU_ASSERT_EQUAL(index_marker(shard, entries[1], 100 + INDEX_MARKER_SECONDS), MARKER_NONE);
    CU_ASSERT_TRUE(index_release(shard, entries[1]) > 0);
    index_mark(shard, entries[2], MARKER_NONE, 100);
    CU_ASSERT_EQUAL(index_marker(shard, entries[2], 100), MARKER_NONE);
    CU_ASSERT_TRUE(index_release(shard, entries[2]) > 0);
    // Marking sweeps those that have run out.
    CU_ASSERT_TRUE(index_mark(shard, entries[3], MARKER_ALONE, 1000) > 0);
    CU_ASSERT_EQUAL(shard->markers, 1);
    CU_ASSERT_EQUAL(index_marker(shard, entries[3], 1000), MARKER_ALONE);
    index_mark(shard, entries[3], MARKER_NONE, 0);
    index_release(shard, entries[3]);
    index_fini(&index);
}

static void keys(void) {
    struct endpoint other = origin;
    other.scope = 1;
    static char path[100000];
    struct cache_key key = key_of(1, &origin, VIEW("ab"), VIEW("c"));
    CU_ASSERT_TRUE(key_equal(key, key_of(1, &origin, VIEW("ab"), VIEW("c"))));
    CU_ASSERT_FALSE(key_equal(key, key_of(1, &origin, VIEW("a"), VIEW("bc"))));
    CU_ASSERT_FALSE(key_equal(key, key_of(2, &origin, VIEW("ab"), VIEW("c"))));
    CU_ASSERT_FALSE(key_equal(key, key_of(1, &other, VIEW("ab"), VIEW("c"))));
    key = key_of(1, &origin, VIEW("a"), (struct view){path, sizeof path});
    CU_ASSERT_FALSE(key_equal(key, key_of(1, &origin, VIEW("a"), (struct view){path, sizeof path - 1})));
}

SUITE(cache_index, CASE(equal_keys), CASE(resizing), CASE(markers), CASE(keys))
