#include "http/condition.h"

#include "http/date.h"
#include "http/octet.h"

#define FAR_AHEAD_S 250000000000 // in another century than any date that is sent

// The length of the entity tag at the start of `text`, 0 when there is none. No escapes in it.
static size_t etag_length(struct view text) {
    size_t start = view_starts(text, VIEW("W/")) ? 2 : 0;
    if (start >= text.length || text.data[start] != '"')
        return 0;
    size_t end = start + 1 + octet_run(view_skip(text, start + 1), OCTET_ETAG);
    return end < text.length && text.data[end] == '"' ? end + 1 : 0;
}

static bool is_etag(struct view text) {
    return text.length > 0 && etag_length(text) == text.length;
}

static struct view opaque_tag(struct view etag) {
    return view_starts(etag, VIEW("W/")) ? view_skip(etag, 2) : etag;
}

bool etag_equal_weak(struct view a, struct view b) {
    return is_etag(a) && is_etag(b) && view_equal(opaque_tag(a), opaque_tag(b));
}

bool etag_equal_strong(struct view a, struct view b) {
    return is_etag(a) && is_etag(b) && a.data[0] == '"' && view_equal(a, b);
}

typedef bool etag_compare(struct view a, struct view b);

// Obsolete spellings too: "w/", and no quotes [RFC 2616 §19.3 left them to tolerance]. Who sends such a tag
// has had it from this origin: with the same octets between the quotes it is the same tag, compared weakly.
static struct view lenient_tag(struct view etag) {
    if (view_starts_fold(etag, VIEW("W/")))
        etag = view_skip(etag, 2);
    bool is_quoted = etag.length >= 2 && etag.data[0] == '"' && etag.data[etag.length - 1] == '"';
    return is_quoted ? (struct view){etag.data + 1, etag.length - 2} : etag;
}

static bool equal_lenient(struct view a, struct view b) {
    if (is_etag(a) && is_etag(b))
        return etag_equal_weak(a, b);
    if (view_equal(a, b))
        return true;
    struct view tag = lenient_tag(a);
    return tag.length > 0 && view_find(tag, '"') == tag.length && view_equal(tag, lenient_tag(b));
}

// A comma within a well-formed tag divides nothing; one elsewhere does.
static struct view next_member(struct view *rest) {
    size_t length = etag_length(*rest);
    length += view_find(view_skip(*rest, length), ',');
    struct view member = view_trim(view_take(*rest, length));
    *rest = view_trim(view_skip(*rest, length + 1));
    return member;
}

static bool line_has_etag(struct view rest, struct view etag, etag_compare *compare) {
    while (rest.length > 0) {
        struct view member = next_member(&rest);
        if (member.length > 0 && compare(member, etag))
            return true;
    }
    return false;
}

static struct view value_of(const struct http_head *head, enum field_id id) {
    const struct http_field *field = http_field_find(head, id, 0);
    return field ? field->value : VIEW("");
}

static bool matches(const struct http_head *request, enum field_id id, const struct http_head *response,
        etag_compare *compare) {
    struct view etag = value_of(response, FIELD_ETAG);
    const struct http_field *field;
    for (unsigned i = 0; (field = http_field_find(request, id, i));
            i = (unsigned)(field - request->fields) + 1)
        if (view_equal(field->value, VIEW("*")) || line_has_etag(field->value, etag, compare))
            return true;
    return false;
}

// A date of a field that must come once, -1 when there is none.
static int64_t date_of(const struct http_head *head, enum field_id id, int64_t now_s) {
    return http_field_total(head, id) == 1 ? date_parse(value_of(head, id), now_s) : -1;
}

static bool is_modified_since(
        const struct http_head *request, const struct http_head *response, int64_t now_s) {
    int64_t since = date_of(request, FIELD_IF_MODIFIED_SINCE, now_s);
    if (since < 0)
        return true;
    int64_t modified = date_of(response, FIELD_LAST_MODIFIED, now_s);
    if (!http_field_find(response, FIELD_LAST_MODIFIED, 0))
        modified = date_of(response, FIELD_DATE, now_s); // [RFC 9111 §4.3.2]
    return modified < 0 || modified > since;
}

static bool is_precondition_failed(
        const struct http_head *request, const struct http_head *response, int64_t now_s) {
    if (http_field_find(request, FIELD_IF_MATCH, 0))
        return !matches(request, FIELD_IF_MATCH, response, etag_equal_strong);
    int64_t since = date_of(request, FIELD_IF_UNMODIFIED_SINCE, now_s);
    int64_t modified = date_of(response, FIELD_LAST_MODIFIED, now_s);
    return since >= 0 && modified >= 0 && modified > since;
}

enum condition condition_evaluate(
        const struct http_head *request, const struct http_head *response, int64_t now_s) {
    if (is_precondition_failed(request, response, now_s))
        return CONDITION_FAILED;
    bool is_match = http_field_find(request, FIELD_IF_NONE_MATCH, 0)
                            ? matches(request, FIELD_IF_NONE_MATCH, response, equal_lenient)
                            : !is_modified_since(request, response, now_s);
    return is_match ? CONDITION_NOT_MODIFIED : CONDITION_NONE;
}

// A date is a strong validator only when the response was made at least a second later [RFC 9110 §8.8.2.2].
static bool is_date_of(struct view value, const struct http_head *response, int64_t now_s) {
    int64_t wanted = date_parse(value, now_s);
    int64_t modified = date_of(response, FIELD_LAST_MODIFIED, now_s);
    int64_t made = date_of(response, FIELD_DATE, now_s);
    return wanted >= 0 && wanted == modified && made > modified;
}

// Said in full: without a clock a year of two digits is none.
static int64_t full_date_of(const struct http_head *head, enum field_id id) {
    int64_t date_s = date_of(head, id, 0);
    return date_s == date_of(head, id, FAR_AHEAD_S) ? date_s : -1;
}

bool condition_has_strong_date(const struct http_head *response) {
    int64_t modified = full_date_of(response, FIELD_LAST_MODIFIED);
    return modified >= 0 && full_date_of(response, FIELD_DATE) > modified;
}

bool condition_range_applies(
        const struct http_head *request, const struct http_head *response, int64_t now_s) {
    struct view value = value_of(request, FIELD_IF_RANGE);
    unsigned total = http_field_total(request, FIELD_IF_RANGE);
    if (total != 1)
        return total == 0;
    if (view_find(view_take(value, 3), '"') < 3 && is_etag(value))
        return etag_equal_strong(value, value_of(response, FIELD_ETAG));
    return is_date_of(value, response, now_s);
}
