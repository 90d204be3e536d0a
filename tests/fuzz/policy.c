// A request, a response and a 304 or an answer to a HEAD, as the store's policy reads them: nothing
// overflows, nothing is used that may not be, and every decision is the same when asked again. The parts are
// divided by a NUL: request fields, response fields, fields of the update.
#include "cache/policy.h"
#include "admin/check.h"
#include "cache/budget.h"
#include "cache/update.h"
#include "cache/vary.h"
#include "http/condition.h"
#include "http/date.h"

#include <stdlib.h>
#include <string.h>

#define FIELDS 64
#define NOW 1700000000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct http_limits limits = {.head_bytes = 8192, .target_bytes = 256, .fields = FIELDS};
static const struct policy_limits any_size = {0, UINT64_MAX};

struct message {
    struct http_head head;
    struct http_field fields[FIELDS];
    char bytes[8192];
};

// Line feeds become CRLF, as the inputs are then easier to read and to mutate.
static struct view with_lines(struct message *message, const char *first, struct view fields) {
    size_t length = strlen(first);
    memcpy(message->bytes, first, length);
    for (size_t i = 0; i < fields.length && length < sizeof message->bytes - 8; i++) {
        if (fields.data[i] == '\n' && fields.data[i ? i - 1 : 0] != '\r')
            message->bytes[length++] = '\r';
        message->bytes[length++] = fields.data[i];
    }
    memcpy(message->bytes + length, "\r\n\r\n", 4);
    message->head = (struct http_head){.fields = message->fields, .field_capacity = FIELDS};
    return (struct view){message->bytes, length + 4};
}

static bool read_message(struct message *message, const char *first, struct view fields) {
    struct http_error error;
    struct view input = with_lines(message, first, fields);
    bool is_request = first[0] == 'G';
    return (is_request ? http_parse_request(input, 0, &limits, &message->head, &error)
                       : http_parse_response(input, 0, &limits, &message->head, &error)) == PARSE_DONE;
}

static struct view next_part(struct view *rest) {
    size_t length = view_find(*rest, 0);
    struct view part = view_take(*rest, length);
    *rest = view_skip(*rest, length + 1);
    return part;
}

static struct moment at(int64_t seconds) {
    return (struct moment){NOW + seconds, 5000 + seconds};
}

static void check_freshness(const struct freshness *freshness) {
    CHECK(freshness->initial_age_s >= 0 && freshness->initial_age_s <= NOW + DELTA_MAXIMUM + 60);
    CHECK(freshness->lifetime_s >= 0 && freshness->modified_age_s >= 0 && freshness->explicit_s >= 0);
    CHECK(freshness->lifetime_s <= (freshness->is_explicit ? 260000000000 : FRESHNESS_HEURISTIC_MAXIMUM_S));
    CHECK(freshness_age(freshness, at(100)) == freshness->initial_age_s + 100);
    CHECK(freshness->date_s >= 0);
}

static void check_use(const struct freshness *freshness, const struct cache_request *request,
        const struct refresh_rule *rule) {
    static const int64_t seconds[] = {0, 1, 60, 1000, DELTA_MAXIMUM};
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        const char *reason = NULL;
        enum use use = policy_use(request, freshness, rule, at(seconds[i]), &reason);
        bool is_over = freshness_age(freshness, at(seconds[i])) >= freshness_lifetime(freshness, rule);
        CHECK(reason);
        CHECK(use == USE_NOT || !freshness->no_cache);
        CHECK(use != USE_FRESH || !is_over);
        CHECK((use != USE_STALE && use != USE_REFRESH) || (is_over && !freshness->must_revalidate));
        CHECK(rule || use == USE_NOT || !request->control.no_cache);
        bool stands_in = freshness_on_error(
                freshness, &request->control, rule, at(seconds[i]), FRESHNESS_ERROR, &reason);
        CHECK(!stands_in || (!freshness->no_cache && !(is_over && freshness->must_revalidate)));
        CHECK(!stands_in || freshness_on_error(freshness, &request->control, rule, at(seconds[i]),
                                    FRESHNESS_DISCONNECTED, &reason));
    }
}

