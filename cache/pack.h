// Numbers and texts as few bytes: a number takes seven bits a byte, the lowest first, and a text is its
// length and its bytes. Each value has one form: another one, and what goes beyond the end, is refused.
#pragma once

#include "admin/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACK_NUMBER_BYTES 10 // the most that one takes

// What does not fit into `room` is counted in `length`, not written: `out` may be NULL with room 0.
struct pack {
    unsigned char *out;
    size_t room, length;
};

void pack_bytes(struct pack *pack, const void *data, size_t length);
void pack_number(struct pack *pack, uint64_t number);
void pack_signed(struct pack *pack, int64_t number); // small ones of either sign are short
void pack_text(struct pack *pack, struct view text);

struct unpack {
    const unsigned char *at;
    size_t left;
    bool is_broken; // and everything read since then 0 and empty
};

static inline struct unpack unpack_from(struct view bytes) {
    return (struct unpack){(const unsigned char *)bytes.data, bytes.length, false};
}
void unpack_refuse(struct unpack *unpack);

// Views of what is being read.
struct view unpack_bytes(struct unpack *unpack, size_t length);
uint64_t unpack_number(struct unpack *unpack, uint64_t most); // a larger one is refused
int64_t unpack_signed(struct unpack *unpack);
struct view unpack_text(struct unpack *unpack, size_t most);
