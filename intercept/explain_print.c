// What `weir explain` shows, for people and for programs. What peers and origins sent is escaped.
#include "admin/check.h"
#include "admin/json.h"
#include "admin/option.h"
#include "cache/reason.h"
#include "intercept/explain.h"

#include <inttypes.h>
#include <string.h>

// ---- both ----

static const char *lookup_word(enum lookup lookup) {
    switch (lookup) {
    case LOOKUP_HIT:
        return "HIT";
    case LOOKUP_STALE:
        return "STALE";
    case LOOKUP_JOIN:
        return "JOIN";
    case LOOKUP_MISS:
        return "MISS";
    case LOOKUP_PASS:
        return "PASS";
    case LOOKUP_WAIT:
        return "WAIT";
    }
    UNREACHABLE("lookup");
}

static const char *state_word(enum variant_state state) {
    switch (state) {
    case VARIANT_STORED:
        return "stored";
    case VARIANT_ARRIVING:
        return "arriving";
    case VARIANT_AWAITED:
        return "awaited";
    }
    UNREACHABLE("variant state");
}

static const char *meaning_of(const char *word) {
    const struct reason *reason = reason_find(word);
    return reason ? reason->meaning : "";
}

static struct view next_line(struct view *rest) {
    size_t end = view_find(*rest, '\n');
    struct view line = view_take(*rest, end);
    *rest = view_skip(*rest, end + 1);
    return line.length && line.data[line.length - 1] == '\r' ? view_take(line, line.length - 1) : line;
}

static unsigned shown_variants(const struct cache_explanation *cache) {
    return cache->variant_count < EXPLAIN_VARIANTS_MAX ? cache->variant_count : EXPLAIN_VARIANTS_MAX;
}

// ---- text ----

static void put_plain(struct view text, FILE *out) {
    char piece[JSON_PIECE_BYTES];
    size_t length = 0;
    while (text.length) {
        bool is_itself = text.data[0] == '"' || text.data[0] == '\\';
        if (is_itself) {
            fputc(text.data[0], out);
            text = view_skip(text, 1);
            continue;
        }
        text = view_skip(text, json_escape_one(text, piece, &length));
        fwrite(piece, 1, length, out);
    }
}

static void put_rule(const struct acl_match *match, const char *without, FILE *out) {
    if (match->rule.length == 0) {
        fprintf(out, "%s\n", without);
        return;
    }
    fputs("by \"", out);
    put_plain(match->rule, out);
    fprintf(out, "\" (%s:%u)\n", match->file ? match->file : "-", match->line);
}

static const char *allowed_word(bool is_allowed) {
    return is_allowed ? "allowed, " : "refused, ";
}

static struct view refresh_text(const struct directive *refresh, char out[static EXPLAIN_TEXT_BYTES]) {
    size_t used = (size_t)snprintf(out, EXPLAIN_TEXT_BYTES, "%s", option_table[refresh->id].name);
    for (unsigned i = 0; i < refresh->word_count && used < EXPLAIN_TEXT_BYTES; i++)
        used += (size_t)snprintf(out + used, EXPLAIN_TEXT_BYTES - used, " %s", refresh->words[i].text);
    return (struct view){out, used < EXPLAIN_TEXT_BYTES ? used : EXPLAIN_TEXT_BYTES - 1};
}

static void text_refresh(const struct explained_place *place, FILE *out) {
    char text[EXPLAIN_TEXT_BYTES];
    if (place->gave_up)
        fputs("  refresh   an expression gave up on this URL: the standards alone\n", out);
    if (!place->refresh)
        return;
    fputs("  refresh   by \"", out);
    put_plain(refresh_text(place->refresh, text), out);
    fprintf(out, "\" (%s:%u)\n", place->refresh->file, place->refresh->line);
}

static void text_begin(const struct explained *explained, FILE *out) {
    char text[ADDRESS_TEXT_BYTES];
    put_plain(explained->method, out);
    fputc(' ', out);
    put_plain(explained->url, out);
    fputc('\n', out);
    if (explained->has_client) {
        fprintf(out, "client %s: %s", address_print(&explained->client, text),
                allowed_word(explained->client_verdict == ACL_ALLOW));
        put_rule(&explained->client_rule, "no rule holds it", out);
    }
}

