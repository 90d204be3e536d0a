#include "admin/option.h"

#include "admin/check.h"

#include <inttypes.h>

const struct config_option option_table[DIRECTIVE_COUNT] = {
#define SCALAR(scalar_name, scalar_type, text, least, most, unit_text, meaning_text)                         \
    [DIRECTIVE_##scalar_name] = {.name = #scalar_name,                                                       \
            .type = OPTION_##scalar_type,                                                                    \
            .default_text = text,                                                                            \
            .meaning = meaning_text,                                                                         \
            .offset = offsetof(struct config, scalar_name),                                                  \
            .minimum = least,                                                                                \
            .maximum = most,                                                                                 \
            .unit = unit_text},
#define LIST(list_name, least, most, grammar_text, text, meaning_text)                                       \
    [DIRECTIVE_##list_name] = {.name = #list_name,                                                           \
            .type = OPTION_LIST,                                                                             \
            .default_text = text,                                                                            \
            .meaning = meaning_text,                                                                         \
            .words_minimum = least,                                                                          \
            .words_maximum = most,                                                                           \
            .grammar = grammar_text},
#include "admin/option.tbl"
};

const struct config_timeout timeout_table[TIMEOUT_COUNT] = {
#define TIMEOUT(name, default_ms, minimum_ms, maximum_ms, meaning)                                           \
    [TIMEOUT_##name] = {#name, default_ms, minimum_ms, maximum_ms, meaning},
#include "admin/timeout.tbl"
};

int option_find(const char *name) {
    for (int id = 0; id < DIRECTIVE_COUNT; id++)
        if (view_equal_fold(view_of(option_table[id].name), view_of(name)))
            return id;
    return -1;
}

int timeout_find(const char *name) {
    for (int id = 0; id < TIMEOUT_COUNT; id++)
        if (view_equal_fold(view_of(timeout_table[id].name), view_of(name)))
            return id;
    return -1;
}

struct view option_next_choice(struct view *rest) {
    struct view choice = view_take(*rest, view_find(*rest, '|'));
    *rest = view_skip(*rest, choice.length + 1);
    return choice;
}

static enum value_result find_choice(const struct config_option *option, const char *text, int *index) {
    struct view rest = view_of(option->unit);
    for (*index = 0; rest.length; ++*index)
        if (view_equal_fold(option_next_choice(&rest), view_of(text)))
            return VALUE_GOOD;
    return VALUE_MALFORMED;
}

static bool is_auto(const struct config_option *option, const char *text) {
    struct view default_text = view_of(option->default_text);
    return view_equal_fold(view_of(text), VIEW("auto")) &&
           (view_equal(default_text, VIEW("auto")) || view_equal(default_text, VIEW("0")));
}

bool option_has_unlimited(const struct config_option *option) {
    struct view rest = view_of(option->unit);
    while (option->type == OPTION_SIZE && rest.length)
        if (view_equal(option_next_choice(&rest), VIEW("unlimited")))
            return true;
    return false;
}

static bool is_unlimited(const struct config_option *option, const char *text) {
    return view_equal_fold(view_of(text), VIEW("unlimited")) && option_has_unlimited(option);
}

static enum value_result set_integer(const struct config_option *option, int64_t *field, const char *text) {
    enum value_result result = VALUE_GOOD;
    int64_t value = 0;
    if (is_unlimited(option, text))
        value = CONFIG_UNLIMITED;
    else if (option->type == OPTION_SIZE)
        result = value_size(view_of(text), &value);
    else if (option->type == OPTION_TIME)
        result = value_time(view_of(text), &value);
    else if (option->type == OPTION_AGE)
        result = value_age(view_of(text), &value);
    else if (!is_auto(option, text))
        result = value_number(view_of(text), &value);
    if (result != VALUE_GOOD)
        return result;
    if (value < option->minimum || value > option->maximum)
        return VALUE_RANGE;
    *field = value;
    return VALUE_GOOD;
}

static enum value_result set_text(
        const struct config_option *option, struct config *config, const char **field, const char *text) {
    if (!*text && *option->default_text)
        return VALUE_RANGE;
    const char *copy = config_arena_text(config->arena, view_of(text));
    if (!copy)
        return VALUE_MALFORMED;
    *field = copy;
    return VALUE_GOOD;
}

enum value_result option_set(const struct config_option *option, struct config *config, const char *text) {
    char *field = (char *)config + option->offset;
    int choice;
    enum value_result result;
    switch (option->type) {
    case OPTION_FLAG:
        result = find_choice(option, text, &choice);
        if (result == VALUE_GOOD)
            *(bool *)field = choice == 0; // "on|off"
        return result;
    case OPTION_CHOICE:
        result = find_choice(option, text, &choice);
        if (result == VALUE_GOOD)
            *(int *)field = choice;
        return result;
    case OPTION_NUMBER:
    case OPTION_SIZE:
    case OPTION_TIME:
    case OPTION_AGE:
        return set_integer(option, (int64_t *)field, text);
    case OPTION_TEXT:
        return set_text(option, config, (const char **)field, text);
    case OPTION_LIST:
        break;
    }
    UNREACHABLE("a list has no field");
}

void option_set_default(const struct config_option *option, struct config *config) {
    if (option->type == OPTION_TEXT)
        *(const char **)((char *)config + option->offset) = option->default_text;
    else
        CHECK(option_set(option, config, option->default_text) == VALUE_GOOD);
}

static const char *choice_text(const struct config_option *option, int index, char *out) {
    struct view rest = view_of(option->unit), choice = {"", 0};
    for (int i = 0; i <= index; i++)
        choice = option_next_choice(&rest);
    snprintf(out, VALUE_TEXT_BYTES, VIEW_FORMAT, VIEW_ARGUMENT(choice));
    return out;
}

static const char *number_text(const struct config_option *option, int64_t value, char *out) {
    if (view_equal(view_of(option->default_text), VIEW("auto")) && value == 0)
        return "auto";
    bool is_hexadecimal = view_starts(view_of(option->default_text), VIEW("0x"));
    snprintf(out, VALUE_TEXT_BYTES, is_hexadecimal ? "0x%08" PRIx64 : "%" PRId64, value);
    return out;
}

const char *option_value(
        const struct config_option *option, const struct config *config, char out[static VALUE_TEXT_BYTES]) {
    const char *field = (const char *)config + option->offset;
    switch (option->type) {
    case OPTION_FLAG:
        return choice_text(option, !*(const bool *)field, out);
    case OPTION_CHOICE:
        return choice_text(option, *(const int *)field, out);
    case OPTION_NUMBER:
        return number_text(option, *(const int64_t *)field, out);
    case OPTION_SIZE:
        if (*(const int64_t *)field == CONFIG_UNLIMITED && option_has_unlimited(option))
            return "unlimited";
        return value_print_size(*(const int64_t *)field, out);
    case OPTION_TIME:
    case OPTION_AGE:
        return value_print_time(*(const int64_t *)field, out);
    case OPTION_TEXT:
        return *(const char *const *)field;
    case OPTION_LIST:
        break;
    }
    UNREACHABLE("a list has no field");
}
