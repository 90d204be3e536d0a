#include "intercept/access_line.h"

#include "admin/check.h"
#include "admin/json.h"
#include "admin/utf8.h"
#include "cache/reason.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

// Each peer's word has its share of the line; together with what is ours they fit.
#define URL_BYTES 8192
#define REFERER_BYTES 3072
#define USER_AGENT_BYTES 1024
#define RULE_BYTES 512
#define CONTENT_TYPE_BYTES 256
#define METHOD_BYTES 64
#define OWN_BYTES 1536 // numbers, addresses, times, names of fields
_Static_assert(URL_BYTES + REFERER_BYTES + USER_AGENT_BYTES + RULE_BYTES + CONTENT_TYPE_BYTES + METHOD_BYTES +
                               OWN_BYTES <=
                       ACCESS_LINE_BYTES,
        "the shares are more than a line");

#define CUT "..."
#define CUT_BYTES 3

struct line {
    char *bytes;
    size_t used;
};

enum escape {
    ESCAPE_QUOTED, // between quotes: \xNN
    ESCAPE_WORD,   // a column between blanks: blanks too
    ESCAPE_JSON,
};

static const char *const format_names[ACCESS_FORMAT_COUNT] = {"common", "combined", "squid", "json"};

bool access_format_find(const char *word, enum access_format *format) {
    for (int i = 0; i < ACCESS_FORMAT_COUNT; i++)
        if (view_equal_fold(view_of(word), view_of(format_names[i]))) {
            *format = (enum access_format)i;
            return true;
        }
    return false;
}

// ---- writing ----

static void put(struct line *line, const char *text, size_t length) {
    CHECK(length <= ACCESS_LINE_BYTES - line->used);
    memcpy(line->bytes + line->used, text, length);
    line->used += length;
}

static void put_text(struct line *line, const char *text) {
    put(line, text, strlen(text));
}

