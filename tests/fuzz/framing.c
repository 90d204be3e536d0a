// Framing: a message that is accepted and written out again, as a proxy does it, has the same framing, and no
// field left that says otherwise. What follows the head is decoded by it.
#include "admin/check.h"
#include "http/body.h"
#include "http/compose.h"

#include <stdlib.h>
#include <string.h>

#define FIELDS 32

static const struct http_limits limits = {.head_bytes = 4096, .target_bytes = 512, .fields = FIELDS};

struct message {
    struct http_head head;
    struct http_error error;
    struct http_field fields[FIELDS];
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum parse parse(struct message *message, struct view input, bool is_request) {
    memset(message, 0, sizeof *message);
    message->head.fields = message->fields;
    message->head.field_capacity = FIELDS;
    return is_request ? http_parse_request(input, 0, &limits, &message->head, &message->error)
                      : http_parse_response(input, 0, &limits, &message->head, &message->error);
}

static enum parse frame(
        struct message *message, bool is_request, enum method_id method, struct framing *framing) {
    return is_request ? framing_of_request(&message->head, framing, &message->error)
                      : framing_of_response(&message->head, method, framing, &message->error);
}

static void write_again(struct composer *composer, const struct http_head *head, bool is_request,
        const struct framing *framing) {
    if (is_request)
        compose_format(composer, VIEW_FORMAT " " VIEW_FORMAT " HTTP/1.1\r\n", VIEW_ARGUMENT(head->method),
                VIEW_ARGUMENT(head->target));
    else
        compose_status_line(composer, head->status, head->reason);
    for (unsigned i = 0; i < head->field_count; i++)
        if (!head->fields[i].hop && head->fields[i].id != FIELD_CONTENT_LENGTH)
            compose_field(composer, head->fields[i].name, head->fields[i].value);
    if (framing->kind == FRAMING_CHUNKED)
        compose_text(composer, "Transfer-Encoding: chunked\r\n");
    if (framing->kind == FRAMING_LENGTH)
        compose_format(composer, "Content-Length: %ju\r\n", (uintmax_t)framing->length);
    compose_end(composer);
}

// Whether a peer that looks for lengths and codings in any spelling would see another framing.
static void check_fields(const struct http_head *head, const struct framing *framing) {
    unsigned lengths = http_field_total(head, FIELD_CONTENT_LENGTH);
    unsigned codings = http_field_total(head, FIELD_TRANSFER_ENCODING);
    CHECK(lengths == (framing->kind == FRAMING_LENGTH));
    CHECK(codings == (framing->kind == FRAMING_CHUNKED));
}

static void check_again(
        const struct http_head *head, bool is_request, enum method_id method, const struct framing *framing) {
    static char text[16384];
    struct composer composer;
    struct message again;
    struct framing same;
    compose_init(&composer, text, sizeof text);
    write_again(&composer, head, is_request, framing);
    CHECK(!composer.overflow);
    if (composer.length > limits.head_bytes || http_field_total(head, FIELD_CONTENT_LENGTH) == FIELDS)
        return;
    enum parse result = parse(&again, (struct view){text, composer.length}, is_request);
    if (result == PARSE_BAD && again.error.status == 431) // one framing field more than there was room for
        return;
    CHECK(result == PARSE_DONE && again.head.head_length == composer.length);
    CHECK(frame(&again, is_request, method, &same) == PARSE_DONE);
    CHECK(same.kind == framing->kind && same.length == framing->length);
    check_fields(&again.head, framing);
}

static void decode(const struct framing *framing, struct view input) {
    struct body_decoder decoder;
    struct view content;
    enum body body;
    uint64_t total = 0;
    body_decoder_init(&decoder, framing);
    while ((body = body_decode(&decoder, &input, &content)) == BODY_DATA)
        total += content.length;
    CHECK(total == decoder.content);
    CHECK(body != BODY_MORE || input.length == 0);
    if (framing->kind == FRAMING_LENGTH)
        CHECK(total + (uint64_t)body_left(&decoder) == framing->length);
    if (framing->kind == FRAMING_NONE)
        CHECK(body == BODY_END && total == 0);
    enum body closed = body_decode_close(&decoder);
    CHECK(closed == BODY_END || decoder.error);
    CHECK(body != BODY_END || closed == BODY_END);
    body_decoder_fini(&decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const enum method_id methods[] = {METHOD_GET, METHOD_HEAD, METHOD_CONNECT};
    struct message message;
    struct framing framing;
    struct view input = {(const char *)data, size};
    if (size == 0 || size > 8192)
        return 0;
    bool is_request = data[0] != 'H';
    if (parse(&message, input, is_request) != PARSE_DONE)
        return 0;
    for (unsigned i = 0; i < (is_request ? 1u : 3u); i++) {
        if (frame(&message, is_request, methods[i], &framing) == PARSE_BAD) {
            CHECK(is_request ? message.error.status == 400 || message.error.status == 501
                             : message.error.status == 502);
            continue;
        }
        check_again(&message.head, is_request, methods[i], &framing);
        decode(&framing, view_skip(input, message.head.head_length));
    }
    return 0;
}
