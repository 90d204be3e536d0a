// "Did you mean": the name nearest to a mistyped one.
#pragma once

#include "admin/view.h"

#define NEAREST_NAME_BYTES 48 // longer names are never suggested for, nor suggested

// How many letters must be put in, taken out, changed or swapped with their neighbour to get from one to the
// other, ASCII case ignored; a large number when either is too long.
unsigned nearest_distance(struct view a, struct view b);

// A search: offer every name, then read `name` (NULL: none is near enough). Near enough is a third of the
// wanted text, at least one letter.
struct nearest {
    struct view wanted;
    const char *name;
    unsigned distance;
};

struct nearest nearest_to(const char *wanted);
void nearest_offer(struct nearest *nearest, const char *name);

// " (did you mean NAME?)" or "", into `out`. Returns `out`.
#define NEAREST_HINT_BYTES (NEAREST_NAME_BYTES + 24)
const char *nearest_hint(const struct nearest *nearest, char out[static NEAREST_HINT_BYTES]);
