#include "cache/table.h"

#include "admin/check.h"
#include "cache/bucket.h"

#include <stdlib.h>
#include <sys/mman.h>

#define LOAD_PERCENT 80
#define BUCKETS_MINIMUM 64 // a page
#define NO_LOCATION UINT64_MAX

static size_t map_bytes(const struct table *table) {
    return table->bucket_count * sizeof(struct bucket);
}

struct table *table_new(uint64_t objects) {
    const uint64_t rated = BUCKET_ENTRIES * LOAD_PERCENT; // objects in a hundred buckets
    uint64_t count = objects / rated * 100 + (objects % rated * 100 + rated - 1) / rated;
    return table_new_of(count < BUCKETS_MINIMUM ? BUCKETS_MINIMUM : count);
}

struct table *table_new_of(uint64_t count) {
    if (count > UINT32_MAX || count > SIZE_MAX / sizeof(struct bucket))
        return NULL;
    struct table *table = aligned_alloc(BUCKET_BYTES, sizeof *table);
    if (!table)
        return NULL;
    table->bucket_count = (uint32_t)count;
    atomic_init(&table->entries, 0);
    void *memory = mmap(NULL, map_bytes(table), PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        free(table);
        return NULL;
    }
    table->buckets = memory;
    return table;
}

void table_free(struct table *table) {
    if (!table)
        return;
    munmap(table->buckets, map_bytes(table));
    free(table);
}

uint64_t table_bytes(const struct table *table) {
    return sizeof *table + map_bytes(table);
}

uint64_t table_count(const struct table *table) {
    return atomic_load_explicit(&table->entries, memory_order_relaxed);
}

static void count(struct table *table, int64_t change) {
    atomic_fetch_add_explicit(&table->entries, (uint64_t)change, memory_order_relaxed);
}

// ---- the two buckets of a key ----

struct pair {
    struct bucket *first, *second; // in the order in which they are locked; rarely the same
    uint32_t tag;
};

// The tag leads from either bucket to the other one, so that an entry can move without its key.
static uint32_t other_bucket(const struct table *table, uint32_t bucket, uint32_t tag) {
    uint32_t sum = key_reduce(tag * UINT64_C(0x9e3779b97f4a7c15), table->bucket_count);
    return sum >= bucket ? sum - bucket : sum + table->bucket_count - bucket;
}

static struct pair pair_of(const struct table *table, struct cache_key key) {
    uint64_t bits = key_fold(key);
    uint32_t tag = bits & 0xffffff;
    if ((tag & BUCKET_TAG_MASK) == 0)
        tag |= 1;
    uint32_t one = key_reduce(bits, table->bucket_count), other = other_bucket(table, one, tag);
    struct bucket *buckets = table->buckets;
    __builtin_prefetch(&buckets[other]);
    return one < other ? (struct pair){&buckets[one], &buckets[other], tag}
                       : (struct pair){&buckets[other], &buckets[one], tag};
}

static void lock_pair(const struct pair *pair) {
    bucket_lock(pair->first);
    if (pair->second != pair->first)
        bucket_lock(pair->second);
}

static void unlock_pair(const struct pair *pair) {
    if (pair->second != pair->first)
        bucket_unlock(pair->second);
    bucket_unlock(pair->first);
}

// Whether the place holds this very entry, whatever its hits.
static bool is_entry(const struct bucket *bucket, unsigned place, struct bucket_entry wanted) {
    struct bucket_entry entry = bucket_read(bucket, place);
    return (entry.word & ~BUCKET_HITS_MASK) == wanted.word && entry.rest == wanted.rest;
}

static struct bucket *find_entry(const struct pair *pair, uint64_t location, unsigned *place) {
    struct bucket_entry wanted = bucket_entry_of(pair->tag, location, 0);
    for (unsigned i = 0; i < 2 * BUCKET_ENTRIES; i++) {
        struct bucket *bucket = i < BUCKET_ENTRIES ? pair->first : pair->second;
        *place = i % BUCKET_ENTRIES;
        if (is_entry(bucket, *place, wanted))
            return bucket;
    }
    return NULL;
}

