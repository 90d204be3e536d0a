// The consuming side of the façade.
#include "admin/check.h"
#include "cache/partial.h"
#include "cache/store.h"
#include "cache/tier.h"
#include "cache/vary.h"

// ---- the head ----

struct news { // what a reader finds at its object
    bool is_confirmed, stands_in, is_refused;
    enum freshness_trouble trouble;
};

// On to the object that was confirmed, or that stands in. The lock of the old one is held, and is released
// here.
static void follow(struct cache_reader *reader) {
    struct cache_object *from = reader->object;
    object_unlink_reader(from, reader);
    reader->object = object_get(from->successor);
    reader->source = from->stands_in ? SOURCE_STALE : SOURCE_CONFIRMED;
    reader->reason = from->reason;
    reader->offset = reader->object->start;
    pthread_mutex_unlock(&from->lock);
    object_put(from);
    CHECK(object_phase(reader->object) == PHASE_WHOLE);
}

// Whether a joiner may have this response: stored for everyone, its variant, and fresh enough for it or just
// confirmed.
static bool is_for(const struct stored_head *head, const struct cache_query *query, const struct news *news) {
    struct cache_request request;
    const char *reason;
    if (vary_rank(head->vary, head->selectors, query->head, &head->http) == VARY_OTHER)
        return false;
    if (news->is_confirmed)
        return true;
    if (!policy_read_request(query->head, query->store_allowed, &request, &reason))
        return false;
    if (news->stands_in)
        return freshness_on_error(&head->freshness, &request.control, store_rule(query->rules), query->now,
                news->trouble, &reason);
    return policy_use(&request, &head->freshness, store_rule(query->rules), query->now, &reason) != USE_NOT;
}

static enum reader_role decide(struct cache_object *object, enum reader_role role, const struct news *news,
        const struct cache_query *query) {
    if (role != ROLE_JOINED && role != ROLE_HIT)
        return role;
    if (object_phase(object) == PHASE_BROKEN)
        return ROLE_GONE; // nothing was delivered yet, so it can still go on its own
    if (role == ROLE_HIT && !news->stands_in)
        return ROLE_READING;
    if (!partial_serves(object, query))
        return ROLE_GONE;
    return !news->is_refused && is_for(object->head, query, news) ? ROLE_READING : ROLE_GONE;
}

static void set_role(struct cache_reader *reader, enum reader_role role) {
    if (reader->role == role)
        return;
    struct cache_object *object = reader->object;
    if (!reader->linked) {
        reader->role = (unsigned char)role;
        return;
    }
    pthread_mutex_lock(&object->lock);
    reader->role = (unsigned char)role;
    if (role == ROLE_GONE)
        object_reader_passed(object);
    pthread_mutex_unlock(&object->lock);
}

static int64_t content_length(struct cache_object *object) {
    if (object_phase(object) != PHASE_WHOLE || !object->head->has_body)
        return object->head->content_length;
    return (int64_t)(object->end ? object->end - object->start : object->size);
}

static enum cache_source source_of(const struct cache_reader *reader, int64_t age_s, int64_t lifetime_s) {
    if (reader->source != SOURCE_STORED)
        return (enum cache_source)reader->source;
    return age_s < lifetime_s ? SOURCE_STORED : SOURCE_STALE;
}

static void fill_out(
        const struct cache_reader *reader, const struct cache_query *query, struct cache_head *out) {
    const struct stored_head *head = reader->object->head;
    bool is_first_delivery = reader->role == ROLE_OWN && reader->source == SOURCE_ORIGIN;
    int64_t age_s = freshness_age(&head->freshness, query->now);
    int64_t lifetime_s = freshness_lifetime(&head->freshness, store_rule(query->rules));
    *out = (struct cache_head){.source = source_of(reader, age_s, lifetime_s),
            .reason = reader->reason ? reader->reason : reader->object->reason,
            .lifetime_s = lifetime_s,
            .status = head->http.status,
            .minor_version = head->http.minor_version,
            .head = is_first_delivery && head->first ? head->first : &head->http,
            .content_length = content_length(reader->object),
            .age_s = is_first_delivery && !head->freshness.has_age ? -1 : age_s,
            .has_body = head->has_body};
}

// False: there is none yet, and the reader will be woken.
static bool look(struct cache_reader *reader, struct news *news) {
    struct cache_object *object = reader->object;
    if (object_phase(object) == PHASE_WHOLE)
        return true;
    pthread_mutex_lock(&object->lock);
    enum phase phase = object_phase(object);
    news->is_refused = object->refused;
    if (phase == PHASE_PASSED_ON) {
        news->stands_in = object->stands_in;
        news->is_confirmed = !object->stands_in;
        news->trouble = object->trouble;
        follow(reader);
        news->is_refused = news->is_confirmed && reader->object->refused; // what a 304 has made of it
        return true;
    }
    reader->waiting = phase == PHASE_PENDING;
    reader->has_head = phase != PHASE_PENDING; // from here on nothing else can stand in for it
    pthread_mutex_unlock(&object->lock);
    return phase != PHASE_PENDING;
}

enum read cache_reader_head(
        struct cache_reader *reader, const struct cache_query *query, struct cache_head *out) {
    struct news news = {.is_confirmed = false};
    CHECK(reader->object);
    if (!look(reader, &news))
        return READ_WAIT;
    struct cache_object *object = reader->object;
    set_role(reader, decide(object, (enum reader_role)reader->role, &news, query));
    if (reader->role == ROLE_GONE)
        return READ_GONE;
    if (object_phase(object) == PHASE_BROKEN && !object->head)
        return READ_BROKEN;
    fill_out(reader, query, out);
    return READ_READY;
}

