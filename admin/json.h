// JSON strings. [RFC 8259 §7]
#pragma once

#include "admin/view.h"

#include <stddef.h>
#include <stdio.h>

#define JSON_PIECE_BYTES 8 // the longest escape is \u00xx

// Writes what stands for the first character of `text` (not empty) inside a JSON string: quote, backslash and
// control characters (C1 too) escaped, other UTF-8 as it is, a byte that is not part of valid UTF-8 as
// \ufffd. Its length goes to *length; returns how many bytes of `text` it stands for.
size_t json_escape_one(struct view text, char piece[static JSON_PIECE_BYTES], size_t *length);

// All of it, with quotes around.
void json_print(struct view text, FILE *out);
