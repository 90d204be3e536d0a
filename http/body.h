// Bodies: takes the framing off a run of bytes as they arrive, [RFC 9112 §7.1]. Copies no content; holds only
// the trailer section, bounded.
#pragma once

#include "http/framing.h"

#define BODY_TRAILER_BYTES 8192    // a longer trailer section is refused
#define BODY_CHUNK_LINE_BYTES 1024 // chunk size and extensions; a longer line is refused

enum body {
    BODY_MORE, // all input taken, the body goes on
    BODY_DATA, // `content` is the next run of content; call again
    BODY_END,  // the body is over; what is left of `input` belongs to the next message
    BODY_BAD,  // not chunked as the standard has it: `decoder->error`
};

struct body_decoder {
    struct framing framing;
    uint64_t left;    // of the body (FRAMING_LENGTH) or of this chunk
    uint64_t content; // bytes of content given out so far
    int state;
    unsigned line_bytes;   // of the chunk or trailer line being read
    char *trailers;        // heap, NULL until there are any: whole "Name: value\r\n" lines
    size_t trailer_length; // of what may be forwarded
    size_t trailer_bytes;  // of the section so far, dropped lines too
    const char *error;     // a static sentence, set with BODY_BAD
};

void body_decoder_init(struct body_decoder *decoder, const struct framing *framing);
void body_decoder_fini(struct body_decoder *decoder); // frees the trailers; may be called twice

// Takes bytes from the front of `input` (advancing it) and gives at most one run of content, a view into
// them.
enum body body_decode(struct body_decoder *decoder, struct view *input, struct view *content);

// The sender closed. BODY_END when that ends the body properly (FRAMING_CLOSE, or it had ended before), else
// BODY_BAD: it was cut short.
enum body body_decode_close(struct body_decoder *decoder);

// Bytes of content still to come when that is known (FRAMING_LENGTH, FRAMING_NONE), else -1.
int64_t body_left(const struct body_decoder *decoder);

// The trailer fields that may be forwarded, as whole lines: none that frames, routes, authenticates or is
// hop-by-hop, that is none of http/field.tbl [RFC 9110 §6.5.1]. Filtered when read; empty before BODY_END.
// Field lines are held to the same rules as a head's.
struct view body_trailers(const struct body_decoder *decoder);

// Writes "SIZE\r\n" (hexadecimal) for a chunk of `size` > 0 bytes, to be followed by the content and "\r\n".
// Returns the length.
#define BODY_CHUNK_HEAD_BYTES 20
size_t body_chunk_head(uint64_t size, char out[static BODY_CHUNK_HEAD_BYTES]);
