// What goes out of a representation when not the whole does: one range, or several as multipart/byteranges
// [RFC 9110 §14.6].
#pragma once

#include "http/range.h"
#include "intercept/buffer.h"

#define PARTS_TYPE_BYTES 256 // a longer Content-Type is not repeated in every part
#define PARTS_BOUNDARY_BYTES 32

struct parts {
    struct range_list ranges;
    unsigned next;                           // the range that goes out next
    uint64_t size;                           // of the representation
    struct view type;                        // its Content-Type, empty without one; borrowed
    char boundary[PARTS_BOUNDARY_BYTES + 1]; // of several, else empty
};

// For the ranges in `parts->ranges`. Where several cannot go out, only the first stays, which a client has to
// expect [RFC 9110 §15.3.7].
void parts_init(struct parts *parts, uint64_t size, struct view type);

bool parts_are_several(const struct parts *parts);
// Content of the answer, the parts' heads and the last delimiter included.
uint64_t parts_content_length(const struct parts *parts);

// Goes on to the next range and writes its part's head, if it is one of several. NULL after the last, whose
// delimiter has been written then. `*ok` is false without memory.
const struct range *parts_next(struct parts *parts, struct buffer *out, bool *ok);
