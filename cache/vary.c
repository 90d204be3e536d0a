#include "cache/vary.h"

#include "http/list.h"
#include "http/weight.h"

#include <stdio.h>
#include <stdlib.h>
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

// ---- fields whose grammar is known ----

#define MEMBERS_MAX 64 // more: compared as text

enum preference { PREFERENCE_NONE, PREFERENCE_PLAIN, PREFERENCE_ENCODING, PREFERENCE_MEDIA };

// Lists of preferences, whose members' order means nothing, and whose names fold case [RFC 9110 §12.5]. Of
// media ranges the parameters' values need not fold.
static enum preference preference_of(struct view name) {
    if (view_equal_fold(name, VIEW("accept-encoding")))
        return PREFERENCE_ENCODING;
    if (view_equal_fold(name, VIEW("accept-language")) || view_equal_fold(name, VIEW("accept-charset")))
        return PREFERENCE_PLAIN;
    return view_equal_fold(name, VIEW("accept")) ? PREFERENCE_MEDIA : PREFERENCE_NONE;
}

static struct view coding_of(struct view name) { // [RFC 9110 §8.4.1]
    bool is_old = view_equal_fold(name, VIEW("x-gzip")) || view_equal_fold(name, VIEW("x-compress"));
    return is_old ? view_skip(name, 2) : name;
}

static void put_folded(struct text *text, struct view part) {
    for (size_t i = 0; i < part.length; i++)
        put(text, view_lower(part.data[i]));
}

// ";q=0.5", without zeros at its end; nothing for 1, the default.
static void put_weight(struct text *text, unsigned weight) {
    char digits[8];
    if (weight == WEIGHT_ONE)
        return;
    snprintf(digits, sizeof digits, "0.%03u", weight % WEIGHT_ONE);
    size_t length = 5;
    while (digits[length - 1] == '0')
        length--;
    put_folded(text, VIEW(";q="));
    put_folded(text, (struct view){digits, weight ? length : 1});
}

static void put_parameter(struct text *text, struct view part) {
    unsigned weight;
    size_t name_length = view_find(part, '=');
    if (view_starts_fold(part, VIEW("q=")) && weight_parse(view_skip(part, 2), &weight)) {
        put_weight(text, weight);
        return;
    }
    put(text, ';');
    put_folded(text, view_take(part, name_length));
    for (size_t i = name_length; i < part.length; i++)
        put(text, part.data[i]);
}

static struct view put_member(struct text *text, struct view member, enum preference preference) {
    size_t start = text->length;
    struct view part = {"", 0};
    weight_next_part(&member, &part);
    put_folded(text, preference == PREFERENCE_ENCODING ? coding_of(part) : part);
    while (weight_next_part(&member, &part))
        put_parameter(text, part);
    return (struct view){text->data + start, text->length - start};
}

static int compare_members(const void *a, const void *b) {
    return compare_fold(*(const struct view *)a, *(const struct view *)b);
}

// The members sorted, each once. False when there are too many, or they do not fit: compare them as text.
static bool put_preferences(
        struct text *text, struct view name, enum preference preference, const struct http_head *request) {
    struct view members[MEMBERS_MAX], member;
    char scratch_text[VARY_SELECTORS_BYTES];
    struct text scratch = {scratch_text, 0, sizeof scratch_text, false};
    struct list_walk walk = {.head = request, .id = http_field_id(name)};
    size_t count = 0;
    while (list_walk_next(&walk, &member)) {
        if (count == MEMBERS_MAX)
            return false;
        members[count++] = put_member(&scratch, member, preference);
    }
    if (scratch.overflow)
        return false;
    qsort(members, count, sizeof *members, compare_members);
    for (size_t i = 0; i < count; i++) {
        if (i && view_equal(members[i], members[i - 1]))
            continue;
        put(text, i ? ',' : '=');
        for (size_t j = 0; j < members[i].length; j++)
            put(text, members[i].data[j]);
    }
    if (count == 0)
        put(text, http_field_find(request, walk.id, 0) ? '=' : '-');
    return true;
}

// ---- selecting ----

