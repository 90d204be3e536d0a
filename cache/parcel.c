#include "cache/parcel.h"

#include "admin/check.h"
#include "cache/little.h"
#include "cache/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "WEIRPARC"
#define PART_MAGIC "PART"
#define CRC_AT 28

// ---- writing ----

int parcel_begin(parcel_write *write, void *context) {
    unsigned char bytes[PARCEL_BEGINNING_BYTES] = {0};
    memcpy(bytes, MAGIC, strlen(MAGIC));
    little_put32(bytes + 8, PARCEL_FORMAT);
    little_put32(bytes + CRC_AT, record_crc(bytes, CRC_AT));
    return write(context, bytes, sizeof bytes);
}

int parcel_put(const struct parcel_part *part, parcel_write *write, void *context) {
    unsigned char bytes[PARCEL_PART_BYTES];
    CHECK(part->head.length <= RECORD_HEAD_MAXIMUM && part->content.length <= PARCEL_CONTENT_MAXIMUM);
    memcpy(bytes, PART_MAGIC, strlen(PART_MAGIC));
    little_put32(bytes + 4, part->kind);
    little_put32(bytes + 8, part->number);
    little_put32(bytes + 12, (uint32_t)part->head.length);
    little_put32(bytes + 16, (uint32_t)part->content.length);
    little_put32(bytes + 20, record_crc(part->head.data, part->head.length));
    little_put32(bytes + 24, record_crc(part->content.data, part->content.length));
    little_put32(bytes + CRC_AT, record_crc(bytes, CRC_AT));
    int error = write(context, bytes, sizeof bytes);
    if (error == 0 && part->head.length)
        error = write(context, part->head.data, part->head.length);
    if (error == 0 && part->content.length)
        error = write(context, part->content.data, part->content.length);
    return error;
}

// ---- reading ----

static int refuse(struct parcel_reader *reader, const char *what) {
    reader->what = what;
    return -EBADMSG;
}

static int read_all(struct parcel_reader *reader, unsigned char *out, size_t length) {
    for (size_t done = 0; done < length;) {
        int64_t got = reader->read(reader->context, out + done, length - done);
        if (got < 0)
            return (int)got;
        if (got == 0)
            return refuse(reader, "it is cut off here");
        done += (size_t)got;
    }
    return 0;
}

int parcel_reader_init(struct parcel_reader *reader, parcel_read *read, void *context) {
    unsigned char bytes[PARCEL_BEGINNING_BYTES];
    *reader = (struct parcel_reader){.read = read, .context = context};
    reader->buffer = memory_new(RECORD_HEAD_MAXIMUM + PARCEL_CONTENT_MAXIMUM);
    int error = read_all(reader, bytes, sizeof bytes);
    if (error < 0)
        return error;
    if (memcmp(bytes, MAGIC, strlen(MAGIC)) != 0)
        return refuse(reader, "it was not written by weir store export");
    if (little_get32(bytes + CRC_AT) != record_crc(bytes, CRC_AT))
        return refuse(reader, "its beginning is broken");
    if (little_get32(bytes + 8) != PARCEL_FORMAT)
        return refuse(reader, "it is in a format that this version does not know");
    reader->offset = sizeof bytes;
    return 0;
}

void parcel_reader_fini(struct parcel_reader *reader) {
    free(reader->buffer);
    reader->buffer = NULL;
}

// What is wrong with these lengths; NULL: nothing.
static const char *part_trouble(
        const struct parcel_reader *reader, const struct parcel_part *part, uint32_t head, uint32_t content) {
    if (head > RECORD_HEAD_MAXIMUM || content > PARCEL_CONTENT_MAXIMUM)
        return "a part is longer than any can be";
    switch (part->kind) {
    case PARCEL_HEAD:
        return head && content <= RECORD_SMALL_BYTES && !part->number ? NULL : "a head is none";
    case PARCEL_CHUNK:
        return reader->is_chunked && !head && content && part->number >= reader->next_chunk &&
                               part->number < UINT32_MAX
                       ? NULL
                       : "a chunk is where none can be";
    case PARCEL_END:
        return !head && !content && part->number == reader->responses ? NULL
                                                                      : "its end does not fit its beginning";
    }
    return "a part is of no kind that this version knows";
}

static void go_on(struct parcel_reader *reader, const struct parcel_part *part) {
    reader->offset += PARCEL_PART_BYTES + part->head.length + part->content.length;
    if (part->kind == PARCEL_HEAD) {
        reader->responses++;
        reader->is_chunked = part->content.length == 0;
        reader->next_chunk = 0;
    } else if (part->kind == PARCEL_CHUNK)
        reader->next_chunk = part->number + 1;
}

int parcel_next(struct parcel_reader *reader, struct parcel_part *part) {
    unsigned char bytes[PARCEL_PART_BYTES];
    *part = (struct parcel_part){0};
    int error = read_all(reader, bytes, sizeof bytes);
    if (error < 0)
        return error;
    if (memcmp(bytes, PART_MAGIC, strlen(PART_MAGIC)) != 0 ||
            little_get32(bytes + CRC_AT) != record_crc(bytes, CRC_AT))
        return refuse(reader, "it is broken here");
    part->kind = little_get32(bytes + 4);
    part->number = little_get32(bytes + 8);
    uint32_t head = little_get32(bytes + 12), content = little_get32(bytes + 16);
    const char *trouble = part_trouble(reader, part, head, content);
    if (trouble)
        return refuse(reader, trouble);
    error = read_all(reader, reader->buffer, (size_t)head + content);
    if (error < 0)
        return error;
    part->head = (struct view){(char *)reader->buffer, head};
    part->content = (struct view){(char *)reader->buffer + head, content};
    if (record_crc(part->head.data, head) != little_get32(bytes + 20) ||
            record_crc(part->content.data, content) != little_get32(bytes + 24))
        return refuse(reader, "a checksum is wrong in the part that begins here");
    go_on(reader, part);
    return 0;
}
