// Classes of octets in the grammar of HTTP, by table.
#pragma once

#include "admin/view.h"

enum octet_class {
    OCTET_TOKEN = 1,  // tchar [RFC 9110 §5.6.2]
    OCTET_TEXT = 2,   // in a field value: HTAB, SP, VCHAR, obs-text; no other control [RFC 9110 §5.5]
    OCTET_TARGET = 4, // in a request target: VCHAR, and obs-text, which clients do send
    OCTET_HOST = 8,   // in a registered name that weir takes: letters, digits, "-", "." and "_"
    OCTET_ETAG = 16,  // etagc [RFC 9110 §8.8.3]
    OCTET_HEX = 32,
};

extern const uint8_t octet_classes[256];

static inline bool octet_is(char octet, enum octet_class class) {
    return octet_classes[(unsigned char)octet] & class;
}

// SP or HTAB.
static inline bool octet_is_blank(char octet) {
    return octet == ' ' || octet == '\t';
}

// The value of a hexadecimal digit (OCTET_HEX).
static inline unsigned octet_hex(char octet) {
    return octet <= '9' ? (unsigned)(octet - '0') : (unsigned)((octet | 0x20) - 'a' + 10);
}

// How many octets at the start of `text` are of this class.
static inline size_t octet_run(struct view text, enum octet_class class) {
    size_t length = 0;
    while (length < text.length && octet_is(text.data[length], class))
        length++;
    return length;
}

// Whether `text` is one token, not empty.
static inline bool octet_all_token(struct view text) {
    return text.length > 0 && octet_run(text, OCTET_TOKEN) == text.length;
}

// Whether every octet is OCTET_TEXT; quick for long values.
bool octet_all_text(struct view text);
