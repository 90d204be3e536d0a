// Wildcards. In a compiled glob each `*` is a NUL byte (a run of them is one); every other byte stands for
// itself. NUL cannot come from a configuration or from a request line, so no escape is needed.
#pragma once

#include "admin/view.h"

#define GLOB_STAR '\0'

// Whether the whole text matches. Never goes back: the first piece is held against the start, the last
// against the end, and each between them is taken where it first occurs, which is enough because `*` is the
// only wildcard. Linear in the length of the text.
bool glob_match(struct view glob, struct view text);

static inline bool glob_is_literal(struct view glob) {
    return view_find(glob, GLOB_STAR) == glob.length;
}
