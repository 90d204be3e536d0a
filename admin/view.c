#include "admin/view.h"

#include <string.h>

struct view view_of(const char *text) {
    return text ? (struct view){text, strlen(text)} : (struct view){"", 0};
}

bool view_equal(struct view a, struct view b) {
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

bool view_equal_fold(struct view a, struct view b) {
    if (a.length != b.length)
        return false;
    for (size_t i = 0; i < a.length; i++)
        if (view_lower(a.data[i]) != view_lower(b.data[i]))
            return false;
    return true;
}

bool view_starts(struct view text, struct view start) {
    return text.length >= start.length && view_equal(view_take(text, start.length), start);
}

bool view_starts_fold(struct view text, struct view start) {
    return text.length >= start.length && view_equal_fold(view_take(text, start.length), start);
}

size_t view_find(struct view text, char byte) {
    const char *found = text.length ? memchr(text.data, byte, text.length) : NULL;
    return found ? (size_t)(found - text.data) : text.length;
}

struct view view_skip(struct view text, size_t count) {
    if (count > text.length)
        count = text.length;
    return (struct view){text.data + count, text.length - count};
}

struct view view_take(struct view text, size_t count) {
    return (struct view){text.data, count < text.length ? count : text.length};
}

static bool is_blank(char byte) {
    return byte == ' ' || byte == '\t';
}

struct view view_trim(struct view text) {
    while (text.length && is_blank(text.data[0]))
        text = view_skip(text, 1);
    while (text.length && is_blank(text.data[text.length - 1]))
        text.length--;
    return text;
}

bool view_number(struct view text, uint64_t *number) {
    uint64_t value = 0;
    if (text.length == 0)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        if (__builtin_mul_overflow(value, 10, &value) ||
                __builtin_add_overflow(value, (uint64_t)(text.data[i] - '0'), &value))
            return false;
    }
    *number = value;
    return true;
}
