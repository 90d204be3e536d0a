#include "http/body.h"

#include "http/field.h"
#include "http/octet.h"

#include <stdlib.h>
#include <string.h>

enum state {
    STATE_SIZE_START,
    STATE_SIZE,
    STATE_GAP,             // blanks that a ";" must follow
    STATE_EXTENSION_START, // after ";"
    STATE_NAME,
    STATE_NAME_GAP, // blanks that "=" or ";" must follow
    STATE_VALUE_START,
    STATE_VALUE,
    STATE_QUOTED,
    STATE_QUOTED_PAIR,
    STATE_QUOTED_END,
    STATE_SIZE_LF, // from here on not of the chunk line
    STATE_DATA,
    STATE_DATA_CR,
    STATE_DATA_LF,
    STATE_TRAILER_START,
    STATE_TRAILER_LINE,
    STATE_LAST_LF,
    STATE_END,
    STATE_BAD,
};

void body_decoder_init(struct body_decoder *decoder, const struct framing *framing) {
    *decoder = (struct body_decoder){.framing = *framing};
    if (framing->kind == FRAMING_LENGTH)
        decoder->left = framing->length;
}

void body_decoder_fini(struct body_decoder *decoder) {
    free(decoder->trailers);
    decoder->trailers = NULL;
    decoder->trailer_length = 0;
}

static void fail(struct body_decoder *decoder, const char *error) {
    decoder->state = STATE_BAD;
    decoder->error = error;
}

// Gives the next run of content, which is at most `left`.
static enum body give(struct body_decoder *decoder, struct view *input, struct view *content) {
    *content = view_take(*input, decoder->left < SIZE_MAX ? (size_t)decoder->left : SIZE_MAX);
    *input = view_skip(*input, content->length);
    decoder->left -= content->length;
    decoder->content += content->length;
    return BODY_DATA;
}

static void add_digit(struct body_decoder *decoder, char digit) {
    if (decoder->left >> 59) {
        fail(decoder, "a chunk size that is too large");
        return;
    }
    decoder->left = decoder->left << 4 | octet_hex(digit);
    decoder->state = STATE_SIZE;
}

// Where a byte that may end the size, an extension's name or its value leads. STATE_BAD: it may not.
static enum state after_item(char byte) {
    if (byte == ';')
        return STATE_EXTENSION_START;
    return byte == '\r' ? STATE_SIZE_LF : STATE_BAD;
}

static enum state after_gap(char byte, enum state gap) {
    if (octet_is_blank(byte))
        return gap;
    return byte == ';' ? STATE_EXTENSION_START : STATE_BAD;
}

static enum state in_quoted(char byte) {
    if (byte == '"')
        return STATE_QUOTED_END;
    if (byte == '\\')
        return STATE_QUOTED_PAIR;
    return octet_is(byte, OCTET_TEXT) ? STATE_QUOTED : STATE_BAD;
}

// chunk-ext [RFC 9112 §7.1.1]: *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] ).
static enum state in_extension(enum state state, char byte) {
    bool is_token = octet_is(byte, OCTET_TOKEN), is_blank = octet_is_blank(byte);
    if (state == STATE_GAP)
        return after_gap(byte, STATE_GAP);
    if (state == STATE_EXTENSION_START)
        return is_blank ? state : is_token ? STATE_NAME : STATE_BAD;
    if ((state == STATE_NAME || state == STATE_NAME_GAP) && byte == '=')
        return STATE_VALUE_START;
    if (state == STATE_NAME)
        return is_token ? state : is_blank ? STATE_NAME_GAP : after_item(byte);
    if (state == STATE_NAME_GAP)
        return after_gap(byte, STATE_NAME_GAP);
    if (state == STATE_VALUE_START && byte == '"')
        return STATE_QUOTED;
    if (state == STATE_VALUE_START)
        return is_blank ? state : is_token ? STATE_VALUE : STATE_BAD;
    if (state == STATE_VALUE && is_token)
        return state;
    if (state == STATE_VALUE || state == STATE_QUOTED_END)
        return is_blank ? STATE_GAP : after_item(byte);
    if (state == STATE_QUOTED)
        return in_quoted(byte);
    return octet_is(byte, OCTET_TEXT) ? STATE_QUOTED : STATE_BAD; // STATE_QUOTED_PAIR
}

