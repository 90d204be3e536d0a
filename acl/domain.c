#include "acl/domain.h"

#include "admin/check.h"

#include <stdlib.h>

struct entry {
    uint32_t name; // offset into the pool
    uint32_t value;
    uint32_t next; // another entry with the same name, or DOMAIN_NONE
    uint16_t port;
    uint8_t length;
    bool below_only;
};

// Open addressing; `tag` is the name's hash, so that most misses never touch an entry.
struct slot {
    uint32_t tag;
    uint32_t entry; // DOMAIN_NONE: free
};

struct domain_set {
    const struct pool *pool;
    struct entry *entries;
    struct slot *slots;
    size_t count, capacity; // entries
    size_t slot_count;      // a power of two
    size_t used;            // slots in use: names
    size_t longest;         // bytes of the longest name: walks end there
};

#define FIRST_SLOTS 16
#define HASH_START 0xcbf29ce484222325u

// Names are hashed from their last byte to their first, so that one walk over a host passes the hash of each
// of its domains.
static uint64_t hash_step(uint64_t hash, char byte) {
    return (hash ^ (uint8_t)byte) * 0x100000001b3u;
}

static uint32_t hash_end(uint64_t hash) {
    hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash >> 32);
}

static uint32_t hash_name(struct view name) {
    uint64_t hash = HASH_START;
    for (size_t i = name.length; i-- > 0;)
        hash = hash_step(hash, name.data[i]);
    return hash_end(hash);
}

static bool make_slots(struct domain_set *set, size_t count) {
    struct slot *slots = calloc(count, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < count; i++)
        slots[i].entry = DOMAIN_NONE;
    for (size_t i = 0; i < set->slot_count; i++) {
        if (set->slots[i].entry == DOMAIN_NONE)
            continue;
        size_t place = set->slots[i].tag & (count - 1);
        while (slots[place].entry != DOMAIN_NONE)
            place = (place + 1) & (count - 1);
        slots[place] = set->slots[i];
    }
    free(set->slots);
    set->slots = slots;
    set->slot_count = count;
    return true;
}

struct domain_set *domain_set_new(const struct pool *pool) {
    struct domain_set *set = calloc(1, sizeof *set);
    if (!set)
        return NULL;
    set->pool = pool;
    if (make_slots(set, FIRST_SLOTS))
        return set;
    free(set);
    return NULL;
}

void domain_set_free(struct domain_set *set) {
    if (!set)
        return;
    free(set->slots);
    free(set->entries);
    free(set);
}

static struct view entry_name(const struct domain_set *set, const struct entry *entry) {
    return pool_text(set->pool, entry->name, entry->length);
}

// The slot that holds this name, or the free one where it belongs.
static struct slot *find_slot(const struct domain_set *set, struct view name, uint32_t tag) {
    size_t place = tag & (set->slot_count - 1);
    while (set->slots[place].entry != DOMAIN_NONE) {
        if (set->slots[place].tag == tag &&
                view_equal(entry_name(set, &set->entries[set->slots[place].entry]), name))
            break;
        place = (place + 1) & (set->slot_count - 1);
    }
    return &set->slots[place];
}

static bool reserve(struct domain_set *set) {
    if (set->used * 4 >= set->slot_count * 3 && !make_slots(set, set->slot_count * 2))
        return false;
    if (set->count < set->capacity)
        return true;
    size_t capacity = set->capacity ? set->capacity + set->capacity / 4 + 1 : 8;
    struct entry *grown = capacity < DOMAIN_NONE ? realloc(set->entries, capacity * sizeof *grown) : NULL;
    if (!grown)
        return false;
    set->entries = grown;
    set->capacity = capacity;
    return true;
}

bool domain_set_add(
        struct domain_set *set, uint32_t offset, size_t length, struct domain_scope scope, uint32_t value) {
    CHECK(length > 0 && length <= DOMAIN_NAME_MAX);
    if (!reserve(set))
        return false;
    struct view name = pool_text(set->pool, offset, length);
    uint32_t tag = hash_name(name);
    struct slot *slot = find_slot(set, name, tag);
    for (uint32_t i = slot->entry; i != DOMAIN_NONE; i = set->entries[i].next)
        if (set->entries[i].port == scope.port && set->entries[i].below_only == scope.below_only)
            return true;
    set->used += slot->entry == DOMAIN_NONE;
    set->entries[set->count] =
            (struct entry){offset, value, slot->entry, scope.port, (uint8_t)length, scope.below_only};
    *slot = (struct slot){tag, (uint32_t)set->count++};
    if (length > set->longest)
        set->longest = length;
    return true;
}

// What a walk asks of the entries it passes.
struct question {
    uint16_t port, other_port;
    bool below; // the whole host counts as below itself
};

static uint32_t answer(
        const struct domain_set *set, const struct slot *slot, const struct question *question, bool whole) {
    for (uint32_t i = slot->entry; i != DOMAIN_NONE; i = set->entries[i].next) {
        const struct entry *entry = &set->entries[i];
        bool port = entry->port == 0 || entry->port == question->port || entry->port == question->other_port;
        if (port && !(entry->below_only && whole && !question->below))
            return entry->value;
    }
    return DOMAIN_NONE;
}

static uint32_t walk(const struct domain_set *set, struct view host, const struct question *question) {
    uint32_t found = DOMAIN_NONE;
    uint64_t hash = HASH_START;
    for (size_t i = host.length; i-- > 0 && host.length - i <= set->longest;) {
        hash = hash_step(hash, host.data[i]);
        if (i > 0 && host.data[i - 1] != '.')
            continue;
        const struct slot *slot = find_slot(set, view_skip(host, i), hash_end(hash));
        uint32_t value = answer(set, slot, question, i == 0);
        found = value != DOMAIN_NONE ? value : found;
    }
    return found;
}

uint32_t domain_set_find(const struct domain_set *set, struct view host, uint16_t port, uint16_t other_port) {
    const struct question question = {.port = port, .other_port = other_port};
    return walk(set, host, &question);
}

uint32_t domain_set_cover(const struct domain_set *set, struct view name, struct domain_scope scope) {
    const struct question question = {
            .port = scope.port, .other_port = scope.port, .below = scope.below_only};
    return walk(set, name, &question);
}

void domain_set_trim(struct domain_set *set) {
    struct entry *fitting = set->count ? realloc(set->entries, set->count * sizeof *fitting) : NULL;
    if (!fitting)
        return;
    set->entries = fitting;
    set->capacity = set->count;
}

size_t domain_set_count(const struct domain_set *set) {
    return set->count;
}

size_t domain_set_bytes(const struct domain_set *set) {
    return sizeof *set + set->capacity * sizeof *set->entries + set->slot_count * sizeof *set->slots;
}