// What the client would get, before anything is asked.
static const char *answer_of(const struct explained_place *place) {
    const struct cache_explanation *cache = &place->cache;
    if (place->is_refused)
        return "403, from a rule above: neither the store nor the origin is asked";
    if (cache->is_unavailable)
        return "504";
    switch (cache->lookup) {
    case LOOKUP_HIT:
        return cache->is_refreshed ? "from the store, which is refreshed meanwhile" : "from the store";
    case LOOKUP_STALE:
        return "from the store if the origin confirms it, else from the origin";
    case LOOKUP_JOIN:
        return "from a fetch that runs already";
    case LOOKUP_MISS:
        return "from the origin, and offered to the store";
    case LOOKUP_PASS:
        return "from the origin, past the store";
    case LOOKUP_WAIT:
        return "what is on the disk decides, which is being read";
    }
    UNREACHABLE("lookup");
}

static void text_vary(const struct cache_variant *variant, FILE *out) {
    struct view names = view_of(variant->vary), values = view_of(variant->selectors);
    while (names.length) {
        size_t end = view_find(names, ',');
        struct view value = next_line(&values);
        fputs("            Vary: ", out);
        put_plain(view_take(names, end), out);
        if (value.length && value.data[0] == '=') {
            fputs(" = \"", out);
            put_plain(view_skip(value, 1), out);
            fputs("\"\n", out);
        } else {
            fputs(" absent\n", out);
        }
        names = view_skip(names, end + 1);
    }
}

static void text_field(const char *name, const char *value, FILE *out) {
    if (!*value)
        return;
    fprintf(out, "            %s: ", name);
    put_plain(view_of(value), out);
    fputc('\n', out);
}

static void text_age(const struct cache_variant *variant, FILE *out) {
    int64_t left_s = variant->lifetime_s - variant->age_s;
    fprintf(out, "            age %" PRId64 " s, lifetime %" PRId64 " s: ", variant->age_s,
            variant->lifetime_s);
    if (left_s > 0)
        fprintf(out, "fresh for %" PRId64 " s more", left_s);
    else
        fprintf(out, "stale for %" PRId64 " s", -left_s);
    fprintf(out, "%s%s\n", variant->is_confirmed_first ? "; confirmed before every use" : "",
            variant->is_never_stale ? "; never served stale" : "");
}

static unsigned shown_spans(const struct cache_variant *variant) {
    return variant->span_count < EXPLAIN_SPANS_MAX ? variant->span_count : EXPLAIN_SPANS_MAX;
}

static void text_spans(const struct cache_variant *variant, FILE *out) {
    if (!variant->is_partial)
        return;
    for (unsigned i = 0; i < shown_spans(variant); i++)
        fprintf(out, "%s%" PRIu64 "-%" PRIu64, i ? ", " : "; in parts: ", variant->spans[i].first,
                variant->spans[i].last);
    if (variant->span_count > shown_spans(variant))
        fprintf(out, " and %u more", variant->span_count - shown_spans(variant));
}

static void text_variant(const struct cache_variant *variant, FILE *out) {
    fprintf(out, "  %-9s ", state_word(variant->state));
    if (variant->state == VARIANT_AWAITED) {
        fputs("asked for by another request, no answer yet\n", out);
        return;
    }
    fprintf(out, "%d, %" PRIu64, variant->status, variant->content_bytes);
    if (variant->content_length < 0)
        fputs(" bytes so far", out);
    else if ((uint64_t)variant->content_length != variant->content_bytes)
        fprintf(out, " of %" PRId64 " bytes", variant->content_length);
    else
        fputs(" bytes", out);
    if (variant->memory_bytes)
        fprintf(out, " (%" PRIu64 " in memory)", variant->memory_bytes);
    if (*variant->disk_path)
        fprintf(out, "; on disk: %s", variant->disk_path);
    text_spans(variant, out);
    fputs(variant->is_selected ? "\n" : "; not for this request's fields\n", out);
    text_age(variant, out);
    text_field("Content-Type", variant->content_type, out);
    text_field("ETag", variant->etag, out);
    text_field("Last-Modified", variant->last_modified, out);
    text_vary(variant, out);
}

static void text_sent(const struct cache_explanation *cache, FILE *out) {
    struct view rest = view_of(cache->fields);
    while (rest.length) {
        fputs("  asks      ", out);
        put_plain(next_line(&rest), out);
        fputc('\n', out);
    }
}

