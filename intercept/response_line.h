// The lines store_type, no_store_type, store_status and no_store_status: one rule for each of their words, in
// the file's order, of which the first that matches a response decides. A word that can change nothing is an
// error: one that an earlier word covers, and one that stores what no later word keeps out. Pure.
#pragma once

#include "admin/config.h"
#include "cache/rules.h"

struct response_place { // where a rule was written; the configuration's
    const struct directive *directive;
    unsigned word;
};

struct response_lines {
    struct response_rule *rules; // types are on the heap, one each
    struct response_place *places;
    size_t count, room;
};

bool response_line_is_one(const struct directive *directive);

bool response_lines_init(struct response_lines *lines, size_t room); // false: no memory
void response_lines_fini(struct response_lines *lines);

// Adds the words of one such line. False: errors were added, and its good words all the same.
bool response_lines_add(
        struct response_lines *lines, const struct directive *directive, struct config_errors *errors);

// After the last line, when all were good: whether each word that stores is an exception from a later one.
bool response_lines_check(const struct response_lines *lines, struct config_errors *errors);
