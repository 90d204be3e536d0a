// Range and Content-Range, [RFC 9110 §14].
#pragma once

#include "http/head.h"

enum range {
    RANGE_NONE,          // no Range, another unit, malformed, or several ranges: answer with the whole
    RANGE_ONE,           // bytes first..last, both included, within `size`
    RANGE_UNSATISFIABLE, // 416
};

// Reads the request's Range against a representation of `size` bytes.
enum range range_parse(struct view value, uint64_t size, uint64_t *first, uint64_t *last);
