// Comma lists [RFC 9110 §5.6.1].
#pragma once

#include "http/head.h"

struct list {
    struct view rest; // set to the whole, the other members zero
    bool is_broken;   // a quoted string had no end: quotes no longer count
};

// Takes the next member off the front, without blanks at its ends. Empty members are passed over. Commas in
// quoted strings do not divide; from a quoted string without an end on every comma does, so that nothing can
// hide in it. False when there is no further member. Linear over a whole list.
bool list_next(struct list *list, struct view *member);

// The same over all lines of a field, in order. Zero the walk but for `head` and `id`.
struct list_walk {
    const struct http_head *head;
    enum field_id id;
    unsigned index; // of the next line
    struct list line;
};
bool list_walk_next(struct list_walk *walk, struct view *member);
