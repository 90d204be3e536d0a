#include "acl/prefix.h"

#include "admin/check.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned __int128 wide;

struct entry {
    uint64_t high, low; // the key, without 16-byte alignment
    uint32_t value;
    uint8_t bits; // within the family: 0 to 32 or 0 to 128
};

// The intervals of one family: [start[i], start[i + 1]) has value[i]. start[0] is 0.
struct span {
    unsigned width; // 32 or 128
    size_t count, capacity;
    uint32_t *narrow; // starts, width 32
    struct {
        uint64_t high, low;
    } * broad; // starts, width 128
    uint32_t *value;
    size_t entry_count, entry_capacity; // while building
    struct entry *entries;
};

struct prefix_table {
    struct span ipv4, ipv6;
    bool finished;
};

static wide entry_key(const struct entry *entry) {
    return (wide)entry->high << 64 | entry->low;
}

static wide address_key(const struct address *address) {
    wide key = 0;
    for (unsigned i = 0; i < 16; i++)
        key = key << 8 | address->bytes[i];
    return key;
}

static wide width_ones(unsigned width) {
    return width == 128 ? ~(wide)0 : ((wide)1 << width) - 1;
}

// The last key of a prefix.
static wide last_key(wide key, unsigned bits, unsigned width) {
    return bits == width ? key : key | width_ones(width) >> bits;
}

struct prefix_table *prefix_table_new(void) {
    struct prefix_table *table = calloc(1, sizeof *table);
    if (table) {
        table->ipv4.width = 32;
        table->ipv6.width = 128;
    }
    return table;
}

static void span_fini(struct span *span) {
    free(span->narrow);
    free(span->broad);
    free(span->value);
    free(span->entries);
}

void prefix_table_free(struct prefix_table *table) {
    if (!table)
        return;
    span_fini(&table->ipv4);
    span_fini(&table->ipv6);
    free(table);
}

static bool span_add(struct span *span, wide key, unsigned bits, uint32_t value) {
    if (span->entry_count == span->entry_capacity) {
        size_t capacity = span->entry_capacity ? span->entry_capacity * 2 : 8;
        struct entry *grown = realloc(span->entries, capacity * sizeof *grown);
        if (!grown)
            return false;
        span->entries = grown;
        span->entry_capacity = capacity;
    }
    span->entries[span->entry_count++] =
            (struct entry){(uint64_t)(key >> 64), (uint64_t)key, value, (uint8_t)bits};
    return true;
}

bool prefix_table_add(
        struct prefix_table *table, const struct address *prefix, unsigned bits, uint32_t value) {
    CHECK(!table->finished && bits <= 128 && value != PREFIX_NONE);
    if (bits >= 96 && address_is_ipv4(prefix))
        return span_add(&table->ipv4, address_key(prefix) & UINT32_MAX, bits - 96, value);
    return span_add(&table->ipv6, address_key(prefix), bits, value);
}

// By first address, the shorter prefix first, then in the order of the file.
static int compare_entries(const void *left, const void *right) {
    const struct entry *a = left, *b = right;
    if (a->high != b->high)
        return a->high < b->high ? -1 : 1;
    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    if (a->bits != b->bits)
        return a->bits < b->bits ? -1 : 1;
    return a->value < b->value ? -1 : a->value > b->value;
}

// Drops all but the last of equal prefixes.
static void drop_equal(struct span *span, prefix_lost *lost, void *context) {
    size_t kept = 0;
    for (size_t i = 0; i < span->entry_count; i++) {
        const struct entry *one = &span->entries[i], *next = one + 1;
        if (i + 1 < span->entry_count && entry_key(one) == entry_key(next) && one->bits == next->bits) {
            if (lost && one->value != next->value)
                lost(context, one->value, next->value);
            continue;
        }
        span->entries[kept++] = *one;
    }
    span->entry_count = kept;
}

static wide span_start(const struct span *span, size_t i) {
    return span->width == 32 ? span->narrow[i] : (wide)span->broad[i].high << 64 | span->broad[i].low;
}

// From `start` on, `value` holds. Starts come in ascending order; the last word on a start counts.
static void emit(struct span *span, wide start, uint32_t value) {
    if (span->count && span_start(span, span->count - 1) == start)
        span->count--;
    if (span->count && span->value[span->count - 1] == value)
        return;
    CHECK(span->count < span->capacity);
    if (span->width == 32) {
        span->narrow[span->count] = (uint32_t)start;
    } else {
        span->broad[span->count].high = (uint64_t)(start >> 64);
        span->broad[span->count].low = (uint64_t)start;
    }
    span->value[span->count++] = value;
}

// The prefixes that hold the key being swept over, one inside the other: at most one of each length.
struct nest {
    unsigned depth;
    struct {
        wide last;
        uint32_t value;
    } level[129];
};

// Leaves the prefixes that end before `key`.
static void leave(struct span *span, struct nest *nest, wide key, bool all) {
    while (nest->depth && (all || nest->level[nest->depth - 1].last < key)) {
        wide last = nest->level[--nest->depth].last;
        uint32_t outer = nest->depth ? nest->level[nest->depth - 1].value : PREFIX_NONE;
        if (last != width_ones(span->width))
            emit(span, last + 1, outer);
    }
}

