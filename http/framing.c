#include "http/framing.h"

#include "http/octet.h"

static enum parse refuse(struct http_error *error, int status, const char *why) {
    *error = (struct http_error){status, why};
    return PARSE_BAD;
}

struct codings {
    unsigned total;
    unsigned chunked;
    bool ends_chunked;
    bool is_malformed;
};

// Empty members and parameters of chunked are refused too: a peer might read them otherwise.
static void read_coding(struct view member, struct codings *codings) {
    struct view name = view_take(member, octet_run(member, OCTET_TOKEN));
    struct view parameters = view_trim(view_skip(member, name.length));
    bool is_chunked = view_equal_fold(name, VIEW("chunked"));
    codings->total++;
    codings->chunked += is_chunked;
    codings->ends_chunked = is_chunked;
    if (name.length == 0 || (parameters.length > 0 && (is_chunked || parameters.data[0] != ';')))
        codings->is_malformed = true;
}

static void read_codings(const struct http_head *head, struct codings *codings) {
    const struct http_field *field = NULL;
    for (unsigned i = 0; (field = http_field_find(head, FIELD_TRANSFER_ENCODING, i));
            i = (unsigned)(field - head->fields) + 1) {
        struct view rest = field->value;
        for (;;) {
            size_t comma = view_find(rest, ',');
            read_coding(view_trim(view_take(rest, comma)), codings);
            if (comma == rest.length)
                break;
            rest = view_skip(rest, comma + 1);
        }
    }
}

static enum parse framing_of_codings(
        const struct http_head *head, struct framing *framing, struct http_error *error) {
    struct codings codings = {0};
    read_codings(head, &codings);
    if (http_field_find(head, FIELD_CONTENT_LENGTH, 0))
        return refuse(error, 400, "both Transfer-Encoding and Content-Length");
    if (head->minor_version == 0)
        return refuse(error, 400, "Transfer-Encoding in an HTTP/1.0 message");
    if (codings.is_malformed)
        return refuse(error, 400, "a malformed Transfer-Encoding");
    if (!codings.ends_chunked)
        return refuse(error, 400, "a Transfer-Encoding that does not end in chunked");
    if (codings.chunked > 1)
        return refuse(error, 400, "chunked more than once");
    if (codings.total > 1)
        return refuse(error, 501, "a transfer coding other than chunked");
    *framing = (struct framing){.kind = FRAMING_CHUNKED};
    return PARSE_DONE;
}

// Reads one Content-Length line, whose members must all equal `*length` once `*is_known`.
static bool read_length_line(struct view rest, uint64_t *length, bool *is_known) {
    for (;;) {
        uint64_t number;
        size_t comma = view_find(rest, ',');
        if (!view_number(view_trim(view_take(rest, comma)), &number) || number > INT64_MAX)
            return false;
        if (*is_known && number != *length)
            return false;
        *length = number;
        *is_known = true;
        if (comma == rest.length)
            return true;
        rest = view_skip(rest, comma + 1);
    }
}

bool framing_content_length(const struct http_head *head, int64_t *length) {
    uint64_t number = 0;
    bool is_known = false;
    for (unsigned i = 0; i < head->field_count; i++)
        if (head->fields[i].id == FIELD_CONTENT_LENGTH &&
                !read_length_line(head->fields[i].value, &number, &is_known))
            return false;
    *length = is_known ? (int64_t)number : -1;
    return true;
}

enum parse framing_of_request(
        const struct http_head *head, struct framing *framing, struct http_error *error) {
    int64_t length;
    if (http_field_find(head, FIELD_TRANSFER_ENCODING, 0))
        return framing_of_codings(head, framing, error);
    if (!framing_content_length(head, &length))
        return refuse(error, 400, "a Content-Length that is no number or contradicts another");
    *framing = (struct framing){FRAMING_NONE, 0};
    if (length >= 0)
        *framing = (struct framing){FRAMING_LENGTH, (uint64_t)length};
    return PARSE_DONE;
}

static bool is_bodiless(int status, enum method_id method) {
    return method == METHOD_HEAD || status < 200 || status == 204 || status == 304;
}

enum parse framing_of_response(const struct http_head *head, enum method_id method, struct framing *framing,
        struct http_error *error) {
    enum parse parse = PARSE_DONE;
    if (method == METHOD_CONNECT && head->status / 100 == 2) {
        *framing = (struct framing){FRAMING_NONE, 0}; // the framing fields mean nothing [RFC 9110 §9.3.6]
        return PARSE_DONE;
    }
    parse = framing_of_request(head, framing, error);
    if (parse == PARSE_BAD)
        error->status = 502;
    else if (is_bodiless(head->status, method))
        *framing = (struct framing){FRAMING_NONE, 0};
    else if (framing->kind == FRAMING_NONE)
        framing->kind = FRAMING_CLOSE;
    return parse;
}
