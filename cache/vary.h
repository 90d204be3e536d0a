// Selecting fields, [RFC 9111 §4.1]: one URL, several variants. A response's Vary becomes a list of names;
// that list and a request become a text of values, and two requests select the same variant when their texts
// are equal.
#pragma once

#include "cache/stored_head.h"

#define VARY_NAMES_MAX 32         // more: not stored
#define VARY_NAMES_BYTES 1024     // "accept-encoding,cookie": lower case, sorted, without repeats
#define VARY_SELECTORS_BYTES 4096 // longer: not stored, and matches nothing

// Writes the names into `out` and returns true; empty without Vary. False for "*" and for too many.
bool vary_names(const struct http_head *response, char out[static VARY_NAMES_BYTES], struct view *names);

// Writes a request's values of `names` into `out`. Accept, Accept-Charset, Accept-Encoding and
// Accept-Language: their members sorted, each once, names folded, "q=1" left out; "x-gzip" is "gzip". Others:
// blanks made one, none next to a comma, lines joined by commas. A field that is not there differs from an
// empty one: without Accept-Encoding every coding will do, with an empty one none [RFC 9110 §12.5.3]. False
// when they do not fit.
bool vary_select(struct view names, const struct http_head *request, char out[static VARY_SELECTORS_BYTES],
        struct view *selectors);

// Whether the request selects the variant stored with these.
bool vary_matches(struct view names, struct view selectors, const struct http_head *request);

enum vary_rank {    // in ascending order
    VARY_OTHER,     // not for this request
    VARY_ANY,       // without Vary, and so for any request; the origin may have left it out by mistake
    VARY_PREFERRED, // selected by another text, but it is in the one language that the request puts above all
                    // others
    VARY_SELECTED,
};

// How well a stored response fits a request. A response in exactly the language of the highest weight in
// Accept-Language fits, whatever else was accepted when it was stored. All other fields must match.
enum vary_rank vary_rank(struct view names, struct view selectors, const struct http_head *request,
        const struct http_head *response);

// Whether both were selected by the same fields with the same values.
bool vary_is_same(const struct stored_head *a, const struct stored_head *b);

// The best of several, among equals the most recent by Date: its index, -1 for none.
int vary_choose(const struct stored_head *const *stored, unsigned count, const struct http_head *request);
