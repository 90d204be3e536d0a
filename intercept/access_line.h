// One line of the access log, in each of its formats. Pure: what it needs stands in the entry.
//
// Everything a peer sent is escaped, so that a line is one line, its columns are its columns and JSON is
// JSON: control bytes, quotes, backslashes, DEL, C1 controls and bytes that are no UTF-8 become \xNN, in the
// squid format blanks too; in JSON as admin/json.h says. A value that is longer than its share of the line
// ends in "...".
#pragma once

#include "intercept/access_log.h"

#define ACCESS_LINE_BYTES 16384 // a line with its newline is never longer

enum access_format {
    ACCESS_COMMON,   // HOST - - [TIME] "METHOD URL HTTP/1.N" STATUS BODY-BYTES
    ACCESS_COMBINED, // the same, "REFERER" "USER-AGENT"
    ACCESS_SQUID,    // TIME ELAPSED CLIENT RESULT/STATUS BYTES METHOD URL - HIERARCHY/PEER TYPE
    ACCESS_JSON,     // one object a line
};
#define ACCESS_FORMAT_COUNT 4

bool access_format_find(const char *word, enum access_format *format); // letter case does not matter

// Writes the line and its newline; the length.
size_t access_line_format(
        enum access_format format, const struct access_entry *entry, char out[static ACCESS_LINE_BYTES]);
