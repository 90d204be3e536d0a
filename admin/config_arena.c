#include "admin/config_arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES 16384

struct block {
    struct block *next;
    size_t used, room;
    alignas(max_align_t) char bytes[];
};

struct config_arena {
    struct block *blocks; // the one in use first
};

struct config_arena *config_arena_new(void) {
    return calloc(1, sizeof(struct config_arena));
}

void config_arena_free(struct config_arena *arena) {
    if (!arena)
        return;
    while (arena->blocks) {
        struct block *block = arena->blocks;
        arena->blocks = block->next;
        free(block);
    }
    free(arena);
}

static struct block *add_block(struct config_arena *arena, size_t bytes) {
    size_t room = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    struct block *block = calloc(1, sizeof *block + room);
    if (!block)
        return NULL;
    block->room = room;
    block->next = arena->blocks;
    arena->blocks = block;
    return block;
}

static void *take(struct config_arena *arena, size_t bytes, size_t alignment) {
    struct block *block = arena->blocks;
    size_t at = block ? (block->used + alignment - 1) & ~(alignment - 1) : 0;
    if (!block || at > block->room || block->room - at < bytes) {
        block = add_block(arena, bytes);
        at = 0;
    }
    if (!block)
        return NULL;
    block->used = at + bytes;
    return block->bytes + at;
}

void *config_arena_take(struct config_arena *arena, size_t bytes) {
    return take(arena, bytes, alignof(max_align_t));
}

const char *config_arena_text(struct config_arena *arena, struct view text) {
    char *copy = take(arena, text.length + 1, 1);
    if (copy && text.length)
        memcpy(copy, text.data, text.length);
    return copy;
}
