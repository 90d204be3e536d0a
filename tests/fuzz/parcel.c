// What weir store import reads: a file from anywhere. Nothing is read beyond the bytes, every part is within
// its bounds, and what is taken and written again is the same.
#include "cache/parcel.h"

#include "admin/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const unsigned char *data;
    size_t left;
};

static int64_t take(void *context, void *out, size_t length) {
    struct input *input = context;
    size_t most = length < input->left ? length : input->left;
    if (most > 1000)
        most = 1000; // in pieces
    memcpy(out, input->data, most);
    input->data += most;
    input->left -= most;
    return (int64_t)most;
}

static int compare(void *context, const void *data, size_t length) {
    struct input *written = context;
    CHECK(length <= written->left && memcmp(written->data, data, length) == 0);
    written->data += length;
    written->left -= length;
    return 0;
}

// So that checksums are no wall: those of beginning and parts are set right where they would be.
static void set_crc(unsigned char *bytes) {
    uint32_t crc = record_crc(bytes, 28);
    for (unsigned i = 0; i < sizeof crc; i++)
        bytes[28 + i] = (unsigned char)(crc >> 8 * i);
}

static void read_all(const unsigned char *data, size_t size) {
    struct input input = {data, size};
    struct parcel_reader reader;
    struct parcel_part part = {0};
    int error = parcel_reader_init(&reader, take, &input);
    while (error == 0 && part.kind != PARCEL_END) {
        struct input again = {data + reader.offset, size - reader.offset};
        error = parcel_next(&reader, &part);
        CHECK(error == 0 || error == -EBADMSG);
        CHECK(part.kind != PARCEL_CHUNK || error < 0 || part.content.length > 0);
        if (error == 0)
            CHECK(parcel_put(&part, compare, &again) == 0);
    }
    CHECK(error == 0 || reader.what);
    CHECK(reader.offset <= size);
    parcel_reader_fini(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    unsigned char *copy = malloc(size + 1);
    memcpy(copy, data, size);
    read_all(copy, size);
    for (size_t at = 0; at + PARCEL_PART_BYTES <= size; at += 4)
        if (at == 0 || memcmp(copy + at, "PART", 4) == 0)
            set_crc(copy + at);
    read_all(copy, size);
    free(copy);
    return 0;
}
