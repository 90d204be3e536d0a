#include "admin/check.h"
#include "admin/config_loader.h"
#include "admin/nearest.h"
#include "admin/option.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// Puts copies in the arena in place of the words. False: no memory, said.
static bool keep_words(struct loader *loader, struct directive *directive) {
    struct config_arena *arena = loader->config->arena;
    struct config_word *words = config_arena_take(arena, directive->word_count * sizeof *words);
    bool good = words != NULL;
    for (unsigned i = 0; good && i < directive->word_count; i++) {
        words[i].column = directive->words[i].column;
        words[i].text = config_arena_text(arena, view_of(directive->words[i].text));
        good = words[i].text != NULL;
    }
    if (!good)
        loader_no_memory(loader, directive);
    directive->words = words;
    return good;
}

const struct directive *directive_keep(struct loader *loader, const struct directive *directive) {
    struct directive *kept = config_arena_take(loader->config->arena, sizeof *kept);
    if (!kept) {
        loader_no_memory(loader, directive);
        return NULL;
    }
    *kept = *directive;
    return keep_words(loader, kept) ? kept : NULL;
}

static bool make_room(struct loader *loader, const struct directive *directive) {
    struct config *config = loader->config;
    if (config->directive_count == CONFIG_DIRECTIVES_MAXIMUM) {
        config_error(loader->errors, directive, -1, "more than %d lines of lists, use fewer",
                CONFIG_DIRECTIVES_MAXIMUM);
        loader->is_full = true;
        return false;
    }
    if (config->directive_count < loader->directive_room)
        return true;
    size_t room = loader->directive_room ? loader->directive_room * 2 : 32;
    struct directive *grown = realloc(config->directives, room * sizeof *grown);
    if (!grown) {
        loader_no_memory(loader, directive);
        return false;
    }
    config->directives = grown;
    loader->directive_room = room;
    return true;
}

static void append(struct loader *loader, const struct directive *directive) {
    struct directive kept = *directive;
    if (make_room(loader, directive) && keep_words(loader, &kept))
        loader->config->directives[loader->config->directive_count++] = kept;
}

bool directive_is_first(struct loader *loader, const struct directive *first,
        const struct directive *directive, const char *name) {
    if (first)
        config_error(loader->errors, directive, -1,
                "%s is set already at %.255s:%u:%u, take one of the two out", name, first->file, first->line,
                first->column);
    return !first;
}

#define SIZE_BELOW_MAXIMUM "8388607T" // the largest that fits 63 bits in whole units

static const char *print_bound(const struct config_option *option, int64_t value, char *out) {
    if (option->type == OPTION_SIZE && value == INT64_MAX)
        return SIZE_BELOW_MAXIMUM;
    if (option->type == OPTION_SIZE)
        return value_print_size(value, out);
    if (option->type == OPTION_TIME || option->type == OPTION_AGE)
        return value_print_time(value, out);
    bool is_hexadecimal = view_starts(view_of(option->default_text), VIEW("0x"));
    snprintf(out, VALUE_TEXT_BYTES, is_hexadecimal ? "0x%" PRIx64 : "%" PRId64, value);
    return out;
}

static void range_error(
        struct loader *loader, const struct directive *directive, const struct config_option *option) {
    char least[VALUE_TEXT_BYTES], most[VALUE_TEXT_BYTES];
    const char *text = directive->words[0].text;
    if (option->type == OPTION_TEXT)
        config_error(loader->errors, directive, 0, "%s must not be empty, write one (%s)", option->name,
                option->unit);
    else if (option->maximum == INT64_MAX && option->type != OPTION_SIZE)
        config_error(loader->errors, directive, 0, "%s \"%.80s\" is out of range, write %s or more",
                option->name, text, print_bound(option, option->minimum, least));
    else
        config_error(loader->errors, directive, 0, "%s \"%.80s\" is out of range, write %s to %s",
                option->name, text, print_bound(option, option->minimum, least),
                print_bound(option, option->maximum, most));
}

