#include "admin/config.h"
#include "admin/json.h"
#include "admin/option.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// One line of the table. Everything is text already; it reads back as a line of the file.
struct row {
    const char *name, *value, *default_text, *unit, *meaning;
};

static void print_row(FILE *out, struct row row) {
    fprintf(out, "%-28s %-22s %-22s %-12s %s\n", row.name, *row.value ? row.value : "-",
            *row.default_text ? row.default_text : "-", row.unit, row.meaning);
}

// As the file would have to write it: in quotes where a blank, a quote or a # needs them. NULL: no memory.
static char *join_words(const struct directive *directive) {
    size_t length = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &length);
    for (unsigned i = 0; out && i < directive->word_count; i++) {
        const char *word = directive->words[i].text;
        bool quoted = !*word || strpbrk(word, " \t\"#");
        fprintf(out, "%s%s", i ? " " : "", quoted ? "\"" : "");
        for (; *word; word++)
            fprintf(out, "%s%c", *word == '"' ? "\\" : "", *word);
        fputs(quoted ? "\"" : "", out);
    }
    if (!out || fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static const char *unit_of(const struct config_option *option) {
    return option->type == OPTION_CHOICE || option->type == OPTION_FLAG ? "" : option->unit;
}

static bool is_listed(enum directive_id id) {
    return option_table[id].type == OPTION_LIST && id != DIRECTIVE_include && id != DIRECTIVE_timeout;
}

static void print_list(const struct config *config, enum directive_id id, FILE *out) {
    const struct config_option *option = &option_table[id];
    struct row row = {option->name, "", option->default_text, "", option->meaning};
    bool is_any = false;
    for (size_t i = 0; i < config->directive_count; i++) {
        if (config->directives[i].id != id)
            continue;
        char *words = join_words(&config->directives[i]);
        row.value = words ? words : "(no memory)";
        print_row(out, row);
        free(words);
        is_any = true;
        row.meaning = "";
        row.default_text = "";
    }
    if (!is_any)
        print_row(out, row);
}

static void print_option(const struct config *config, enum directive_id id, FILE *out) {
    const struct config_option *option = &option_table[id];
    char value[VALUE_TEXT_BYTES];
    print_row(out, (struct row){option->name, option_value(option, config, value), option->default_text,
                           unit_of(option), option->meaning});
}

void config_print(const struct config *config, FILE *out) {
    char name[64], value[VALUE_TEXT_BYTES], default_text[VALUE_TEXT_BYTES];
    fprintf(out, "# %s\n", config->file);
    print_row(out, (struct row){"# name", "value", "default", "unit", "meaning"});
    for (int id = 0; id < DIRECTIVE_COUNT; id++)
        if (is_listed(id))
            print_list(config, id, out);
        else if (option_table[id].type != OPTION_LIST)
            print_option(config, id, out);
    for (int id = 0; id < TIMEOUT_COUNT; id++) {
        const struct config_timeout *timeout = &timeout_table[id];
        snprintf(name, sizeof name, "timeout %s", timeout->name);
        print_row(
                out, (struct row){name, value_print_time(config->timeout_ms[id], value),
                             value_print_time(timeout->default_ms, default_text), "time", timeout->meaning});
    }
}

static void json_member(const char *name, const char *value, FILE *out) {
    fprintf(out, "\"%s\": ", name);
    json_print(view_of(value), out);
}

static void json_place(const struct directive *place, FILE *out) {
    fputs(", \"set_at\": ", out);
    if (!place || place->line == 0) {
        fputs("null}", out);
        return;
    }
    char *text = NULL;
    if (asprintf(&text, "%s:%u", place->file, place->line) < 0)
        text = NULL;
    json_print(view_of(text), out);
    fputc('}', out);
    free(text);
}

// A number where the option is one (bytes, milliseconds, counts), else a text.
static void json_value(const struct config_option *option, const struct config *config, FILE *out) {
    char text[VALUE_TEXT_BYTES];
    const char *field = (const char *)config + option->offset;
    fputs(", \"value\": ", out);
    bool is_integer = option->type == OPTION_NUMBER || option->type == OPTION_SIZE ||
                      option->type == OPTION_TIME || option->type == OPTION_AGE;
    if (is_integer && *(const int64_t *)field != CONFIG_UNLIMITED)
        fprintf(out, "%" PRId64, *(const int64_t *)field);
    else
        json_print(view_of(option_value(option, config, text)), out);
}

static void json_option(const struct config *config, enum directive_id id, FILE *out) {
    const struct config_option *option = &option_table[id];
    fputs("{", out);
    json_member("name", option->name, out);
    json_value(option, config, out);
    fputs(", ", out);
    json_member("default", option->default_text, out);
    fputs(", ", out);
    json_member("unit", option->unit, out);
    fputs(", ", out);
    json_member("meaning", option->meaning, out);
    json_place(config->set_by[id], out);
}

static void json_list(const struct directive *directive, FILE *out) {
    fputs("{", out);
    json_member("name", option_table[directive->id].name, out);
    fputs(", \"words\": [", out);
    for (unsigned i = 0; i < directive->word_count; i++) {
        fputs(i ? ", " : "", out);
        json_print(view_of(directive->words[i].text), out);
    }
    fputs("]", out);
    json_place(directive, out);
}

static void json_timeout(const struct config *config, enum timeout_id id, FILE *out) {
    const struct config_timeout *timeout = &timeout_table[id];
    fputs("{", out);
    json_member("name", timeout->name, out);
    fprintf(out, ", \"value\": %" PRId64 ", \"default\": %" PRId64 ", \"unit\": \"ms\", ",
            config->timeout_ms[id], timeout->default_ms);
    json_member("meaning", timeout->meaning, out);
    json_place(config->timeout_set_by[id], out);
}

void config_print_json(const struct config *config, FILE *out) {
    const char *separator = "\n  ";
    fputs("{", out);
    json_member("file", config->file, out);
    fputs(",\n \"options\": [", out);
    for (int id = 0; id < DIRECTIVE_COUNT; id++)
        if (option_table[id].type != OPTION_LIST) {
            fputs(separator, out);
            json_option(config, id, out);
            separator = ",\n  ";
        }
    fputs("],\n \"lists\": [", out);
    for (size_t i = 0; i < config->directive_count; i++) {
        fputs(i ? ",\n  " : "\n  ", out);
        json_list(&config->directives[i], out);
    }
    fputs("],\n \"timeouts\": [", out);
    for (int id = 0; id < TIMEOUT_COUNT; id++) {
        fputs(id ? ",\n  " : "\n  ", out);
        json_timeout(config, id, out);
    }
    fputs("]}\n", out);
}
