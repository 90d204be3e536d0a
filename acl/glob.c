#include "acl/glob.h"

#include <string.h>

// The pieces between the first and the last `*`, each where it first occurs.
static bool match_middle(struct view glob, struct view text) {
    while (glob.length) {
        size_t length = view_find(glob, GLOB_STAR);
        if (length) {
            const char *found = text.length ? memmem(text.data, text.length, glob.data, length) : NULL;
            if (!found)
                return false;
            text = view_skip(text, (size_t)(found - text.data) + length);
        }
        glob = view_skip(glob, length + 1);
    }
    return true;
}

bool glob_match(struct view glob, struct view text) {
    size_t head = view_find(glob, GLOB_STAR);
    if (head == glob.length)
        return view_equal(glob, text);
    size_t last = (size_t)((const char *)memrchr(glob.data, GLOB_STAR, glob.length) - glob.data);
    struct view tail = view_skip(glob, last + 1);
    if (text.length < head + tail.length || !view_starts(text, view_take(glob, head)) ||
            !view_equal(view_skip(text, text.length - tail.length), tail))
        return false;
    if (last == head)
        return true;
    struct view middle = {glob.data + head + 1, last - head - 1};
    return match_middle(middle, (struct view){text.data + head, text.length - head - tail.length});
}
