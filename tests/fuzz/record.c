// What lies in a segment file: headers of records and response heads, from a disk that may have rotted or a
// stranger may have written. Nothing is read beyond the bytes, nothing takes more memory than is stated, and
// what is taken has no other form: it encodes to the same bytes.
#include "admin/check.h"
#include "cache/head_record.h"
#include "cache/vary.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ANY_NOW HEAD_RECORD_SECONDS_MAXIMUM

static void check_same(const unsigned char *header, const struct record *record) {
    unsigned char again[RECORD_HEADER_BYTES];
    record_encode(record, again);
    CHECK(memcmp(again, header, sizeof again) == 0);
    CHECK(record->head_bytes <= RECORD_HEAD_MAXIMUM && record->body_bytes <= RECORD_BODY_MAXIMUM);
    CHECK(record_bytes(record->head_bytes, record->body_bytes) % RECORD_ALIGNMENT == 0);
}

// As it is, and with a checksum that is right.
static void check_header(const uint8_t *data) {
    unsigned char header[RECORD_HEADER_BYTES];
    struct record record;
    memcpy(header, data, sizeof header);
    if (record_decode(header, &record) == RECORD_OK)
        check_same(header, &record);
    uint32_t crc = record_crc(header, sizeof header - sizeof crc);
    for (unsigned i = 0; i < sizeof crc; i++)
        header[sizeof header - sizeof crc + i] = (unsigned char)(crc >> 8 * i);
    if (record_decode(header, &record) == RECORD_OK)
        check_same(header, &record);
}

static void check_fields(const struct http_head *http) {
    CHECK(http->field_count == http->field_capacity && http->field_count <= HEAD_RECORD_FIELDS_MAXIMUM);
    for (unsigned i = 0; i < http->field_count; i++) {
        struct view value = http->fields[i].value;
        CHECK(!memchr(value.data, '\n', value.length) && !memchr(value.data, '\r', value.length));
        CHECK(!http->fields[i].hop && http->fields[i].id != FIELD_TRANSFER_ENCODING);
    }
}

static void check_freshness(const struct stored_head *head, struct moment now) {
    int64_t age_s = freshness_age(&head->freshness, now);
    CHECK(age_s >= head->freshness.initial_age_s && age_s <= 3 * HEAD_RECORD_SECONDS_MAXIMUM);
}

static void check_encoded(
        struct view bytes, const struct head_record *record, const struct stored_head *head) {
    unsigned char *again = malloc(bytes.length);
    CHECK(head_record_encode(record, head, again, bytes.length) == bytes.length);
    CHECK(memcmp(again, bytes.data, bytes.length) == 0);
    free(again);
}

// Another start of the machine, at any time.
static void check_later(struct view bytes, int64_t wall_s) {
    struct head_record record;
    struct head_record_now now = {{wall_s, 5}, 0};
    struct stored_head *head = head_record_decode(bytes, &now, &record);
    CHECK(head);
    check_freshness(head, now.moment);
    free(head);
}

static void check_head(struct view bytes) {
    struct head_record record, found;
    bool is_read = head_record_read(bytes, &record);
    struct head_record_now now = {{ANY_NOW, ANY_NOW}, record.boot};
    struct stored_head *head = head_record_decode(bytes, &now, &found);
    if (!head)
        return;
    CHECK(is_read && view_equal(record.path, found.path) && record.generation == found.generation);
    CHECK(head->bytes <= HEAD_RECORD_MEMORY_MAXIMUM);
    check_fields(&head->http);
    check_freshness(head, now.moment);
    check_encoded(bytes, &found, head);
    check_later(bytes, 0);
    check_later(bytes, ANY_NOW);
    const struct http_head request = {0};
    vary_rank(head->vary, head->selectors, &request, &head->http);
    free(head);
    CHECK(!head_record_decode(view_take(bytes, bytes.length - 1), &now, &found));
}

static void check_body(const uint8_t *data, size_t size) {
    unsigned char crcs[sizeof(uint32_t)];
    uint32_t length = (uint32_t)(size < RECORD_CRC_BYTES ? size : RECORD_CRC_BYTES);
    record_write_crcs(data, length, crcs);
    CHECK(record_check_body(crcs, length, 0, data, length));
    crcs[size % sizeof crcs] ^= 1;
    CHECK(length == 0 || !record_check_body(crcs, length, 0, data, length));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size >= RECORD_HEADER_BYTES)
        check_header(data);
    check_head((struct view){(const char *)data, size});
    check_body(data, size);
    return 0;
}
