// What of a representation is there, as runs of bytes that other objects hold. Made whole and never changed
// while anybody reads it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cache_object;

#define SPANS_MAX 32 // of one response; beyond it the smallest goes

struct span {
    uint64_t first, last;        // both included
    struct cache_object *source; // counted; its own content holds them and does not change any more
};

struct spans { // ascending and disjoint
    unsigned count;
    struct span all[SPANS_MAX + 1]; // one more while it is made
};

struct spans *spans_new(void);
void spans_free(struct spans *spans); // gives the sources back: hold no lock. NULL is allowed

// Adds what is not there yet of first...last; spans that lie within it go. Both hold the same bytes wherever
// both have some.
void spans_add(struct spans *spans, uint64_t first, uint64_t last, struct cache_object *source);
// All of another's, up to and without the byte at `end`.
void spans_add_all(struct spans *spans, const struct spans *other, uint64_t end);

// The span that holds the byte at `offset`; NULL: none does.
const struct span *spans_find(const struct spans *spans, uint64_t offset);
// Where the run of bytes from `offset` on that is there without a hole ends (the offset behind it).
uint64_t spans_end(const struct spans *spans, uint64_t offset);
