#include "admin/nearest.h"

#include <limits.h>
#include <stdio.h>

static unsigned least(unsigned a, unsigned b) {
    return a < b ? a : b;
}

static bool is_same(struct view a, size_t i, struct view b, size_t j) {
    return view_lower(a.data[i]) == view_lower(b.data[j]);
}

// Optimal string alignment; `row[0]` is the line being filled, `row[1]` and `row[2]` those before it.
unsigned nearest_distance(struct view a, struct view b) {
    unsigned rows[3][NEAREST_NAME_BYTES + 1];
    unsigned *row[3] = {rows[0], rows[1], rows[2]};
    if (a.length > NEAREST_NAME_BYTES || b.length > NEAREST_NAME_BYTES)
        return UINT_MAX;
    for (size_t j = 0; j <= b.length; j++)
        row[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a.length; i++) {
        unsigned *oldest = row[2];
        row[2] = row[1], row[1] = row[0], row[0] = oldest;
        row[0][0] = (unsigned)i;
        for (size_t j = 1; j <= b.length; j++) {
            unsigned changed = row[1][j - 1] + !is_same(a, i - 1, b, j - 1);
            row[0][j] = least(changed, least(row[1][j], row[0][j - 1]) + 1);
            if (i > 1 && j > 1 && is_same(a, i - 1, b, j - 2) && is_same(a, i - 2, b, j - 1))
                row[0][j] = least(row[0][j], row[2][j - 2] + 1);
        }
    }
    return row[0][b.length];
}

struct nearest nearest_to(const char *wanted) {
    struct view view = view_of(wanted);
    unsigned most = view.length < 3 ? 1 : (unsigned)(view.length / 3);
    return (struct nearest){view, NULL, most + 1};
}

void nearest_offer(struct nearest *nearest, const char *name) {
    unsigned distance = nearest_distance(nearest->wanted, view_of(name));
    if (distance >= nearest->distance)
        return;
    nearest->distance = distance;
    nearest->name = name;
}

const char *nearest_hint(const struct nearest *nearest, char out[static NEAREST_HINT_BYTES]) {
    out[0] = '\0';
    if (nearest->name)
        snprintf(out, NEAREST_HINT_BYTES, " (did you mean %s?)", nearest->name);
    return out;
}
