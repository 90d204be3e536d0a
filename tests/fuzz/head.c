// Heads: parsing whole, in steps and byte by byte agree; every view lies in the input; a good head written
// out again is the same head. What looks into heads runs on the good ones.
#include "admin/check.h"
#include "http/cache_control.h"
#include "http/compose.h"
#include "http/condition.h"
#include "http/field.h"
#include "http/framing.h"
#include "http/range.h"
#include "http/target.h"

#include <stdlib.h>
#include <string.h>

#define FIELDS 16
#define NOW 1700000000

static const struct http_limits limits = {.head_bytes = 2048, .target_bytes = 256, .fields = FIELDS};

struct message {
    struct http_head head;
    struct http_error error;
    struct http_field fields[FIELDS];
};

typedef enum parse parser(struct view input, size_t seen, const struct http_limits *limits,
        struct http_head *head, struct http_error *error);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum parse parse_whole(struct message *message, struct view input, parser *parse) {
    memset(message, 0, sizeof *message);
    message->head.fields = message->fields;
    message->head.field_capacity = FIELDS;
    return parse(input, 0, &limits, &message->head, &message->error);
}

// Each call gets a copy of its own size, so that a read beyond it is found.
static enum parse parse_slowly(struct message *message, struct view input, parser *parse, size_t step) {
    enum parse result = PARSE_MORE;
    memset(message, 0, sizeof *message);
    message->head.fields = message->fields;
    message->head.field_capacity = FIELDS;
    for (size_t seen = 0, length = 0; result == PARSE_MORE && seen < input.length; seen = length) {
        length = seen + step < input.length ? seen + step : input.length;
        char *copy = malloc(length);
        memcpy(copy, input.data, length);
        result = parse((struct view){copy, length}, seen, &limits, &message->head, &message->error);
        free(copy);
    }
    return result;
}

static void check_slowly(
        const struct message *whole, enum parse result, struct view input, parser *parse, size_t step) {
    struct message slow;
    enum parse slowly = parse_slowly(&slow, input, parse, step);
    bool is_late = slowly == PARSE_MORE && result == PARSE_BAD && input.length < limits.head_bytes &&
                   strcmp(whole->error.why, "too many fields") == 0;
    CHECK(is_late || slowly == result);
    if (result == PARSE_BAD && !is_late)
        CHECK(slow.error.status == whole->error.status && slow.error.why == whole->error.why);
    if (result != PARSE_DONE)
        return;
    CHECK(slow.head.head_length == whole->head.head_length);
    CHECK(slow.head.field_count == whole->head.field_count && slow.head.status == whole->head.status);
    for (unsigned i = 0; i < whole->head.field_count; i++) {
        CHECK(slow.fields[i].id == whole->fields[i].id && slow.fields[i].hop == whole->fields[i].hop);
        CHECK(slow.fields[i].value.length == whole->fields[i].value.length);
    }
}

static void check_inside(struct view view, struct view input) {
    if (view.length > 0)
        CHECK(view.data >= input.data && view.data + view.length <= input.data + input.length);
}

static void check_views(const struct http_head *head, struct view input) {
    CHECK(head->head_length <= input.length && head->head_length <= limits.head_bytes);
    CHECK(head->field_count <= FIELDS && head->target.length <= limits.target_bytes);
    input = view_take(input, head->head_length);
    check_inside(head->method, input);
    check_inside(head->target, input);
    check_inside(head->reason, input);
    for (unsigned i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i];
        check_inside(field->name, input);
        check_inside(field->value, input);
        CHECK(field->name.length > 0);
        CHECK(field->id == http_field_id(field->name));
        CHECK(view_equal(view_trim(field->value), field->value));
        bool by_name = field_flags(field->id) & 1;
        CHECK(field->hop == by_name || (field->hop && field->id == FIELD_OTHER));
    }
}

static void check_rewritten(const struct http_head *head, bool is_request) {
    char text[4096];
    struct composer composer;
    struct message again;
    compose_init(&composer, text, sizeof text);
    if (is_request)
        compose_format(&composer, VIEW_FORMAT " " VIEW_FORMAT " HTTP/1.%d\r\n", VIEW_ARGUMENT(head->method),
                VIEW_ARGUMENT(head->target), head->minor_version);
    else
        compose_status_line(&composer, head->status, head->reason);
    for (unsigned i = 0; i < head->field_count; i++)
        compose_field(&composer, head->fields[i].name, head->fields[i].value);
    compose_end(&composer);
    CHECK(!composer.overflow);
    struct view whole = {text, composer.length};
    if (whole.length > limits.head_bytes)
        return;
    CHECK(parse_whole(&again, whole, is_request ? http_parse_request : http_parse_response) == PARSE_DONE);
    CHECK(again.head.head_length == whole.length && again.head.field_count == head->field_count);
    CHECK(view_equal(again.head.method, head->method) && view_equal(again.head.target, head->target));
    CHECK(again.head.status == head->status);
    for (unsigned i = 0; i < head->field_count; i++)
        CHECK(view_equal(again.fields[i].value, head->fields[i].value) &&
                again.fields[i].hop == head->fields[i].hop);
}

static void check_target(const struct http_head *head) {
    struct http_target target;
    struct http_error error = {0};
    char text[AUTHORITY_BYTES], text_again[AUTHORITY_BYTES];
    if (target_of_request(head, &target, &error) == PARSE_BAD) {
        CHECK(error.status == 400 || error.status == 501);
        return;
    }
    check_inside(target.authority.host, (struct view){head->method.data, head->head_length});
    size_t length = authority_normalise(&target.authority, text, sizeof text);
    CHECK((length == 0) == (target.authority.host.length == 0));
    struct authority again;
    if (length > 0) {
        CHECK(authority_parse((struct view){text, length}, &again));
        size_t length_again = authority_normalise(&again, text_again, sizeof text_again);
        CHECK(length_again == length && memcmp(text, text_again, length) == 0);
    }
}

static void look_into(const struct http_head *head, bool is_request) {
    struct cache_control control;
    cache_control_parse(head, &control);
    CHECK(control.max_age >= DELTA_INVALID && control.max_age <= DELTA_MAXIMUM);
    condition_evaluate(head, head, NOW);
    condition_range_applies(head, head, NOW);
    http_keeps_alive(head);
    range_judge(head, head, 1000);
    if (is_request)
        check_target(head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct message message;
    struct view input = {(const char *)data, size};
    if (size == 0 || size > 4096)
        return 0;
    bool is_request = data[0] != 'H';
    parser *parse = is_request ? http_parse_request : http_parse_response;
    enum parse result = parse_whole(&message, input, parse);
    CHECK(result != PARSE_MORE || size < limits.head_bytes);
    CHECK(result != PARSE_BAD || (message.error.status >= 400 && message.error.why[0]));
    check_slowly(&message, result, input, parse, 1);
    check_slowly(&message, result, input, parse, 1 + data[size - 1] % 64);
    if (result == PARSE_DONE) {
        check_views(&message.head, input);
        check_rewritten(&message.head, is_request);
        look_into(&message.head, is_request);
    }
    if (http_sniff(input, 64) == SNIFF_MORE)
        CHECK(size <= 64 + 256);
    return 0;
}
