// Range and Content-Range: what is read is within the size, apart, in the order asked for, and never more
// than the whole; exactly the bytes asked for are in it, and none but those between two that are hardly
// apart.
#include "admin/check.h"
#include "http/list.h"
#include "http/range.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL 512 // of this size every byte is looked at

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_list(const struct range_list *list, uint64_t size) {
    uint64_t total = 0;
    CHECK(list->count > 0 && list->count <= RANGES_MAX);
    for (unsigned i = 0; i < list->count; i++) {
        const struct range *one = &list->all[i];
        CHECK(one->first <= one->last && one->last < size);
        total += one->last - one->first + 1;
        CHECK(total <= size);
        for (unsigned j = 0; j < i; j++) {
            const struct range *other = &list->all[j];
            CHECK(one->first > other->last
                            ? one->first - other->last > RANGE_GAP_BYTES
                            : other->first > one->last && other->first - one->last > RANGE_GAP_BYTES);
        }
    }
    CHECK(total <= size - (list->count - 1) * RANGE_GAP_BYTES);
}

// Byte by byte, with strtoull alone: the value has been found well formed.
static void mark_asked(struct view value, bool asked[SMALL]) {
    struct list members = {.rest = view_skip(value, strlen("bytes="))};
    struct view member;
    while (list_next(&members, &member)) {
        char text[256];
        snprintf(text, sizeof text, VIEW_FORMAT, VIEW_ARGUMENT(member));
        if (member.length >= sizeof text)
            text[0] = 0; // digits without end: saturates, and is not looked at here
        char *end;
        unsigned long long first = strtoull(text, &end, 10),
                           last = end[1] ? strtoull(end + 1, NULL, 10) : SMALL;
        if (text[0] == '-') {
            last = strtoull(text + 1, NULL, 10);
            first = last < SMALL ? SMALL - last : 0;
            last = SMALL;
        }
        for (unsigned long long i = first; text[0] && i <= last && i < SMALL; i++)
            asked[i] = true;
    }
}

static void check_bytes(struct view value) {
    struct range_list list;
    bool asked[SMALL] = {false}, given[SMALL] = {false};
    if (value.length > 200 || range_parse(value, SMALL, &list) != RANGES_SOME)
        return;
    mark_asked(value, asked);
    for (unsigned i = 0; i < list.count; i++) {
        CHECK(asked[list.all[i].first] && asked[list.all[i].last]);
        for (uint64_t at = list.all[i].first; at <= list.all[i].last; at++)
            given[at] = true;
    }
    unsigned gap = 0;
    for (unsigned i = 0; i < SMALL; i++) {
        CHECK(given[i] || !asked[i]);
        gap = given[i] && !asked[i] ? gap + 1 : 0;
        CHECK(gap < RANGE_GAP_BYTES);
    }
}

static void check_sorted(struct range_list *list) {
    range_sort(list);
    for (unsigned i = 1; i < list->count; i++)
        CHECK(list->all[i - 1].last < list->all[i].first);
}

static void check_content_range(struct view value) {
    struct content_range range, again;
    char text[128], size[32] = "*";
    if (!content_range_parse(value, &range))
        return;
    CHECK(range.has_size || (!range.is_unsatisfied && range.size == UINT64_MAX));
    CHECK(range.is_unsatisfied || (range.range.first <= range.range.last && range.range.last < range.size));
    if (range.has_size)
        snprintf(size, sizeof size, "%ju", (uintmax_t)range.size);
    if (range.is_unsatisfied)
        snprintf(text, sizeof text, "bytes */%s", size);
    else
        snprintf(text, sizeof text, "bytes %ju-%ju/%s", (uintmax_t)range.range.first,
                (uintmax_t)range.range.last, size);
    CHECK(content_range_parse(view_of(text), &again));
    CHECK(again.range.first == range.range.first && again.range.last == range.range.last &&
            again.size == range.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint64_t sizes[] = {0, 1, 2, 10, 100, 1000, 1000000, INT64_MAX, UINT64_MAX};
    struct range_list list;
    struct view value = {(const char *)data, size};
    if (size > 4096)
        return 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (range_parse(value, sizes[i], &list) == RANGES_SOME) {
            check_list(&list, sizes[i]);
            check_sorted(&list);
        }
    check_bytes(value);
    check_content_range(value);
    return 0;
}
