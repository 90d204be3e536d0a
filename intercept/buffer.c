#include "intercept/buffer.h"

#include "admin/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define FIRST_BYTES 4096

size_t buffer_reserve(struct buffer *buffer, size_t want, size_t limit) {
    size_t length = buffer_length(buffer);
    if (length >= limit)
        return 0;
    if (want > limit - length)
        want = limit - length;
    if (buffer->size - buffer->end >= want)
        return want;
    if (buffer->start > 0) {
        memmove(buffer->data, buffer->data + buffer->start, length);
        buffer->start = 0;
        buffer->end = length;
        if (buffer->size - length >= want)
            return want;
    }
    size_t size = buffer->size ? buffer->size : FIRST_BYTES;
    while (size - length < want)
        size *= 2;
    char *data = realloc(buffer->data, size);
    if (!data)
        return buffer->size - length;
    buffer->data = data;
    buffer->size = size;
    return want;
}

bool buffer_append(struct buffer *buffer, struct view bytes, size_t limit) {
    if (bytes.length == 0)
        return true;
    if (buffer_reserve(buffer, bytes.length, limit) < bytes.length)
        return false;
    memcpy(buffer->data + buffer->end, bytes.data, bytes.length);
    buffer->end += bytes.length;
    return true;
}

void buffer_take(struct buffer *buffer, size_t count) {
    CHECK(count <= buffer_length(buffer));
    buffer->start += count;
    if (buffer->start == buffer->end)
        buffer->start = buffer->end = 0;
}

ssize_t buffer_receive(struct buffer *buffer, int fd, size_t want, size_t limit) {
    size_t room = buffer_reserve(buffer, want, limit);
    if (room == 0)
        return -ENOBUFS;
    ssize_t got = recv(fd, buffer->data + buffer->end, room, 0);
    if (got < 0)
        return -errno;
    buffer->end += (size_t)got;
    return got;
}

ssize_t buffer_send(struct buffer *buffer, int fd) {
    struct view bytes = buffer_view(buffer);
    ssize_t sent = send(fd, bytes.data, bytes.length, MSG_NOSIGNAL);
    if (sent < 0)
        return -errno;
    buffer_take(buffer, (size_t)sent);
    return sent;
}

void buffer_release(struct buffer *buffer) {
    free(buffer->data);
    *buffer = (struct buffer){0};
}

char *buffer_detach(struct buffer *buffer, size_t length, size_t *offset) {
    struct buffer rest = {0};
    struct view behind = view_skip(buffer_view(buffer), length);
    if (!buffer_append(&rest, behind, behind.length))
        return NULL;
    char *data = buffer->data;
    *offset = buffer->start;
    *buffer = rest;
    return data;
}
