// The directives and timeouts as data: option.tbl and timeout.tbl, one row each, indexed by their enums.
#pragma once

#include "admin/config.h"
#include "admin/config_arena.h"
#include "admin/value.h"

#include <stddef.h>

enum option_type {
    OPTION_FLAG,
    OPTION_NUMBER,
    OPTION_SIZE,
    OPTION_TIME,
    OPTION_AGE, // a time in days
    OPTION_TEXT,
    OPTION_CHOICE,
    OPTION_LIST,
};

struct config_option {
    const char *name;
    enum option_type type;
    const char *default_text;
    const char *meaning;
    // scalars
    size_t offset; // of its field in struct config
    int64_t minimum, maximum;
    const char *unit; // or the choices, "open|closed"
    // lists
    unsigned words_minimum, words_maximum; // 0: any number
    const char *grammar;
};

struct config_timeout {
    const char *name;
    int64_t default_ms, minimum_ms, maximum_ms;
    const char *meaning;
};

extern const struct config_option option_table[DIRECTIVE_COUNT];
extern const struct config_timeout timeout_table[TIMEOUT_COUNT];

// By name, ASCII case ignored. -1: none.
int option_find(const char *name);
int timeout_find(const char *name);

// Sets a scalar's field from its text. A text is copied to the arena (VALUE_MALFORMED when there is no memory
// for it). VALUE_RANGE: well formed, outside of minimum and maximum, or an empty text whose default is not.
enum value_result option_set(const struct config_option *option, struct config *config, const char *text);

// Sets it to its default; a text stays static.
void option_set_default(const struct config_option *option, struct config *config);

// The value as the file would write it; points into `out`, into the config or at static text.
const char *option_value(
        const struct config_option *option, const struct config *config, char out[static VALUE_TEXT_BYTES]);

// Whether it takes the word `unlimited` (CONFIG_UNLIMITED) as well.
bool option_has_unlimited(const struct config_option *option);

// The choices of a FLAG or CHOICE are the words of `unit`, cut at '|'. The next one, taken off `rest`.
struct view option_next_choice(struct view *rest);
