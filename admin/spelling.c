// Names that are no directives of ours: Smart Cache's, those of later versions, and mistyped ones.
#include "admin/config_loader.h"
#include "admin/nearest.h"
#include "admin/option.h"

#include <string.h>

#define LISTEN_TEXT_BYTES 128

struct spelling {
    const char *name;
    enum { SPELLING_ALIAS, SPELLING_LISTENER, SPELLING_RETIRED, SPELLING_LATER } kind;
    enum directive_id means; // of SPELLING_ALIAS
    size_t half;             // of SPELLING_LISTENER: where struct loader keeps the line
    const char *text;        // the note, what to do meanwhile
};

static const struct spelling spellings[] = {
#define ALIAS(name, directive) {#name, SPELLING_ALIAS, DIRECTIVE_##directive, 0, ""},
#define LISTENER(name, field, text)                                                                          \
    {#name, SPELLING_LISTENER, DIRECTIVE_listen, offsetof(struct loader, field), ""},
#define RETIRED(name, note) {#name, SPELLING_RETIRED, DIRECTIVE_COUNT, 0, note},
#include "admin/alias.tbl"
#define LATER(name, meanwhile) {#name, SPELLING_LATER, DIRECTIVE_COUNT, 0, meanwhile},
#include "admin/later.tbl"
};
#define SPELLING_COUNT (sizeof spellings / sizeof spellings[0])

static void apply_listener_half(
        struct loader *loader, const struct directive *directive, const struct spelling *spelling) {
    const struct directive **half = (const struct directive **)((char *)loader + spelling->half);
    if (!directive_is_first(loader, *half, directive, spelling->name))
        return;
    if (directive->word_count != 1)
        config_error(loader->errors, directive, directive->word_count ? 1 : -1,
                "%s takes one word, write listen [ADDRESS:]PORT any instead", spelling->name);
    *half = directive_keep(loader, directive);
}

static void apply_spelling(
        struct loader *loader, const struct directive *directive, const struct spelling *spelling) {
    switch (spelling->kind) {
    case SPELLING_ALIAS:
        directive_apply_as(loader, directive, spelling->means);
        return;
    case SPELLING_LISTENER:
        apply_listener_half(loader, directive, spelling);
        return;
    case SPELLING_RETIRED:
        config_error(&loader->config->notes, directive, -1, "%s does nothing here: %s", spelling->name,
                spelling->text);
        return;
    case SPELLING_LATER:
        config_error(loader->errors, directive, -1,
                "%s is not supported by this version, take the line out%s%s", spelling->name,
                *spelling->text ? "; meanwhile: " : "", spelling->text);
        return;
    }
}

static void unknown_directive(struct loader *loader, const struct directive *directive, const char *name) {
    char hint[NEAREST_HINT_BYTES];
    struct nearest nearest = nearest_to(name);
    for (int id = 0; id < DIRECTIVE_COUNT; id++)
        nearest_offer(&nearest, option_table[id].name);
    for (size_t i = 0; i < SPELLING_COUNT; i++)
        nearest_offer(&nearest, spellings[i].name);
    config_error(loader->errors, directive, -1,
            "no directive is called \"%.80s\"%s, correct it or take the line out", name,
            nearest_hint(&nearest, hint));
}

void spelling_apply(struct loader *loader, const struct directive *directive, const char *name) {
    for (size_t i = 0; i < SPELLING_COUNT; i++)
        if (view_equal_fold(view_of(spellings[i].name), view_of(name))) {
            apply_spelling(loader, directive, &spellings[i]);
            return;
        }
    unknown_directive(loader, directive, name);
}

static const char *half_text(const struct directive *half, const char *default_text) {
    return half && half->word_count ? half->words[0].text : default_text;
}

void spelling_finish(struct loader *loader) {
    const struct directive *address_line = loader->bind_address, *port_line = loader->http_port;
    if (!address_line && !port_line)
        return;
#define LISTENER(name, field, text) const char *field = half_text(loader->field, text);
#include "admin/alias.tbl"
    char text[LISTEN_TEXT_BYTES];
    bool is_bare = strchr(bind_address, ':') && *bind_address != '[';
    int length = strcmp(bind_address, "*") == 0 ? snprintf(text, sizeof text, "%s", http_port)
                                                : snprintf(text, sizeof text, is_bare ? "[%s]:%s" : "%s:%s",
                                                          bind_address, http_port);
    struct directive listen = port_line ? *port_line : *address_line;
    if (length >= (int)sizeof text) {
        config_error(loader->errors, &listen, 0, "too long, write an address and a port");
        return;
    }
    unsigned column = listen.word_count ? listen.words[0].column : listen.column;
    const struct config_word words[] = {{text, column}, {"any", column}};
    listen.word_count = 2;
    listen.words = words;
    directive_apply_as(loader, &listen, DIRECTIVE_listen);
}
