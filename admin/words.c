#include "admin/words.h"

#include "admin/check.h"

struct cursor {
    struct view line;
    size_t at;
};

static bool is_blank(char byte) {
    return byte == ' ' || byte == '\t';
}

static bool at_end(const struct cursor *cursor) {
    return cursor->at == cursor->line.length || cursor->line.data[cursor->at] == '#';
}

static bool at_word_end(const struct cursor *cursor) {
    return at_end(cursor) || is_blank(cursor->line.data[cursor->at]);
}

static bool fail(struct words *words, size_t at, const char *problem) {
    words->problem = problem;
    words->problem_column = (unsigned)at + 1;
    return false;
}

static bool has_no_control_bytes(struct words *words, struct view line) {
    for (size_t i = 0; i < line.length; i++) {
        unsigned char byte = (unsigned char)line.data[i];
        if (byte == 0)
            return fail(words, i, "a NUL byte, take it out");
        if ((byte < 0x20 && byte != '\t') || byte == 0x7f)
            return fail(words, i, "a control byte, take it out");
    }
    return true;
}

static bool quoted_word(struct words *words, struct cursor *cursor) {
    size_t start = cursor->at++;
    const char *data = cursor->line.data;
    while (cursor->at < cursor->line.length && data[cursor->at] != '"') {
        if (data[cursor->at] == '\\' && cursor->at + 1 < cursor->line.length && data[cursor->at + 1] == '"')
            cursor->at++;
        words->text[words->used++] = data[cursor->at++];
    }
    if (cursor->at == cursor->line.length)
        return fail(words, start, "this quote is not closed, end the word with \"");
    cursor->at++;
    if (!at_word_end(cursor))
        return fail(words, cursor->at, "text right after a closing quote, put a blank between them");
    return true;
}

static bool bare_word(struct words *words, struct cursor *cursor) {
    for (; !at_word_end(cursor); cursor->at++) {
        if (cursor->line.data[cursor->at] == '"')
            return fail(words, cursor->at, "a quote inside a word, put the whole word in quotes");
        words->text[words->used++] = cursor->line.data[cursor->at];
    }
    return true;
}

static bool next_word(struct words *words, struct cursor *cursor) {
    if (words->count == WORDS_MAXIMUM)
        return fail(words, cursor->at, "more than 1024 words, spread them over several lines");
    words->word[words->count++] = (struct config_word){words->text + words->used, (unsigned)cursor->at + 1};
    bool good = cursor->line.data[cursor->at] == '"' ? quoted_word(words, cursor) : bare_word(words, cursor);
    // A word and the blank or end after it take at least as many bytes as its text and the NUL.
    words->text[words->used++] = '\0';
    return good;
}

bool words_split(struct words *words, struct view line) {
    CHECK(line.length <= WORDS_LINE_BYTES);
    words->count = 0;
    words->used = 0;
    words->problem = NULL;
    words->comment_column = 0;
    if (!has_no_control_bytes(words, line))
        return false;
    struct cursor cursor = {line, 0};
    while (!at_end(&cursor)) {
        if (is_blank(line.data[cursor.at]))
            cursor.at++;
        else if (!next_word(words, &cursor))
            return false;
    }
    if (cursor.at < line.length)
        words->comment_column = (unsigned)cursor.at + 1;
    return true;
}
