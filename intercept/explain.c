#include "intercept/explain.h"

#include "http/compose.h"
#include "http/framing.h"
#include "http/target.h"
#include "intercept/request.h"
#include "intercept/url_argument.h"
#include "intercept/worker.h"

#include <stdlib.h>
#include <string.h>

#define HTTP_PORT 80
#define HEAD_BYTES (CONTROL_REQUEST_BYTES * 2) // a line with its tabs made line ends, and Host

struct explain { // one call
    const struct supervisor *supervisor;
    FILE *out;
    const struct explain_writer *writer;
    struct explained explained;
    bool has_destination;
    struct endpoint destination;
    char bytes[HEAD_BYTES];
    struct http_head head;
    struct http_field fields[HTTP_FIELDS_MAX];
    struct http_target target;
    struct framing framing;
    char authority[AUTHORITY_BYTES];
    struct explained_place place;
    bool has_waited; // for a disk, in vain
};

// ---- reading the call ----

static struct view next_word(struct view *rest) {
    size_t end = view_find(*rest, '\t');
    struct view word = view_take(*rest, end);
    *rest = view_skip(*rest, end + 1);
    return word;
}

bool explain_read_destination(struct view text, struct endpoint *destination) {
    struct authority authority = {.host = text};
    *destination = (struct endpoint){.port = HTTP_PORT};
    if (address_parse(text, &destination->address))
        return true;
    if (!authority_parse(text, &authority) || !address_parse(authority.host, &destination->address))
        return false;
    destination->port = authority.port ? authority.port : HTTP_PORT;
    return true;
}

// The head that a client would have sent.
static const char *write_head(struct explain *explain, struct view fields, size_t *length) {
    struct url_argument url;
    const char *why = url_argument_read(explain->explained.url, &url);
    if (why)
        return why;
    char authority[AUTHORITY_BYTES];
    size_t authority_length = authority_normalise(&url.authority, authority, sizeof authority);
    struct composer out;
    compose_init(&out, explain->bytes, sizeof explain->bytes);
    compose_view(&out, explain->explained.method);
    compose_text(&out, url.path.length && url.path.data[0] == '/' ? " " : " /");
    compose_view(&out, url.path);
    compose_text(&out, " HTTP/1.1\r\nHost: ");
    compose_view(&out, (struct view){authority, authority_length});
    compose_text(&out, "\r\n");
    while (fields.length) {
        compose_view(&out, next_word(&fields));
        compose_text(&out, "\r\n");
    }
    compose_text(&out, "\r\n");
    *length = out.length;
    return out.overflow ? "the request is too long" : NULL;
}

static const char *read_head(struct explain *explain, struct view fields) {
    const struct config *config = explain->supervisor->settings->config;
    struct http_limits limits = {.head_bytes = (size_t)config->head_bytes,
            .target_bytes = (size_t)config->target_bytes,
            .fields = (unsigned)config->fields};
    struct http_error error = {0};
    size_t length = 0;
    const char *why = write_head(explain, fields, &length);
    if (why)
        return why;
    struct http_head *head = &explain->head;
    *head = (struct http_head){.fields = explain->fields, .field_capacity = HTTP_FIELDS_MAX};
    switch (http_parse_request((struct view){explain->bytes, length}, 0, &limits, head, &error)) {
    case PARSE_MORE:
        return "that is no whole request head";
    case PARSE_BAD:
        return error.why;
    case PARSE_DONE:
        break;
    }
    if (target_of_request(head, &explain->target, &error) == PARSE_BAD ||
            framing_of_request(head, &explain->framing, &error) == PARSE_BAD)
        return error.why;
    struct explained *explained = &explain->explained;
    size_t name =
            authority_normalise(&explain->target.authority, explain->authority, sizeof explain->authority);
    explained->authority = (struct view){explain->authority, name};
    explained->path = explain->target.path;
    return name ? NULL : "that URL has no valid host";
}

