// One field line. Lookups by id are in http/head.h.
#pragma once

#include "http/head.h"

// The flags of http/field.tbl; 0 for FIELD_OTHER.
unsigned field_flags(enum field_id id);

// Reads "name: value" (without CRLF) into `field`. NULL, or a static sentence that says what is wrong.
const char *field_parse(struct view line, struct http_field *field);
