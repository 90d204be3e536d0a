#include "http/head.h"
#include "http/octet.h"

#define SLACK_BYTES 256 // above the target limit
#define EMPTY_BYTES 64  // of blanks and line ends before the first line

static const struct view preface = {"PRI * HTTP/2.0\r\n", 16};

// What lenient servers skip before a request line.
static bool is_filler(char byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static bool is_control(char byte) {
    return ((unsigned char)byte < ' ' && !is_filler(byte)) || byte == 0x7f;
}

// "HTTP/" in any case, not at the start. Compared from its end: slow starters have this run at every byte.
static bool names_http(struct view line) {
    for (size_t i = 5; i < line.length; i++)
        if (line.data[i] == '/' && (line.data[i - 1] | 0x20) == 'p' &&
                view_equal_fold((struct view){line.data + i - 4, 4}, VIEW("HTTP")))
            return true;
    return false;
}

// Upper case in a copy of the method: servers that fold it exist.
static bool is_known_method(struct view word) {
    char folded[HTTP_METHOD_BYTES];
    if (word.length > sizeof folded)
        return false;
    for (size_t i = 0; i < word.length; i++)
        folded[i] = word.data[i] >= 'a' && word.data[i] <= 'z' ? (char)(word.data[i] - 32) : word.data[i];
    return http_method_id((struct view){folded, word.length}) != METHOD_OTHER;
}

static bool is_text(struct view line) {
    for (size_t i = 0; i < line.length; i++)
        if (is_control(line.data[i]))
            return false;
    return true;
}

// The first line has not ended. Once it has a word and a blank it may be a request with a method we do not
// know, and the version at its end is awaited; a control byte before that is no text protocol's.
static enum sniff sniff_unfinished(struct view line, size_t word_length, bool is_over) {
    bool has_blank = word_length < line.length && is_filler(line.data[word_length]);
    if (!has_blank && word_length < line.length && !is_text(line))
        return SNIFF_OTHER;
    if (is_over)
        return has_blank ? SNIFF_HTTP : SNIFF_OTHER;
    return SNIFF_MORE;
}

enum sniff http_sniff(struct view input, size_t target_bytes) {
    if (input.length < preface.length ? view_starts(preface, input) : view_starts(input, preface))
        return input.length < preface.length ? SNIFF_MORE : SNIFF_OTHER;
    bool is_over = input.length > target_bytes + SLACK_BYTES;
    struct view line = view_take(input, target_bytes + SLACK_BYTES + 1);
    while (line.length > 0 && is_filler(line.data[0]))
        line = view_skip(line, 1);
    if (line.length == 0)
        return is_over || input.length > EMPTY_BYTES ? SNIFF_HTTP : SNIFF_MORE;
    size_t end = view_find(line, '\n');
    bool is_finished = end < line.length;
    line = view_take(line, end);
    size_t word_length = octet_run(line, OCTET_TOKEN);
    bool has_method = word_length < line.length && is_filler(line.data[word_length]) &&
                      is_known_method(view_take(line, word_length));
    if (has_method || names_http(line))
        return SNIFF_HTTP;
    if (word_length == 0)
        return SNIFF_OTHER;
    return is_finished ? SNIFF_OTHER : sniff_unfinished(line, word_length, is_over);
}
