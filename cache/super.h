// The super block of a volume, file `super` in its directory: whose files these are and how to read them. Two
// copies of 64 bytes, a block apart, written one after the other, so that one is always whole.
//
//   0 magic (8), "WEIRVOLU"   8 format (4)   12 bits: a reader must know all of them (4)
//  16 bits that any reader may ignore (4)   20 reserved (4)   24 UUID (16)   40 seed of the keys (8)
//  48 bytes of a segment (8)   56 reserved (4)   60 CRC32C of the 60 bytes before (4)
#pragma once

#include <stdint.h>

#define SUPER_FORMAT 1
#define SUPER_BYTES 64
#define SUPER_COPY_AT 4096
#define SUPER_COPIES 2

struct super {
    uint32_t format, needed_bits, other_bits;
    uint64_t uuid[2];
    uint64_t seed; // keys are made with it: another seed finds nothing
    uint64_t segment_bytes;
};

enum super_found {
    SUPER_GOOD,
    SUPER_NONE,    // no such file, or an empty one
    SUPER_FOREIGN, // another format, or a bit that is not known here
    SUPER_BROKEN,  // neither copy is whole
};

// One with a fresh UUID and seed.
struct super super_new(uint64_t segment_bytes);
// 0 and *found, or -errno. A copy that is broken is written anew from the other one.
int super_read(int directory, struct super *super, enum super_found *found);
// Each copy as it is, nothing is written. 0 with `super` from a copy that is whole, or -errno.
int super_look(int directory, struct super *super, enum super_found copies[static SUPER_COPIES]);
// Both copies, synced with the directory. 0 or -errno.
int super_write(int directory, const struct super *super);
