// A view is a borrowed run of bytes: it owns nothing, is not NUL-terminated, and is valid as long as what it
// points into.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct view {
    const char *data;
    size_t length;
};

#define VIEW(literal) ((struct view){"" literal, sizeof(literal) - 1})
#define VIEW_FORMAT "%.*s"
#define VIEW_ARGUMENT(view) (int)(view).length, (view).data

// A view of a NUL-terminated text, which may be NULL (an empty view then).
struct view view_of(const char *text);

// Byte for byte, and with ASCII letters folded.
bool view_equal(struct view a, struct view b);
bool view_equal_fold(struct view a, struct view b);
bool view_starts(struct view text, struct view start);
bool view_starts_fold(struct view text, struct view start);

// The first position of a byte, or `length` when it is not there.
size_t view_find(struct view text, char byte);

// Without the first `count` bytes (at most all of them) / the first `count` bytes.
struct view view_skip(struct view text, size_t count);
struct view view_take(struct view text, size_t count);

// Without SP and HTAB at both ends (OWS, [RFC 9110 §5.6.3]).
struct view view_trim(struct view text);

// A whole decimal number of digits alone. False when empty, with any other byte, or above UINT64_MAX.
bool view_number(struct view text, uint64_t *number);

// ASCII letters folded to lower case; every other byte as it is.
static inline char view_lower(char byte) {
    return byte >= 'A' && byte <= 'Z' ? (char)(byte + ('a' - 'A')) : byte;
}
