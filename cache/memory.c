#include "cache/memory.h"

#include "admin/check.h"

#include <stdlib.h>

void *memory_new(size_t bytes) {
    void *memory = malloc(bytes);
    CHECK(memory);
    return memory;
}
