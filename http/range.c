#include "http/range.h"

#include "http/list.h"

#include <string.h>

// Digits alone, above UINT64_MAX saturated. False when empty or anything else.
static bool read_position(struct view text, uint64_t *position) {
    for (size_t i = 0; i < text.length; i++)
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    if (!view_number(text, position))
        *position = UINT64_MAX;
    return text.length > 0;
}

// ---- Range ----

struct spec { // one range-spec, not yet held against any size
    bool is_suffix;
    uint64_t first, last; // of a suffix: `last` is its length
};

static bool read_spec(struct view text, struct spec *spec) {
    size_t dash = view_find(text, '-');
    struct view end = view_skip(text, dash + 1);
    if (dash == text.length)
        return false;
    *spec = (struct spec){.is_suffix = dash == 0, .last = UINT64_MAX};
    if (spec->is_suffix)
        return read_position(end, &spec->last);
    return read_position(view_take(text, dash), &spec->first) &&
           (end.length == 0 || read_position(end, &spec->last)) && spec->first <= spec->last;
}

// Against a size that is not 0. False: unsatisfiable.
static bool resolve(const struct spec *spec, uint64_t size, struct range *range) {
    if (spec->is_suffix) {
        *range = (struct range){spec->last < size ? size - spec->last : 0, size - 1};
        return spec->last > 0;
    }
    *range = (struct range){spec->first, spec->last < size ? spec->last : size - 1};
    return spec->first < size;
}

static bool is_near(const struct range *a, const struct range *b) {
    if (a->first > b->first)
        return is_near(b, a);
    return b->first <= a->last || b->first - a->last - 1 < RANGE_GAP_BYTES;
}

static struct range take_out(struct range_list *list, unsigned at) {
    struct range taken = list->all[at];
    memmove(&list->all[at], &list->all[at + 1], (--list->count - at) * sizeof *list->all);
    return taken;
}

// One range more; it swallows those it touches, and what it has grown to may touch others.
static void add_range(struct range_list *list, struct range range) {
    unsigned place = list->count;
    for (unsigned i = 0; i < list->count;) {
        if (!is_near(&list->all[i], &range)) {
            i++;
            continue;
        }
        struct range other = take_out(list, i);
        range.first = other.first < range.first ? other.first : range.first;
        range.last = other.last > range.last ? other.last : range.last;
        place = i < place ? i : place;
        i = 0;
    }
    place = place < list->count ? place : list->count;
    memmove(&list->all[place + 1], &list->all[place], (list->count++ - place) * sizeof *list->all);
    list->all[place] = range;
}

static bool read_unit(struct view value, struct view *set) {
    const struct view unit = VIEW("bytes=");
    *set = view_skip(value, unit.length);
    return view_starts_fold(value, unit);
}

enum ranges range_parse(struct view value, uint64_t size, struct range_list *list) {
    struct list members = {0};
    struct view member;
    struct spec spec;
    struct range range;
    unsigned total = 0;
    bool is_of_nothing = false;
    list->count = 0;
    if (!read_unit(value, &members.rest))
        return RANGES_NONE;
    while (list_next(&members, &member)) {
        if (++total > RANGES_MAX || !read_spec(member, &spec))
            return RANGES_NONE;
        if (size == 0)
            is_of_nothing |= spec.is_suffix && spec.last > 0;
        else if (resolve(&spec, size, &range))
            add_range(list, range);
    }
    if (total == 0 || is_of_nothing) // a suffix of nothing is satisfiable, but no Content-Range can say so
        return RANGES_NONE;
    return list->count ? RANGES_SOME : RANGES_UNSATISFIABLE;
}

enum ranges range_of_request(const struct http_head *request, uint64_t size, struct range_list *list) {
    const struct http_field *field = http_field_find(request, FIELD_RANGE, 0);
    list->count = 0;
    if (!field || request->method_id != METHOD_GET || http_field_total(request, FIELD_RANGE) != 1)
        return RANGES_NONE;
    return range_parse(field->value, size, list);
}

