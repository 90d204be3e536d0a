// What the store allocates with.
#pragma once

#include <stddef.h>
#include <stdint.h>

// malloc that does not fail: without any memory the process ends, and traffic passes by.
void *memory_new(size_t bytes);

// What an allocation of this size takes.
static inline uint64_t memory_cost(size_t bytes) {
    return (bytes + sizeof(size_t) + 15) / 16 * 16;
}
