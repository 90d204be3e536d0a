#include "http/octet.h"

#include <string.h>

#define VISIBLE (OCTET_TEXT | OCTET_TARGET)
#define MARK (VISIBLE | OCTET_ETAG)
#define TOKEN (MARK | OCTET_TOKEN)
#define NAME (TOKEN | OCTET_HOST)

const uint8_t octet_classes[256] = {
        ['\t'] = OCTET_TEXT,
        [' '] = OCTET_TEXT,
        ['!'] = TOKEN,
        ['"'] = VISIBLE,
        ['#' ... '\''] = TOKEN,
        ['(' ... ')'] = MARK,
        ['*' ... '+'] = TOKEN,
        [','] = MARK,
        ['-' ... '.'] = NAME,
        ['/'] = MARK,
        ['0' ... '9'] = NAME | OCTET_HEX,
        [':' ... '@'] = MARK,
        ['A' ... 'F'] = NAME | OCTET_HEX,
        ['G' ... 'Z'] = NAME,
        ['[' ... ']'] = MARK,
        ['^'] = TOKEN,
        ['_'] = NAME,
        ['`'] = TOKEN,
        ['a' ... 'f'] = NAME | OCTET_HEX,
        ['g' ... 'z'] = NAME,
        ['{'] = MARK,
        ['|'] = TOKEN,
        ['}'] = MARK,
        ['~'] = TOKEN,
        [0x80 ... 0xff] = MARK,
};

#define EVERY(octet) (UINT64_MAX / 255 * (octet))

// Whether one of eight octets may be a control or DEL: no misses, and a false alarm only next to a hit.
static bool has_control(uint64_t octets) {
    uint64_t below_space = (octets - EVERY(0x20)) & ~octets;
    uint64_t flipped = octets ^ EVERY(0x7f);
    uint64_t is_delete = (flipped - EVERY(0x01)) & ~flipped;
    return (below_space | is_delete) & EVERY(0x80);
}

bool octet_all_text(struct view text) {
    while (text.length >= sizeof(uint64_t)) {
        uint64_t octets;
        memcpy(&octets, text.data, sizeof octets);
        if (has_control(octets) && octet_run(view_take(text, sizeof octets), OCTET_TEXT) != sizeof octets)
            return false;
        text.data += sizeof octets;
        text.length -= sizeof octets;
    }
    return octet_run(text, OCTET_TEXT) == text.length;
}
