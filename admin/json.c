#include "admin/json.h"

#include <string.h>

#define PIECE_BYTES 8 // the longest escape is \u00xx

static bool is_continuation(struct view text, size_t at) {
    return at < text.length && ((unsigned char)text.data[at] & 0xc0) == 0x80;
}

// The length of the well-formed UTF-8 character at the start, 0 for none. [RFC 3629 §4]
static size_t utf8_length(struct view text) {
    unsigned char first = (unsigned char)text.data[0];
    unsigned char second = text.length > 1 ? (unsigned char)text.data[1] : 0;
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first <= 0xdf)
        return is_continuation(text, 1) ? 2 : 0;
    bool bad_second = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
    if (bad_second || !is_continuation(text, 1) || !is_continuation(text, 2))
        return 0;
    if (first >= 0xe0 && first <= 0xef)
        return 3;
    return first >= 0xf0 && first <= 0xf4 && is_continuation(text, 3) ? 4 : 0;
}

// Escapes the first character into `piece`; returns how many bytes of the text it was.
static size_t escape_one(struct view text, char piece[static PIECE_BYTES], size_t *length) {
    static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    unsigned char first = (unsigned char)text.data[0];
    const char *found = first ? strchr(named, first) : NULL;
    size_t taken = utf8_length(text);
    if (found)
        *length = (size_t)snprintf(piece, PIECE_BYTES, "\\%c", letters[found - named]);
    else if (first < 0x20 || first == 0x7f)
        *length = (size_t)snprintf(piece, PIECE_BYTES, "\\u%04x", first);
    else if (taken == 0)
        *length = (size_t)snprintf(piece, PIECE_BYTES, "\\ufffd");
    else
        memcpy(piece, text.data, *length = taken);
    return taken ? taken : 1;
}

size_t json_escape(struct view text, char *out, size_t room) {
    char piece[PIECE_BYTES];
    size_t used = 0, length = 0;
    while (text.length) {
        text = view_skip(text, escape_one(text, piece, &length));
        if (length > room - used)
            break;
        memcpy(out + used, piece, length);
        used += length;
    }
    return used;
}

void json_print(struct view text, FILE *out) {
    char piece[PIECE_BYTES];
    size_t length = 0;
    fputc('"', out);
    while (text.length) {
        text = view_skip(text, escape_one(text, piece, &length));
        fwrite(piece, 1, length, out);
    }
    fputc('"', out);
}
