// One line of the configuration, cut into words.
//
// Blanks (SP, HTAB) separate words. `#` outside quotes begins a comment. A word that begins with `"` ends at
// the next `"`, keeps blanks and `#`, and stands for what is between; `\"` in it is a quote, every other
// backslash is itself. A quote elsewhere in a word, one that is not closed, a control byte (in comments too)
// and too many words are problems, never guessed at.
#pragma once

#include "admin/config.h"
#include "admin/view.h"

#include <stdbool.h>

#define WORDS_LINE_BYTES 16384 // the longest line
#define WORDS_MAXIMUM 1024     // the most words of one line

struct words {
    unsigned count;
    struct config_word word[WORDS_MAXIMUM]; // texts point into `text`
    const char *problem;                    // static text, after false
    unsigned problem_column;
    unsigned comment_column; // of its #, 0: none
    size_t used;
    char text[WORDS_LINE_BYTES + 1];
};

// `line` without its newline, at most WORDS_LINE_BYTES (CHECK). False: `problem` says what and where.
bool words_split(struct words *words, struct view line);
