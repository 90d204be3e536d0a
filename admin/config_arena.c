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

void *config_arena_take(struct config_arena *arena, size_t bytes) {
    size_t rounded = (bytes + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    struct block *block = arena->blocks;
    if (!block || block->room - block->used < rounded)
        block = add_block(arena, rounded);
    if (!block)
        return NULL;
    void *taken = block->bytes + block->used;
    block->used += rounded;
    return taken;
}

const char *config_arena_text(struct config_arena *arena, struct view text) {
    char *copy = config_arena_take(arena, text.length + 1);
    if (copy && text.length)
        memcpy(copy, text.data, text.length);
    return copy;
}
