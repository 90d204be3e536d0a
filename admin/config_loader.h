// Inside of the loader: what its files share while one configuration is being read. Nobody else includes
// this.
#pragma once

#include "admin/config.h"
#include "admin/config_arena.h"
#include "admin/words.h"

#include <sys/types.h>

// A file that is being read; its includer stays below it.
struct source {
    const char *name; // in the arena
    const struct source *includer;
    dev_t device;
    ino_t inode;
};

struct loader {
    struct config *config;
    struct config_errors *errors;
    bool is_text;      // of memory: include has no folder to be relative to
    bool is_no_memory; // said once, ends the reading
    bool is_full;      // too many directives: said once, ends the reading
    unsigned file_count;
    size_t bytes;
    size_t directive_room;
    const struct source *source;          // the one being read
    const struct directive *bind_address; // halves of a listen line, or NULL
    const struct directive *http_port;
    struct words words; // of the line being read
};

static inline bool loader_goes_on(const struct loader *loader) {
    return !loader->is_no_memory && !loader->is_full;
}

// Says it once; place may be NULL.
void loader_no_memory(struct loader *loader, const struct directive *place);

// config_lines.c: reads the lines of one source.
void loader_read_lines(struct loader *loader, const struct source *source, struct view text);

// config_include.c: opens, reads and closes files. `place` is the include line; NULL for the first file,
// which may be a pipe.
void loader_read_file(struct loader *loader, const char *name, const struct directive *place);
void loader_include(struct loader *loader, const struct directive *include);

// directive.c: what one line means; `name` is its first word, the directive's id is not set yet. What must
// live on is copied to the arena.
void directive_apply(struct loader *loader, const struct directive *directive, const char *name);
void directive_apply_as(struct loader *loader, const struct directive *directive, enum directive_id id);
// A copy whose words live as long as the config. NULL: no memory, said.
const struct directive *directive_keep(struct loader *loader, const struct directive *directive);
// Whether `first`, where the same was set before, is NULL; else an error that names both places.
bool directive_is_first(struct loader *loader, const struct directive *first,
        const struct directive *directive, const char *name);
// After the last line: what spelling_finish adds, and the lists' defaults.
void directive_finish(struct loader *loader);

// spelling.c: a name that no directive has: another spelling, one of later versions, or an error.
void spelling_apply(struct loader *loader, const struct directive *directive, const char *name);
// The listen line that BindAddress and http_port make.
void spelling_finish(struct loader *loader);

// config_check.c: what two options say together.
void config_check(const struct config *config, struct config_errors *errors);
