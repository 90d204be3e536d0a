#include "cache/purge.h"
#include "tests/unit/cache/disk.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED 7
#define VOLUME 99

static void add(struct purge *purge, enum volume_purge kind, const char *authority, const char *path,
        uint64_t sequence, uint64_t number) {
    struct purge_rule rule;
    CU_ASSERT_EQUAL(purge_make(purge, &rule, kind, view_of(authority), view_of(path)), 0);
    rule.sequence = sequence;
    rule.number = number;
    purge_add(purge, &rule);
}

static bool ends_with(void *context, struct view mask, struct view authority, struct view path) {
    (void)context, (void)authority;
    return path.length >= mask.length && view_equal(view_skip(path, path.length - mask.length), mask);
}

static bool is_purged(const struct purge *purge, const char *authority, const char *path, uint64_t sequence) {
    struct purge_asked asked = {.authority = view_of(authority), .path = view_of(path), .sequence = sequence};
    return purge_matches(purge, &asked, ends_with, NULL);
}

static void each_kind(void) {
    struct purge *purge = purge_new(SEED, 1 << 20);
    CU_ASSERT_FALSE(is_purged(purge, "a", "/1", 0));
    add(purge, VOLUME_PURGE_URL, "a", "/1", 10, 1);
    add(purge, VOLUME_PURGE_HOST, "b", "", 20, 1);
    add(purge, VOLUME_PURGE_PREFIX, "c", "/x/", 30, 1);
    add(purge, VOLUME_PURGE_MASK, "", ".iso", 40, 1);
    CU_ASSERT_TRUE(is_purged(purge, "a", "/1", 10));
    CU_ASSERT_FALSE(is_purged(purge, "a", "/1", 11));
    CU_ASSERT_FALSE(is_purged(purge, "a", "/2", 1));
    CU_ASSERT_FALSE(is_purged(purge, "a/", "1", 1));
    CU_ASSERT_TRUE(is_purged(purge, "b", "/", 20));
    CU_ASSERT_TRUE(is_purged(purge, "b", "/any", 1));
    CU_ASSERT_FALSE(is_purged(purge, "b", "/any", 21));
    CU_ASSERT_TRUE(is_purged(purge, "c", "/x/1", 30));
    CU_ASSERT_FALSE(is_purged(purge, "c", "/x", 30));
    CU_ASSERT_FALSE(is_purged(purge, "d", "/x/1", 30));
    CU_ASSERT_TRUE(is_purged(purge, "d", "/y.iso", 40));
    CU_ASSERT_FALSE(is_purged(purge, "d", "/y.iso", 41));
    add(purge, VOLUME_PURGE_URL, "a", "/1", 50, 2); // again
    CU_ASSERT_EQUAL(purge_count(purge), 4);
    CU_ASSERT_TRUE(is_purged(purge, "a", "/1", 50));
    CU_ASSERT_EQUAL(purge_newest(purge), 50);
    struct purge_rule key = {.kind = VOLUME_PURGE_KEY, .id = disk_key(5), .sequence = 60, .number = 3};
    purge_add(purge, &key);
    struct purge_asked asked = {.key = disk_key(5), .sequence = 60};
    CU_ASSERT_TRUE(purge_matches(purge, &asked, NULL, NULL));
    asked.key = disk_key(6);
    CU_ASSERT_FALSE(purge_matches(purge, &asked, NULL, NULL));
    add(purge, VOLUME_PURGE_ALL, "", "", 55, 2);
    CU_ASSERT_EQUAL(purge_count(purge), 2); // the key's is later
    CU_ASSERT_TRUE(is_purged(purge, "z", "/", 55));
    CU_ASSERT_FALSE(is_purged(purge, "z", "/", 56));
    struct purge_rule rule;
    char longer[PURGE_TEXT_MAXIMUM + 2];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    CU_ASSERT_EQUAL(purge_make(purge, &rule, VOLUME_PURGE_MASK, view_of(""), view_of(longer)), -EINVAL);
    CU_ASSERT_EQUAL(purge_make(purge, &rule, VOLUME_PURGE_PREFIX, view_of("q"), view_of(longer)), 0);
    CU_ASSERT_EQUAL(rule.kind, VOLUME_PURGE_HOST);
    purge_free(purge);
}

static void retires_and_settles(void) {
    struct purge *purge = purge_new(SEED, 1 << 20);
    add(purge, VOLUME_PURGE_URL, "a", "/1", 10, 5);
    add(purge, VOLUME_PURGE_PREFIX, "a", "/2", 11, 6);
    add(purge, VOLUME_PURGE_ALL, "", "", 9, 4);
    CU_ASSERT_FALSE(purge_retire(purge, 3));
    CU_ASSERT_TRUE(purge_retire(purge, 4));
    CU_ASSERT_FALSE(is_purged(purge, "z", "/", 9));
    CU_ASSERT_TRUE(purge_retire(purge, 5));
    CU_ASSERT_FALSE(is_purged(purge, "a", "/1", 10));
    CU_ASSERT_TRUE(is_purged(purge, "a", "/2", 11));
    add(purge, VOLUME_PURGE_URL, "a", "/3", PURGE_PENDING, PURGE_PENDING);
    CU_ASSERT_TRUE(is_purged(purge, "a", "/3", 1 << 30));
    CU_ASSERT_EQUAL(purge_settled(purge), 11);
    CU_ASSERT_TRUE(purge_settle(purge, 20, 8));
    CU_ASSERT_FALSE(purge_settle(purge, 30, 8));
    CU_ASSERT_TRUE(is_purged(purge, "a", "/3", 20));
    CU_ASSERT_FALSE(is_purged(purge, "a", "/3", 21));
    CU_ASSERT_TRUE(purge_retire(purge, 8));
    CU_ASSERT_EQUAL(purge_count(purge), 0);
    purge_free(purge);
}