static void choice_error(
        struct loader *loader, const struct directive *directive, const struct config_option *option) {
    char hint[NEAREST_HINT_BYTES], names[8][NEAREST_NAME_BYTES];
    struct nearest nearest = nearest_to(directive->words[0].text);
    struct view rest = view_of(option->unit);
    for (unsigned i = 0; rest.length && i < 8; i++) {
        struct view choice = option_next_choice(&rest);
        snprintf(names[i], sizeof names[i], VIEW_FORMAT, VIEW_ARGUMENT(choice));
        nearest_offer(&nearest, names[i]);
    }
    config_error(loader->errors, directive, 0, "%s \"%.80s\" is none of %s, write one of these%s",
            option->name, directive->words[0].text, option->unit, nearest_hint(&nearest, hint));
}

static void value_error(
        struct loader *loader, const struct directive *directive, const struct config_option *option) {
    const char *text = directive->words[0].text, *form = NULL;
    switch (option->type) {
    case OPTION_FLAG:
    case OPTION_CHOICE:
        choice_error(loader, directive, option);
        return;
    case OPTION_NUMBER:
        form = "number, write digits, or 0x and hexadecimal ones";
        break;
    case OPTION_SIZE:
        form = option_has_unlimited(option) ? "size, write bytes, or a number with K, M, G or T, or unlimited"
                                            : "size, write bytes, or a number with K, M, G or T";
        break;
    case OPTION_TIME:
        form = "time, write seconds, or a number with ms, s, m, h, d or w";
        break;
    case OPTION_AGE:
        form = "age, write days, or a number with s, m, h, d, w or y";
        break;
    case OPTION_TEXT:
        loader_no_memory(loader, directive);
        return;
    case OPTION_LIST:
        UNREACHABLE("a list has no value");
    }
    config_error(loader->errors, directive, 0, "%s \"%.80s\" is no %s", option->name, text, form);
}

// "16 KB", as Squid's lines have it: the size that is meant, without the blank. False: it is something else.
static bool join_size(const struct directive *directive, char out[static VALUE_TEXT_BYTES]) {
    static const char *const endings[] = {"", "B", "iB"};
    struct view unit = view_of(directive->words[1].text);
    int64_t bytes;
    bool is_known = false;
    for (size_t i = 0; unit.length && i < sizeof endings / sizeof *endings; i++)
        is_known = is_known || view_equal_fold(view_skip(unit, 1), view_of(endings[i]));
    int length = snprintf(out, VALUE_TEXT_BYTES, "%s%.1s", directive->words[0].text, unit.data);
    return directive->word_count == 2 && is_known && length > 0 && length < VALUE_TEXT_BYTES &&
           value_size(view_of(out), &bytes) == VALUE_GOOD;
}

static void too_many_values(
        struct loader *loader, const struct directive *directive, const struct config_option *option) {
    char joined[VALUE_TEXT_BYTES];
    if (option->type == OPTION_SIZE && join_size(directive, joined))
        config_error(loader->errors, directive, 1, "%s takes one word, write %s", option->name, joined);
    else
        config_error(loader->errors, directive, 1,
                "%s takes one value, take the rest out or put it all in quotes", option->name);
}

static void apply_scalar(struct loader *loader, const struct directive *directive) {
    const struct config_option *option = &option_table[directive->id];
    if (!directive_is_first(loader, loader->config->set_by[directive->id], directive, option->name))
        return;
    loader->config->set_by[directive->id] = directive;
    if (directive->word_count == 0) {
        config_error(loader->errors, directive, -1, "%s needs a value, write it behind the name (%s)%s",
                option->name, option->unit, config_comment_hint(directive));
        return;
    }
    if (directive->word_count > 1) {
        too_many_values(loader, directive, option);
        return;
    }
    switch (option_set(option, loader->config, directive->words[0].text)) {
    case VALUE_GOOD:
        return;
    case VALUE_MALFORMED:
        value_error(loader, directive, option);
        return;
    case VALUE_RANGE:
        range_error(loader, directive, option);
        return;
    }
}

