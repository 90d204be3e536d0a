#include "http/compose.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void compose_init(struct composer *composer, char *data, size_t size) {
    *composer = (struct composer){.data = data, .size = size};
}

// Room for `length` bytes, now taken; NULL when there is not enough, then and ever after: a head has no
// holes.
static char *take_room(struct composer *composer, size_t length) {
    if (composer->overflow || length > composer->size - composer->length) {
        composer->overflow = true;
        return NULL;
    }
    composer->length += length;
    return composer->data + composer->length - length;
}

void compose_text(struct composer *composer, const char *text) {
    compose_view(composer, view_of(text));
}

void compose_view(struct composer *composer, struct view view) {
    char *room = take_room(composer, view.length);
    if (room && view.length > 0)
        memcpy(room, view.data, view.length);
}

void compose_format(struct composer *composer, const char *format, ...) {
    va_list arguments;
    size_t room = composer->overflow ? 0 : composer->size - composer->length;
    va_start(arguments, format);
    int length = vsnprintf(room ? composer->data + composer->length : NULL, room, format, arguments);
    va_end(arguments);
    // The NUL needs a place too.
    if (length < 0 || (size_t)length >= room)
        composer->overflow = true;
    else
        composer->length += (size_t)length;
}

void compose_field(struct composer *composer, struct view name, struct view value) {
    char *room = take_room(composer, name.length + value.length + 4);
    if (!room)
        return;
    room = mempcpy(room, name.data, name.length);
    room = mempcpy(room, ": ", 2);
    if (value.length > 0)
        room = mempcpy(room, value.data, value.length);
    memcpy(room, "\r\n", 2);
}

void compose_status_line(struct composer *composer, int status, struct view reason) {
    if (reason.length == 0)
        reason = view_of(http_reason(status));
    compose_format(composer, "HTTP/1.1 %03d ", status);
    compose_view(composer, reason);
    compose_text(composer, "\r\n");
}

void compose_end(struct composer *composer) {
    compose_text(composer, "\r\n");
}

const char *http_reason(int status) {
    switch (status) {
#define STATUS(code, reason)                                                                                 \
    case code:                                                                                               \
        return reason;
#include "http/status.tbl"
    }
    return "Unknown";
}
