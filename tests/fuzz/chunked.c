// Chunked bodies: however the bytes are split, content, trailers, outcome and what is left over are the same;
// what was accepted and is written again as chunks decodes to the same.
#include "admin/check.h"
#include "http/body.h"
#include "http/field.h"

#include <stdlib.h>
#include <string.h>

#define INPUT_BYTES 16384

struct outcome {
    enum body body;
    char content[INPUT_BYTES];
    size_t length;
    size_t rest;
    char trailers[BODY_TRAILER_BYTES];
    size_t trailer_length;
    const char *error;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t next_random(uint32_t *state) {
    return *state = *state * 1664525 + 1013904223;
}

// Pieces of `step` bytes, or of random lengths up to 16 when it is 0; each in memory of its own size.
static void decode(struct view input, size_t step, struct outcome *outcome) {
    static const struct framing chunked = {FRAMING_CHUNKED, 0};
    struct body_decoder decoder;
    uint32_t random = (uint32_t)input.length;
    outcome->body = BODY_MORE;
    outcome->length = 0;
    body_decoder_init(&decoder, &chunked);
    while (outcome->body == BODY_MORE && input.length > 0) {
        size_t length = view_take(input, step ? step : 1 + (next_random(&random) >> 16) % 16).length;
        char *copy = malloc(length);
        memcpy(copy, input.data, length);
        struct view piece = {copy, length}, content;
        while ((outcome->body = body_decode(&decoder, &piece, &content)) == BODY_DATA) {
            CHECK(content.length > 0 && outcome->length + content.length <= INPUT_BYTES);
            memcpy(outcome->content + outcome->length, content.data, content.length);
            outcome->length += content.length;
        }
        input = view_skip(input, length - piece.length);
        CHECK(outcome->body != BODY_MORE || piece.length == 0);
        free(copy);
    }
    CHECK(decoder.content == outcome->length);
    outcome->rest = input.length;
    outcome->error = decoder.error;
    outcome->trailer_length = body_trailers(&decoder).length;
    memcpy(outcome->trailers, body_trailers(&decoder).data, outcome->trailer_length);
    body_decoder_fini(&decoder);
}

static void check_same(const struct outcome *a, const struct outcome *b) {
    CHECK(a->body == b->body && a->error == b->error);
    CHECK(a->length == b->length && memcmp(a->content, b->content, a->length) == 0);
    CHECK(a->trailer_length == b->trailer_length && memcmp(a->trailers, b->trailers, a->trailer_length) == 0);
    CHECK(a->rest == b->rest);
}

// Trailers that may be forwarded are whole lines, none of a field that weir knows.
static void check_trailers(struct view trailers) {
    while (trailers.length > 0) {
        struct http_field field;
        size_t length = view_find(trailers, '\n');
        CHECK(length < trailers.length && length > 0 && trailers.data[length - 1] == '\r');
        CHECK(field_parse(view_take(trailers, length - 1), &field) == NULL && field.id == FIELD_OTHER);
        trailers = view_skip(trailers, length + 1);
    }
}

static void check_again(const struct outcome *whole, size_t chunk) {
    static struct outcome again;
    char *text = malloc(whole->length * (BODY_CHUNK_HEAD_BYTES + 3) + whole->trailer_length + 8);
    size_t length = 0;
    for (size_t at = 0; at < whole->length; at += chunk) {
        size_t run = whole->length - at < chunk ? whole->length - at : chunk;
        length += body_chunk_head(run, text + length);
        memcpy(text + length, whole->content + at, run);
        memcpy(text + length + run, "\r\n", 2);
        length += run + 2;
    }
    memcpy(text + length, "0\r\n", 3);
    memcpy(text + length + 3, whole->trailers, whole->trailer_length);
    memcpy(text + length + 3 + whole->trailer_length, "\r\n", 2);
    decode((struct view){text, length + 5 + whole->trailer_length}, SIZE_MAX, &again);
    CHECK(again.body == BODY_END && again.rest == 0);
    CHECK(again.length == whole->length && memcmp(again.content, whole->content, whole->length) == 0);
    CHECK(again.trailer_length == whole->trailer_length);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct outcome whole, split;
    struct view input = {(const char *)data, size};
    if (size == 0 || size > INPUT_BYTES)
        return 0;
    decode(input, SIZE_MAX, &whole);
    for (size_t step = 0; step < 3; step++) {
        decode(input, step, &split);
        check_same(&whole, &split);
    }
    check_trailers((struct view){whole.trailers, whole.trailer_length});
    if (whole.body == BODY_END)
        check_again(&whole, 1 + data[0] % 32);
    return 0;
}
