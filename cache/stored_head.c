#include "cache/stored_head.h"

#include "cache/budget.h"
#include "http/date.h"

#include <string.h>

enum keep { KEEP_NOT, KEEP_STORED, KEEP_FIRST }; // FIRST: for the client that it was fetched for, no other

static enum keep keep_of(const struct stored_head_source *source, const struct http_field *field) {
    if (field->hop || field->id == FIELD_CONTENT_LENGTH || field->id == FIELD_TRANSFER_ENCODING ||
            field->id == FIELD_AGE)
        return KEEP_NOT;
    bool is_left_out = source->control && cache_control_leaves_out(source->control, field->name);
    return is_left_out ? KEEP_FIRST : KEEP_STORED;
}

struct room { // what a copy needs, counted first and then filled
    unsigned fields;
    size_t text;
};

static struct room measure_start(const struct http_head *head) {
    return (struct room){0, head->method.length + head->target.length + head->reason.length};
}

static void measure_field(struct room *room, const struct http_field *field) {
    room->fields++;
    room->text += field->name.length + field->value.length;
}

static struct view copy(char **end, struct view view) {
    struct view copied = {*end, view.length};
    if (view.length)
        memcpy(*end, view.data, view.length);
    *end += view.length;
    return copied;
}

static void copy_field(struct http_head *http, const struct http_field *field, char **end) {
    http->fields[http->field_count++] = (struct http_field){.name = copy(end, field->name),
            .value = copy(end, field->value),
            .id = field->id,
            .hop = field->hop};
}

static void copy_start_line(struct stored_head *stored, const struct http_head *head, char **end) {
    stored->http = (struct http_head){.method = copy(end, head->method),
            .target = copy(end, head->target),
            .method_id = head->method_id,
            .status = head->status,
            .reason = copy(end, head->reason),
            .minor_version = head->minor_version,
            .fields = stored->fields};
}

static struct http_field date_field(int64_t date_s, char date[static DATE_BYTES]) {
    date_print(date_s, date);
    return (struct http_field){.name = VIEW("Date"), .value = view_of(date), .id = FIELD_DATE};
}

static size_t align(size_t bytes) {
    return (bytes + 15) & ~(size_t)15;
}

// `behind`: room behind the text, aligned for anything.
static struct stored_head *allocate(struct room room, size_t behind, char **end) {
    size_t text_at = sizeof(struct stored_head) + room.fields * sizeof(struct http_field);
    size_t bytes = align(text_at + room.text) + behind;
    struct stored_head *stored = memory_new(bytes);
    memset(stored, 0, sizeof *stored);
    stored->bytes = bytes;
    *end = (char *)stored + text_at;
    return stored;
}

static struct room measure(const struct stored_head_source *source, unsigned kept[static KEEP_FIRST + 1]) {
    struct room room = measure_start(source->head);
    for (unsigned i = 0; i < source->head->field_count; i++) {
        enum keep keep = keep_of(source, &source->head->fields[i]);
        kept[keep]++;
        if (keep != KEEP_NOT)
            measure_field(&room, &source->head->fields[i]);
    }
    room.text += source->vary.length + source->selectors.length;
    return room;
}

static void copy_kept(
        struct http_head *http, const struct stored_head_source *source, enum keep keep, char **end) {
    for (unsigned i = 0; i < source->head->field_count; i++)
        if (keep_of(source, &source->head->fields[i]) == keep)
            copy_field(http, &source->head->fields[i], end);
}

// The same fields, and behind them those that only the first client gets. In the last bytes.
static void add_first(struct stored_head *stored, const struct stored_head_source *source, char **end) {
    struct http_head *first = (struct http_head *)((char *)stored + stored->bytes - align(sizeof *first));
    *first = stored->http;
    copy_kept(first, source, KEEP_FIRST, end);
    stored->first = first;
}

struct stored_head *stored_head_new(const struct stored_head_source *source) {
    unsigned kept[KEEP_FIRST + 1] = {0};
    struct room room = measure(source, kept);
    char *end, text[DATE_BYTES];
    struct http_field date;
    if (source->date_s >= 0) {
        date = date_field(source->date_s, text);
        measure_field(&room, &date);
    }
    struct stored_head *stored = allocate(room, kept[KEEP_FIRST] ? align(sizeof *stored->first) : 0, &end);
    copy_start_line(stored, source->head, &end);
    copy_kept(&stored->http, source, KEEP_STORED, &end);
    if (source->date_s >= 0)
        copy_field(&stored->http, &date, &end);
    if (kept[KEEP_FIRST])
        add_first(stored, source, &end);
    stored->vary = copy(&end, source->vary);
    stored->selectors = copy(&end, source->selectors);
    stored->http.field_capacity = stored->http.field_count;
    return stored;
}

struct stored_head *stored_head_new_request(const struct http_head *head) {
    struct room room = measure_start(head);
    for (unsigned i = 0; i < head->field_count; i++)
        measure_field(&room, &head->fields[i]);
    char *end;
    struct stored_head *stored = allocate(room, 0, &end);
    copy_start_line(stored, head, &end);
    for (unsigned i = 0; i < head->field_count; i++)
        copy_field(&stored->http, &head->fields[i], &end);
    stored->http.field_capacity = stored->http.field_count;
    return stored;
}
