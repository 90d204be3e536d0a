#include "admin/config.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 768

// Cuts at what fits, makes one line of it, and ends it with a newline.
static size_t finish_line(char *text, size_t length) {
    if (length > TEXT_BYTES - 2)
        length = TEXT_BYTES - 2;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            text[i] = '?';
    text[length++] = '\n';
    text[length] = '\0';
    return length;
}

static void keep(struct config_errors *errors, const char *line, size_t length) {
    char *grown = realloc(errors->text, errors->length + length + 1);
    if (!grown)
        return;
    memcpy(grown + errors->length, line, length + 1);
    errors->text = grown;
    errors->length += length;
}

void config_error(
        struct config_errors *errors, const struct directive *directive, int word, const char *format, ...) {
    char line[TEXT_BYTES];
    if (errors->count++ >= CONFIG_ERRORS_KEPT)
        return;
    bool is_word = word >= 0 && (unsigned)word < directive->word_count;
    unsigned column = is_word ? directive->words[word].column : directive->column;
    int length = snprintf(line, sizeof line, "%.255s:%u:%u: ", directive->file, directive->line, column);
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(line + length, sizeof line - (size_t)length, format, arguments);
    va_end(arguments);
    keep(errors, line, finish_line(line, (size_t)length + (more > 0 ? (size_t)more : 0)));
}

const char *config_comment_hint(const struct directive *directive) {
    return directive->comment ? "; a # begins a comment, put a word that has one in quotes" : "";
}

void config_errors_fini(struct config_errors *errors) {
    free(errors->text);
    *errors = (struct config_errors){0};
}

void config_errors_print(const struct config_errors *errors, FILE *out) {
    if (errors->text)
        fputs(errors->text, out);
    if (errors->count > CONFIG_ERRORS_KEPT)
        fprintf(out, "%u more not shown; correct these first\n", errors->count - CONFIG_ERRORS_KEPT);
}
