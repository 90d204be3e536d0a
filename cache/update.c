#include "cache/update.h"

#include "cache/budget.h"
#include "http/condition.h"

static const struct http_field *validator(const struct http_head *head, enum field_id id) {
    return http_field_find(head, id, 0);
}

static enum update_match match_tags(struct view stored, struct view update) {
    if (etag_equal_strong(stored, update))
        return UPDATE_STRONG;
    return etag_equal_weak(stored, update) || view_equal(stored, update) ? UPDATE_WEAK : UPDATE_NONE;
}

// A strong tag of the 304's alone is about those that have it, unless the date is as strong.
static bool match_dates(const struct http_head *stored, const struct http_head *not_modified,
        const struct http_field *new_tag) {
    bool is_strong = new_tag && etag_equal_strong(new_tag->value, new_tag->value);
    return view_equal(validator(stored, FIELD_LAST_MODIFIED)->value,
                   validator(not_modified, FIELD_LAST_MODIFIED)->value) &&
           (!is_strong || condition_has_strong_date(stored));
}

enum update_match update_match(const struct http_head *stored, const struct http_head *not_modified) {
    const struct http_field *old_tag = validator(stored, FIELD_ETAG);
    const struct http_field *new_tag = validator(not_modified, FIELD_ETAG);
    if (old_tag && new_tag)
        return match_tags(old_tag->value, new_tag->value);
    const struct http_field *old_date = validator(stored, FIELD_LAST_MODIFIED);
    const struct http_field *new_date = validator(not_modified, FIELD_LAST_MODIFIED);
    if (old_date && new_date)
        return match_dates(stored, not_modified, new_tag) ? UPDATE_DATED : UPDATE_NONE;
    return new_tag || new_date ? UPDATE_NONE : UPDATE_BARE;
}

static bool has_validator(const struct http_head *head) {
    return validator(head, FIELD_ETAG) || validator(head, FIELD_LAST_MODIFIED);
}

static bool is_newer(const struct stored_head *a, const struct stored_head *b) {
    return a->freshness.date_s > b->freshness.date_s;
}

// The one that a 304 without validators can mean.
static int choose_bare(const struct stored_head *const *stored, unsigned count) {
    int chosen = -1;
    for (unsigned i = 0; i < count && count > 1; i++) {
        if (has_validator(&stored[i]->http))
            continue;
        if (chosen >= 0)
            return -1;
        chosen = (int)i;
    }
    return count == 1 ? 0 : chosen;
}

int update_choose(
        const struct stored_head *const *stored, unsigned count, const struct http_head *not_modified) {
    if (!has_validator(not_modified))
        return choose_bare(stored, count);
    int chosen = -1;
    enum update_match best = UPDATE_NONE;
    for (unsigned i = 0; i < count; i++) {
        enum update_match match = update_match(&stored[i]->http, not_modified);
        if (match > best || (match == best && match != UPDATE_NONE && is_newer(stored[i], stored[chosen]))) {
            best = match;
            chosen = (int)i;
        }
    }
    return chosen;
}

// ---- HEAD ----

// A validator that the answer has must be the stored one.
static bool agrees(const struct http_head *stored, const struct http_head *answer, enum field_id id) {
    const struct http_field *old = validator(stored, id), *new = validator(answer, id);
    return !new || (old && view_equal(old->value, new->value));
}

static bool agrees_length(int64_t length, const struct http_head *answer) {
    const struct http_field *field = http_field_find(answer, FIELD_CONTENT_LENGTH, 0);
    uint64_t announced;
    return !field || length < 0 || (view_number(field->value, &announced) && announced == (uint64_t)length);
}

enum update_by_head update_by_head(
        const struct http_head *stored, int64_t length, const struct http_head *answer) {
    if (answer->status == 404 || answer->status == 410) // gone: worth asking again
        return stored->status == answer->status ? UPDATE_BY_HEAD_NOTHING : UPDATE_BY_HEAD_STALE;
    if (answer->status != 200)
        return UPDATE_BY_HEAD_NOTHING;
    bool is_same = stored->status == 200 && agrees(stored, answer, FIELD_ETAG) &&
                   agrees(stored, answer, FIELD_LAST_MODIFIED) && agrees_length(length, answer);
    return is_same ? UPDATE_BY_HEAD_FRESHENS : UPDATE_BY_HEAD_STALE;
}

// ---- the fields ----

// Strongly: Last-Modified is a field like others then, for the tag is what tells the body.
static bool has_same_tag(const struct http_head *a, const struct http_head *b) {
    const struct http_field *first = validator(a, FIELD_ETAG), *second = validator(b, FIELD_ETAG);
    return first && second && etag_equal_strong(first->value, second->value);
}

// Whether a field of the update replaces the stored ones of its name.
static bool is_updated(
        const struct http_head *stored, const struct http_head *update, const struct http_field *field) {
    if (field->id == FIELD_ETAG || field->id == FIELD_LAST_MODIFIED)
        return !validator(stored, field->id) ||
               (field->id == FIELD_LAST_MODIFIED && has_same_tag(stored, update));
    return !field->hop && field->id != FIELD_CONTENT_LENGTH && field->id != FIELD_CONTENT_RANGE &&
           field->id != FIELD_TRANSFER_ENCODING && field->id != FIELD_CONTENT_ENCODING;
}

static bool is_replaced(
        const struct http_head *stored, const struct http_head *update, const struct http_field *wanted) {
    for (unsigned i = 0; i < update->field_count; i++)
        if (is_updated(stored, update, &update->fields[i]) &&
                view_equal_fold(update->fields[i].name, wanted->name))
            return true;
    return false;
}

void update_merge(struct http_head *merged, const struct http_head *stored, const struct http_head *update) {
    *merged = *stored;
    merged->field_count = 0;
    merged->field_capacity = stored->field_count + update->field_count;
    merged->fields = memory_new((merged->field_capacity + 1) * sizeof *merged->fields);
    bool has_date = http_field_find(update, FIELD_DATE, 0);
    for (unsigned i = 0; i < stored->field_count; i++) {
        const struct http_field *field = &stored->fields[i];
        if (is_replaced(stored, update, field) || (field->id == FIELD_DATE && !has_date))
            continue;
        merged->fields[merged->field_count++] = *field;
    }
    for (unsigned i = 0; i < update->field_count; i++)
        if (is_updated(stored, update, &update->fields[i]))
            merged->fields[merged->field_count++] = update->fields[i];
}

static size_t bytes_of(const struct http_head *head) {
    size_t bytes = 0;
    for (unsigned i = 0; i < head->field_count; i++)
        bytes += head->fields[i].name.length + head->fields[i].value.length;
    return bytes;
}

bool update_fits(const struct http_head *merged, const struct http_head *stored) {
    size_t bytes = bytes_of(merged);
    return (merged->field_count <= HTTP_FIELDS_MAX || merged->field_count <= stored->field_count) &&
           (bytes <= UPDATE_HEAD_BYTES || bytes <= bytes_of(stored));
}
