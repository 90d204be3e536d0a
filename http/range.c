#include "http/range.h"

// Digits alone, above UINT64_MAX saturated. False when empty or anything else.
static bool read_position(struct view text, uint64_t *position) {
    for (size_t i = 0; i < text.length; i++)
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    if (!view_number(text, position))
        *position = UINT64_MAX;
    return text.length > 0;
}

static enum range suffix_range(struct view digits, uint64_t size, uint64_t *first, uint64_t *last) {
    uint64_t length;
    if (!read_position(digits, &length))
        return RANGE_NONE;
    if (length == 0)
        return RANGE_UNSATISFIABLE;
    if (size == 0)
        return RANGE_NONE; // satisfiable, but no Content-Range can say so
    *first = length < size ? size - length : 0;
    *last = size - 1;
    return RANGE_ONE;
}

enum range range_parse(struct view value, uint64_t size, uint64_t *first, uint64_t *last) {
    const struct view unit = VIEW("bytes=");
    struct view text = view_trim(view_skip(value, unit.length));
    size_t dash = view_find(text, '-');
    struct view end = view_skip(text, dash + 1);
    uint64_t from, to = UINT64_MAX;
    if (!view_starts_fold(value, unit) || dash == text.length)
        return RANGE_NONE;
    if (dash == 0)
        return suffix_range(end, size, first, last);
    if (!read_position(view_take(text, dash), &from) || (end.length > 0 && !read_position(end, &to)) ||
            from > to)
        return RANGE_NONE;
    if (from >= size)
        return RANGE_UNSATISFIABLE;
    *first = from;
    *last = to < size ? to : size - 1;
    return RANGE_ONE;
}
