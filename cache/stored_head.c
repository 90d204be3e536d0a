#include "cache/stored_head.h"

#include "cache/budget.h"
#include "http/date.h"

#include <string.h>

typedef bool field_filter(const struct http_field *field);

static bool is_end_to_end(const struct http_field *field) {
    return !field->hop && field->id != FIELD_CONTENT_LENGTH && field->id != FIELD_TRANSFER_ENCODING &&
           field->id != FIELD_AGE;
}

static bool is_any(const struct http_field *field) {
    (void)field;
    return true;
}

struct room { // what a copy needs, counted first and then filled
    unsigned fields;
    size_t text;
};

static struct room measure(const struct http_head *head, field_filter *keep) {
    struct room room = {0, head->method.length + head->target.length + head->reason.length};
    for (unsigned i = 0; i < head->field_count; i++) {
        if (!keep(&head->fields[i]))
            continue;
        room.fields++;
        room.text += head->fields[i].name.length + head->fields[i].value.length;
    }
    return room;
}

static struct view copy(char **end, struct view view) {
    struct view copied = {*end, view.length};
    if (view.length)
        memcpy(*end, view.data, view.length);
    *end += view.length;
    return copied;
}

static void copy_fields(
        struct stored_head *stored, const struct http_head *head, field_filter *keep, char **end) {
    struct http_head *http = &stored->http;
    for (unsigned i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i];
        if (!keep(field))
            continue;
        http->fields[http->field_count++] = (struct http_field){.name = copy(end, field->name),
                .value = copy(end, field->value),
                .id = field->id,
                .hop = field->hop};
    }
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

static void add_date(struct stored_head *stored, int64_t date_s, char **end) {
    char date[DATE_BYTES];
    date_print(date_s, date);
    struct http_head *http = &stored->http;
    http->fields[http->field_count++] = (struct http_field){
            .name = copy(end, VIEW("Date")), .value = copy(end, view_of(date)), .id = FIELD_DATE};
}

static size_t align(size_t bytes) {
    return (bytes + 15) & ~(size_t)15;
}

static struct stored_head *allocate(struct room room, size_t tail_bytes, char **end) {
    size_t text_at = sizeof(struct stored_head) + room.fields * sizeof(struct http_field);
    size_t tail_at = align(text_at + room.text), bytes = tail_at + tail_bytes;
    struct stored_head *stored = memory_new(bytes);
    memset(stored, 0, sizeof *stored);
    stored->bytes = bytes;
    stored->tail = (char *)stored + tail_at;
    stored->tail_bytes = tail_bytes;
    *end = (char *)stored + text_at;
    return stored;
}

struct stored_head *stored_head_new(const struct stored_head_source *source) {
    struct room room = measure(source->head, is_end_to_end);
    room.text += source->vary.length + source->selectors.length;
    if (source->date_s >= 0) {
        room.fields++;
        room.text += sizeof "Date" + DATE_BYTES;
    }
    char *end;
    struct stored_head *stored = allocate(room, source->tail_bytes, &end);
    copy_start_line(stored, source->head, &end);
    copy_fields(stored, source->head, is_end_to_end, &end);
    if (source->date_s >= 0)
        add_date(stored, source->date_s, &end);
    stored->vary = copy(&end, source->vary);
    stored->selectors = copy(&end, source->selectors);
    stored->http.field_capacity = stored->http.field_count;
    return stored;
}

struct stored_head *stored_head_new_request(const struct http_head *head) {
    char *end;
    struct stored_head *stored = allocate(measure(head, is_any), 0, &end);
    copy_start_line(stored, head, &end);
    copy_fields(stored, head, is_any, &end);
    stored->http.field_capacity = stored->http.field_count;
    return stored;
}
