// One connection of a client, and the responses on it: heads, and content freed of its framing.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_BYTES 65536

enum progress {
    WIRE_OK,
    WIRE_END,    // of the content, as its framing says
    WIRE_CLOSED, // by the other side, or broken, in the middle of something
    WIRE_HANGS,
    WIRE_BAD, // no HTTP
};

struct wire {
    int fd; // -1: not connected
    unsigned hang_s;
    size_t from, to; // what is in `bytes`
    bool is_chunked;
    bool in_chunk;   // its end is still to be read
    bool is_endless; // ends with the connection
    bool ends;       // the connection, with this response
    bool is_first;   // nothing has come on it yet
    uint64_t left;   // of the content, or of the chunk
    char head[8192]; // of the last response; ends with "\r\n"
    unsigned char bytes[WIRE_BYTES];
};

bool wire_connect(struct wire *wire, uint16_t port, int receive_bytes); // 0: the usual buffer
void wire_close(struct wire *wire);
enum progress wire_send(struct wire *wire, const char *bytes, size_t length);
enum progress wire_head(struct wire *wire, bool is_answer_to_head); // final heads alone
// The next content, at most `most` bytes of it: OK with 0 < *length, else END, CLOSED, HANGS or BAD.
enum progress wire_content(struct wire *wire, size_t most, const unsigned char **bytes, size_t *length);
int wire_status(const struct wire *wire);
// A field's value, to be read up to its "\r"; NULL: not there.
const char *wire_field(const struct wire *wire, const char *name);
