#include "cache/key.h"

#include "cache/budget.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define STACK_BYTES 1024
#define RANK_SEED UINT64_C(0x72616e6b)

static char *put(char *end, const void *data, size_t length) {
    if (length)
        memcpy(end, data, length);
    return end + length;
}

static char *put_view(char *end, struct view view) {
    uint64_t length = view.length; // lengths keep ("ab", "c") and ("a", "bc") apart
    return put(put(end, &length, sizeof length), view.data, view.length);
}

struct cache_key key_of(
        uint64_t seed, const struct endpoint *destination, struct view authority, struct view path) {
    char stack[STACK_BYTES];
    size_t most = sizeof *destination + 2 * sizeof(uint64_t) + authority.length + path.length;
    char *text = most <= sizeof stack ? stack : memory_new(most), *end = text;
    end = put(end, destination->address.bytes, sizeof destination->address.bytes);
    end = put(end, &destination->port, sizeof destination->port);
    end = put(end, &destination->scope, sizeof destination->scope);
    end = put_view(put_view(end, authority), path);
    XXH128_hash_t hash = XXH3_128bits_withSeed(text, (size_t)(end - text), seed);
    if (text != stack)
        free(text);
    return (struct cache_key){hash.low64, hash.high64};
}

struct cache_key key_of_chunk(struct cache_key key, uint64_t generation, uint32_t number) {
    char text[sizeof key + sizeof generation + sizeof number];
    char *end = put(put(text, &key, sizeof key), &generation, sizeof generation);
    put(end, &number, sizeof number);
    XXH128_hash_t hash = XXH3_128bits(text, sizeof text);
    return (struct cache_key){hash.low64, hash.high64};
}

uint64_t key_rank(struct cache_key key) {
    return XXH3_64bits_withSeed(&key, sizeof key, RANK_SEED);
}
