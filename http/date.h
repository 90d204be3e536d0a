// HTTP-date in its three forms, [RFC 9110 §5.6.7].
#pragma once

#include "admin/view.h"

// Seconds since 1970-01-01 UTC, or -1 for anything that is no HTTP-date. `now_s` resolves two-digit years
// (more than 50 years ahead is the past). Names fold case [RFC 9111 §4.2]; the day's name need not be the
// right one. A date before 1970 is 0: long ago.
int64_t date_parse(struct view text, int64_t now_s);

#define DATE_BYTES 30 // "Sun, 06 Nov 1994 08:49:37 GMT" and NUL
// Clamped to 1970 and 9999. Returns `out`.
char *date_print(int64_t seconds, char out[static DATE_BYTES]);