static void unknown_timeout(struct loader *loader, const struct directive *directive) {
    char hint[NEAREST_HINT_BYTES];
    struct nearest nearest = nearest_to(directive->words[0].text);
    for (int id = 0; id < TIMEOUT_COUNT; id++)
        nearest_offer(&nearest, timeout_table[id].name);
    config_error(loader->errors, directive, 0, "no timeout is called \"%.80s\"%s, weir config lists them",
            directive->words[0].text, nearest_hint(&nearest, hint));
}

static void apply_timeout(struct loader *loader, const struct directive *directive) {
    char least[VALUE_TEXT_BYTES], most[VALUE_TEXT_BYTES];
    const char *text = directive->words[1].text;
    int64_t value = 0;
    int id = timeout_find(directive->words[0].text);
    if (id < 0) {
        unknown_timeout(loader, directive);
        return;
    }
    const struct config_timeout *timeout = &timeout_table[id];
    if (!directive_is_first(loader, loader->config->timeout_set_by[id], directive, timeout->name))
        return;
    loader->config->timeout_set_by[id] = directive;
    enum value_result result = value_time(view_of(text), &value);
    if (result == VALUE_MALFORMED)
        config_error(loader->errors, directive, 1,
                "timeout %s \"%.80s\" is no time, write seconds, or a number with ms, s, m, h, d or w",
                timeout->name, text);
    else if (result == VALUE_RANGE || value < timeout->minimum_ms || value > timeout->maximum_ms)
        config_error(loader->errors, directive, 1, "timeout %s \"%.80s\" is out of range, write %s to %s",
                timeout->name, text, value_print_time(timeout->minimum_ms, least),
                value_print_time(timeout->maximum_ms, most));
    else
        loader->config->timeout_ms[id] = value;
}

// What is applied so outlives the line: it is pointed to from the config, or other lines are read meanwhile.
static void apply_kept(struct loader *loader, const struct directive *directive,
        void (*apply)(struct loader *loader, const struct directive *directive)) {
    const struct directive *kept = directive_keep(loader, directive);
    if (kept)
        apply(loader, kept);
}

static void apply_list(struct loader *loader, const struct directive *directive) {
    const struct config_option *option = &option_table[directive->id];
    if (directive->word_count < option->words_minimum)
        config_error(loader->errors, directive, -1, "%s needs more words, write %s %s%s", option->name,
                option->name, option->grammar, config_comment_hint(directive));
    else if (option->words_maximum && directive->word_count > option->words_maximum)
        config_error(loader->errors, directive, (int)option->words_maximum, "too many words, write %s %s",
                option->name, option->grammar);
    else if (directive->id == DIRECTIVE_include)
        apply_kept(loader, directive, loader_include);
    else if (directive->id == DIRECTIVE_timeout)
        apply_kept(loader, directive, apply_timeout);
    else
        append(loader, directive);
}

void directive_apply_as(struct loader *loader, const struct directive *directive, enum directive_id id) {
    struct directive known = *directive;
    known.id = id;
    if (option_table[id].type == OPTION_LIST)
        apply_list(loader, &known);
    else
        apply_kept(loader, &known, apply_scalar);
}

void directive_apply(struct loader *loader, const struct directive *directive, const char *name) {
    int id = option_find(name);
    if (id >= 0)
        directive_apply_as(loader, directive, (enum directive_id)id);
    else
        spelling_apply(loader, directive, name);
}

static void finish_list(struct loader *loader, enum directive_id id) {
    struct words *words = &loader->words;
    CHECK(words_split(words, view_of(option_table[id].default_text)));
    struct directive directive = {.file = "(default)", .word_count = words->count, .words = words->word};
    directive_apply_as(loader, &directive, id);
}

void directive_finish(struct loader *loader) {
    bool is_there[DIRECTIVE_COUNT] = {0};
    spelling_finish(loader);
    for (size_t i = 0; i < loader->config->directive_count; i++)
        is_there[loader->config->directives[i].id] = true;
    for (int id = 0; id < DIRECTIVE_COUNT && loader_goes_on(loader); id++)
        if (option_table[id].type == OPTION_LIST && *option_table[id].default_text && !is_there[id])
            finish_list(loader, (enum directive_id)id);
}
