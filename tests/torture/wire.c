#include "tests/torture/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool wire_connect(struct wire *wire, uint16_t port, int receive_bytes) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    wire->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    wire->from = wire->to = 0;
    wire->is_first = true;
    if (wire->fd < 0)
        return false;
    struct timeval bound = {wire->hang_s, 0};
    setsockopt(wire->fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
    setsockopt(wire->fd, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof bound);
    setsockopt(wire->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (receive_bytes > 0)
        setsockopt(wire->fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    if (connect(wire->fd, (struct sockaddr *)&address, sizeof address) == 0)
        return true;
    wire_close(wire);
    return false;
}

void wire_close(struct wire *wire) {
    if (wire->fd >= 0)
        close(wire->fd);
    wire->fd = -1;
}

enum progress wire_send(struct wire *wire, const char *bytes, size_t length) {
    ssize_t sent = send(wire->fd, bytes, length, MSG_NOSIGNAL);
    if (sent == (ssize_t)length)
        return WIRE_OK;
    return sent >= 0 || errno == EAGAIN ? WIRE_HANGS : WIRE_CLOSED;
}

static enum progress receive(struct wire *wire) {
    if (wire->from == wire->to)
        wire->from = wire->to = 0;
    if (wire->to == WIRE_BYTES) {
        memmove(wire->bytes, wire->bytes + wire->from, wire->to - wire->from);
        wire->to -= wire->from, wire->from = 0;
    }
    if (wire->to == WIRE_BYTES)
        return WIRE_BAD;
    ssize_t got;
    do
        got = recv(wire->fd, wire->bytes + wire->to, WIRE_BYTES - wire->to, 0);
    while (got < 0 && errno == EINTR);
    if (got > 0) {
        wire->to += (size_t)got;
        wire->is_first = false;
        return WIRE_OK;
    }
    return got < 0 && errno == EAGAIN ? WIRE_HANGS : WIRE_CLOSED;
}

int wire_status(const struct wire *wire) {
    return atoi(wire->head + 9);
}

const char *wire_field(const struct wire *wire, const char *name) {
    size_t length = strlen(name);
    for (const char *at = strstr(wire->head, "\r\n"); at && at[2]; at = strstr(at + 2, "\r\n"))
        if (strncasecmp(at + 2, name, length) == 0 && at[2 + length] == ':')
            return at + 2 + length + 1 + strspn(at + 2 + length + 1, " \t");
    return NULL;
}

static bool says(const struct wire *wire, const char *name, const char *value) {
    const char *field = wire_field(wire, name);
    return field && strncasecmp(field, value, strlen(value)) == 0;
}

static bool frame(struct wire *wire, bool is_answer_to_head) {
    const char *length = wire_field(wire, "Content-Length");
    int status = wire_status(wire);
    wire->is_chunked = says(wire, "Transfer-Encoding", "chunked");
    wire->in_chunk = false;
    wire->left = length ? strtoull(length, NULL, 10) : 0;
    wire->ends = says(wire, "Connection", "close") || strncmp(wire->head, "HTTP/1.0", 8) == 0;
    wire->is_endless = !length && !wire->is_chunked;
    if (is_answer_to_head || status == 304 || status == 204)
        wire->is_chunked = wire->is_endless = false, wire->left = 0;
    if (wire->is_chunked && length)
        return false;
    wire->ends = wire->ends || wire->is_endless;
    return true;
}

enum progress wire_head(struct wire *wire, bool is_answer_to_head) {
    for (;;) {
        unsigned char *from = wire->bytes + wire->from;
        unsigned char *end = memmem(from, wire->to - wire->from, "\r\n\r\n", 4);
        if (!end) {
            enum progress result = receive(wire);
            if (result != WIRE_OK)
                return result;
            continue;
        }
        size_t length = (size_t)(end - from) + 2;
        if (length >= sizeof wire->head || strncmp((char *)from, "HTTP/1.", 7) != 0)
            return WIRE_BAD;
        memcpy(wire->head, from, length);
        wire->head[length] = 0;
        wire->from += length + 2;
        if (wire_status(wire) >= 200)
            return frame(wire, is_answer_to_head) ? WIRE_OK : WIRE_BAD;
    }
}

static enum progress line(struct wire *wire, char text[static 64]) {
    for (;;) {
        unsigned char *from = wire->bytes + wire->from, *end = memmem(from, wire->to - wire->from, "\r\n", 2);
        if (end && end - from < 63) {
            memcpy(text, from, (size_t)(end - from));
            text[end - from] = 0;
            wire->from += (size_t)(end - from) + 2;
            return WIRE_OK;
        }
        enum progress result = end ? WIRE_BAD : receive(wire);
        if (result != WIRE_OK)
            return result;
    }
}

static enum progress begin_chunk(struct wire *wire) {
    char text[64], *end;
    enum progress result = line(wire, text);
    if (result != WIRE_OK)
        return result;
    wire->left = strtoull(text, &end, 16);
    if (end == text)
        return WIRE_BAD;
    if (wire->left > 0)
        return WIRE_OK;
    wire->is_chunked = false;
    result = line(wire, text);
    return result != WIRE_OK ? result : text[0] ? WIRE_BAD : WIRE_END;
}

static enum progress end_chunk(struct wire *wire) {
    char text[64];
    enum progress result = line(wire, text);
    return result == WIRE_OK && text[0] ? WIRE_BAD : result;
}

enum progress wire_content(struct wire *wire, size_t most, const unsigned char **bytes, size_t *length) {
    enum progress result = WIRE_OK;
    *length = 0;
    if (wire->is_chunked && wire->left == 0 && wire->in_chunk)
        wire->in_chunk = false, result = end_chunk(wire);
    if (wire->is_chunked && wire->left == 0 && result == WIRE_OK)
        wire->in_chunk = true, result = begin_chunk(wire);
    if (result == WIRE_OK && wire->left == 0 && !wire->is_endless)
        return WIRE_END;
    if (result == WIRE_OK && wire->from == wire->to)
        result = receive(wire);
    if (result != WIRE_OK)
        return wire->is_endless && result == WIRE_CLOSED ? WIRE_END : result;
    size_t there = wire->to - wire->from;
    there = there < most ? there : most;
    if (!wire->is_endless)
        there = there < wire->left ? there : wire->left, wire->left -= there;
    *bytes = wire->bytes + wire->from;
    *length = there;
    wire->from += there;
    return WIRE_OK;
}
