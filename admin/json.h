// JSON texts. [RFC 8259 §7]
#pragma once

#include "admin/view.h"

#include <stddef.h>
#include <stdio.h>

// Writes `text` as the inside of a JSON string: quote, backslash and control bytes escaped, valid UTF-8 as it
// is, every byte that is not part of valid UTF-8 as \ufffd. At most `room` bytes, no NUL, never half an
// escape or character: what does not fit is left out. Returns the bytes written.
size_t json_escape(struct view text, char *out, size_t room);

// The same with quotes around it, whole.
void json_print(struct view text, FILE *out);
