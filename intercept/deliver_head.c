#include "intercept/deliver_head.h"

#include "admin/check.h"
#include "http/compose.h"
#include "http/condition.h"
#include "http/date.h"
#include "http/range.h"
#include "intercept/cache_status.h"
#include "intercept/parts.h"
#include "intercept/request.h"
#include "intercept/worker.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define OWN_FIELDS_BYTES 1024 // what weir adds to a head, at the most

static bool is_from_store(const struct request *request) {
    return request->lookup == LOOKUP_HIT || request->lookup == LOOKUP_JOIN || request->is_asked_by_store ||
           request->stored.source != SOURCE_ORIGIN;
}

static struct view type_of(const struct http_head *head) {
    const struct http_field *type = http_field_find(head, FIELD_CONTENT_TYPE, 0);
    return type ? type->value : VIEW("");
}

// In the order asked for, where the bytes need not be waited for.
static enum answer begin_parts(struct request *request, uint64_t size) {
    bool is_there = request->lookup == LOOKUP_HIT || request->fill_kind == FILL_NOT_MODIFIED;
    if (!is_there)
        range_sort(&request->parts->ranges);
    parts_init(request->parts, size, type_of(request->stored.head));
    return ANSWER_RANGE;
}

// Ranges of a whole that is stored, or arrives to be.
static enum answer choose_range(struct session *session) {
    struct request *request = session->request;
    int64_t size = request->stored.content_length, now_s = loop_wall_ms(session->worker->loop) / 1000;
    if (!request->parts || size < 0 || !condition_range_applies(&request->head, request->stored.head, now_s))
        return ANSWER_WHOLE;
    switch (range_of_request(&request->head, (uint64_t)size, &request->parts->ranges)) {
    case RANGES_NONE:
        return ANSWER_WHOLE;
    case RANGES_SOME:
        return begin_parts(request, (uint64_t)size);
    case RANGES_UNSATISFIABLE:
        return ANSWER_UNSATISFIABLE;
    }
    UNREACHABLE("ranges");
}

// What was asked for out of the origin's 206, which may hold more than that.
static enum answer choose_from_partial(struct request *request) {
    struct content_range given;
    if (!request->parts || !content_range_of(request->stored.head, request->stored.content_length, &given) ||
            !given.has_size ||
            range_of_request(&request->head, given.size, &request->parts->ranges) != RANGES_SOME)
        return ANSWER_WHOLE;
    for (unsigned i = 0; i < request->parts->ranges.count; i++)
        if (request->parts->ranges.all[i].first < given.range.first ||
                request->parts->ranges.all[i].last > given.range.last)
            return ANSWER_WHOLE;
    return begin_parts(request, given.size);
}

static enum answer choose(struct session *session) {
    struct request *request = session->request;
    if (request->stored.status == 206)
        return choose_from_partial(request);
    if (request->stored.status != 200)
        return ANSWER_WHOLE;
    if (!is_from_store(request)) // as the origin decided, but what is stored of it can be given in ranges
        return request->fill_kind == FILL_STORE ? choose_range(session) : ANSWER_WHOLE;
    switch (condition_evaluate(
            &request->head, request->stored.head, loop_wall_ms(session->worker->loop) / 1000)) {
    case CONDITION_NOT_MODIFIED:
        return ANSWER_NOT_MODIFIED;
    case CONDITION_FAILED:
        return ANSWER_FAILED;
    case CONDITION_NONE:
        break;
    }
    return choose_range(session);
}

// Where the ranges asked for are laid out. False without memory.
static bool make_parts(struct request *request) {
    if (!http_field_find(&request->head, FIELD_RANGE, 0) || request->head.method_id != METHOD_GET ||
            request->parts)
        return true;
    return (request->parts = calloc(1, sizeof *request->parts)) != NULL;
}

// A 304 tells what may have changed of the stored response, not what describes its content [RFC 9110
// §15.4.5].
static bool describes_content(enum field_id id) {
    return id == FIELD_CONTENT_TYPE || id == FIELD_CONTENT_ENCODING || id == FIELD_CONTENT_LANGUAGE ||
           id == FIELD_CONTENT_RANGE;
}

// A refusal is not the stored response: nobody downstream is to keep it for as long.
static bool is_about_keeping(enum field_id id) {
    return id == FIELD_CACHE_CONTROL || id == FIELD_EXPIRES || id == FIELD_ETAG || id == FIELD_LAST_MODIFIED;
}

