#include "admin/config_loader.h"

static void line_error(struct loader *loader, unsigned line, unsigned column, const char *problem) {
    struct directive place = {.file = loader->source->name, .line = line, .column = column};
    config_error(loader->errors, &place, -1, "%s", problem);
}

static void read_line(struct loader *loader, struct view text, unsigned line) {
    struct words *words = &loader->words;
    if (text.length && text.data[text.length - 1] == '\r')
        text.length--;
    if (text.length > WORDS_LINE_BYTES) {
        line_error(loader, line, WORDS_LINE_BYTES + 1, "a line of more than 16384 bytes, split it");
        return;
    }
    if (!words_split(words, text)) {
        line_error(loader, line, words->problem_column, words->problem);
        return;
    }
    if (words->count == 0)
        return;
    struct directive directive = {.file = loader->source->name,
            .line = line,
            .column = words->word[0].column,
            .comment = words->comment_column,
            .word_count = words->count - 1,
            .words = words->word + 1};
    directive_apply(loader, &directive, words->word[0].text);
}

void loader_read_lines(struct loader *loader, const struct source *source, struct view text) {
    const struct source *includer = loader->source;
    loader->source = source;
    if (view_starts(text, VIEW("\xef\xbb\xbf"))) // a byte order mark, as some editors leave it
        text = view_skip(text, 3);
    for (unsigned line = 1; text.length && loader_goes_on(loader); line++) {
        struct view one = view_take(text, view_find(text, '\n'));
        text = view_skip(text, one.length + 1);
        read_line(loader, one, line);
    }
    loader->source = includer;
}
