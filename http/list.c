#include "http/list.h"

#include "http/octet.h"

// The length of the quoted string at the start of `text`; 0 when it has no end.
static size_t quoted_length(struct view text) {
    for (size_t i = 1; i < text.length; i++) {
        if (text.data[i] == '"')
            return i + 1;
        if (text.data[i] == '\\')
            i++;
    }
    return 0;
}

static size_t member_length(struct list *list) {
    struct view text = list->rest;
    size_t length = 0;
    while (length < text.length && text.data[length] != ',') {
        size_t quoted = 0;
        if (text.data[length] == '"' && !list->is_broken) {
            quoted = quoted_length(view_skip(text, length));
            list->is_broken = quoted == 0;
        }
        length += quoted ? quoted : 1;
    }
    return length;
}

bool list_next(struct list *list, struct view *member) {
    while (list->rest.length > 0) {
        size_t length = member_length(list);
        *member = view_trim(view_take(list->rest, length));
        list->rest = view_skip(list->rest, length + 1);
        if (member->length > 0)
            return true;
    }
    return false;
}

bool list_walk_next(struct list_walk *walk, struct view *member) {
    while (!list_next(&walk->line, member)) {
        const struct http_field *field = http_field_find(walk->head, walk->id, walk->index);
        if (!field)
            return false;
        walk->line = (struct list){.rest = field->value};
        walk->index = (unsigned)(field - walk->head->fields) + 1;
    }
    return true;
}

bool http_field_has_token(const struct http_head *head, enum field_id id, struct view token) {
    struct list_walk walk = {.head = head, .id = id};
    struct view member;
    while (list_walk_next(&walk, &member))
        if (view_equal_fold(member, token))
            return true;
    return false;
}