// Said anew of the ranges that go out.
static bool is_of_parts(const struct parts *parts, enum field_id id) {
    return id == FIELD_CONTENT_RANGE || (id == FIELD_CONTENT_TYPE && parts_are_several(parts));
}

// [RFC 9110 §15.3.7.2]: a Content-Range in the head is of a single part alone.
static void compose_range(struct composer *out, const struct parts *parts) {
    if (parts_are_several(parts))
        compose_format(out, "Content-Type: multipart/byteranges; boundary=%s\r\n", parts->boundary);
    else
        compose_format(out, "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n",
                parts->ranges.all[0].first, parts->ranges.all[0].last, parts->size);
}

static void compose_fields(struct composer *out, const struct request *request, enum answer answer) {
    const struct http_head *head = request->stored.head;
    for (unsigned i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i];
        if (field->hop || field->id == FIELD_CONTENT_LENGTH || field->id == FIELD_AGE)
            continue;
        if (answer != ANSWER_WHOLE && answer != ANSWER_RANGE && describes_content(field->id))
            continue;
        if ((answer == ANSWER_UNSATISFIABLE || answer == ANSWER_FAILED) && is_about_keeping(field->id))
            continue;
        if (answer == ANSWER_RANGE && is_of_parts(request->parts, field->id))
            continue;
        compose_field(out, field->name, field->value);
    }
}

static enum cache_source source_of(const struct request *request) {
    enum cache_source source = request->stored.source;
    if (source != SOURCE_ORIGIN || request->lookup == LOOKUP_JOIN)
        return source;
    if (request->lookup == LOOKUP_HIT)
        return request->stored.lifetime_s > request->stored.age_s ? SOURCE_STORED : SOURCE_STALE;
    bool is_confirmed = request->origin_status && request->fill_kind == FILL_NOT_MODIFIED;
    return is_confirmed ? SOURCE_CONFIRMED : SOURCE_ORIGIN;
}

static bool is_being_stored(const struct request *request) {
    bool is_asking = request->lookup != LOOKUP_HIT && request->lookup != LOOKUP_JOIN;
    return is_asking && request->origin_status && request->fill_kind == FILL_STORE;
}

static enum result result_of(const struct request *request) {
    bool is_joined = request->lookup == LOOKUP_JOIN;
    switch (source_of(request)) {
    case SOURCE_STALE: // or only in want of a confirmation that was not to be had
        return request->stored.lifetime_s > request->stored.age_s ? RESULT_HIT : RESULT_STALE;
    case SOURCE_CONFIRMED:
        return is_joined ? RESULT_JOINED : RESULT_REVALIDATED;
    case SOURCE_STORED:
        return is_joined ? RESULT_JOINED : RESULT_HIT;
    case SOURCE_ORIGIN:
        return is_joined ? RESULT_JOINED : is_being_stored(request) ? RESULT_MISS : RESULT_PASS;
    }
    UNREACHABLE("source");
}

static void set_result(struct session *session) {
    struct request *request = session->request;
    bool is_stored = request->stored.source != SOURCE_ORIGIN && request->stored.reason;
    request->reason = is_stored ? request->stored.reason : request->lookup_reason;
    if (is_stored && strcmp(request->reason, "refresh-max-stale") == 0) // known since the origin failed
        counter_add(&session->worker->counters, COUNTER_refresh_max_stale, 1);
    request->result = result_of(request);
}

static bool tells_status(const struct session *session) {
    int choice = session->settings->config->cache_status;
    return choice == CACHE_STATUS_ON || (choice == CACHE_STATUS_AUTO && session->arrival == ORIGDST_FORWARD);
}

static void compose_status(struct composer *out, const struct session *session) {
    const struct request *request = session->request;
    const struct cache_head *stored = &request->stored;
    bool is_origins = source_of(request) == SOURCE_ORIGIN && request->lookup != LOOKUP_JOIN;
    struct cache_status status = {.lookup = request->lookup,
            .source = source_of(request),
            .asked = request->asked,
            .reason = request->reason,
            .is_stored = is_being_stored(request),
            .origin_status = request->origin_status,
            .has_ttl = !is_origins || is_being_stored(request),
            .ttl_s = stored->lifetime_s - (stored->age_s > 0 ? stored->age_s : 0),
            .destination = &session->destination};
    char member[CACHE_STATUS_BYTES];
    size_t length = cache_status_compose(&status, member);
    compose_text(out, "Cache-Status: ");
    compose_view(out, (struct view){member, length});
    compose_text(out, "\r\n");
}