// ---- readers ----

static unsigned collect(const struct bucket *bucket, uint32_t tag, struct table_entry *entries) {
    unsigned found = 0;
    for (unsigned i = 0; i < BUCKET_ENTRIES; i++) {
        uint64_t word = atomic_load_explicit(&bucket->words[i], memory_order_acquire);
        if ((word & BUCKET_TAG_MASK) == (tag & BUCKET_TAG_MASK) &&
                atomic_load_explicit(&bucket->rests[i], memory_order_acquire) == tag >> 16)
            entries[found++] = (struct table_entry){bucket_location(word), bucket_hits(word)};
    }
    return found;
}

// Both buckets as they were at one moment: an entry that moves between them is in one of them.
unsigned table_find(const struct table *table, struct cache_key key,
        struct table_entry entries[static TABLE_CANDIDATES_MAX]) {
    struct pair pair = pair_of(table, key);
    uint32_t first, second;
    unsigned found;
    do {
        first = bucket_sequence(pair.first);
        second = bucket_sequence(pair.second);
        found = collect(pair.first, pair.tag, entries);
        if (pair.second != pair.first)
            found += collect(pair.second, pair.tag, entries + found);
    } while (bucket_changed(pair.first, first) || bucket_changed(pair.second, second));
    return found;
}

// Without the lock: the word is compared and exchanged whole. A writer that moves the entry at this moment
// may lose the hit.
void table_hit(struct table *table, struct cache_key key, uint64_t location) {
    CHECK(location <= TABLE_LOCATION_MAXIMUM);
    struct pair pair = pair_of(table, key);
    struct bucket_entry wanted = bucket_entry_of(pair.tag, location, 0);
    unsigned place;
    struct bucket *bucket = find_entry(&pair, location, &place);
    if (!bucket)
        return;
    uint64_t word = atomic_load_explicit(&bucket->words[place], memory_order_relaxed);
    while ((word & ~BUCKET_HITS_MASK) == wanted.word && bucket_hits(word) < TABLE_HITS_MAXIMUM)
        if (atomic_compare_exchange_weak_explicit(&bucket->words[place], &word, word + BUCKET_HIT_ONE,
                    memory_order_relaxed, memory_order_relaxed))
            return;
}

// ---- writers ----

// Moves an entry of the locked pair to its other bucket, when that has room. It is tried, not waited for:
// the order of locks would not allow that.
static bool displace(struct table *table, const struct pair *pair, struct bucket *bucket, unsigned place) {
    struct bucket_entry entry = bucket_read(bucket, place);
    uint32_t index = (uint32_t)(bucket - table->buckets);
    struct bucket *other = &table->buckets[other_bucket(table, index, bucket_tag(entry))];
    unsigned free_place;
    if (other == pair->first || other == pair->second || !bucket_room(other, &free_place) ||
            !bucket_try_lock(other))
        return false;
    bool has_room = bucket_room(other, &free_place) > 0;
    if (has_room) {
        bucket_write(other, free_place, entry);
        bucket_clear(bucket, place);
    }
    bucket_unlock(other);
    return has_room;
}

// The entry that was hit least. The search begins at a place that changes, so that none is preferred.
static struct bucket *least_hit(const struct pair *pair, uint64_t location, unsigned *place) {
    struct bucket *least = NULL;
    uint8_t hits = UINT8_MAX;
    for (unsigned n = 0; n < 2 * BUCKET_ENTRIES; n++) {
        unsigned i = (unsigned)((location + n) % (2 * BUCKET_ENTRIES));
        struct bucket *bucket = i < BUCKET_ENTRIES ? pair->first : pair->second;
        uint8_t its = bucket_hits(bucket_read(bucket, i % BUCKET_ENTRIES).word);
        if (its < hits) {
            least = bucket;
            hits = its;
            *place = i % BUCKET_ENTRIES;
        }
    }
    return least;
}

