// The configuration: a file of directives, read whole, checked whole, then never changed. A reload reads a
// new one beside it.
//
// Two kinds of directives stand in admin/option.tbl. A *scalar* sets one field of struct config and may stand
// once in a file (the last included one wins is no rule: twice is an error). A *list* directive may be
// repeated; each stands, words and place, in config->directives, in file order, for the folder that
// understands it (acl/ builds rules of allow, deny, block, pass; intercept/ builds listeners of listen). A
// list directive with a default stands there once, with file "(default)" and line 0, when the file has none;
// include and timeout are used up by the loader and do not stand there. Other spellings (admin/alias.tbl)
// stand as the directive they mean, with the place where they were written.
#pragma once

#include "admin/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CONFIG_DEFAULT_FILE "/etc/weir/weir.conf"

// Bounds; each is an error with its place when a file goes beyond it.
#define CONFIG_BYTES_MAXIMUM (32 << 20)     // all files of one load together
#define CONFIG_FILES_MAXIMUM 256            // files of one load
#define CONFIG_DEPTH_MAXIMUM 16             // files that include one another
#define CONFIG_DIRECTIVES_MAXIMUM (1 << 20) // list directives
#define CONFIG_ERRORS_KEPT 50               // error texts; the rest is counted

enum directive_id {
#define SCALAR(name, type, default_text, minimum, maximum, unit, meaning) DIRECTIVE_##name,
#define LIST(name, words_minimum, words_maximum, grammar, default_text, meaning) DIRECTIVE_##name,
#include "admin/option.tbl"
    DIRECTIVE_COUNT
};

enum timeout_id {
#define TIMEOUT(name, default_ms, minimum_ms, maximum_ms, meaning) TIMEOUT_##name,
#include "admin/timeout.tbl"
    TIMEOUT_COUNT
};

struct config_word {
    const char *text; // NUL-terminated, quotes removed
    unsigned column;  // 1-based, of its first byte in the line
};

struct directive {
    enum directive_id id;
    const char *file; // as it was named on the command line or by include
    unsigned line;    // 1-based
    unsigned column;  // of the directive's name
    unsigned comment; // column of the # that begins a comment in its line, 0: none
    unsigned word_count;
    const struct config_word *words; // without the name
};

// Where and what: "FILE:LINE:COLUMN: what, what to do". Every error of a load is collected, up to a bound.
struct config_errors {
    unsigned count; // all of them, also those over the bound
    char *text;     // the messages, a line each; NULL when none
    size_t length;
};

typedef bool SCALAR_FLAG;
typedef int64_t SCALAR_NUMBER; // counts; "auto" is 0 where the table says so
typedef int64_t SCALAR_SIZE;   // bytes
typedef int64_t SCALAR_TIME;   // milliseconds
typedef int64_t SCALAR_AGE;    // milliseconds; a bare number in the file is days
typedef const char *SCALAR_TEXT;
enum { ON_FAILURE_OPEN, ON_FAILURE_CLOSED };                   // the choices of on_failure, in its order
enum { CACHE_STATUS_AUTO, CACHE_STATUS_ON, CACHE_STATUS_OFF }; // and of cache_status
enum { OFFLINE_OFF, OFFLINE_ON, OFFLINE_AUTO };

typedef int SCALAR_CHOICE; // index into the `unit` column's words, "open|closed"

struct config {
#define SCALAR(name, type, default_text, minimum, maximum, unit, meaning) SCALAR_##type name;
#define LIST(name, words_minimum, words_maximum, grammar, default_text, meaning)
#include "admin/option.tbl"
    int64_t timeout_ms[TIMEOUT_COUNT];
    const char *file; // what was loaded, "(defaults)" when nothing was
    size_t directive_count;
    struct directive *directives;
    // Where each scalar and timeout was set; NULL: nowhere, it has its default. For errors that concern two.
    const struct directive *set_by[DIRECTIVE_COUNT];
    const struct directive *timeout_set_by[TIMEOUT_COUNT];
    struct config_errors notes; // accepted lines that have nothing left to do here; no errors
    struct config_arena *arena; // owns every text above
};

// Reads FILE and what it includes. Returns a whole configuration, or NULL with at least one error in `errors`
// (also for a file that cannot be read). `file` NULL gives the defaults.
struct config *config_load(const char *file, struct config_errors *errors);
// What can be read of it, errors or not: a line that was refused is as if it were not there. For telling more
// errors at once, and for finding the control socket. NULL only without memory.
struct config *config_read(const char *file, struct config_errors *errors);
// The same from text in memory; `name` is what errors call it, and include is an error. For tests and
// fuzzing.
struct config *config_load_text(const char *name, struct view text, struct config_errors *errors);
void config_free(struct config *config); // NULL is allowed

// Adds "FILE:LINE:COLUMN: message" for word `word` of the directive (-1: the directive itself). Control bytes
// in it become '?', a text over 700 bytes is cut. With no memory the error is counted all the same.
void config_error(struct config_errors *errors, const struct directive *directive, int word,
        const char *format, ...) __attribute__((format(printf, 4, 5)));
// What to add where words are missing: that a comment took the rest of the line, "" when there is none.
const char *config_comment_hint(const struct directive *directive);
void config_errors_fini(struct config_errors *errors);
// The texts, then how many more there were. Nothing for none.
void config_errors_print(const struct config_errors *errors, FILE *out);

#define CONFIG_UNLIMITED INT64_MAX // what the word `unlimited` sets, where an option has it

// Reads "64M", "1.5G" is refused; "30s", "500ms", "5m", bare = seconds. False when malformed or out of int64.
bool config_parse_size(struct view text, int64_t *bytes);
bool config_parse_time(struct view text, int64_t *milliseconds);

// `weir config`: every option, list line and timeout in force: name, value, default, unit, meaning.
void config_print(const struct config *config, FILE *out);
// The same as one JSON object: {"file", "options": [...], "lists": [...], "timeouts": [...]}.
void config_print_json(const struct config *config, FILE *out);
