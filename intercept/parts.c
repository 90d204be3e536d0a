#include "intercept/parts.h"

#include "admin/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

#define HEAD_BYTES (256 + PARTS_TYPE_BYTES) // of a part, at the most

// Long and drawn anew for every answer, so that no content can hold it but by chance.
static bool draw_boundary(char out[static PARTS_BOUNDARY_BYTES + 1]) {
    unsigned char drawn[PARTS_BOUNDARY_BYTES / 2];
    if (getrandom(drawn, sizeof drawn, GRND_NONBLOCK) != (ssize_t)sizeof drawn)
        return false;
    for (size_t i = 0; i < sizeof drawn; i++)
        snprintf(out + 2 * i, 3, "%02x", drawn[i]);
    return true;
}

void parts_init(struct parts *parts, uint64_t size, struct view type) {
    parts->next = 0;
    parts->size = size;
    parts->type = type;
    parts->boundary[0] = 0;
    if (parts->ranges.count < 2)
        return;
    if (type.length > PARTS_TYPE_BYTES || !draw_boundary(parts->boundary) ||
            parts_content_length(parts) > INT64_MAX)
        parts->ranges.count = 1;
}

bool parts_are_several(const struct parts *parts) {
    return parts->ranges.count > 1;
}

// The delimiter and head of a part, or the last delimiter.
static size_t write_head(const struct parts *parts, unsigned index, char out[static HEAD_BYTES]) {
    const struct range *range = &parts->ranges.all[index];
    bool is_typed = parts->type.length > 0;
    int length = index == parts->ranges.count
                         ? snprintf(out, HEAD_BYTES, "\r\n--%s--\r\n", parts->boundary)
                         : snprintf(out, HEAD_BYTES,
                                   "%s--%s\r\n%s" VIEW_FORMAT "%sContent-Range: bytes %" PRIu64 "-%" PRIu64
                                   "/%" PRIu64 "\r\n\r\n",
                                   index ? "\r\n" : "", parts->boundary, is_typed ? "Content-Type: " : "",
                                   VIEW_ARGUMENT(parts->type), is_typed ? "\r\n" : "", range->first,
                                   range->last, parts->size);
    CHECK(length > 0 && length < HEAD_BYTES);
    return (size_t)length;
}

uint64_t parts_content_length(const struct parts *parts) {
    char head[HEAD_BYTES];
    uint64_t length = 0;
    bool is_several = parts_are_several(parts);
    for (unsigned i = 0; i < parts->ranges.count; i++) {
        length += parts->ranges.all[i].last - parts->ranges.all[i].first + 1;
        length += is_several ? write_head(parts, i, head) : 0;
    }
    return length + (is_several ? write_head(parts, parts->ranges.count, head) : 0);
}

const struct range *parts_next(struct parts *parts, struct buffer *out, bool *ok) {
    char head[HEAD_BYTES];
    unsigned index = parts->next;
    bool is_over = index == parts->ranges.count;
    *ok = true;
    if (parts_are_several(parts))
        *ok = buffer_append(out, (struct view){head, write_head(parts, index, head)}, SIZE_MAX);
    if (is_over)
        return NULL;
    parts->next++;
    return &parts->ranges.all[index];
}
