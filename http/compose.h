// Writing a message head into a bounded buffer.
#pragma once

#include "http/head.h"

struct composer {
    char *data;
    size_t size;
    size_t length;
    bool overflow; // something did not fit; what was written before it stands
};

void compose_init(struct composer *composer, char *data, size_t size);
void compose_text(struct composer *composer, const char *text);
void compose_view(struct composer *composer, struct view view);
void compose_format(struct composer *composer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void compose_field(struct composer *composer, struct view name, struct view value); // "name: value\r\n"
void compose_status_line(
        struct composer *composer, int status, struct view reason); // empty reason: the standard one
void compose_end(struct composer *composer);                        // the empty line

// The standard reason phrase, "Unknown" for a status that has none [RFC 9110 §15].
const char *http_reason(int status);