static void take_size_byte(struct body_decoder *decoder, char byte) {
    enum state next = STATE_BAD;
    if (octet_is(byte, OCTET_HEX)) {
        add_digit(decoder, byte);
        return;
    }
    if (decoder->state == STATE_SIZE)
        next = octet_is_blank(byte) ? STATE_GAP : after_item(byte);
    decoder->state = next;
    if (next == STATE_BAD)
        fail(decoder, "a chunk size that is no hexadecimal number");
}

static void take_extension_byte(struct body_decoder *decoder, char byte) {
    decoder->state = (int)in_extension((enum state)decoder->state, byte);
    if (decoder->state == STATE_BAD)
        fail(decoder, "a malformed chunk extension");
}

static void end_chunk_line(struct body_decoder *decoder) {
    decoder->line_bytes = 0;
    if (decoder->left == 0)
        decoder->state = STATE_TRAILER_START;
    else if (decoder->left > INT64_MAX - decoder->content)
        fail(decoder, "chunks that are too large together");
    else
        decoder->state = STATE_DATA;
}

static void expect(struct body_decoder *decoder, char byte, char expected, enum state next, const char *why) {
    if (byte != expected)
        fail(decoder, why);
    else
        decoder->state = (int)next;
}

// The trailer section has its own room, all of it at once: it is rare, and bounded.
static bool keep_trailer_byte(struct body_decoder *decoder, char byte) {
    if (!decoder->trailers)
        decoder->trailers = malloc(BODY_TRAILER_BYTES);
    if (!decoder->trailers || decoder->trailer_bytes == BODY_TRAILER_BYTES) {
        fail(decoder, decoder->trailers ? "a trailer section that is too long" : "no memory for trailers");
        return false;
    }
    decoder->trailers[decoder->trailer_length + decoder->line_bytes++] = byte;
    decoder->trailer_bytes++;
    return true;
}

static void end_trailer_line(struct body_decoder *decoder) {
    struct http_field field;
    struct view line = {decoder->trailers + decoder->trailer_length, decoder->line_bytes - 1};
    const char *fault = "a trailer line that ends in a bare LF";
    if (line.length > 0 && line.data[line.length - 1] == '\r')
        fault = field_parse(view_take(line, line.length - 1), &field);
    if (fault) {
        fail(decoder, fault);
        return;
    }
    if (field.id == FIELD_OTHER)
        decoder->trailer_length += decoder->line_bytes;
    decoder->line_bytes = 0;
    decoder->state = STATE_TRAILER_START;
}

static void take_trailer_byte(struct body_decoder *decoder, char byte) {
    if (decoder->state == STATE_TRAILER_START && byte == '\r') {
        decoder->state = STATE_LAST_LF;
        return;
    }
    decoder->state = STATE_TRAILER_LINE;
    if (keep_trailer_byte(decoder, byte) && byte == '\n')
        end_trailer_line(decoder);
}

static void take_chunk_line_byte(struct body_decoder *decoder, char byte) {
    if (++decoder->line_bytes > BODY_CHUNK_LINE_BYTES)
        fail(decoder, "a chunk line that is too long");
    else if (decoder->state <= STATE_SIZE)
        take_size_byte(decoder, byte);
    else
        take_extension_byte(decoder, byte);
}

