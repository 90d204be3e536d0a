#include "tests/unit/http/message.h"

#include "tests/unit/unit.h"

#include <string.h>
#include <sys/mman.h>

#define PLACE_BYTES 65536
#define GUARD_BYTES 4096
#define PLACES 4

const struct http_limits message_limits = {.head_bytes = 2048, .target_bytes = 512, .fields = 40};

typedef enum parse parser(struct view input, size_t seen, const struct http_limits *limits,
        struct http_head *head, struct http_error *error);

static char *new_place(void) {
    char *place =
            mmap(NULL, PLACE_BYTES + GUARD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_NOT_EQUAL_FATAL(place, MAP_FAILED);
    CU_ASSERT_EQUAL_FATAL(mprotect(place + PLACE_BYTES, GUARD_BYTES, PROT_NONE), 0);
    return place;
}

struct view message_guarded(struct view text) {
    static char *places[PLACES];
    static unsigned turn;
    unsigned index = turn++ % PLACES;
    if (!places[index])
        places[index] = new_place();
    CU_ASSERT_FATAL(text.length <= PLACE_BYTES);
    char *start = places[index] + PLACE_BYTES - text.length;
    memcpy(start, text.data, text.length);
    return (struct view){start, text.length};
}

static void prepare(struct message *message) {
    memset(message, 0xa5, sizeof *message); // what is not written is found
    message->head.fields = message->fields;
    message->head.field_capacity = MESSAGE_FIELDS;
}

// Byte by byte, in one place whose end moves forward.
static enum parse parse_slowly(
        struct message *message, struct view text, const struct http_limits *limits, parser *parse) {
    enum parse result = PARSE_MORE;
    for (size_t length = 1; length <= text.length && result == PARSE_MORE; length++)
        result = parse(message_guarded(view_take(text, length)), length - 1, limits, &message->head,
                &message->error);
    return result;
}

static bool is_same_view(struct view a, struct view b) {
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

static bool is_same_head(const struct http_head *a, const struct http_head *b) {
    if (!is_same_view(a->method, b->method) || !is_same_view(a->target, b->target) ||
            !is_same_view(a->reason, b->reason) || a->status != b->status || a->method_id != b->method_id ||
            a->minor_version != b->minor_version || a->head_length != b->head_length ||
            a->field_count != b->field_count)
        return false;
    for (unsigned i = 0; i < a->field_count; i++)
        if (!is_same_view(a->fields[i].name, b->fields[i].name) ||
                !is_same_view(a->fields[i].value, b->fields[i].value) || a->fields[i].id != b->fields[i].id ||
                a->fields[i].hop != b->fields[i].hop)
            return false;
    return true;
}

static enum parse parse_both(
        struct message *message, struct view text, const struct http_limits *limits, parser *parse) {
    struct message slow;
    prepare(&slow);
    prepare(message);
    enum parse slowly = parse_slowly(&slow, text, limits, parse);
    enum parse whole = parse(message_guarded(text), 0, limits, &message->head, &message->error);
    CU_ASSERT_EQUAL(slowly, whole);
    if (slowly == PARSE_DONE && whole == PARSE_DONE)
        CU_ASSERT(is_same_head(&slow.head, &message->head));
    if (slowly == PARSE_BAD && whole == PARSE_BAD) {
        CU_ASSERT_EQUAL(slow.error.status, message->error.status);
        CU_ASSERT_EQUAL(slow.error.why, message->error.why);
    }
    return whole;
}

enum parse message_request(struct message *message, struct view text, const struct http_limits *limits) {
    return parse_both(message, text, limits, http_parse_request);
}

enum parse message_response(struct message *message, struct view text, const struct http_limits *limits) {
    return parse_both(message, text, limits, http_parse_response);
}

static const struct http_head *good(struct message *message, const char *text, parser *parse) {
    static const struct http_limits wide = {.head_bytes = 65536, .target_bytes = 8192, .fields = 64};
    prepare(message);
    CU_ASSERT_EQUAL_FATAL(parse(view_of(text), 0, &wide, &message->head, &message->error), PARSE_DONE);
    return &message->head;
}

const struct http_head *message_good_request(struct message *message, const char *text) {
    return good(message, text, http_parse_request);
}

const struct http_head *message_good_response(struct message *message, const char *text) {
    return good(message, text, http_parse_response);
}
