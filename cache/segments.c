#include "cache/segments.h"

#include "admin/check.h"
#include "cache/memory.h"

#include <stdlib.h>

void segments_init(
        struct segments *pool, uint64_t limit, uint32_t slots, uint32_t slot_most, unsigned small_percent) {
    CHECK(slots <= slot_most && slot_most <= SEGMENTS_SLOTS_MAXIMUM);
    *pool = (struct segments){.slot_most = slot_most,
            .slot_count = slots,
            .free_slots = slots,
            .limit = limit,
            .target = limit,
            .small_percent = small_percent};
    pool->slots = calloc(slot_most, sizeof *pool->slots); // all free
    CHECK(pool->slots);
    for (unsigned i = 0; i < SEGMENTS_QUEUES; i++)
        pool->lists[i].newest = pool->lists[i].oldest = SEGMENTS_SLOT_NONE;
}

void segments_grow(struct segments *pool, uint32_t slots) {
    CHECK(slots <= pool->slot_most);
    if (slots <= pool->slot_count)
        return;
    pool->free_slots += slots - pool->slot_count;
    pool->slot_count = slots;
}

void segments_fini(struct segments *pool) {
    for (uint32_t i = 0; i < pool->slot_count; i++) {
        struct segment *segment = atomic_load(&pool->slots[i].segment);
        if (segment)
            segment_put(segment);
    }
    free(pool->slots);
}

uint64_t segments_free_bytes(const struct segments *pool) {
    uint64_t used = pool->used + atomic_load_explicit(&pool->held, memory_order_relaxed);
    return pool->target > used ? pool->target - used : 0;
}

// A slot that was just left is the last to be taken again: a stale location finds nothing for long.
static uint32_t next_free(struct segments *pool) {
    while (pool->slots[pool->next_slot].state != SEGMENTS_FREE)
        pool->next_slot = (pool->next_slot + 1) % pool->slot_count;
    uint32_t slot = pool->next_slot;
    pool->next_slot = (slot + 1) % pool->slot_count;
    return slot;
}

uint32_t segments_take(struct segments *pool, uint64_t bytes, uint64_t spare) {
    return segments_free_bytes(pool) < bytes + spare ? SEGMENTS_SLOT_NONE : segments_take_anyway(pool, bytes);
}

uint32_t segments_take_anyway(struct segments *pool, uint64_t bytes) {
    if (pool->free_slots == 0)
        return SEGMENTS_SLOT_NONE;
    uint32_t slot = next_free(pool);
    CHECK(segments_take_slot(pool, slot, bytes));
    return slot;
}

bool segments_take_slot(struct segments *pool, uint32_t at, uint64_t bytes) {
    if (at >= pool->slot_count || pool->slots[at].state != SEGMENTS_FREE)
        return false;
    struct segments_slot *slot = &pool->slots[at];
    slot->state = SEGMENTS_TAKEN;
    slot->bytes = bytes;
    slot->is_doomed = false;
    pool->free_slots--;
    pool->used += bytes;
    return true;
}

static void set_free(struct segments *pool, uint32_t slot) {
    pool->used -= pool->slots[slot].bytes;
    pool->slots[slot].bytes = 0;
    pool->slots[slot].state = SEGMENTS_FREE;
    pool->free_slots++;
}

void segments_give_back(struct segments *pool, uint32_t slot) {
    CHECK(pool->slots[slot].state == SEGMENTS_TAKEN);
    set_free(pool, slot);
}

static void push(struct segments *pool, uint32_t at, enum segments_queue queue) {
    struct segments_slot *slot = &pool->slots[at];
    struct segments_list *list = &pool->lists[queue];
    slot->queue = queue;
    slot->newer = SEGMENTS_SLOT_NONE;
    slot->older = list->newest;
    *(list->newest != SEGMENTS_SLOT_NONE ? &pool->slots[list->newest].newer : &list->oldest) = at;
    list->newest = at;
    list->bytes += slot->bytes;
    list->count++;
}

static void unlink_slot(struct segments *pool, uint32_t at) {
    struct segments_slot *slot = &pool->slots[at];
    struct segments_list *list = &pool->lists[slot->queue];
    *(slot->newer != SEGMENTS_SLOT_NONE ? &pool->slots[slot->newer].older : &list->newest) = slot->older;
    *(slot->older != SEGMENTS_SLOT_NONE ? &pool->slots[slot->older].newer : &list->oldest) = slot->newer;
    list->bytes -= slot->bytes;
    list->count--;
}