static void put_format(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put_format(struct line *line, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    CHECK(length >= 0 && (size_t)length < sizeof text);
    put(line, text, (size_t)length);
}

// Lines are written for every request, and printf's way to a number costs more than all the rest of it.
static void put_number(struct line *line, uint64_t number) {
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    put(line, digits + at, sizeof digits - at);
}

static bool is_plain(unsigned char byte, enum escape escape) {
    if (byte <= 0x20)
        return byte == ' ' && escape != ESCAPE_WORD;
    return byte != '"' && byte != '\\' && byte != 0x7f;
}

// Writes what stands for the character at the start of `text` and tells how many bytes of it that was.
static size_t escape_one(
        struct view text, enum escape escape, char piece[static JSON_PIECE_BYTES], size_t *length) {
    if (escape == ESCAPE_JSON)
        return json_escape_one(text, piece, length);
    unsigned char byte = (unsigned char)text.data[0];
    size_t taken = utf8_length(text);
    bool control = taken == 2 && byte == 0xc2 && (unsigned char)text.data[1] < 0xa0; // C1
    if ((taken == 1 && is_plain(byte, escape)) || (taken > 1 && !control)) {
        memcpy(piece, text.data, taken);
        *length = taken;
        return taken;
    }
    *length = (size_t)snprintf(piece, JSON_PIECE_BYTES, "\\x%02x", byte);
    return 1;
}

// How many characters at the start stand for themselves.
static size_t plain_length(struct view text, enum escape escape) {
    size_t length = 0;
    while (length < text.length && (unsigned char)text.data[length] < 0x80 &&
            is_plain((unsigned char)text.data[length], escape))
        length++;
    return length;
}

// Escapes `text` into at most `share` bytes; false, with a mark at the end, when there was more.
static bool put_escaped(struct line *line, struct view text, enum escape escape, size_t *share) {
    while (text.length) {
        size_t plain = plain_length(view_take(text, *share > CUT_BYTES ? *share - CUT_BYTES : 0), escape);
        put(line, text.data, plain);
        *share -= plain;
        text = view_skip(text, plain);
        if (!text.length)
            break;
        char piece[JSON_PIECE_BYTES];
        size_t length, taken = escape_one(text, escape, piece, &length);
        if (length + CUT_BYTES > *share) {
            put(line, CUT, CUT_BYTES);
            *share = 0;
            return false;
        }
        put(line, piece, length);
        *share -= length;
        text = view_skip(text, taken);
    }
    return true;
}

static void put_value(struct line *line, struct view text, enum escape escape, size_t share) {
    if (text.length == 0 && escape != ESCAPE_JSON)
        put_text(line, "-");
    else
        put_escaped(line, text, escape, &share);
}

// ---- parts of an entry ----

static struct view method_of(const struct access_entry *entry) {
    if (entry->method.length)
        return entry->method;
    return entry->result == RESULT_TUNNEL ? VIEW("TUNNEL") : VIEW("-");
}

// The destination as it stands in a URL: without port 80.
static struct view destination_host(const struct access_entry *entry, char out[static ADDRESS_TEXT_BYTES]) {
    if (entry->destination.port == 0)
        return VIEW("-");
    struct view text = view_of(endpoint_print(&entry->destination, out));
    return entry->destination.port == 80 ? view_take(text, text.length - 3) : text;
}

static void put_request_url(struct line *line, const struct access_entry *entry, enum escape escape) {
    char text[ADDRESS_TEXT_BYTES];
    size_t share = URL_BYTES;
    struct view target = entry->target;
    if (target.length && target.data[0] != '/') { // absolute, authority or "*"
        put_escaped(line, target, escape, &share);
        return;
    }
    struct view scheme = entry->scheme.length ? entry->scheme : VIEW("http");
    struct view host = entry->host.length ? entry->host : destination_host(entry, text);
    if (put_escaped(line, scheme, escape, &share) && put_escaped(line, VIEW("://"), escape, &share) &&
            put_escaped(line, host, escape, &share))
        put_escaped(line, target, escape, &share);
}

static void put_url(struct line *line, const struct access_entry *entry, enum escape escape) {
    char text[ADDRESS_TEXT_BYTES];
    if (entry->method.length)
        put_request_url(line, entry, escape);
    else if (entry->host.length)
        put_value(line, entry->host, escape, URL_BYTES);
    else
        put_text(line, entry->destination.port ? endpoint_print(&entry->destination, text) : "-");
}

static void put_client(struct line *line, const struct access_entry *entry) {
    char text[ADDRESS_TEXT_BYTES];
    put_text(line, address_print(&entry->client.address, text));
}

// Local time, kept for the second it belongs to: localtime_r takes a lock of the whole process.
static const char *clf_time(int64_t at_ms) {
    static _Thread_local time_t second = -1;
    static _Thread_local char text[40];
    time_t now = (time_t)(at_ms / 1000);
    if (now != second) {
        struct tm parts;
        localtime_r(&now, &parts);
        strftime(text, sizeof text, "%d/%b/%Y:%H:%M:%S %z", &parts);
        second = now;
    }
    return text;
}

// ---- formats ----

static void put_common(struct line *line, const struct access_entry *entry) {
    put_client(line, entry);
    put_format(line, " - - [%s] \"", clf_time(entry->began_at_ms));
    put_value(line, method_of(entry), ESCAPE_QUOTED, METHOD_BYTES);
    put_text(line, " ");
    put_url(line, entry, ESCAPE_QUOTED);
    if (entry->method.length)
        put_format(line, " HTTP/1.%d", entry->minor_version);
    put_format(line, "\" %03d ", entry->status);
    if (entry->body_bytes)
        put_format(line, "%" PRIu64, entry->body_bytes);
    else
        put_text(line, "-");
}

static void put_combined(struct line *line, const struct access_entry *entry) {
    put_common(line, entry);
    put_text(line, " \"");
    put_value(line, entry->referer, ESCAPE_QUOTED, REFERER_BYTES);
    put_text(line, "\" \"");
    put_value(line, entry->user_agent, ESCAPE_QUOTED, USER_AGENT_BYTES);
    put_text(line, "\"");
}

// Squid's words, which its log analysers know.

static bool is_word(const char *word, const char *other) {
    return word && strcmp(word, other) == 0;
}

static const char *squid_fetched(const struct access_entry *entry) {
    const struct reason *asked = reason_find(entry->asked);
    if (entry->is_confirming && (entry->result == RESULT_ERROR || entry->status >= 500))
        return "TCP_REFRESH_FAIL_ERR";
    if (entry->result == RESULT_ERROR)
        return "TCP_MISS";
    if (asked && asked->forward == FORWARD_REQUEST)
        return "TCP_CLIENT_REFRESH_MISS";
    return entry->is_confirming ? "TCP_REFRESH_MODIFIED" : "TCP_MISS";
}

static const char *squid_stale(const struct access_entry *entry) {
    if (is_word(entry->reason, "offline"))
        return "TCP_OFFLINE_HIT";
    bool has_failed = is_word(entry->reason, "stale-if-error") || is_word(entry->reason, "disconnected") ||
                      is_word(entry->reason, "refresh-max-stale");
    return has_failed ? "TCP_REFRESH_FAIL_OLD" : "TCP_MEM_HIT";
}

static const char *squid_word(const struct access_entry *entry) {
    switch (entry->result) {
    case RESULT_HIT:
        return entry->status == 304 ? "TCP_IMS_HIT" : "TCP_MEM_HIT";
    case RESULT_STALE:
        return squid_stale(entry);
    case RESULT_REVALIDATED:
        return "TCP_REFRESH_UNMODIFIED";
    case RESULT_JOINED:
        return "TCP_CF_HIT";
    case RESULT_MISS:
    case RESULT_PASS:
    case RESULT_ERROR:
        return squid_fetched(entry);
    case RESULT_TUNNEL:
        return "TCP_TUNNEL";
    case RESULT_DENIED:
    case RESULT_BLOCKED:
    case RESULT_LOOP:
        return "TCP_DENIED";
    case RESULT_ABORTED:
        return "TCP_MISS_ABORTED";
    case RESULT_BAD:
    case RESULT_COUNT:
        break;
    }
    return "NONE_NONE";
}

static void put_squid(struct line *line, const struct access_entry *entry) {
    char text[ADDRESS_TEXT_BYTES];
    struct view type = view_take(entry->content_type, view_find(entry->content_type, ';'));
    put_format(line, "%" PRId64 ".%03d %6" PRId64 " ", entry->began_at_ms / 1000,
            (int)(entry->began_at_ms % 1000), entry->duration_ms);
    put_client(line, entry);
    put_format(line, " %s/%03d %" PRIu64 " ", squid_word(entry), entry->status, entry->bytes_out);
    put_value(line, method_of(entry), ESCAPE_WORD, METHOD_BYTES);
    put_text(line, " ");
    put_url(line, entry, ESCAPE_WORD);
    if (entry->contacted)
        put_format(line, " - HIER_DIRECT/%s ", address_print(&entry->destination.address, text));
    else
        put_text(line, " - HIER_NONE/- ");
    put_value(line, view_trim(type), ESCAPE_WORD, CONTENT_TYPE_BYTES);
}

// UTC, kept for the second it belongs to.
static void put_json_time(struct line *line, int64_t at_ms) {
    static _Thread_local time_t second = -1;
    static _Thread_local char text[40];
    time_t now = (time_t)(at_ms / 1000);
    unsigned milliseconds = (unsigned)(at_ms % 1000);
    if (now != second) {
        struct tm parts;
        gmtime_r(&now, &parts);
        strftime(text, sizeof text, "{\"time\":\"%Y-%m-%dT%H:%M:%S.", &parts);
        second = now;
    }
    char rest[] = {(char)('0' + milliseconds / 100), (char)('0' + milliseconds / 10 % 10),
            (char)('0' + milliseconds % 10), 'Z', '"'};
    put_text(line, text);
    put(line, rest, sizeof rest);
}

// `name`: with the comma before it, its quotes and the colon.
static void put_json_string(struct line *line, const char *name, struct view value, size_t share) {
    put_text(line, name);
    put_text(line, "\"");
    put_value(line, value, ESCAPE_JSON, share);
    put_text(line, "\"");
}

static void put_json_number(struct line *line, const char *name, int64_t number) {
    put_text(line, name);
    if (number < 0)
        put_text(line, "-");
    put_number(line, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

static void put_json_ends(struct line *line, const struct access_entry *entry) {
    char text[ADDRESS_TEXT_BYTES];
    put_text(line, ",\"client\":\"");
    put_text(line, address_print(&entry->client.address, text));
    put_json_number(line, "\",\"client_port\":", entry->client.port);
    put_text(line, ",\"destination\":\"");
    put_text(line, entry->destination.port ? endpoint_print(&entry->destination, text) : "");
    put_text(line, "\"");
}

static void put_json(struct line *line, const struct access_entry *entry) {
    put_json_time(line, entry->began_at_ms);
    put_json_ends(line, entry);
    put_json_string(line, ",\"method\":", method_of(entry), METHOD_BYTES);
    put_text(line, ",\"url\":\"");
    put_url(line, entry, ESCAPE_JSON);
    put_json_number(line, "\",\"status\":", entry->status);
    put_json_number(line, ",\"bytes\":", (int64_t)entry->bytes_out);
    put_json_number(line, ",\"body_bytes\":", (int64_t)entry->body_bytes);
    put_json_number(line, ",\"bytes_in\":", (int64_t)entry->bytes_in);
    put_json_number(line, ",\"duration_ms\":", entry->duration_ms);
    put_text(line, ",\"result\":\"");
    put_text(line, result_word(entry->result));
    put_text(line, "\",\"reason\":\"");
    put_text(line, entry->reason ? entry->reason : "");
    put_text(line, "\",\"lookup\":\"");
    put_text(line, entry->asked ? entry->asked : "");
    put_text(line, "\"");
    put_json_string(line, ",\"rule\":", entry->rule, RULE_BYTES);
    put_text(line, entry->contacted ? ",\"upstream\":true" : ",\"upstream\":false");
    put_json_string(line, ",\"referer\":", entry->referer, REFERER_BYTES);
    put_json_string(line, ",\"user_agent\":", entry->user_agent, USER_AGENT_BYTES);
    put_json_string(line, ",\"content_type\":", entry->content_type, CONTENT_TYPE_BYTES);
    put_text(line, "}");
}

static void put_outcome(struct line *line, const struct access_entry *entry) {
    put_text(line, " ");
    put_text(line, result_word(entry->result));
    put_text(line, ":");
    put_text(line, entry->reason ? entry->reason : "-");
}

size_t access_line_format(
        enum access_format format, const struct access_entry *entry, char out[static ACCESS_LINE_BYTES]) {
    static void (*const writers[ACCESS_FORMAT_COUNT])(
            struct line * line, const struct access_entry *entry) = {
            [ACCESS_COMMON] = put_common,
            [ACCESS_COMBINED] = put_combined,
            [ACCESS_SQUID] = put_squid,
            [ACCESS_JSON] = put_json,
    };
    struct line line = {.bytes = out};
    writers[format](&line, entry);
    if (format !=
            ACCESS_JSON) // what the standard forms have no place for, as Squid's common and combined do it
        put_outcome(&line, entry);
    put_text(&line, "\n");
    return line.used;
}

const char *result_word(enum result result) {
    static const char *const words[RESULT_COUNT] = {
#define RESULT(id, word, meaning) [RESULT_##id] = word,
#include "intercept/result.tbl"
    };
    CHECK((unsigned)result < RESULT_COUNT);
    return words[result];
}
