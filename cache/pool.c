#include "cache/pool.h"

#include "admin/check.h"
#include "cache/memory.h"

#include <stdlib.h>

void pool_init(struct pool *pool, uint64_t limit, uint32_t slots, unsigned small_percent) {
    CHECK(slots <= POOL_SLOTS_MAXIMUM);
    *pool = (struct pool){.slot_count = slots,
            .free_slots = slots,
            .limit = limit,
            .target = limit,
            .small_percent = small_percent};
    pool->slots = memory_new(slots * sizeof *pool->slots);
    for (uint32_t i = 0; i < slots; i++) {
        pool->slots[i] = (struct pool_slot){.newer = POOL_SLOT_NONE, .older = POOL_SLOT_NONE};
        atomic_init(&pool->slots[i].segment, NULL);
    }
    for (unsigned i = 0; i < POOL_QUEUES; i++)
        pool->lists[i].newest = pool->lists[i].oldest = POOL_SLOT_NONE;
}

void pool_fini(struct pool *pool) {
    for (uint32_t i = 0; i < pool->slot_count; i++) {
        struct segment *segment = atomic_load(&pool->slots[i].segment);
        if (segment)
            segment_put(segment);
    }
    free(pool->slots);
}

uint64_t pool_free_bytes(const struct pool *pool) {
    uint64_t used = pool->used + atomic_load_explicit(&pool->held, memory_order_relaxed);
    return pool->target > used ? pool->target - used : 0;
}

// A slot that was just left is the last to be taken again: a stale location finds nothing for long.
static uint32_t next_free(struct pool *pool) {
    while (pool->slots[pool->next_slot].state != POOL_FREE)
        pool->next_slot = (pool->next_slot + 1) % pool->slot_count;
    uint32_t slot = pool->next_slot;
    pool->next_slot = (slot + 1) % pool->slot_count;
    return slot;
}

uint32_t pool_take(struct pool *pool, uint64_t bytes, uint64_t spare) {
    return pool_free_bytes(pool) < bytes + spare ? POOL_SLOT_NONE : pool_take_anyway(pool, bytes);
}

uint32_t pool_take_anyway(struct pool *pool, uint64_t bytes) {
    if (pool->free_slots == 0)
        return POOL_SLOT_NONE;
    uint32_t slot = next_free(pool);
    pool->slots[slot].state = POOL_TAKEN;
    pool->slots[slot].bytes = bytes;
    pool->slots[slot].is_doomed = false;
    pool->free_slots--;
    pool->used += bytes;
    return slot;
}

static void set_free(struct pool *pool, uint32_t slot) {
    pool->used -= pool->slots[slot].bytes;
    pool->slots[slot].bytes = 0;
    pool->slots[slot].state = POOL_FREE;
    pool->free_slots++;
}

void pool_give_back(struct pool *pool, uint32_t slot) {
    CHECK(pool->slots[slot].state == POOL_TAKEN);
    set_free(pool, slot);
}

static void push(struct pool *pool, uint32_t at, enum pool_queue queue) {
    struct pool_slot *slot = &pool->slots[at];
    struct pool_list *list = &pool->lists[queue];
    slot->queue = queue;
    slot->newer = POOL_SLOT_NONE;
    slot->older = list->newest;
    *(list->newest != POOL_SLOT_NONE ? &pool->slots[list->newest].newer : &list->oldest) = at;
    list->newest = at;
    list->bytes += slot->bytes;
    list->count++;
}

static void unlink_slot(struct pool *pool, uint32_t at) {
    struct pool_slot *slot = &pool->slots[at];
    struct pool_list *list = &pool->lists[slot->queue];
    *(slot->newer != POOL_SLOT_NONE ? &pool->slots[slot->newer].older : &list->newest) = slot->older;
    *(slot->older != POOL_SLOT_NONE ? &pool->slots[slot->older].newer : &list->oldest) = slot->newer;
    list->bytes -= slot->bytes;
    list->count--;
}

