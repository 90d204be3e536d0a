#include "intercept/fetch_head.h"

#include "admin/check.h"
#include "http/compose.h"
#include "intercept/worker.h"

#include <stdlib.h>
#include <string.h>

#define OWN_BYTES 1024 // what weir adds, validators and authority aside

// A request that confirms a stored response asks with the store's own conditions, for the whole.
static bool is_replaced(enum field_id id) {
    return id == FIELD_IF_NONE_MATCH || id == FIELD_IF_MODIFIED_SINCE || id == FIELD_IF_MATCH ||
           id == FIELD_IF_UNMODIFIED_SINCE || id == FIELD_IF_RANGE || id == FIELD_RANGE;
}

static bool is_left_out(const struct http_field *field, bool is_unconditional) {
    return field->hop || field->id == FIELD_HOST || field->id == FIELD_CONTENT_LENGTH ||
           (is_unconditional && is_replaced(field->id));
}

static void compose_forwards(
        struct composer *out, const struct session *session, const struct http_field *field) {
    enum method_id method = session->request->head.method_id;
    uint64_t left;
    if ((method == METHOD_TRACE || method == METHOD_OPTIONS) && view_number(field->value, &left) && left > 0)
        compose_format(out, "Max-Forwards: %llu\r\n", (unsigned long long)left - 1);
    else
        compose_field(out, field->name, field->value);
}

static void compose_fields(struct composer *out, const struct session *session, bool is_unconditional) {
    const struct http_head *head = &session->request->head;
    for (unsigned i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i];
        if (is_left_out(field, is_unconditional))
            continue;
        if (field->id == FIELD_MAX_FORWARDS)
            compose_forwards(out, session, field);
        else
            compose_field(out, field->name, field->value);
    }
}

static void compose_framing(struct composer *out, const struct request *request) {
    switch (request->framing.kind) {
    case FRAMING_LENGTH:
        compose_format(out, "Content-Length: %llu\r\n", (unsigned long long)request->framing.length);
        return;
    case FRAMING_CHUNKED:
        compose_text(out, "Transfer-Encoding: chunked\r\n");
        return;
    case FRAMING_NONE:
    case FRAMING_CLOSE:
        return;
    }
}

// What is said hop by hop to the origin in the client's name.
static void compose_hop(struct composer *out, const struct request *request) {
    bool trailers = http_field_has_token(&request->head, FIELD_TE, VIEW("trailers"));
    if (request->wants_upgrade) {
        const struct http_field *field;
        for (unsigned from = 0; (field = http_field_find(&request->head, FIELD_UPGRADE, from));
                from = (unsigned)(field - request->head.fields) + 1)
            compose_field(out, field->name, field->value);
    }
    if (trailers)
        compose_text(out, "TE: trailers\r\n");
    if (request->wants_upgrade || trailers)
        compose_format(out, "Connection: %s\r\n",
                request->wants_upgrade ? trailers ? "Upgrade, TE" : "Upgrade" : "TE");
}

static size_t bytes_of(const struct http_head *head) {
    size_t bytes = head->method.length + head->target.length + 16;
    for (unsigned i = 0; i < head->field_count; i++)
        bytes += head->fields[i].name.length + head->fields[i].value.length + 4;
    return bytes;
}

// The target in origin form. OPTIONS about the server as a whole says "*" [RFC 9112 §3.2.4].
static struct view target_for_origin(const struct request *request) {
    struct view sent = request->head.target;
    bool is_whole_server = request->target.form == TARGET_ASTERISK;
    if (request->target.form == TARGET_ABSOLUTE && request->head.method_id == METHOD_OPTIONS) {
        struct view authority = view_skip(sent, request->target.scheme.length + 3);
        is_whole_server = view_find(authority, '/') == authority.length;
    }
    return is_whole_server ? VIEW("*") : request->target.path;
}

bool fetch_head_compose(
        struct session *session, const struct cache_fill *fill, bool is_refresh, struct fetch_head *head) {
    struct request *request = session->request;
    struct view fields = cache_fill_fields(fill);
    size_t size = bytes_of(&request->head) + request->authority_length + fields.length + OWN_BYTES;
    char *data = malloc(size);
    if (!data)
        return false;
    struct composer out;
    compose_init(&out, data, size);
    compose_view(&out, is_refresh ? VIEW("GET") : request->head.method);
    compose_text(&out, " ");
    compose_view(&out, target_for_origin(request));
    compose_text(&out, " HTTP/1.1\r\nHost: ");
    compose_view(&out, (struct view){request->authority, request->authority_length});
    compose_text(&out, "\r\n");
    compose_fields(&out, session, is_refresh || fields.length > 0);
    *head = (struct fetch_head){.data = data, .fields_at = out.length, .fields_length = fields.length};
    compose_view(&out, fields);
    compose_format(&out, "Via: 1.%d %s\r\n", request->head.minor_version, session->settings->via_name);
    compose_framing(&out, request);
    compose_hop(&out, request);
    compose_end(&out);
    CHECK(!out.overflow);
    head->length = out.length;
    return true;
}

bool fetch_head_replace(struct fetch_head *head, struct view fields) {
    size_t behind = head->fields_at + head->fields_length, rest = head->length - behind;
    char *data = malloc(head->length + fields.length);
    if (!data)
        return false;
    memcpy(data, head->data, head->fields_at);
    if (fields.length)
        memcpy(data + head->fields_at, fields.data, fields.length);
    memcpy(data + head->fields_at + fields.length, head->data + behind, rest);
    free(head->data);
    *head = (struct fetch_head){.data = data, .length = head->fields_at + fields.length + rest};
    return true;
}

bool fetch_head_interim(struct session *session, const struct http_head *head) {
    size_t room = bytes_of(head) + head->reason.length + OWN_BYTES;
    if (buffer_reserve(&session->out, room, SESSION_OUT_BYTES) < room)
        return false;
    struct composer out;
    compose_init(&out, session->out.data + session->out.end, room);
    compose_status_line(&out, head->status, head->reason);
    for (unsigned i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i];
        if (!field->hop || (head->status == 101 && field->id == FIELD_UPGRADE))
            compose_field(&out, field->name, field->value);
    }
    if (head->status == 101)
        compose_text(&out, "Connection: Upgrade\r\n");
    compose_format(&out, "Via: 1.%d %s\r\n", head->minor_version, session->settings->via_name);
    compose_end(&out);
    CHECK(!out.overflow);
    session->out.end += out.length;
    session_wake(session, EVENT_FETCH);
    return true;
}
