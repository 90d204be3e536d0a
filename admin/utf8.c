#include "admin/utf8.h"

size_t utf8_length(struct view text) {
    const unsigned char *byte = (const unsigned char *)text.data;
    size_t length = byte[0] < 0x80 ? 1 : byte[0] < 0xc2 ? 0 : byte[0] < 0xe0 ? 2 : byte[0] < 0xf0 ? 3 : 4;
    if (length == 0 || byte[0] > 0xf4 || length > text.length)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((byte[i] & 0xc0) != 0x80)
            return 0;
    bool is_overlong = (byte[0] == 0xe0 && byte[1] < 0xa0) || (byte[0] == 0xf0 && byte[1] < 0x90);
    bool is_outside = (byte[0] == 0xed && byte[1] > 0x9f) || (byte[0] == 0xf4 && byte[1] > 0x8f);
    return is_overlong || is_outside ? 0 : length;
}