void pool_enter(struct pool *pool, uint32_t slot, struct segment *segment, enum pool_queue queue,
        enum pool_state state) {
    CHECK(pool->slots[slot].state == POOL_TAKEN);
    push(pool, slot, queue);
    pool->slots[slot].state = POOL_OPEN;
    pool_set_state(pool, slot, state);
    atomic_store_explicit(&pool->slots[slot].segment, segment, memory_order_release);
}

void pool_set_state(struct pool *pool, uint32_t slot, enum pool_state state) {
    pool->closing -= pool->slots[slot].state == POOL_CLOSING;
    pool->closing += state == POOL_CLOSING;
    pool->slots[slot].state = state;
}

void pool_enter_oldest(
        struct pool *pool, uint32_t at, struct segment *segment, enum pool_queue queue) {
    struct pool_slot *slot = &pool->slots[at];
    struct pool_list *list = &pool->lists[queue];
    CHECK(slot->state == POOL_TAKEN);
    slot->state = POOL_CLOSED;
    slot->queue = queue;
    slot->older = POOL_SLOT_NONE;
    slot->newer = list->oldest;
    *(list->oldest != POOL_SLOT_NONE ? &pool->slots[list->oldest].older : &list->newest) = at;
    list->oldest = at;
    list->bytes += slot->bytes;
    list->count++;
    atomic_store_explicit(&slot->segment, segment, memory_order_release);
}

void pool_set_bytes(struct pool *pool, uint32_t slot, uint64_t bytes) {
    struct pool_slot *its = &pool->slots[slot];
    pool->used += bytes - its->bytes;
    pool->lists[its->queue].bytes += bytes - its->bytes;
    its->bytes = bytes;
}

void pool_move_to_main(struct pool *pool, uint32_t slot) {
    unlink_slot(pool, slot);
    push(pool, slot, POOL_MAIN);
}

struct segment *pool_leave(struct pool *pool, uint32_t slot) {
    struct segment *segment = atomic_load(&pool->slots[slot].segment);
    atomic_store_explicit(&pool->slots[slot].segment, NULL, memory_order_release);
    pool_set_state(pool, slot, POOL_OPEN);
    unlink_slot(pool, slot);
    set_free(pool, slot);
    return segment;
}

// The few that are in another state are the newest, or nearly.
static uint32_t oldest(const struct pool *pool, enum pool_queue queue, enum pool_state state) {
    uint32_t slot = pool->lists[queue].oldest;
    while (slot != POOL_SLOT_NONE && pool->slots[slot].state != state)
        slot = pool->slots[slot].newer;
    return slot;
}

uint32_t pool_closing(const struct pool *pool) {
    if (pool->closing == 0)
        return POOL_SLOT_NONE;
    uint32_t slot = oldest(pool, POOL_SMALL, POOL_CLOSING);
    return slot != POOL_SLOT_NONE ? slot : oldest(pool, POOL_MAIN, POOL_CLOSING);
}

uint32_t pool_victim(const struct pool *pool) {
    uint64_t small = pool->lists[POOL_SMALL].bytes, total = small + pool->lists[POOL_MAIN].bytes;
    uint32_t of_small = oldest(pool, POOL_SMALL, POOL_CLOSED);
    uint32_t of_main = oldest(pool, POOL_MAIN, POOL_CLOSED);
    bool small_has_its_share = small * 100 >= total * pool->small_percent;
    if (of_small != POOL_SLOT_NONE && (small_has_its_share || of_main == POOL_SLOT_NONE))
        return of_small;
    return of_main;
}

struct segment *pool_find(const struct pool *pool, uint32_t slot) {
    if (slot >= pool->slot_count)
        return NULL;
    struct segment *segment = atomic_load_explicit(&pool->slots[slot].segment, memory_order_acquire);
    if (!segment || !segment_try_get(segment))
        return NULL;
    // Given up meanwhile, and perhaps another one by now?
    if (atomic_load_explicit(&pool->slots[slot].segment, memory_order_acquire) == segment)
        return segment;
    segment_put(segment);
    return NULL;
}
