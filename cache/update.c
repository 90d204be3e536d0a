#include "cache/update.h"

#include "cache/budget.h"
#include "http/condition.h"

bool update_matches(const struct http_head *stored, const struct http_head *not_modified) {
    const struct http_field *old = http_field_find(stored, FIELD_ETAG, 0);
    const struct http_field *new = http_field_find(not_modified, FIELD_ETAG, 0);
    if (old && new) // weakly: gzip filters weaken a tag between the 200 and the 304
        return etag_equal_weak(old->value, new->value) || view_equal(old->value, new->value);
    old = http_field_find(stored, FIELD_LAST_MODIFIED, 0);
    new = http_field_find(not_modified, FIELD_LAST_MODIFIED, 0);
    return !old || !new || view_equal(old->value, new->value);
}

static bool is_updated(const struct http_field *field) {
    return !field->hop && field->id != FIELD_CONTENT_LENGTH && field->id != FIELD_CONTENT_RANGE &&
           field->id != FIELD_TRANSFER_ENCODING && !view_equal_fold(field->name, VIEW("Content-Encoding"));
}

static bool is_named(const struct http_head *head, const struct http_field *wanted) {
    for (unsigned i = 0; i < head->field_count; i++)
        if (is_updated(&head->fields[i]) && view_equal_fold(head->fields[i].name, wanted->name))
            return true;
    return false;
}

void update_merge(
        struct http_head *merged, const struct http_head *stored, const struct http_head *not_modified) {
    *merged = *stored;
    merged->field_count = 0;
    merged->field_capacity = stored->field_count + not_modified->field_count;
    merged->fields = memory_new((merged->field_capacity + 1) * sizeof *merged->fields);
    bool has_date = http_field_find(not_modified, FIELD_DATE, 0);
    for (unsigned i = 0; i < stored->field_count; i++) {
        const struct http_field *field = &stored->fields[i];
        if (is_named(not_modified, field) || (field->id == FIELD_DATE && !has_date))
            continue;
        merged->fields[merged->field_count++] = *field;
    }
    for (unsigned i = 0; i < not_modified->field_count; i++)
        if (is_updated(&not_modified->fields[i]))
            merged->fields[merged->field_count++] = not_modified->fields[i];
}