// How the client learns where the content ends.
static void choose_framing(struct session *session, enum answer answer, int64_t *length) {
    struct request *request = session->request;
    const struct cache_head *stored = &request->stored;
    *length = stored->content_length;
    request->no_content = !stored->has_body || request->head.method_id == METHOD_HEAD ||
                          answer == ANSWER_NOT_MODIFIED || answer == ANSWER_FAILED ||
                          answer == ANSWER_UNSATISFIABLE;
    if (answer == ANSWER_FAILED || answer == ANSWER_UNSATISFIABLE)
        *length = 0;
    if (answer == ANSWER_RANGE)
        *length = (int64_t)parts_content_length(request->parts);
    if (answer == ANSWER_NOT_MODIFIED)
        *length = -1;
    if (request->no_content || *length >= 0)
        return;
    if (request->head.minor_version == 1)
        request->chunked = true;
    else
        session->closing = true;
}

static void compose_framing(struct composer *out, struct session *session, int64_t length) {
    struct request *request = session->request;
    if (length >= 0)
        compose_format(out, "Content-Length: %lld\r\n", (long long)length);
    else if (request->chunked)
        compose_text(out, "Transfer-Encoding: chunked\r\n");
    if (!request->body_done || session->worker->draining)
        session->closing = true; // the response comes before the request is over
    if (session->closing)
        compose_text(out, "Connection: close\r\n");
    else if (request->head.minor_version == 0)
        compose_text(out, "Connection: keep-alive\r\n");
}

static void compose_own_fields(struct composer *out, struct session *session) {
    struct request *request = session->request;
    const struct cache_head *stored = &request->stored;
    char date[DATE_BYTES];
    if (stored->age_s >= 0)
        compose_format(out, "Age: %lld\r\n", (long long)stored->age_s);
    if (!http_field_find(stored->head, FIELD_DATE, 0)) // [RFC 9110 §6.6.1]
        compose_format(out, "Date: %s\r\n", date_print(loop_wall_ms(session->worker->loop) / 1000, date));
    compose_text(out, stored->minor_version == 0 ? "Via: 1.0 " : "Via: 1.1 ");
    compose_text(out, session->settings->via_name);
    compose_text(out, "\r\n");
    if (tells_status(session))
        compose_status(out, session);
}

static int status_of(const struct request *request, enum answer answer) {
    switch (answer) {
    case ANSWER_WHOLE:
        return request->stored.status;
    case ANSWER_NOT_MODIFIED:
        return 304;
    case ANSWER_FAILED:
        return 412;
    case ANSWER_RANGE:
        return 206;
    case ANSWER_UNSATISFIABLE:
        return 416;
    }
    UNREACHABLE("answer");
}

static size_t head_bytes(const struct http_head *head) {
    size_t bytes = OWN_FIELDS_BYTES + head->reason.length;
    for (unsigned i = 0; i < head->field_count; i++)
        bytes += head->fields[i].name.length + head->fields[i].value.length + 4;
    return bytes;
}

bool deliver_head_choose(struct session *session, enum answer *answer) {
    struct request *request = session->request;
    set_result(session);
    if (!make_parts(request))
        return false;
    *answer = choose(session);
    if (*answer != ANSWER_RANGE) {
        free(request->parts);
        request->parts = NULL;
    }
    return true;
}

bool deliver_head_compose(struct session *session, enum answer answer) {
    struct request *request = session->request;
    size_t room = head_bytes(request->stored.head);
    int64_t length;
    if (buffer_reserve(&session->out, room, SESSION_OUT_BYTES + room) < room)
        return false;
    struct composer out;
    compose_init(&out, session->out.data + session->out.end, room);
    request->status = status_of(request, answer);
    compose_status_line(
            &out, request->status, answer == ANSWER_WHOLE ? request->stored.head->reason : VIEW(""));
    compose_fields(&out, request, answer);
    choose_framing(session, answer, &length);
    if (answer == ANSWER_RANGE) {
        compose_range(&out, request->parts);
    } else if (answer == ANSWER_UNSATISFIABLE) {
        compose_format(&out, "Content-Range: bytes */%" PRId64 "\r\n", request->stored.content_length);
    }
    compose_own_fields(&out, session);
    compose_framing(&out, session, length);
    compose_end(&out);
    CHECK(!out.overflow);
    session->out.end += out.length;
    request->answered = true;
    request->expects_continue = false;
    return true;
}
