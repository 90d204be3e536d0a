#include "admin/config.h"

#include "admin/cache_dir.h"
#include "admin/config_loader.h"
#include "admin/option.h"

#include <stdlib.h>

static void set_defaults(struct config *config) {
    for (int id = 0; id < DIRECTIVE_COUNT; id++)
        if (option_table[id].type != OPTION_LIST)
            option_set_default(&option_table[id], config);
    for (int id = 0; id < TIMEOUT_COUNT; id++)
        config->timeout_ms[id] = timeout_table[id].default_ms;
}

static struct config *new_config(const char *name) {
    struct config *config = calloc(1, sizeof *config);
    if (!config)
        return NULL;
    config->arena = config_arena_new();
    config->file = config->arena ? config_arena_text(config->arena, view_of(name)) : NULL;
    if (!config->file) {
        config_free(config);
        return NULL;
    }
    set_defaults(config);
    return config;
}

void config_free(struct config *config) {
    if (!config)
        return;
    config_arena_free(config->arena);
    config_errors_fini(&config->notes);
    free(config->directives);
    free(config);
}

void loader_no_memory(struct loader *loader, const struct directive *place) {
    struct directive start = {.file = loader->config ? loader->config->file : "(memory)"};
    if (!loader->is_no_memory)
        config_error(loader->errors, place ? place : &start, -1,
                "no memory for this configuration, make it smaller or free some");
    loader->is_no_memory = true;
}

// What is found together is checked only once every line by itself is good: a value that was refused still
// has its default, and would be compared in vain.
static struct config *finish(struct loader *loader, unsigned errors_before) {
    if (loader_goes_on(loader))
        directive_finish(loader);
    if (loader->errors->count == errors_before) {
        config_check(loader->config, loader->errors);
        cache_dirs_note(loader->config, &loader->config->notes);
    }
    return loader->config;
}

static struct config *only_without_errors(struct config *config, bool has_errors) {
    if (!has_errors)
        return config;
    config_free(config);
    return NULL;
}

struct config *config_load(const char *file, struct config_errors *errors) {
    unsigned errors_before = errors->count;
    struct config *config = config_read(file, errors);
    return only_without_errors(config, errors->count != errors_before);
}

struct config *config_read(const char *file, struct config_errors *errors) {
    struct loader loader = {.errors = errors};
    unsigned errors_before = errors->count;
    loader.config = new_config(file ? file : "(defaults)");
    if (!loader.config)
        loader_no_memory(&loader, NULL);
    else if (file)
        loader_read_file(&loader, file, NULL);
    return loader.config ? finish(&loader, errors_before) : NULL;
}

struct config *config_load_text(const char *name, struct view text, struct config_errors *errors) {
    struct loader loader = {.errors = errors, .is_text = true};
    unsigned errors_before = errors->count;
    loader.config = new_config(name);
    if (!loader.config) {
        loader_no_memory(&loader, NULL);
        return NULL;
    }
    struct source source = {.name = loader.config->file};
    loader_read_lines(&loader, &source, text);
    struct config *config = finish(&loader, errors_before);
    return only_without_errors(config, errors->count != errors_before);
}