void segments_enter(struct segments *pool, uint32_t slot, struct segment *segment, enum segments_queue queue,
        enum segments_state state) {
    CHECK(pool->slots[slot].state == SEGMENTS_TAKEN);
    push(pool, slot, queue);
    pool->slots[slot].state = SEGMENTS_OPEN;
    segments_set_state(pool, slot, state);
    atomic_store_explicit(&pool->slots[slot].segment, segment, memory_order_release);
}

void segments_set_state(struct segments *pool, uint32_t slot, enum segments_state state) {
    pool->closing -= pool->slots[slot].state == SEGMENTS_CLOSING;
    pool->closing += state == SEGMENTS_CLOSING;
    pool->drained -= pool->slots[slot].state == SEGMENTS_DRAINED;
    pool->drained += state == SEGMENTS_DRAINED;
    pool->slots[slot].state = state;
}

void segments_enter_oldest(
        struct segments *pool, uint32_t at, struct segment *segment, enum segments_queue queue) {
    struct segments_slot *slot = &pool->slots[at];
    struct segments_list *list = &pool->lists[queue];
    CHECK(slot->state == SEGMENTS_TAKEN);
    slot->state = SEGMENTS_CLOSED;
    slot->queue = queue;
    slot->older = SEGMENTS_SLOT_NONE;
    slot->newer = list->oldest;
    *(list->oldest != SEGMENTS_SLOT_NONE ? &pool->slots[list->oldest].older : &list->newest) = at;
    list->oldest = at;
    list->bytes += slot->bytes;
    list->count++;
    atomic_store_explicit(&slot->segment, segment, memory_order_release);
}

void segments_set_bytes(struct segments *pool, uint32_t slot, uint64_t bytes) {
    struct segments_slot *its = &pool->slots[slot];
    pool->used += bytes - its->bytes;
    pool->lists[its->queue].bytes += bytes - its->bytes;
    its->bytes = bytes;
}

void segments_move_to_main(struct segments *pool, uint32_t slot) {
    unlink_slot(pool, slot);
    push(pool, slot, SEGMENTS_MAIN);
}

struct segment *segments_leave(struct segments *pool, uint32_t slot) {
    struct segment *segment = atomic_load(&pool->slots[slot].segment);
    atomic_store_explicit(&pool->slots[slot].segment, NULL, memory_order_release);
    segments_set_state(pool, slot, SEGMENTS_OPEN);
    unlink_slot(pool, slot);
    set_free(pool, slot);
    return segment;
}

// The few that are in another state are the newest, or nearly.
static uint32_t oldest(const struct segments *pool, enum segments_queue queue, enum segments_state state) {
    uint32_t slot = pool->lists[queue].oldest;
    while (slot != SEGMENTS_SLOT_NONE && pool->slots[slot].state != state)
        slot = pool->slots[slot].newer;
    return slot;
}

uint32_t segments_closing(const struct segments *pool) {
    if (pool->closing == 0)
        return SEGMENTS_SLOT_NONE;
    uint32_t slot = oldest(pool, SEGMENTS_SMALL, SEGMENTS_CLOSING);
    return slot != SEGMENTS_SLOT_NONE ? slot : oldest(pool, SEGMENTS_MAIN, SEGMENTS_CLOSING);
}

uint32_t segments_drained(const struct segments *pool) {
    if (pool->drained == 0)
        return SEGMENTS_SLOT_NONE;
    uint32_t slot = oldest(pool, SEGMENTS_SMALL, SEGMENTS_DRAINED);
    return slot != SEGMENTS_SLOT_NONE ? slot : oldest(pool, SEGMENTS_MAIN, SEGMENTS_DRAINED);
}

uint32_t segments_open_main(const struct segments *pool) {
    uint32_t slot = pool->lists[SEGMENTS_MAIN].newest;
    while (slot != SEGMENTS_SLOT_NONE && pool->slots[slot].state != SEGMENTS_OPEN)
        slot = pool->slots[slot].older;
    return slot;
}

uint32_t segments_victim(const struct segments *pool) {
    uint64_t small = pool->lists[SEGMENTS_SMALL].bytes, total = small + pool->lists[SEGMENTS_MAIN].bytes;
    uint32_t of_small = oldest(pool, SEGMENTS_SMALL, SEGMENTS_CLOSED);
    uint32_t of_main = oldest(pool, SEGMENTS_MAIN, SEGMENTS_CLOSED);
    bool small_has_its_share = small * 100 >= total * pool->small_percent;
    if (of_small != SEGMENTS_SLOT_NONE && (small_has_its_share || of_main == SEGMENTS_SLOT_NONE))
        return of_small;
    return of_main;
}

struct segment *segments_find(const struct segments *pool, uint32_t slot) {
    if (slot >= pool->slot_most)
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
