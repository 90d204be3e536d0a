// Regular expressions over URLs: the one door to PCRE2. Perl's syntax, bytes rather than characters (UTF is
// refused), no newline is special. Compiled once, then never changed: any thread may match at the same time;
// what a match needs is kept for each thread until it ends.
//
// No expression can hold a worker up: a match that takes more steps, depth or memory than the bounds below
// ends as PATTERN_GAVE_UP. Matching is compiled to machine code where the process may make any
// (MemoryDenyWriteExecute= of a unit forbids it), and interpreted otherwise, with the same results.
#pragma once

#include "admin/config.h"
#include "admin/view.h"

#include <stdbool.h>
#include <stddef.h>

#define PATTERN_BYTES_MAX 4096    // of an expression
#define PATTERN_STEPS_MAX 200000  // of one match; some milliseconds
#define PATTERN_DEPTH_MAX 20000   // of backtracking
#define PATTERN_HEAP_KIB_MAX 4096 // kept for each thread that once needed them
#define PATTERN_PROBLEM_BYTES 160

struct pattern;

struct pattern_error {
    char problem[PATTERN_PROBLEM_BYTES]; // what is wrong, in words
    size_t offset;                       // in bytes, where it was found
};

enum pattern_match {
    PATTERN_MATCHES,
    PATTERN_DIFFERS,
    PATTERN_GAVE_UP, // a bound above was reached, or there is no memory
};

// NULL: `error` is filled.
struct pattern *pattern_new(struct view text, bool ignore_case, struct pattern_error *error);
void pattern_free(struct pattern *pattern); // NULL is allowed

// Whether it matches anywhere in `subject`, which may hold any bytes.
enum pattern_match pattern_match(const struct pattern *pattern, struct view subject);

size_t pattern_bytes(const struct pattern *pattern);
// Adds an error about word `word` of the directive, at the column of what is wrong in it.
void pattern_report(struct config_errors *errors, const struct directive *directive, unsigned word,
        const struct pattern_error *error);
