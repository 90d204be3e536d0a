#include "http/head.h"

#include "admin/check.h"
#include "http/connection.h"
#include "http/field.h"
#include "http/octet.h"

#include <string.h>

#define VERSION_BYTES 8     // "HTTP/1.1"
#define EMPTY_LINES_MAX 2   // before a request line
#define EMPTY_LINES_BYTES 4 // of CRLF

static const struct {
    struct view name;
    bool is_safe, is_idempotent;
} methods[] = {
        [METHOD_OTHER] = {{"", 0}, false, false},
        [METHOD_GET] = {{"GET", 3}, true, true},
        [METHOD_HEAD] = {{"HEAD", 4}, true, true},
        [METHOD_POST] = {{"POST", 4}, false, false},
        [METHOD_PUT] = {{"PUT", 3}, false, true},
        [METHOD_DELETE] = {{"DELETE", 6}, false, true},
        [METHOD_CONNECT] = {{"CONNECT", 7}, false, false},
        [METHOD_OPTIONS] = {{"OPTIONS", 7}, true, true},
        [METHOD_TRACE] = {{"TRACE", 5}, true, true},
        [METHOD_PATCH] = {{"PATCH", 5}, false, false},
};

#define METHODS (sizeof methods / sizeof *methods)

enum method_id http_method_id(struct view name) {
    for (unsigned id = METHOD_OTHER + 1; id < METHODS; id++)
        if (view_equal(name, methods[id].name))
            return (enum method_id)id;
    return METHOD_OTHER;
}

bool http_method_is_safe(enum method_id method) {
    return methods[method].is_safe;
}

bool http_method_is_idempotent(enum method_id method) {
    return methods[method].is_idempotent;
}

struct parser {
    struct view rest; // of the input, as far as the limit on heads lets it be read
    bool is_cut;      // the limit is reached: there is no more to come
    struct http_head *head;
    const struct http_limits *limits;
    struct http_error *error;
};

static enum parse refuse(struct parser *parser, int status, const char *why) {
    *parser->error = (struct http_error){status, why};
    return PARSE_BAD;
}

static struct parser parser_of(struct view input, const struct http_limits *limits, struct http_head *head,
        struct http_error *error) {
    CHECK(head->fields || head->field_capacity == 0);
    *head = (struct http_head){.fields = head->fields, .field_capacity = head->field_capacity};
    return (struct parser){
            view_take(input, limits->head_bytes), input.length >= limits->head_bytes, head, limits, error};
}

// Takes the next line, without its CRLF.
static enum parse take_line(struct parser *parser, struct view *line) {
    size_t length = view_find(parser->rest, '\n');
    if (length == parser->rest.length)
        return parser->is_cut ? refuse(parser, 431, "the head is too long") : PARSE_MORE;
    *line = view_take(parser->rest, length);
    parser->rest = view_skip(parser->rest, length + 1);
    if (length == 0 || line->data[length - 1] != '\r')
        return refuse(parser, 400, "a line that ends in a bare LF");
    line->length--;
    return PARSE_DONE;
}

// The longest request line: method, target, version, two blanks and CRLF.
static size_t request_line_bytes(const struct http_limits *limits) {
    return HTTP_METHOD_BYTES + 1 + limits->target_bytes + 1 + VERSION_BYTES + 2;
}

static enum parse take_request_line(struct parser *parser, struct view *line) {
    for (int empty_lines = 0;; empty_lines++) {
        size_t length = view_find(parser->rest, '\n');
        bool is_unfinished = length == parser->rest.length;
        if (length >= request_line_bytes(parser->limits) || (is_unfinished && parser->is_cut))
            return refuse(parser, 414, "the request line is too long");
        enum parse parse = take_line(parser, line);
        if (parse != PARSE_DONE || line->length > 0 || empty_lines == EMPTY_LINES_MAX)
            return parse;
    }
}

// "HTTP/" DIGIT "." DIGIT.
static bool parse_version(struct view text, int *major, int *minor) {
    if (text.length != VERSION_BYTES || memcmp(text.data, "HTTP/", 5) != 0 || text.data[6] != '.')
        return false;
    *major = text.data[5] - '0';
    *minor = text.data[7] - '0';
    return *major >= 0 && *major <= 9 && *minor >= 0 && *minor <= 9;
}

static enum parse parse_request_version(struct parser *parser, struct view text) {
    int major, minor;
    if (!parse_version(text, &major, &minor))
        return refuse(parser, 400, "a malformed protocol version");
    if (major != 1)
        return parser->head->method_id == METHOD_OTHER
                       ? refuse(parser, 400, "neither a known method nor HTTP/1")
                       : refuse(parser, 505, "a version other than HTTP/1");
    parser->head->minor_version = minor > 1 ? 1 : minor;
    return PARSE_DONE;
}

// Cuts the octets of `class` and the one blank after them off `rest`. False when it is not so.
static bool take_word(struct view *rest, enum octet_class class, struct view *word) {
    *word = view_take(*rest, octet_run(*rest, class));
    if (word->length == 0 || word->length == rest->length || rest->data[word->length] != ' ')
        return false;
    *rest = view_skip(*rest, word->length + 1);
    return true;
}

