#include "intercept/response_line.h"

#include "admin/check.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool response_line_is_one(const struct directive *directive) {
    return directive->id == DIRECTIVE_store_type || directive->id == DIRECTIVE_no_store_type ||
           directive->id == DIRECTIVE_store_status || directive->id == DIRECTIVE_no_store_status;
}

bool response_lines_init(struct response_lines *lines, size_t room) {
    *lines = (struct response_lines){.room = room};
    lines->rules = calloc(room + 1, sizeof *lines->rules);
    lines->places = calloc(room + 1, sizeof *lines->places);
    return lines->rules && lines->places;
}

void response_lines_fini(struct response_lines *lines) {
    for (size_t i = 0; i < lines->count; i++)
        if (lines->rules[i].status == 0)
            free((char *)lines->rules[i].type.data);
    free(lines->rules);
    free(lines->places);
    *lines = (struct response_lines){0};
}

// ---- words ----

// A token [RFC 9110 §5.6.2].
static bool is_token(struct view text) {
    for (size_t i = 0; i < text.length; i++)
        if (!isalnum((unsigned char)text.data[i]) && !strchr("!#$%&'+-.^_`|~", text.data[i]))
            return false;
    return text.length > 0;
}

// "image/png" as it is, "image/*" as "image/", "*" and "*/*" as "". False: it is none of these.
static bool parse_type(struct view text, struct view *type) {
    size_t slash = view_find(text, '/');
    struct view below = view_skip(text, slash + 1);
    *type = text;
    if (view_equal(text, VIEW("*")) || view_equal(text, VIEW("*/*"))) {
        *type = VIEW("");
        return true;
    }
    bool is_family = view_equal(below, VIEW("*"));
    if (is_family)
        *type = view_take(text, slash + 1);
    return slash < text.length && is_token(view_take(text, slash)) && (is_family || is_token(below));
}

static const char *text_of(const struct response_place *place) {
    return place->directive->words[place->word].text;
}

static bool read_type(
        const struct response_place *place, struct response_rule *rule, struct config_errors *errors) {
    struct view type;
    if (!parse_type(view_of(text_of(place)), &type)) {
        config_error(errors, place->directive, (int)place->word,
                "\"%.80s\" is no media type, write TYPE/SUBTYPE or TYPE/* without parameters, or *",
                text_of(place));
        return false;
    }
    char *copy = strndup(type.data, type.length);
    if (!copy) {
        config_error(errors, place->directive, (int)place->word, "out of memory");
        return false;
    }
    for (char *byte = copy; *byte; byte++)
        *byte = view_lower(*byte);
    rule->type = (struct view){copy, type.length};
    return true;
}

static bool read_status(
        const struct response_place *place, struct response_rule *rule, struct config_errors *errors) {
    uint64_t status = 0;
    if (!view_number(view_of(text_of(place)), &status) || status < 200 || status > 599) {
        config_error(errors, place->directive, (int)place->word,
                "\"%.80s\" is no final status, write 200 to 599", text_of(place));
        return false;
    }
    rule->type = VIEW("");
    rule->status = (int)status;
    return true;
}

// ---- what one word leaves to another ----

static bool type_covers(struct view wide, struct view type) {
    bool is_family = wide.length && wide.data[wide.length - 1] == '/';
    return wide.length == 0 || (is_family ? view_starts(type, wide) : view_equal(type, wide));
}

static bool covers(const struct response_rule *wide, const struct response_rule *rule) {
    return (wide->status == 0 || wide->status == rule->status) && type_covers(wide->type, rule->type);
}

// Whether some response matches both.
static bool meets(const struct response_rule *a, const struct response_rule *b) {
    return (a->status == 0 || b->status == 0 || a->status == b->status) &&
           (type_covers(a->type, b->type) || type_covers(b->type, a->type));
}

static const char *cure_of(const struct response_rule *earlier, const struct response_rule *rule) {
    if (earlier->is_stored == rule->is_stored)
        return "take it out here";
    return covers(rule, earlier) ? "take one of the two out" : "put this line above that one";
}

static bool is_reachable(const struct response_lines *lines, const struct response_place *place,
        const struct response_rule *rule, struct config_errors *errors) {
    for (size_t i = 0; i < lines->count; i++) {
        if (!covers(&lines->rules[i], rule))
            continue;
        const struct response_place *earlier = &lines->places[i];
        config_error(errors, place->directive, (int)place->word,
                "\"%.80s\" can never match: \"%.80s\" at %.255s:%u:%u matches first, %s", text_of(place),
                text_of(earlier), earlier->directive->file, earlier->directive->line,
                earlier->directive->words[earlier->word].column, cure_of(&lines->rules[i], rule));
        return false;
    }
    return true;
}

// ---- lines ----

// Also a word that can never match is kept: it must not make others seem to change nothing.
static bool add_word(
        struct response_lines *lines, const struct response_place *place, struct config_errors *errors) {
    enum directive_id id = place->directive->id;
    bool is_type = id == DIRECTIVE_store_type || id == DIRECTIVE_no_store_type;
    struct response_rule rule = {.is_stored = id == DIRECTIVE_store_type || id == DIRECTIVE_store_status};
    if (!(is_type ? read_type : read_status)(place, &rule, errors))
        return false;
    bool good = is_reachable(lines, place, &rule, errors);
    CHECK(lines->count < lines->room);
    lines->places[lines->count] = *place;
    lines->rules[lines->count++] = rule;
    return good;
}

bool response_lines_add(
        struct response_lines *lines, const struct directive *directive, struct config_errors *errors) {
    bool good = true;
    for (unsigned word = 0; word < directive->word_count; word++)
        good = add_word(lines, &(struct response_place){directive, word}, errors) && good;
    return good;
}

static bool is_exception(const struct response_lines *lines, size_t at) {
    for (size_t i = at + 1; i < lines->count; i++)
        if (!lines->rules[i].is_stored && meets(&lines->rules[i], &lines->rules[at]))
            return true;
    return false;
}

bool response_lines_check(const struct response_lines *lines, struct config_errors *errors) {
    bool good = true;
    for (size_t i = 0; i < lines->count; i++) {
        if (!lines->rules[i].is_stored || is_exception(lines, i))
            continue;
        good = false;
        config_error(errors, lines->places[i].directive, (int)lines->places[i].word,
                "no line below keeps anything of \"%.80s\" out of the store, so it changes nothing: put it "
                "above the no_store_ line it is an exception from, or no_store_type * below it to store "
                "nothing else",
                text_of(&lines->places[i]));
    }
    return good;
}
