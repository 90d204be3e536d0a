// The URL that an admin names on the command line, to `weir explain` and `weir purge`. Pure.
#pragma once

#include "http/target.h"

struct url_argument {
    struct authority authority;
    struct view path; // path and query as written, without a fragment; may be empty or begin with "?"
};

// NULL, or what is wrong with it and what to write instead, a static sentence.
const char *url_argument_read(struct view text, struct url_argument *url);