static void sweep(struct span *span) {
    struct nest nest = {.depth = 0};
    emit(span, 0, PREFIX_NONE);
    for (size_t i = 0; i < span->entry_count; i++) {
        const struct entry *entry = &span->entries[i];
        wide key = entry_key(entry);
        leave(span, &nest, key, false);
        CHECK(nest.depth < 129);
        nest.level[nest.depth].last = last_key(key, entry->bits, span->width);
        nest.level[nest.depth++].value = entry->value;
        emit(span, key, entry->value);
    }
    leave(span, &nest, 0, true);
}

static bool allocate_intervals(struct span *span, size_t count) {
    span->capacity = count;
    span->value = calloc(count, sizeof *span->value);
    if (span->width == 32)
        span->narrow = calloc(count, sizeof *span->narrow);
    else
        span->broad = calloc(count, sizeof *span->broad);
    return span->value && (span->narrow || span->broad);
}

// Gives back what side-by-side prefixes did not need. A realloc that fails leaves the larger block.
static void *trim(void *block, size_t bytes) {
    void *fitting = block ? realloc(block, bytes) : NULL;
    return fitting ? fitting : block;
}

static void trim_intervals(struct span *span) {
    span->value = trim(span->value, span->count * sizeof *span->value);
    span->narrow = trim(span->narrow, span->count * sizeof *span->narrow);
    span->broad = trim(span->broad, span->count * sizeof *span->broad);
    span->capacity = span->count;
}

// Tells of the prefixes that have no interval left.
static bool report_covered(const struct span *span, prefix_lost *lost, void *context) {
    uint32_t highest = 0;
    for (size_t i = 0; i < span->entry_count; i++)
        if (span->entries[i].value > highest)
            highest = span->entries[i].value;
    uint8_t *seen = calloc((size_t)highest + 1, 1);
    if (!seen)
        return false;
    for (size_t i = 0; i < span->count; i++)
        if (span->value[i] != PREFIX_NONE)
            seen[span->value[i]] = 1;
    for (size_t i = 0; i < span->entry_count; i++)
        if (!seen[span->entries[i].value])
            lost(context, span->entries[i].value, PREFIX_NONE);
    free(seen);
    return true;
}

static bool span_finish(struct span *span, prefix_lost *lost, void *context) {
    if (span->entry_count == 0)
        return true;
    qsort(span->entries, span->entry_count, sizeof *span->entries, compare_entries);
    drop_equal(span, lost, context);
    if (!allocate_intervals(span, 2 * span->entry_count + 1))
        return false;
    sweep(span);
    if (lost && !report_covered(span, lost, context))
        return false;
    free(span->entries);
    span->entries = NULL;
    span->entry_capacity = 0;
    trim_intervals(span);
    return true;
}

bool prefix_table_finish(struct prefix_table *table, prefix_lost *lost, void *context) {
    table->finished = true;
    return span_finish(&table->ipv4, lost, context) && span_finish(&table->ipv6, lost, context);
}

// The interval that holds the key. The halving has no branch that depends on data, so a million intervals
// cost twenty steps without a mispredicted jump.
static size_t find_narrow(const struct span *span, uint32_t key) {
    size_t base = 0;
    for (size_t count = span->count; count > 1;) {
        size_t half = count / 2;
        base += span->narrow[base + half] <= key ? half : 0;
        count -= half;
    }
    return base;
}

static size_t find_broad(const struct span *span, wide key) {
    size_t base = 0;
    for (size_t count = span->count; count > 1;) {
        size_t half = count / 2;
        base += span_start(span, base + half) <= key ? half : 0;
        count -= half;
    }
    return base;
}

static size_t find_interval(const struct span *span, wide key) {
    return span->width == 32 ? find_narrow(span, (uint32_t)key) : find_broad(span, key);
}

uint32_t prefix_table_find(const struct prefix_table *table, const struct address *address) {
    CHECK(table->finished);
    const struct span *span = address_is_ipv4(address) ? &table->ipv4 : &table->ipv6;
    return span->count ? span->value[find_interval(span, address_key(address))] : PREFIX_NONE;
}

uint32_t prefix_table_cover(const struct prefix_table *table, const struct address *prefix, unsigned bits) {
    CHECK(table->finished);
    bool ipv4 = bits >= 96 && address_is_ipv4(prefix);
    const struct span *span = ipv4 ? &table->ipv4 : &table->ipv6;
    wide key = ipv4 ? address_key(prefix) & UINT32_MAX : address_key(prefix);
    wide last = last_key(key, ipv4 ? bits - 96 : bits, span->width);
    if (!span->count)
        return PREFIX_NONE;
    size_t first = find_interval(span, key);
    for (size_t i = first; i < span->count && span_start(span, i) <= last; i++)
        if (span->value[i] == PREFIX_NONE)
            return PREFIX_NONE;
    return span->value[first];
}

static size_t span_bytes(const struct span *span) {
    size_t start = span->width == 32 ? sizeof *span->narrow : sizeof *span->broad;
    return span->capacity * (start + sizeof *span->value) + span->entry_capacity * sizeof *span->entries;
}

size_t prefix_table_bytes(const struct prefix_table *table) {
    return sizeof *table + span_bytes(&table->ipv4) + span_bytes(&table->ipv6);
}