void range_sort(struct range_list *list) {
    for (unsigned i = 1; i < list->count; i++)
        for (unsigned j = i; j > 0 && list->all[j].first < list->all[j - 1].first; j--) {
            struct range swapped = list->all[j];
            list->all[j] = list->all[j - 1];
            list->all[j - 1] = swapped;
        }
}

bool range_is_offered(const struct http_head *response) {
    return http_field_has_token(response, FIELD_ACCEPT_RANGES, VIEW("bytes"));
}

bool range_may_be_asked(const struct http_head *response) {
    return !http_field_find(response, FIELD_ACCEPT_RANGES, 0) || range_is_offered(response);
}

// ---- Content-Range ----

// "FIRST-LAST", within `size`.
static bool read_extent(struct view text, uint64_t size, struct range *range) {
    size_t dash = view_find(text, '-');
    return dash < text.length && view_number(view_take(text, dash), &range->first) &&
           view_number(view_skip(text, dash + 1), &range->last) && range->first <= range->last &&
           range->last < size;
}

bool content_range_parse(struct view value, struct content_range *range) {
    const struct view unit = VIEW("bytes ");
    struct view text = view_trim(view_skip(value, unit.length));
    size_t slash = view_find(text, '/');
    struct view extent = view_take(text, slash), size = view_skip(text, slash + 1);
    *range = (struct content_range){.size = UINT64_MAX};
    if (!view_starts_fold(value, unit) || slash == text.length)
        return false;
    range->is_unsatisfied = view_equal(extent, VIEW("*"));
    range->has_size = !view_equal(size, VIEW("*"));
    if (range->has_size && !view_number(size, &range->size))
        return false;
    return range->is_unsatisfied ? range->has_size : read_extent(extent, range->size, &range->range);
}

bool content_range_of(const struct http_head *response, int64_t content_length, struct content_range *range) {
    const struct http_field *field = http_field_find(response, FIELD_CONTENT_RANGE, 0);
    if (!field || http_field_total(response, FIELD_CONTENT_RANGE) != 1 ||
            !content_range_parse(field->value, range) || range->is_unsatisfied)
        return false;
    uint64_t length = range->range.last - range->range.first + 1;
    return range->range.last < INT64_MAX && (content_length < 0 || (uint64_t)content_length == length);
}

static bool is_within(const struct range *inner, const struct range *outer) {
    return inner->first >= outer->first && inner->last <= outer->last;
}

static bool is_multipart(const struct http_head *response) {
    const struct http_field *type = http_field_find(response, FIELD_CONTENT_TYPE, 0);
    return !http_field_find(response, FIELD_CONTENT_RANGE, 0) && type &&
           view_starts_fold(type->value, VIEW("multipart/byteranges"));
}

// Whether the given one is what this range-spec asked for, or a part of it, or has it with more around.
static bool is_answered(const struct spec *spec, const struct content_range *given) {
    struct range asked = {spec->first, spec->last};
    if (given->has_size)
        return resolve(spec, given->size, &asked) &&
               (is_within(&given->range, &asked) || is_within(&asked, &given->range));
    return spec->is_suffix || is_within(&given->range, &asked); // of an unknown size no suffix can be told
}

enum range_answer range_judge(
        const struct http_head *request, const struct http_head *response, int64_t content_length) {
    const struct http_field *field = http_field_find(request, FIELD_RANGE, 0);
    struct content_range given;
    struct list members = {0};
    struct view member;
    struct spec spec;
    bool is_good = false;
    if (!field || !read_unit(field->value, &members.rest) || is_multipart(response))
        return RANGE_ANSWER_OTHER;
    if (!content_range_of(response, content_length, &given))
        return RANGE_ANSWER_BAD;
    while (list_next(&members, &member)) {
        if (!read_spec(member, &spec))
            return RANGE_ANSWER_OTHER;
        is_good |= is_answered(&spec, &given);
    }
    return is_good ? RANGE_ANSWER_GOOD : RANGE_ANSWER_BAD;
}
