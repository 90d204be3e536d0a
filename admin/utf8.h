// UTF-8. [RFC 3629 §4]
#pragma once

#include "admin/view.h"

// The length of the well-formed character at the start of `text`, which is not empty; 0 when there is none.
size_t utf8_length(struct view text);