static void text_rules(const struct explained_place *place, FILE *out) {
    char text[ADDRESS_TEXT_BYTES];
    if (place->is_known)
        fprintf(out, "destination %s%s\n", endpoint_print(&place->destination, text),
                place->is_own ? ": refused, it is this gateway itself" : "");
    else
        fputs("destination not told (--destination), and the URL is stored under none\n", out);
    fprintf(out, "  url       %s", allowed_word(place->verdict == ACL_ALLOW));
    put_rule(&place->rule, "no rule holds it", out);
    fprintf(out, "  storing   %s", allowed_word(!place->is_never_stored));
    put_rule(&place->store_rule, "no rule holds it", out);
    text_refresh(place, out);
}

static void text_key(const struct explained *explained, const struct explained_place *place, FILE *out) {
    char text[ADDRESS_TEXT_BYTES];
    fprintf(out, "  key       %s ", place->is_known ? endpoint_print(&place->destination, text) : "-");
    put_plain(explained->authority, out);
    fputc(' ', out);
    put_plain(explained->path, out);
    fputc('\n', out);
}

static void text_place(
        const struct explained *explained, const struct explained_place *place, unsigned number, FILE *out) {
    (void)number;
    const struct cache_explanation *cache = &place->cache;
    text_rules(place, out);
    text_key(explained, place, out);
    fprintf(out, "  answer    %s\n", answer_of(place));
    if (!place->is_refused)
        fprintf(out, "  because   %s: %s\n", cache->reason, meaning_of(cache->reason));
    if (!place->is_refused)
        text_sent(cache, out);
    for (unsigned i = 0; i < shown_variants(cache); i++)
        text_variant(&cache->variants[i], out);
    if (cache->variant_count == 0)
        fputs(cache->is_unread ? "  stored    nothing in memory; the disk has not answered in time\n"
                               : "  stored    nothing\n",
                out);
    if (cache->variant_count > shown_variants(cache))
        fprintf(out, "  and %u more\n", cache->variant_count - shown_variants(cache));
}

static void text_end(const struct explained *explained, FILE *out) {
    if (explained->destination_count > EXPLAIN_DESTINATIONS_MAX)
        fprintf(out, "stored under %u destinations; the first %d are shown\n", explained->destination_count,
                EXPLAIN_DESTINATIONS_MAX);
}

const struct explain_writer explain_text = {text_begin, text_place, text_end};

// ---- JSON ----

static void json_string(const char *name, struct view value, FILE *out) {
    fprintf(out, "\"%s\":", name);
    json_print(value, out);
}

static void json_flag(const char *name, bool value, FILE *out) {
    fprintf(out, ",\"%s\":%s", name, value ? "true" : "false");
}

static void json_verdict(bool is_allowed, const struct acl_match *match, FILE *out) {
    fprintf(out, "\"allowed\":%s,", is_allowed ? "true" : "false");
    json_string("rule", match->rule, out);
    fputc(',', out);
    json_string("file", view_of(match->rule.length ? match->file : ""), out);
    fprintf(out, ",\"line\":%u}", match->rule.length ? match->line : 0);
}

static void json_begin(const struct explained *explained, FILE *out) {
    char text[ADDRESS_TEXT_BYTES];
    fputc('{', out);
    json_string("method", explained->method, out);
    fputc(',', out);
    json_string("url", explained->url, out);
    fputc(',', out);
    json_string("authority", explained->authority, out);
    fputc(',', out);
    json_string("path", explained->path, out);
    fputc(',', out);
    if (explained->has_client) {
        fputs("\"client\":{", out);
        json_string("address", view_of(address_print(&explained->client, text)), out);
        fputc(',', out);
        json_verdict(explained->client_verdict == ACL_ALLOW, &explained->client_rule, out);
        fputc(',', out);
    }
    fprintf(out, "\"destination_count\":%u,\"destinations\":[", explained->destination_count);
}

static void json_vary(const struct cache_variant *variant, FILE *out) {
    struct view names = view_of(variant->vary), values = view_of(variant->selectors);
    fputs(",\"vary\":{", out);
    while (names.length) {
        size_t end = view_find(names, ',');
        struct view value = next_line(&values);
        json_print(view_take(names, end), out);
        fputc(':', out);
        if (value.length && value.data[0] == '=')
            json_print(view_skip(value, 1), out);
        else
            fputs("null", out);
        names = view_skip(names, end + 1);
        if (names.length)
            fputc(',', out);
    }
    fputc('}', out);
}

