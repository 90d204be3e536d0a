#include "cache/vary.h"

#include <string.h>

struct text {
    char *data;
    size_t length, size;
    bool overflow;
};

static void put(struct text *text, char byte) {
    if (text->length < text->size)
        text->data[text->length++] = byte;
    else
        text->overflow = true;
}

static struct view next_token(struct view *list) {
    size_t end = view_find(*list, ',');
    struct view token = view_trim(view_take(*list, end));
    *list = view_skip(*list, end + 1);
    return token;
}

static int compare_fold(struct view a, struct view b) {
    for (size_t i = 0; i < a.length && i < b.length; i++)
        if (view_lower(a.data[i]) != view_lower(b.data[i]))
            return view_lower(a.data[i]) < view_lower(b.data[i]) ? -1 : 1;
    return a.length == b.length ? 0 : a.length < b.length ? -1 : 1;
}

// Keeps `names` sorted and without repeats. False when it is full.
static bool insert_name(struct view *names, unsigned *count, struct view name) {
    unsigned at = 0;
    while (at < *count && compare_fold(names[at], name) < 0)
        at++;
    if (at < *count && compare_fold(names[at], name) == 0)
        return true;
    if (*count == VARY_NAMES_MAX)
        return false;
    memmove(&names[at + 1], &names[at], (*count - at) * sizeof *names);
    names[at] = name;
    ++*count;
    return true;
}

// False for "*", anywhere in any line, and for too many names.
static bool collect_names(const struct http_head *response, struct view *names, unsigned *count) {
    for (unsigned i = 0; i < response->field_count; i++) {
        if (response->fields[i].id != FIELD_VARY)
            continue;
        struct view list = response->fields[i].value;
        while (list.length) {
            struct view name = next_token(&list);
            if (view_equal(name, VIEW("*")))
                return false;
            if (name.length && !insert_name(names, count, name))
                return false;
        }
    }
    return true;
}

bool vary_names(const struct http_head *response, char out[static VARY_NAMES_BYTES], struct view *result) {
    struct view names[VARY_NAMES_MAX];
    unsigned count = 0;
    if (!collect_names(response, names, &count))
        return false;
    struct text text = {out, 0, VARY_NAMES_BYTES, false};
    for (unsigned i = 0; i < count; i++) {
        if (i)
            put(&text, ',');
        for (size_t j = 0; j < names[i].length; j++)
            put(&text, view_lower(names[i].data[j]));
    }
    *result = (struct view){out, text.length};
    return !text.overflow;
}

static bool is_blank(char byte) {
    return byte == ' ' || byte == '\t';
}

// A run of blanks counts once, and not at all beside a comma or at an end; quoted text is left alone.
static void put_value(struct text *text, struct view value) {
    bool blank = false, start = true, quoted = false;
    for (size_t i = 0; i < value.length; i++) {
        char byte = value.data[i];
        quoted ^= byte == '"';
        if (is_blank(byte) && !quoted) {
            blank = true;
            continue;
        }
        if (blank && !start && byte != ',')
            put(text, ' ');
        put(text, byte);
        blank = false;
        start = byte == ',' && !quoted;
    }
}

// The origin never sees a field that Connection nominates: its answer cannot have been selected by it.
static bool is_withheld(const struct http_field *field) {
    return field->hop && field->id == FIELD_OTHER;
}

// "=VALUE\n" or, for a field that is not there, "-\n": no value has a line feed.
static void put_field(struct text *text, struct view name, const struct http_head *request) {
    unsigned lines = 0;
    for (unsigned i = 0; i < request->field_count; i++) {
        if (is_withheld(&request->fields[i]) || !view_equal_fold(request->fields[i].name, name))
            continue;
        put(text, lines++ ? ',' : '=');
        put_value(text, view_trim(request->fields[i].value));
    }
    if (!lines)
        put(text, '-');
    put(text, '\n');
}

bool vary_select(struct view names, const struct http_head *request, char out[static VARY_SELECTORS_BYTES],
        struct view *selectors) {
    struct text text = {out, 0, VARY_SELECTORS_BYTES, false};
    while (names.length)
        put_field(&text, next_token(&names), request);
    *selectors = (struct view){out, text.length};
    return !text.overflow;
}

bool vary_matches(struct view names, struct view selectors, const struct http_head *request) {
    char text[VARY_SELECTORS_BYTES];
    struct view own;
    return names.length == 0 || (vary_select(names, request, text, &own) && view_equal(own, selectors));
}
