// A journal of purges, from a disk that may have rotted or a stranger may have written. Nothing is read
// beyond the bytes, what is kept stays within its bound, and is written and read again as the same.
#include "cache/purge.h"
#include "admin/check.h"
#include "cache/record.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define VOLUME UINT64_C(0x3030303030303030) // "00000000"
#define BYTES_MOST (4 << 10)

static bool matches(void *context, struct view mask, struct view authority, struct view path) {
    (void)context, (void)authority;
    return view_starts(path, mask);
}

static void check_again(const struct purge *purge) {
    uint64_t bytes = purge_bytes(purge), end;
    unsigned char *first = malloc(bytes), *second = malloc(bytes);
    struct purge *again = purge_new(1, BYTES_MOST);
    purge_encode(purge, VOLUME, first);
    CHECK(purge_read(again, VOLUME, (struct view){(char *)first, bytes}, &end) && end == bytes);
    CHECK(purge_bytes(again) == bytes && purge_count(again) == purge_count(purge));
    purge_encode(again, VOLUME, second);
    CHECK(memcmp(first, second, bytes) == 0);
    purge_free(again);
    free(first);
    free(second);
}

static void check(const uint8_t *data, size_t size) {
    struct purge *purge = purge_new(1, BYTES_MOST);
    uint64_t end;
    purge_read(purge, VOLUME, (struct view){(const char *)data, size}, &end);
    CHECK(purge_bytes(purge) <= BYTES_MOST + 2 * PURGE_UNIT_BYTES && end % PURGE_UNIT_BYTES == 0);
    check_again(purge);
    struct purge_asked asked = {.key = {1, 2}, .authority = VIEW("host"), .path = VIEW("/a/b")};
    CHECK(!purge_matches(purge, &asked, matches, NULL) || purge_count(purge) > 0);
    purge_settle(purge, 1000, 1000);
    CHECK(purge_newest(purge) == purge_settled(purge));
    purge_retire(purge, UINT64_MAX);
    CHECK(purge_count(purge) == 0);
    purge_free(purge);
}

// With checksums that are right.
static void mend(uint8_t *data, size_t size) {
    for (size_t at = 0; at + PURGE_UNIT_BYTES <= size; at += PURGE_UNIT_BYTES) {
        uint8_t *unit = data + at, *crc_at = unit + PURGE_UNIT_BYTES - 4;
        size_t text = at ? (size_t)(unit[6] | unit[7] << 8) : 0;
        size_t length =
                (PURGE_UNIT_BYTES + text + PURGE_UNIT_BYTES - 1) / PURGE_UNIT_BYTES * PURGE_UNIT_BYTES;
        if ((at && memcmp(unit, "PURG", 4) != 0) || at + length > size)
            continue;
        memset(crc_at, 0, 4);
        uint32_t crc = record_crc(unit, length);
        for (unsigned i = 0; i < 4; i++)
            crc_at[i] = (uint8_t)(crc >> 8 * i);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check(data, size);
    uint8_t *mended = malloc(size + 1);
    memcpy(mended, data, size);
    mend(mended, size);
    check(mended, size);
    free(mended);
    return 0;
}