// NULL, or what is wrong with it.
static const char *read_call(struct explain *explain, struct view words) {
    struct explained *explained = &explain->explained;
    struct view form = next_word(&words);
    explain->writer = view_equal(form, VIEW("json")) ? &explain_json : &explain_text;
    explained->url = next_word(&words);
    explained->method = next_word(&words);
    struct view client = next_word(&words), destination = next_word(&words);
    explained->has_client = client.length > 0;
    explain->has_destination = destination.length > 0;
    if (explained->has_client && !address_parse(client, &explained->client))
        return "--client takes an IP address";
    if (explain->has_destination && !explain_read_destination(destination, &explain->destination))
        return "--destination takes IP or IP:PORT";
    return read_head(explain, words);
}

// ---- walking ----

static void ask_store(struct explain *explain, const struct acl_request *acl) {
    const struct supervisor *supervisor = explain->supervisor;
    struct explained_place *place = &explain->place;
    place->is_never_stored = acl_no_cache_rule(supervisor->settings->acl, acl, &place->store_rule);
    const struct settings *settings = supervisor->settings;
    struct cache_rules rules;
    place->gave_up = !store_rules_find(
            settings->store_rules, explain->explained.authority, explain->explained.path, &rules);
    place->refresh = store_rules_line(settings->store_rules, rules.refresh);
    struct cache_query query = {.head = &explain->head,
            .destination = place->destination,
            .authority = explain->explained.authority,
            .path = explain->explained.path,
            .now = moment_of_ms(clock_wall_ms(), clock_monotonic_ms()),
            .rules = &rules,
            .skips_disk = explain->has_waited, // once is enough
            .is_offline = uplink_watch_is_offline(supervisor->daemon->uplink, settings->config),
            .store_allowed =
                    request_fits_store(&explain->head, &explain->framing) && !place->is_never_stored};
    cache_explain(supervisor->daemon->cache, &query, &place->cache);
    explain->has_waited |= place->cache.is_unread;
}

static void walk(struct explain *explain, const struct endpoint *destination, unsigned number) {
    const struct supervisor *supervisor = explain->supervisor;
    struct explained *explained = &explain->explained;
    struct explained_place *place = &explain->place;
    memset(place, 0, sizeof *place);
    place->is_known = destination != NULL;
    if (destination)
        place->destination = *destination;
    place->is_own = destination && own_addresses_has(supervisor->daemon->own, &destination->address);
    struct acl_request acl = {.scheme = VIEW("http"),
            .host = explain->target.authority.host,
            .port = explain->target.authority.port,
            .path = explained->path,
            .destination = place->destination};
    place->verdict = acl_url(supervisor->settings->acl, &acl, &place->rule);
    place->is_refused = place->is_own || place->verdict != ACL_ALLOW ||
                        (explained->has_client && explained->client_verdict != ACL_ALLOW);
    ask_store(explain, &acl);
    explain->writer->place(explained, place, number, explain->out);
}

// Where it may be: where the call says, else where it is stored, else where a host that is an address leads.
static void walk_all(struct explain *explain) {
    struct endpoint places[EXPLAIN_DESTINATIONS_MAX];
    struct explained *explained = &explain->explained;
    unsigned count = cache_destinations(
            explain->supervisor->daemon->cache, explained->authority, explained->path, places);
    explained->destination_count = count;
    count = count < EXPLAIN_DESTINATIONS_MAX ? count : EXPLAIN_DESTINATIONS_MAX;
    if (explain->has_destination)
        places[0] = explain->destination;
    else if (count == 0)
        explain->has_destination = explain_read_destination(explained->authority, &places[0]);
    if (explain->has_destination)
        count = 1;
    explain->writer->begin(explained, explain->out);
    if (count == 0)
        walk(explain, NULL, 0);
    for (unsigned i = 0; i < count; i++)
        walk(explain, &places[i], i);
    explain->writer->end(explained, explain->out);
}

void explain_answer(const struct supervisor *supervisor, struct view request, FILE *out) {
    struct explain *explain = calloc(1, sizeof *explain);
    if (!explain) {
        fputs("error: out of memory\n", out);
        return;
    }
    explain->supervisor = supervisor;
    explain->out = out;
    next_word(&request); // "explain"
    const char *why = read_call(explain, request);
    if (why) {
        fprintf(out, "error: %s\n", why);
    } else {
        struct explained *explained = &explain->explained;
        if (explained->has_client)
            explained->client_verdict =
                    acl_client(supervisor->settings->acl, &explained->client, &explained->client_rule);
        fputs("ok\n", out);
        walk_all(explain);
    }
    free(explain);
}
