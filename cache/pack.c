#include "cache/pack.h"

#include <string.h>

void pack_bytes(struct pack *pack, const void *data, size_t length) {
    if (length > 0 && pack->length <= pack->room && length <= pack->room - pack->length)
        memcpy(pack->out + pack->length, data, length);
    pack->length += length;
}

void pack_number(struct pack *pack, uint64_t number) {
    unsigned char bytes[PACK_NUMBER_BYTES];
    size_t length = 0;
    for (; number >= 0x80; number >>= 7)
        bytes[length++] = (unsigned char)(number | 0x80);
    bytes[length++] = (unsigned char)number;
    pack_bytes(pack, bytes, length);
}

// 0, -1, 1, -2 ... are 0, 1, 2, 3 ...
void pack_signed(struct pack *pack, int64_t number) {
    uint64_t doubled = (uint64_t)number << 1;
    pack_number(pack, number < 0 ? ~doubled : doubled);
}

void pack_text(struct pack *pack, struct view text) {
    pack_number(pack, text.length);
    pack_bytes(pack, text.data, text.length);
}

void unpack_refuse(struct unpack *unpack) {
    unpack->is_broken = true;
    unpack->left = 0;
}

struct view unpack_bytes(struct unpack *unpack, size_t length) {
    if (length > unpack->left) {
        unpack_refuse(unpack);
        return (struct view){"", 0};
    }
    struct view bytes = {(const char *)unpack->at, length};
    unpack->at += length;
    unpack->left -= length;
    return bytes;
}

// A last byte of 0 says nothing: the number has a shorter form. The tenth byte has room for one bit.
static bool is_last_wrong(unsigned char byte, unsigned shift) {
    return (byte == 0 && shift > 0) || (shift == 63 && byte > 1);
}

static uint64_t read_number(struct unpack *unpack) {
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 64 && unpack->left > 0; shift += 7) {
        unsigned char byte = *unpack->at++;
        unpack->left--;
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80)
            continue;
        if (is_last_wrong(byte, shift))
            break;
        return number;
    }
    unpack_refuse(unpack);
    return 0;
}

uint64_t unpack_number(struct unpack *unpack, uint64_t most) {
    uint64_t number = read_number(unpack);
    if (number <= most)
        return number;
    unpack_refuse(unpack);
    return 0;
}

int64_t unpack_signed(struct unpack *unpack) {
    uint64_t number = read_number(unpack);
    return (int64_t)(number >> 1 ^ (number & 1 ? UINT64_MAX : 0));
}

struct view unpack_text(struct unpack *unpack, size_t most) {
    return unpack_bytes(unpack, (size_t)unpack_number(unpack, most));
}