static void put_lines(struct text *text, struct view name, const struct http_head *request) {
    unsigned lines = 0;
    for (unsigned i = 0; i < request->field_count; i++) {
        if (is_withheld(&request->fields[i]) || !view_equal_fold(request->fields[i].name, name))
            continue;
        put(text, lines++ ? ',' : '=');
        put_value(text, view_trim(request->fields[i].value));
    }
    if (!lines)
        put(text, '-');
}

// "=VALUE\n" or, for a field that is not there, "-\n": no value has a line feed.
static void put_field(struct text *text, struct view name, const struct http_head *request) {
    enum preference preference = preference_of(name);
    if (preference == PREFERENCE_NONE || !put_preferences(text, name, preference, request))
        put_lines(text, name, request);
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

// ---- ranking ----

struct favourite { // what a list of preferences puts above everything else
    struct view name;
    unsigned weight; // 0: nothing
    bool is_alone;   // no other has the same weight
};

// False when a weight cannot be read.
static bool find_favourite(const struct http_head *request, enum field_id id, struct favourite *favourite) {
    struct list_walk walk = {.head = request, .id = id};
    struct view member, name;
    unsigned weight;
    *favourite = (struct favourite){{"", 0}, 0, true};
    while (list_walk_next(&walk, &member)) {
        if (!weight_of_member(member, &name, &weight))
            return false;
        if (weight > favourite->weight)
            *favourite = (struct favourite){name, weight, true};
        else if (weight == favourite->weight && !view_equal_fold(name, favourite->name))
            favourite->is_alone = false;
    }
    return true;
}

// The only member of a field, "" when there is none. False when there are several.
static bool only_member(const struct http_head *head, enum field_id id, struct view *member) {
    struct list_walk walk = {.head = head, .id = id};
    struct view other;
    if (!list_walk_next(&walk, member))
        *member = (struct view){"", 0};
    return !list_walk_next(&walk, &other);
}

static bool has_favourite_language(const struct http_head *request, const struct http_head *response) {
    struct favourite favourite;
    struct view language;
    return find_favourite(request, FIELD_ACCEPT_LANGUAGE, &favourite) && favourite.weight > 0 &&
           favourite.is_alone && only_member(response, FIELD_CONTENT_LANGUAGE, &language) &&
           language.length > 0 && view_equal_fold(language, favourite.name);
}

static struct view next_line(struct view *lines) {
    size_t end = view_find(*lines, '\n');
    struct view line = view_take(*lines, end);
    *lines = view_skip(*lines, end + 1);
    return line;
}

enum vary_rank vary_rank(struct view names, struct view selectors, const struct http_head *request,
        const struct http_head *response) {
    char text[VARY_SELECTORS_BYTES];
    struct view own;
    enum vary_rank rank = VARY_SELECTED;
    if (names.length == 0)
        return VARY_ANY;
    if (!vary_select(names, request, text, &own))
        return VARY_OTHER;
    while (names.length) {
        struct view name = next_token(&names);
        if (view_equal(next_line(&own), next_line(&selectors)))
            continue;
        if (!view_equal(name, VIEW("accept-language")) || !has_favourite_language(request, response))
            return VARY_OTHER;
        rank = VARY_PREFERRED;
    }
    return rank;
}

bool vary_is_same(const struct stored_head *a, const struct stored_head *b) {
    return view_equal(a->vary, b->vary) && view_equal(a->selectors, b->selectors);
}

static bool is_newer(const struct freshness *a, const struct freshness *b) {
    return a->date_s != b->date_s ? a->date_s > b->date_s : a->response_at.steady_s > b->response_at.steady_s;
}

int vary_choose(const struct stored_head *const *stored, unsigned count, const struct http_head *request) {
    int chosen = -1;
    enum vary_rank best = VARY_OTHER;
    for (unsigned i = 0; i < count; i++) {
        const struct stored_head *head = stored[i];
        enum vary_rank rank = vary_rank(head->vary, head->selectors, request, &head->http);
        if (rank > best || (rank == best && rank != VARY_OTHER &&
                                   is_newer(&head->freshness, &stored[chosen]->freshness))) {
            best = rank;
            chosen = (int)i;
        }
    }
    return chosen;
}
