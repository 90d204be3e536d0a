// Quality values [RFC 9110 §12.4.2] of the members of Accept, Accept-Charset, Accept-Encoding and
// Accept-Language.
#pragma once

#include "admin/view.h"

#define WEIGHT_ONE 1000

// "0", "0.5", "1.000": thousandths. False for anything else.
bool weight_parse(struct view text, unsigned *weight);

// A member's text before its first ";" (trimmed) and its weight, WEIGHT_ONE without a "q". False when that
// cannot be read, or is there twice. Other parameters are passed over; a ";" in a quoted string divides
// nothing.
bool weight_of_member(struct view member, struct view *name, unsigned *weight);

// Cuts the next ";"-divided part off the front, trimmed. False at the end.
bool weight_next_part(struct view *rest, struct view *part);