// ---- the content ----

// What is not there, and is brought by nobody.
static enum read read_absent(const struct cache_reader *reader) {
    struct cache_object *object = reader->object;
    // Only after the look: whoever ends a flow has said before what became of it.
    enum phase phase = object_phase(object);
    switch (phase) {
    case PHASE_PENDING:
    case PHASE_PASSED_ON:
        break;
    case PHASE_ARRIVING:
    case PHASE_WHOLE:
    case PHASE_ENDED:
    case PHASE_BROKEN:
        return partial_can_ask(object) ? READ_HOLE : READ_BROKEN;
    }
    UNREACHABLE("a phase of an object that is read");
}

// All bytes are there. Whether they are what was announced is known when the message has ended.
static enum read read_end(struct cache_reader *reader) {
    struct cache_object *object = reader->object;
    if (!reader->linked)
        return READ_END;
    pthread_mutex_lock(&object->lock);
    enum phase phase = object_phase(object);
    reader->waiting = phase == PHASE_ARRIVING;
    pthread_mutex_unlock(&object->lock);
    if (phase == PHASE_ARRIVING)
        return READ_WAIT;
    return phase == PHASE_BROKEN && !body_was_askable(object->body) ? READ_BROKEN : READ_END;
}

static void cut_pieces(struct iovec *pieces, int *used, uint64_t most) {
    int count = 0;
    for (; count < *used && most > 0; count++) {
        pieces[count].iov_len = pieces[count].iov_len < most ? pieces[count].iov_len : (size_t)most;
        most -= pieces[count].iov_len;
    }
    *used = count;
}

static enum read look_at(struct cache_reader *reader, struct iovec *pieces, int count, int *used) {
    struct cache_object *object = reader->object;
    if (object->end && reader->offset >= object->end) // of a 206, whose body may have more than it gives
        return read_end(reader);
    switch (body_look(object->body, reader, pieces, count, used)) {
    case BODY_HERE:
        if (object->end)
            cut_pieces(pieces, used, object->end - reader->offset);
        return READ_READY;
    case BODY_COMING:
        return READ_WAIT;
    case BODY_OVER:
        return read_end(reader);
    case BODY_ON_DISK: // it would have been read
    case BODY_ABSENT:
        return read_absent(reader);
    }
    UNREACHABLE("a look at a body");
}

bool cache_reader_is_cut(struct cache_reader *reader) {
    struct cache_object *object = reader->object;
    if (!reader->linked)
        return false;
    pthread_mutex_lock(&object->lock);
    bool is_cut = reader->is_cut;
    pthread_mutex_unlock(&object->lock);
    return is_cut;
}

enum read cache_reader_peek(struct cache_reader *reader, struct iovec *pieces, int count, int *used) {
    struct cache_object *object = reader->object;
    CHECK(object && reader->role != ROLE_GONE && count > 0);
    if (object_phase(object) != PHASE_WHOLE) {
        pthread_mutex_lock(&object->lock);
        CHECK(object_phase(object) != PHASE_PASSED_ON); // the head comes first
        bool is_cut = reader->is_cut;
        reader->has_head = true;
        pthread_mutex_unlock(&object->lock);
        if (is_cut)
            return READ_BROKEN;
    }
    return look_at(reader, pieces, count, used);
}

void cache_reader_advance(struct cache_reader *reader, uint64_t bytes) {
    struct cache_object *object = reader->object;
    CHECK(object && reader->chunk && bytes <= reader->run_end - reader->offset);
    if (!reader->linked) {
        reader->offset += bytes;
        return;
    }
    pthread_mutex_lock(&object->lock);
    bool was_slowest = reader->offset <= object->floor;
    reader->offset += bytes;
    if (was_slowest)
        object_reader_passed(object);
    pthread_mutex_unlock(&object->lock);
}

void cache_reader_rest(struct cache_reader *reader) {
    body_rest(reader);
}

// Forwards, to where the bytes may still be waited for; backwards only where nothing is freed behind a
// reader.
static bool seek_arriving(struct cache_reader *reader, struct cache_object *object, uint64_t offset) {
    if (object_phase(object) == PHASE_PENDING || offset < object->start ||
            (object->frees && offset < reader->offset))
        return false;
    bool was_slowest = reader->offset <= object->floor;
    reader->offset = offset;
    if (was_slowest)
        object_reader_passed(object);
    return true;
}

bool cache_reader_seek(struct cache_reader *reader, uint64_t offset) {
    struct cache_object *object = reader->object;
    CHECK(object);
    if (object->size != SIZE_UNKNOWN && offset > object->size)
        return false;
    // What it was shown says nothing of what lies before that, and it awaits other bytes now.
    body_rest(reader);
    if (reader->has_waited)
        body_leave(object->body, reader);
    if (!reader->linked) {
        reader->offset = offset;
        return true;
    }
    pthread_mutex_lock(&object->lock);
    bool is_possible = seek_arriving(reader, object, offset);
    pthread_mutex_unlock(&object->lock);
    return is_possible;
}

void cache_reader_detach(struct cache_reader *reader) {
    struct cache_object *object = reader->object;
    tier_leave(reader);
    if (!object)
        return;
    body_rest(reader);
    if (reader->has_waited)
        body_leave(object->body, reader);
    if (reader->linked) {
        pthread_mutex_lock(&object->lock);
        object_unlink_reader(object, reader);
        object_reader_passed(object);
        pthread_mutex_unlock(&object->lock);
    }
    *reader = (struct cache_reader){.wake = reader->wake};
    object_put(object);
}