// Takes a byte of the chunked coding itself.
static void take_byte(struct body_decoder *decoder, char byte) {
    switch ((enum state)decoder->state) {
    case STATE_SIZE_LF:
        expect(decoder, byte, '\n', STATE_SIZE_LF, "a chunk line with a bare CR");
        if (decoder->state == STATE_SIZE_LF)
            end_chunk_line(decoder);
        break;
    case STATE_DATA_CR:
        expect(decoder, byte, '\r', STATE_DATA_LF, "a chunk that is longer than its size");
        break;
    case STATE_DATA_LF:
        expect(decoder, byte, '\n', STATE_SIZE_START, "a chunk that does not end in CRLF");
        break;
    case STATE_TRAILER_START:
    case STATE_TRAILER_LINE:
        take_trailer_byte(decoder, byte);
        break;
    case STATE_LAST_LF:
        expect(decoder, byte, '\n', STATE_END, "a chunked body that does not end in CRLF");
        break;
    case STATE_SIZE_START:
    case STATE_SIZE:
    case STATE_GAP:
    case STATE_EXTENSION_START:
    case STATE_NAME:
    case STATE_NAME_GAP:
    case STATE_VALUE_START:
    case STATE_VALUE:
    case STATE_QUOTED:
    case STATE_QUOTED_PAIR:
    case STATE_QUOTED_END:
        take_chunk_line_byte(decoder, byte);
        break;
    case STATE_DATA:
    case STATE_END:
    case STATE_BAD:
        break;
    }
}

static enum body decode_chunked(struct body_decoder *decoder, struct view *input, struct view *content) {
    for (;;) {
        if (decoder->state == STATE_END)
            return BODY_END;
        if (decoder->state == STATE_BAD)
            return BODY_BAD;
        if (input->length == 0)
            return BODY_MORE;
        if (decoder->state == STATE_DATA) {
            enum body body = give(decoder, input, content);
            if (decoder->left == 0)
                decoder->state = STATE_DATA_CR;
            return body;
        }
        take_byte(decoder, input->data[0]);
        *input = view_skip(*input, 1);
    }
}

enum body body_decode(struct body_decoder *decoder, struct view *input, struct view *content) {
    if (decoder->state == STATE_BAD)
        return BODY_BAD;
    switch (decoder->framing.kind) {
    case FRAMING_NONE:
        return BODY_END;
    case FRAMING_LENGTH:
        if (decoder->left == 0)
            return BODY_END;
        break;
    case FRAMING_CLOSE:
        if (decoder->state == STATE_END)
            return BODY_END;
        decoder->left = UINT64_MAX;
        break;
    case FRAMING_CHUNKED:
        return decode_chunked(decoder, input, content);
    }
    return input->length > 0 ? give(decoder, input, content) : BODY_MORE;
}

enum body body_decode_close(struct body_decoder *decoder) {
    bool is_over = decoder->state == STATE_END;
    switch (decoder->framing.kind) {
    case FRAMING_NONE:
    case FRAMING_CLOSE:
        is_over = true;
        break;
    case FRAMING_LENGTH:
        is_over = decoder->left == 0;
        break;
    case FRAMING_CHUNKED:
        break;
    }
    if (is_over)
        decoder->state = STATE_END;
    else if (decoder->state != STATE_BAD)
        fail(decoder, "the body was cut short");
    return is_over ? BODY_END : BODY_BAD;
}

int64_t body_left(const struct body_decoder *decoder) {
    if (decoder->framing.kind == FRAMING_NONE)
        return 0;
    return decoder->framing.kind == FRAMING_LENGTH ? (int64_t)decoder->left : -1;
}

struct view body_trailers(const struct body_decoder *decoder) {
    if (decoder->state != STATE_END || decoder->trailer_length == 0)
        return VIEW("");
    return (struct view){decoder->trailers, decoder->trailer_length};
}

size_t body_chunk_head(uint64_t size, char out[static BODY_CHUNK_HEAD_BYTES]) {
    size_t length = 1;
    for (uint64_t rest = size >> 4; rest; rest >>= 4)
        length++;
    for (size_t i = length; i-- > 0; size >>= 4)
        out[i] = "0123456789abcdef"[size & 15];
    memcpy(out + length, "\r\n", 2);
    return length + 2;
}