static enum parse parse_request_line(struct parser *parser) {
    struct http_head *head = parser->head;
    struct view line;
    enum parse parse = take_request_line(parser, &line);
    if (parse != PARSE_DONE)
        return parse;
    if (!take_word(&line, OCTET_TOKEN, &head->method))
        return refuse(parser, 400, "a malformed request line");
    if (head->method.length > HTTP_METHOD_BYTES)
        return refuse(parser, 501, "the method is too long");
    head->method_id = http_method_id(head->method);
    if (!take_word(&line, OCTET_TARGET, &head->target))
        return refuse(parser, 400, "a malformed request target");
    if (head->target.length > parser->limits->target_bytes)
        return refuse(parser, 414, "the request target is too long");
    return parse_request_version(parser, line);
}

static bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

// 3DIGIT [SP reason]: some servers leave the blank out together with the reason.
static bool parse_status(struct view text, struct http_head *head) {
    if (text.length < 3 || !is_digit(text.data[0]) || !is_digit(text.data[1]) || !is_digit(text.data[2]))
        return false;
    head->status = (text.data[0] - '0') * 100 + (text.data[1] - '0') * 10 + (text.data[2] - '0');
    head->reason = view_skip(text, 4);
    return head->status >= 100 && (text.length == 3 || text.data[3] == ' ') && octet_all_text(head->reason);
}

static enum parse parse_status_line(struct parser *parser) {
    struct view line;
    int major, minor;
    enum parse parse = take_line(parser, &line);
    if (parse != PARSE_DONE)
        return parse;
    if (!parse_version(view_take(line, VERSION_BYTES), &major, &minor) || major != 1)
        return refuse(parser, 502, "not an HTTP/1 response");
    if (line.length == VERSION_BYTES || line.data[VERSION_BYTES] != ' ' ||
            !parse_status(view_skip(line, VERSION_BYTES + 1), parser->head))
        return refuse(parser, 502, "a malformed status line");
    parser->head->minor_version = minor > 1 ? 1 : minor;
    return PARSE_DONE;
}

static enum parse parse_fields(struct parser *parser) {
    struct http_head *head = parser->head;
    struct view line;
    enum parse parse;
    while ((parse = take_line(parser, &line)) == PARSE_DONE && line.length > 0) {
        if (head->field_count == head->field_capacity || head->field_count == parser->limits->fields)
            return refuse(parser, 431, "too many fields");
        const char *fault = field_parse(line, &head->fields[head->field_count]);
        if (fault)
            return refuse(parser, 400, fault);
        head->field_count++;
    }
    if (parse == PARSE_DONE && !connection_nominate(head))
        return refuse(parser, 400, "too many options in Connection");
    return parse;
}

// Whether any line completed after `seen` ends the head or is wrong.
static bool has_event(struct view input, size_t seen) {
    const char *before = memrchr(input.data, '\n', seen);
    if (!before || before < input.data + EMPTY_LINES_BYTES) // the first line may be new, which is no field
        return true;
    struct view rest = view_skip(input, (size_t)(before + 1 - input.data));
    for (size_t length; (length = view_find(rest, '\n')) < rest.length; rest = view_skip(rest, length + 1)) {
        struct http_field field;
        if (length < 2 || rest.data[length - 1] != '\r' || field_parse(view_take(rest, length - 1), &field))
            return true;
    }
    return false;
}

// Whether a parse can say more than the one that stopped at `seen` did. Only a line's end, the end of the
// room or a first line of more than `line_bytes` can change the answer; checking the new lines alone keeps
// repeated calls linear.
static bool is_news(struct view input, size_t seen, const struct http_limits *limits, size_t line_bytes) {
    CHECK(seen <= input.length);
    if (seen == 0 || input.length >= limits->head_bytes)
        return true;
    if (input.length >= line_bytes && seen < line_bytes + EMPTY_LINES_BYTES)
        return true;
    return memchr(input.data + seen, '\n', input.length - seen) && has_event(input, seen);
}

enum parse http_parse_request(struct view input, size_t seen, const struct http_limits *limits,
        struct http_head *head, struct http_error *error) {
    if (!is_news(input, seen, limits, request_line_bytes(limits)))
        return PARSE_MORE;
    struct parser parser = parser_of(input, limits, head, error);
    enum parse parse = parse_request_line(&parser);
    if (parse == PARSE_DONE)
        parse = parse_fields(&parser);
    if (parse == PARSE_DONE)
        head->head_length = (size_t)(parser.rest.data - input.data);
    return parse;
}

enum parse http_parse_response(struct view input, size_t seen, const struct http_limits *limits,
        struct http_head *head, struct http_error *error) {
    if (!is_news(input, seen, limits, SIZE_MAX))
        return PARSE_MORE;
    struct parser parser = parser_of(input, limits, head, error);
    enum parse parse = parse_status_line(&parser);
    if (parse == PARSE_DONE)
        parse = parse_fields(&parser);
    if (parse == PARSE_DONE)
        head->head_length = (size_t)(parser.rest.data - input.data);
    if (parse == PARSE_BAD)
        error->status = 502;
    return parse;
}
