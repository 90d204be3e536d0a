// URI references in response fields (Location, Content-Location), resolved against the target they answer
// for, [RFC 3986 §4.1, §5].
#pragma once

#include "admin/view.h"
#include "http/target.h"

#include <stdbool.h>

#define REFERENCE_BYTES 8192 // of authority and path together; longer ones are not resolved

struct reference_target {
    struct view authority; // normalised (http/target.h)
    struct view path;      // path and query; at least "/"
};

// Resolves `reference` against http://AUTHORITY PATH, the authority normalised, the path with its query. A
// fragment is left out. The result's views point into `buffer`. False when it names nothing of scheme http,
// its authority is none, or it is too long.
bool reference_resolve(struct view authority, struct view path, struct view reference,
        char buffer[static REFERENCE_BYTES], struct reference_target *target);
