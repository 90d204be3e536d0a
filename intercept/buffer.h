// Bytes between a socket and a parser: a bounded, growing run of bytes, filled at the end and taken from the
// front. Holds no memory while it is empty and released.
#pragma once

#include "admin/view.h"

#include <sys/types.h>

struct buffer {
    char *data;
    size_t start; // first byte that was not taken
    size_t end;
    size_t size; // allocated
};

static inline size_t buffer_length(const struct buffer *buffer) {
    return buffer->end - buffer->start;
}

static inline struct view buffer_view(const struct buffer *buffer) {
    return (struct view){buffer->data ? buffer->data + buffer->start : "", buffer_length(buffer)};
}

// Makes room for `want` more bytes, moving or growing; the whole content may not exceed `limit`. How many
// bytes may be put at buffer->data + buffer->end (0: the limit is reached, or there is no memory). Views into
// the buffer end here.
size_t buffer_reserve(struct buffer *buffer, size_t want, size_t limit);

// Appends all of it, or nothing (false: over `limit` or no memory).
bool buffer_append(struct buffer *buffer, struct view bytes, size_t limit);

// Drops `count` bytes from the front. An emptied buffer starts over at its beginning.
void buffer_take(struct buffer *buffer, size_t count);

// recv(2) of at most `want` bytes. Bytes read, 0 at the end of the stream, -errno; -ENOBUFS when `limit`
// leaves no room.
ssize_t buffer_receive(struct buffer *buffer, int fd, size_t want, size_t limit);

// send(2) from the front, once. Bytes sent (taken off), or -errno.
ssize_t buffer_send(struct buffer *buffer, int fd);

// Frees the memory, with what it holds.
void buffer_release(struct buffer *buffer);

// Hands the memory over (to be freed by the caller), with what lies behind the first `length` bytes copied
// into a fresh buffer. The bytes handed over begin at the returned pointer + *offset. NULL without memory:
// nothing changed.
char *buffer_detach(struct buffer *buffer, size_t length, size_t *offset);