static void put_name(char name[static 24], uint64_t number) {
    snprintf(name, 24, "/%llu", (unsigned long long)number);
}

// Whatever becomes coarser: what was purged stays purged.
static void too_many_become_coarser(void) {
    for (int hosts = 1; hosts <= 5000; hosts = hosts * 70 + 1) {
        struct purge *purge = purge_new(SEED, 16 << 10);
        for (uint64_t i = 1; i <= 3000; i++) {
            char path[24], host[24];
            put_name(path, i);
            put_name(host, i % (uint64_t)hosts);
            add(purge, i % 10 ? VOLUME_PURGE_URL : VOLUME_PURGE_PREFIX, host, path, i, i);
            CU_ASSERT_TRUE(purge_bytes(purge) <= 16 << 10);
        }
        for (uint64_t i = 1; i <= 3000; i++) {
            char path[24], host[24];
            put_name(path, i);
            put_name(host, i % (uint64_t)hosts);
            CU_ASSERT_TRUE(is_purged(purge, host, path, i));
            CU_ASSERT_FALSE(is_purged(purge, host, path, 3001));
        }
        CU_ASSERT_FALSE(is_purged(purge, "another", "/", 2999)); // the latest are as they were
        purge_free(purge);
    }
    struct purge *purge = purge_new(SEED, 1 << 20);
    for (uint64_t i = 1; i <= 1000; i++) {
        char mask[24];
        put_name(mask, i);
        add(purge, VOLUME_PURGE_MASK, "", mask, i, i);
        CU_ASSERT_TRUE(purge_count(purge) <= PURGE_PATTERNS_MAX + 1);
    }
    for (uint64_t i = 1; i <= 1000; i++) {
        char mask[24];
        put_name(mask, i);
        CU_ASSERT_TRUE(is_purged(purge, "h", mask, i));
    }
    purge_free(purge);
}

static struct view journal_of(const struct purge *purge, uint64_t beyond) {
    uint64_t bytes = purge_bytes(purge);
    unsigned char *out = calloc(1, bytes + beyond);
    purge_encode(purge, VOLUME, out);
    return (struct view){(char *)out, bytes + beyond};
}

static struct purge *sample(void) {
    struct purge *purge = purge_new(SEED, 1 << 20);
    add(purge, VOLUME_PURGE_ALL, "", "", 3, 1);
    add(purge, VOLUME_PURGE_URL, "a", "/1", 10, 5);
    add(purge, VOLUME_PURGE_PREFIX, "a", "/2", 11, 6);
    add(purge, VOLUME_PURGE_MASK, "", "*.iso", 12, 6);
    add(purge, VOLUME_PURGE_HOST, "c", "", 13, 7);
    return purge;
}

static void comes_back(void) {
    struct purge *purge = sample();
    struct view journal = journal_of(purge, 640);
    struct purge *again = purge_new(SEED, 1 << 20);
    uint64_t end;
    CU_ASSERT_TRUE(purge_read(again, VOLUME, journal, &end));
    CU_ASSERT_EQUAL(end, journal.length - 640);
    struct view second = journal_of(again, 640);
    CU_ASSERT_TRUE(view_equal(journal, second));
    free((void *)second.data);
    purge_free(again);
    again = purge_new(SEED, 1 << 20); // of another volume
    CU_ASSERT_FALSE(purge_read(again, VOLUME + 1, journal, &end));
    CU_ASSERT_EQUAL(purge_count(again), 0);
    purge_free(again);
    free((void *)journal.data);
    purge_free(purge);
}

// A power cut leaves the records that were whole; a bit that flips within leaves nothing unpurged.
static void torn_and_broken(void) {
    struct purge *purge = sample();
    struct view journal = journal_of(purge, 64);
    uint64_t end, whole = journal.length - 64;
    for (uint64_t cut = 0; cut <= whole; cut++) {
        struct purge *again = purge_new(SEED, 1 << 20);
        struct view torn = view_take(journal, cut);
        bool good = purge_read(again, VOLUME, torn, &end);
        CU_ASSERT_TRUE(good == (cut >= PURGE_UNIT_BYTES));
        CU_ASSERT_TRUE(purge_count(again) == 5 || cut < whole);
        CU_ASSERT_TRUE(cut < 64 * 3 || is_purged(again, "a", "/1", 10));
        CU_ASSERT_FALSE(is_purged(again, "a", "/1", 14));
        purge_free(again);
    }
    for (uint64_t at = 0; at < whole * 8; at++) {
        char *byte = (char *)journal.data + at / 8;
        struct purge *again = purge_new(SEED, 1 << 20);
        *byte = (char)(*byte ^ 1 << at % 8);
        purge_read(again, VOLUME, journal, &end);
        bool is_last = at / 8 >= whole - 64;
        CU_ASSERT_TRUE(is_last || is_purged(again, "z", "/", 1 << 30));
        CU_ASSERT_TRUE(is_last || is_purged(again, "c", "/", 13));
        *byte = (char)(*byte ^ 1 << at % 8);
        purge_free(again);
    }
    free((void *)journal.data);
    purge_free(purge);
}

SUITE(cache_purge, CASE(each_kind), CASE(retires_and_settles), CASE(too_many_become_coarser),
        CASE(comes_back), CASE(torn_and_broken))
