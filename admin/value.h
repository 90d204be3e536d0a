// Values as the configuration writes them: numbers, sizes, times.
#pragma once

#include "admin/view.h"

#include <stdint.h>

enum value_result {
    VALUE_GOOD,
    VALUE_MALFORMED,
    VALUE_RANGE, // well formed, and outside of what is allowed (or of int64)
};

// Decimal digits, or 0x and hexadecimal ones. A minus sign before decimal digits is VALUE_RANGE: nothing here
// is negative.
enum value_result value_number(struct view text, int64_t *number);
// Decimal digits, then nothing (bytes), K, M, G or T (powers of 1024), in either case.
enum value_result value_size(struct view text, int64_t *bytes);
// Decimal digits, then ms, s, m, h, d, w (in lower case), or nothing (seconds).
enum value_result value_time(struct view text, int64_t *milliseconds);

// The same, with y (365 days) as well, and nothing means days.
enum value_result value_age(struct view text, int64_t *milliseconds);

// The shortest exact form that reads back as the same value: "64M", "90s", "0".
#define VALUE_TEXT_BYTES 32
char *value_print_size(int64_t bytes, char out[static VALUE_TEXT_BYTES]);
char *value_print_time(int64_t milliseconds, char out[static VALUE_TEXT_BYTES]);