static void json_spans(const struct cache_variant *variant, FILE *out) {
    json_flag("partial", variant->is_partial, out);
    fputs(",\"spans\":[", out);
    for (unsigned i = 0; i < shown_spans(variant); i++)
        fprintf(out, "%s[%" PRIu64 ",%" PRIu64 "]", i ? "," : "", variant->spans[i].first,
                variant->spans[i].last);
    fputc(']', out);
}

static void json_variant(const struct cache_variant *variant, FILE *out) {
    fprintf(out, "{\"state\":\"%s\"", state_word(variant->state));
    if (variant->state != VARIANT_AWAITED) {
        json_flag("selected", variant->is_selected, out);
        fprintf(out, ",\"status\":%d,\"age_s\":%" PRId64 ",\"lifetime_s\":%" PRId64, variant->status,
                variant->age_s, variant->lifetime_s);
        fprintf(out,
                ",\"content_length\":%" PRId64 ",\"content_bytes\":%" PRIu64 ",\"memory_bytes\":%" PRIu64,
                variant->content_length, variant->content_bytes, variant->memory_bytes);
        fputc(',', out);
        json_string("disk", view_of(variant->disk_path), out);
        json_spans(variant, out);
        json_flag("confirmed_first", variant->is_confirmed_first, out);
        json_flag("never_stale", variant->is_never_stale, out);
        fputc(',', out);
        json_string("content_type", view_of(variant->content_type), out);
        fputc(',', out);
        json_string("etag", view_of(variant->etag), out);
        fputc(',', out);
        json_string("last_modified", view_of(variant->last_modified), out);
        json_vary(variant, out);
    }
    fputc('}', out);
}

static void json_refresh(const struct explained_place *place, FILE *out) {
    char text[EXPLAIN_TEXT_BYTES];
    if (!place->refresh) {
        fputs("\"refresh\":null,", out);
        return;
    }
    fputs("\"refresh\":{", out);
    json_string("rule", refresh_text(place->refresh, text), out);
    fputc(',', out);
    json_string("file", view_of(place->refresh->file), out);
    fprintf(out, ",\"line\":%u},", place->refresh->line);
}

static void json_decision(const struct explained_place *place, FILE *out) {
    const struct cache_explanation *cache = &place->cache;
    struct view rest = view_of(cache->fields);
    fprintf(out, "\"lookup\":\"%s\",\"reason\":\"%s\",", lookup_word(cache->lookup), cache->reason);
    json_string("meaning", view_of(meaning_of(cache->reason)), out);
    json_flag("refused", place->is_refused, out);
    json_flag("unavailable", cache->is_unavailable, out);
    json_flag("refreshed", cache->is_refreshed, out);
    json_flag("unread", cache->is_unread, out);
    fputs(",\"sent\":[", out);
    while (rest.length) {
        json_print(next_line(&rest), out);
        fputs(rest.length ? "," : "", out);
    }
    fprintf(out, "],\"variant_count\":%u,\"variants\":[", cache->variant_count);
    for (unsigned i = 0; i < shown_variants(cache); i++) {
        fputs(i ? "," : "", out);
        json_variant(&cache->variants[i], out);
    }
    fputc(']', out);
}

static void json_place(
        const struct explained *explained, const struct explained_place *place, unsigned number, FILE *out) {
    (void)explained;
    char text[ADDRESS_TEXT_BYTES];
    fputs(number ? ",{" : "{", out);
    json_string("destination",
            place->is_known ? view_of(endpoint_print(&place->destination, text)) : VIEW(""), out);
    json_flag("own", place->is_own, out);
    fputc(',', out);
    fputs("\"url\":{", out);
    json_verdict(place->verdict == ACL_ALLOW, &place->rule, out);
    fputc(',', out);
    fputs("\"storing\":{", out);
    json_verdict(!place->is_never_stored, &place->store_rule, out);
    fputc(',', out);
    json_refresh(place, out);
    json_decision(place, out);
    fputc('}', out);
}

static void json_end(const struct explained *explained, FILE *out) {
    (void)explained;
    fputs("]}\n", out);
}

const struct explain_writer explain_json = {json_begin, json_place, json_end};