static void check_storing(const struct message *request, const struct cache_response *arrival,
        const struct cache_control *control, const struct freshness *freshness, bool vary_is_known) {
    struct policy_verdict verdict =
            policy_storable(&request->head, arrival, control, freshness, vary_is_known, &any_size);
    CHECK(verdict.reason && verdict.is_storable == (strcmp(verdict.reason, "stored") == 0));
    bool is_forbidden = (control->no_store && !control->must_understand) || control->is_private;
    CHECK(!verdict.is_storable || (!is_forbidden && vary_is_known));
    policy_post(&arrival->head[0], freshness, VIEW("a"), VIEW("/"));
}

static struct stored_head *check_head(const struct message *request, const struct message *response,
        const struct cache_control *control, const struct freshness *freshness) {
    char names_text[VARY_NAMES_BYTES], selectors_text[VARY_SELECTORS_BYTES];
    struct stored_head_source source = {.head = &response->head, .control = control, .date_s = NOW};
    bool is_known = vary_names(&response->head, names_text, &source.vary) &&
                    vary_select(source.vary, &request->head, selectors_text, &source.selectors);
    if (!is_known)
        source.vary = source.selectors = (struct view){"", 0};
    struct stored_head *stored = stored_head_new(&source);
    stored->freshness = *freshness;
    for (unsigned i = 0; i < stored->http.field_count; i++)
        CHECK(!stored->http.fields[i].hop && !cache_control_leaves_out(control, stored->http.fields[i].name));
    // who asked for it would get it again
    enum vary_rank rank = vary_rank(stored->vary, stored->selectors, &request->head, &stored->http);
    CHECK(rank == (stored->vary.length ? VARY_SELECTED : VARY_ANY));
    CHECK(vary_matches(stored->vary, stored->selectors, &request->head));
    return stored;
}

static void check_update(const struct stored_head *stored, const struct message *update) {
    const struct stored_head *all[] = {stored, stored};
    struct http_head merged;
    int one = update_choose(all, 1, &update->head), two = update_choose(all, 2, &update->head);
    CHECK(one >= -1 && one < 1 && two >= -1 && two < 2 && (two < 0 || one == 0));
    update_by_head(&stored->http, 5, &update->head);
    update_merge(&merged, &stored->http, &update->head);
    CHECK(merged.field_count <= merged.field_capacity);
    for (unsigned i = 0; i < merged.field_count; i++)
        CHECK(!merged.fields[i].hop);
    CHECK(http_field_total(&merged, FIELD_CONTENT_ENCODING) ==
            http_field_total(&stored->http, FIELD_CONTENT_ENCODING));
    free(merged.fields);
}

static void check_all(
        const struct message *request, const struct message *response, const struct message *update) {
    struct cache_request asked;
    struct cache_control control;
    struct freshness freshness;
    char names_text[VARY_NAMES_BYTES];
    struct view names;
    const char *reason;
    struct refresh_rule rule = {100, 1000, 20, 50, {true, true, false, true}, 5, 70, 80};
    struct cache_response arrival = {.head = &response->head, .content_length = -1, .has_body = true};
    cache_control_parse(&response->head, &control);
    freshness_of(&freshness, &response->head, &control, at(-3), at(0));
    check_freshness(&freshness);
    if (policy_read_request(&request->head, true, &asked, &reason)) {
        check_use(&freshness, &asked, NULL);
        check_use(&freshness, &asked, &rule);
    }
    check_storing(request, &arrival, &control, &freshness, vary_names(&response->head, names_text, &names));
    condition_evaluate(&request->head, &response->head, NOW);
    condition_range_applies(&request->head, &response->head, NOW);
    struct stored_head *stored = check_head(request, response, &control, &freshness);
    check_update(stored, update);
    free(stored);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct message request, response, update;
    struct view rest = {(const char *)data, size};
    if (size > 3000)
        return 0;
    if (read_message(&request, "GET / HTTP/1.1\r\nHost: a\r\n", next_part(&rest)) &&
            read_message(&response, "HTTP/1.1 200 OK\r\n", next_part(&rest)) &&
            read_message(&update, "HTTP/1.1 304 Not Modified\r\n", rest))
        check_all(&request, &response, &update);
    return 0;
}
