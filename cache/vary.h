// Selecting fields, [RFC 9111 §4.1]: one URL, several variants. A response's Vary becomes a list of names;
// that list and a request become a text of values, and two requests select the same variant when their texts
// are equal.
#pragma once

#include "http/head.h"

#define VARY_NAMES_MAX 32         // more: not stored
#define VARY_NAMES_BYTES 1024     // "accept-encoding,cookie": lower case, sorted, without repeats
#define VARY_SELECTORS_BYTES 4096 // longer: not stored, and matches nothing

// Writes the names into `out` and returns true; empty without Vary. False for "*" and for too many.
bool vary_names(const struct http_head *response, char out[static VARY_NAMES_BYTES], struct view *names);

// Writes a request's values of `names` into `out`: blanks made one, none next to a comma, lines joined by
// commas; a field that is not there differs from an empty one. False when they do not fit.
bool vary_select(struct view names, const struct http_head *request, char out[static VARY_SELECTORS_BYTES],
        struct view *selectors);

// Whether the request selects the variant stored with these.
bool vary_matches(struct view names, struct view selectors, const struct http_head *request);
