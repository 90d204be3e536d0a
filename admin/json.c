#include "admin/json.h"

#include "admin/utf8.h"

#include <string.h>

// The code of the control character at the start, which is `taken` bytes of UTF-8 long; -1: it is none.
static int control_code(struct view text, size_t taken) {
    unsigned char first = (unsigned char)text.data[0];
    if (taken == 1 && (first < 0x20 || first == 0x7f))
        return first;
    if (taken == 2 && first == 0xc2 && (unsigned char)text.data[1] < 0xa0) // C1
        return (unsigned char)text.data[1];
    return -1;
}

size_t json_escape_one(struct view text, char piece[static JSON_PIECE_BYTES], size_t *length) {
    static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *found = text.data[0] ? strchr(named, text.data[0]) : NULL;
    size_t taken = utf8_length(text);
    int control = control_code(text, taken);
    if (found)
        *length = (size_t)snprintf(piece, JSON_PIECE_BYTES, "\\%c", letters[found - named]);
    else if (control >= 0)
        *length = (size_t)snprintf(piece, JSON_PIECE_BYTES, "\\u%04x", (unsigned)control);
    else if (taken == 0)
        *length = (size_t)snprintf(piece, JSON_PIECE_BYTES, "\\ufffd");
    else
        memcpy(piece, text.data, *length = taken);
    return taken ? taken : 1;
}

void json_print(struct view text, FILE *out) {
    char piece[JSON_PIECE_BYTES];
    size_t length = 0;
    fputc('"', out);
    while (text.length) {
        text = view_skip(text, json_escape_one(text, piece, &length));
        fwrite(piece, 1, length, out);
    }
    fputc('"', out);
}