static struct bucket *displace_any(struct table *table, const struct pair *pair, unsigned *place) {
    for (unsigned i = 0; i < 2 * BUCKET_ENTRIES; i++) {
        struct bucket *bucket = i < BUCKET_ENTRIES ? pair->first : pair->second;
        *place = i % BUCKET_ENTRIES;
        if (displace(table, pair, bucket, *place))
            return bucket;
    }
    return NULL;
}

static struct bucket *emptier(const struct pair *pair, unsigned *place) {
    unsigned second_place = 0, first = bucket_room(pair->first, place),
             second = bucket_room(pair->second, &second_place);
    if (first == 0 && second == 0)
        return NULL;
    if (first >= second)
        return pair->first;
    *place = second_place;
    return pair->second;
}

static void put(struct table *table, const struct pair *pair, uint64_t location, uint64_t *lost) {
    unsigned place = 0;
    struct bucket *bucket = emptier(pair, &place);
    if (!bucket)
        bucket = displace_any(table, pair, &place);
    if (bucket) {
        count(table, 1);
    } else {
        bucket = least_hit(pair, location, &place);
        *lost = bucket_location(bucket_read(bucket, place).word);
    }
    bucket_write(bucket, place, bucket_entry_of(pair->tag, location, 0));
}

void table_add(struct table *table, struct cache_key key, uint64_t location, uint64_t *lost) {
    CHECK(location <= TABLE_LOCATION_MAXIMUM);
    struct pair pair = pair_of(table, key);
    unsigned place;
    *lost = NO_LOCATION;
    lock_pair(&pair);
    if (!find_entry(&pair, location, &place))
        put(table, &pair, location, lost);
    unlock_pair(&pair);
}

bool table_move(struct table *table, struct cache_key key, uint64_t from, uint64_t to, uint8_t hits) {
    CHECK(from <= TABLE_LOCATION_MAXIMUM && to <= TABLE_LOCATION_MAXIMUM && hits <= TABLE_HITS_MAXIMUM);
    struct pair pair = pair_of(table, key);
    unsigned place;
    lock_pair(&pair);
    struct bucket *bucket = find_entry(&pair, from, &place);
    if (bucket)
        bucket_write(bucket, place, bucket_entry_of(pair.tag, to, hits));
    unlock_pair(&pair);
    return bucket != NULL;
}

bool table_remove(struct table *table, struct cache_key key, uint64_t location) {
    CHECK(location <= TABLE_LOCATION_MAXIMUM);
    struct pair pair = pair_of(table, key);
    unsigned place;
    lock_pair(&pair);
    struct bucket *bucket = find_entry(&pair, location, &place);
    if (bucket)
        bucket_clear(bucket, place);
    unlock_pair(&pair);
    if (bucket)
        count(table, -1);
    return bucket != NULL;
}

static bool is_within(const struct bucket *bucket, unsigned place, uint64_t first, uint64_t last) {
    uint64_t word = atomic_load_explicit(&bucket->words[place], memory_order_relaxed);
    return word != 0 && bucket_location(word) >= first && bucket_location(word) <= last;
}

static unsigned forget_in(struct bucket *bucket, uint64_t first, uint64_t last) {
    unsigned removed = 0, any = 0;
    for (unsigned i = 0; i < BUCKET_ENTRIES; i++)
        any += is_within(bucket, i, first, last);
    if (any == 0)
        return 0;
    bucket_lock(bucket);
    for (unsigned i = 0; i < BUCKET_ENTRIES; i++)
        if (is_within(bucket, i, first, last)) {
            bucket_clear(bucket, i);
            removed++;
        }
    bucket_unlock(bucket);
    return removed;
}

uint64_t table_forget(struct table *table, uint64_t first, uint64_t last) {
    uint64_t removed = 0;
    for (uint32_t i = 0; i < table->bucket_count; i++)
        removed += forget_in(&table->buckets[i], first, last);
    count(table, -(int64_t)removed);
    return removed;
}
