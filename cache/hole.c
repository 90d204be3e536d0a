#include "cache/cache.h"

#include <stddef.h>

// Everything that a reader is attached to is complete, or arrives.
struct cache_fill *cache_reader_fill(
        struct cache_reader *reader, const struct cache_query *query, uint64_t until) {
    (void)reader, (void)query, (void)until;
    return NULL;
}

// Nothing is held for a reader alone.
void cache_reader_rest(struct cache_reader *reader) {
    (void)reader;
}
