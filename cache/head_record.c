#include "cache/head_record.h"

#include "cache/budget.h"
#include "cache/pack.h"
#include "cache/vary.h"
#include "http/field.h"
#include "http/octet.h"
#include "http/target.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define FEW_FIELDS 48 // their views are on the stack
#define ADDRESS_IPV4_AT 12

enum {
    FLAG_IPV6 = 1 << 0,
    FLAG_MINOR_VERSION = 1 << 1,
    FLAG_BODY = 1 << 2,
    FLAG_RANGES = 1 << 3,
    FLAG_CONTRADICTED = 1 << 4,
    FLAG_BOOT = 1 << 5,
    FLAG_FRESHNESS = 1 << 6, // the first of those below
};

// Bits from FLAG_FRESHNESS on. Part of the format, as is everything here.
static const size_t freshness_flags[] = {
        offsetof(struct freshness, has_date),
        offsetof(struct freshness, has_age),
        offsetof(struct freshness, is_explicit),
        offsetof(struct freshness, is_heuristic),
        offsetof(struct freshness, is_redirect),
        offsetof(struct freshness, is_immutable),
        offsetof(struct freshness, no_cache),
        offsetof(struct freshness, must_revalidate),
};

static const struct {
    size_t offset;
    int64_t least;
} freshness_numbers[] = {
        {offsetof(struct freshness, lifetime_s), 0},
        {offsetof(struct freshness, explicit_s), 0},
        {offsetof(struct freshness, modified_age_s), 0},
        {offsetof(struct freshness, initial_age_s), 0},
        {offsetof(struct freshness, while_revalidate_s), DELTA_INVALID},
        {offsetof(struct freshness, if_error_s), DELTA_INVALID},
};

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))
_Static_assert(FLAG_FRESHNESS << (COUNT(freshness_flags) - 1) <= UINT16_MAX, "flags take two bytes");

static bool *flag_of(const struct freshness *freshness, size_t i) {
    return (bool *)((const char *)freshness + freshness_flags[i]);
}

static int64_t *number_of(const struct freshness *freshness, size_t i) {
    return (int64_t *)((const char *)freshness + freshness_numbers[i].offset);
}

// ---- names ----

static const struct view names[] = {
// by code * 2, and + 1 in lower case
#define NAME(code, usual, lower)                                                                             \
    [(code)*2] = {usual, sizeof(usual) - 1}, [(code)*2 + 1] = {lower, sizeof(lower) - 1},
#include "cache/head_record.tbl"
#undef NAME
};
#define NAME(code, usual, lower)                                                                             \
    _Static_assert((code) > 0 && (code) < 64, "one byte");                                                   \
    _Static_assert(sizeof(usual) == sizeof(lower) && sizeof(usual) <= HEAD_RECORD_NAME_BYTES, usual);
#include "cache/head_record.tbl"
#undef NAME

// 0: it is not among them in this spelling.
static unsigned name_token(struct view name) {
    for (unsigned token = 2; token < COUNT(names); token++)
        if (names[token].length == name.length && view_equal(names[token], name))
            return token;
    return 0;
}

// ---- what is kept, and what is taken back ----

static bool is_all(struct view text, enum octet_class class) {
    return octet_run(text, class) == text.length;
}

static bool is_length(int64_t bytes) { // or -1
    return bytes >= -1 && bytes < INT64_MAX;
}

static bool is_url(const struct head_record *record) {
    return record->authority.length <= AUTHORITY_BYTES && is_all(record->authority, OCTET_TARGET) &&
           is_all(record->path, OCTET_TARGET) && is_length(record->body_length);
}

// What a stored response never has would frame the answer anew, or be taken for this hop's.
static bool is_field(const struct http_field *field) {
    return octet_all_token(field->name) && octet_all_text(field->value) &&
           view_trim(field->value).length == field->value.length && !field->hop &&
           !(field_flags(field->id) & FIELD_HOP) && field->id != FIELD_CONTENT_LENGTH &&
           field->id != FIELD_AGE;
}

static bool are_fields(const struct http_head *http) {
    if (http->field_count > HEAD_RECORD_FIELDS_MAXIMUM)
        return false;
    for (unsigned i = 0; i < http->field_count; i++)
        if (!is_field(&http->fields[i]))
            return false;
    return true;
}

static bool is_start_line(const struct http_head *http) {
    return http->status >= 100 && http->status <= 999 &&
           (http->minor_version == 0 || http->minor_version == 1) && octet_all_text(http->reason);
}

static size_t count_byte(struct view text, char byte) {
    size_t count = 0;
    for (size_t i = 0; i < text.length; i++)
        count += text.data[i] == byte;
    return count;
}

// A line of selectors for each name.
static bool are_selectors(const struct stored_head *head) {
    size_t lines = count_byte(head->selectors, '\n');
    if (head->vary.length > VARY_NAMES_BYTES || head->selectors.length > VARY_SELECTORS_BYTES)
        return false;
    for (size_t i = 0; i < head->vary.length; i++)
        if (head->vary.data[i] != ',' && !octet_is(head->vary.data[i], OCTET_TOKEN))
            return false;
    for (size_t i = 0; i < head->selectors.length; i++)
        if (head->selectors.data[i] != '\n' && !octet_is(head->selectors.data[i], OCTET_TEXT))
            return false;
    return lines == (head->vary.length ? count_byte(head->vary, ',') + 1 : 0) &&
           (head->selectors.length == 0 || head->selectors.data[head->selectors.length - 1] == '\n');
}

static bool is_within(int64_t seconds, int64_t least) {
    return seconds >= least && seconds <= HEAD_RECORD_SECONDS_MAXIMUM;
}

static bool is_freshness(const struct freshness *freshness) {
    for (size_t i = 0; i < COUNT(freshness_numbers); i++)
        if (!is_within(*number_of(freshness, i), freshness_numbers[i].least))
            return false;
    return is_within(freshness->date_s, 0) && is_within(freshness->response_at.wall_s, 0) &&
           is_within(freshness->response_at.steady_s, -HEAD_RECORD_SECONDS_MAXIMUM);
}

static bool is_sound(const struct head_record *record, const struct stored_head *head) {
    return record->destination.scope == 0 && is_url(record) && is_start_line(&head->http) &&
           are_selectors(head) && is_freshness(&head->freshness) && is_length(head->content_length) &&
           are_fields(&head->http);
}

// ---- writing ----

static unsigned flags_of(const struct head_record *record, const struct stored_head *head) {
    unsigned flags = 0;
    if (!address_is_ipv4(&record->destination.address))
        flags |= FLAG_IPV6;
    if (head->http.minor_version)
        flags |= FLAG_MINOR_VERSION;
    if (head->has_body)
        flags |= FLAG_BODY;
    if (record->gives_ranges)
        flags |= FLAG_RANGES;
    if (record->is_contradicted)
        flags |= FLAG_CONTRADICTED;
    if (record->boot)
        flags |= FLAG_BOOT;
    for (size_t i = 0; i < COUNT(freshness_flags); i++)
        if (*flag_of(&head->freshness, i))
            flags |= (unsigned)FLAG_FRESHNESS << i;
    return flags;
}

static void write_record(struct pack *out, const struct head_record *record, unsigned flags) {
    const struct endpoint *destination = &record->destination;
    unsigned skip = flags & FLAG_IPV6 ? 0 : ADDRESS_IPV4_AT;
    uint32_t boot = htole32(record->boot);
    pack_bytes(out, (unsigned char[]){(unsigned char)flags, (unsigned char)(flags >> 8)}, 2);
    pack_bytes(out, destination->address.bytes + skip, sizeof destination->address.bytes - skip);
    pack_number(out, destination->port);
    pack_number(out, destination->scope);
    pack_text(out, record->authority);
    pack_text(out, record->path);
    pack_number(out, record->generation);
    pack_number(out, (uint64_t)record->body_length + 1);
    if (record->boot)
        pack_bytes(out, &boot, sizeof boot);
}

// A Date is close to when the response arrived.
static void write_freshness(struct pack *out, const struct freshness *freshness, bool has_boot) {
    pack_number(out, (uint64_t)freshness->response_at.wall_s);
    if (has_boot)
        pack_signed(out, freshness->response_at.steady_s);
    pack_signed(out, freshness->date_s - freshness->response_at.wall_s);
    for (size_t i = 0; i < COUNT(freshness_numbers); i++)
        pack_number(out, (uint64_t)(*number_of(freshness, i) - freshness_numbers[i].least));
}

static void write_fields(struct pack *out, const struct http_head *http) {
    pack_number(out, http->field_count);
    for (unsigned i = 0; i < http->field_count; i++) {
        unsigned token = name_token(http->fields[i].name);
        pack_number(out, token);
        if (!token)
            pack_text(out, http->fields[i].name);
        pack_text(out, http->fields[i].value);
    }
}

size_t head_record_encode(
        const struct head_record *record, const struct stored_head *head, unsigned char *out, size_t room) {
    struct pack pack = {out, room, 0};
    if (!is_sound(record, head))
        return 0;
    write_record(&pack, record, flags_of(record, head));
    write_freshness(&pack, &head->freshness, record->boot != 0);
    pack_number(&pack, (uint64_t)head->content_length + 1);
    pack_number(&pack, (uint64_t)head->http.status);
    pack_text(&pack, head->http.reason);
    pack_text(&pack, head->vary);
    pack_text(&pack, head->selectors);
    write_fields(&pack, &head->http);
    return pack.length <= RECORD_HEAD_MAXIMUM ? pack.length : 0;
}

// ---- reading ----

static void read_address(struct unpack *in, struct endpoint *destination, bool is_ipv6) {
    size_t length = is_ipv6 ? 16 : 4;
    struct view bytes = unpack_bytes(in, length);
    if (!is_ipv6)
        destination->address.bytes[10] = destination->address.bytes[11] = 0xff;
    if (bytes.length == length)
        memcpy(destination->address.bytes + 16 - length, bytes.data, length);
    if (is_ipv6 && address_is_ipv4(&destination->address)) // has a shorter form
        unpack_refuse(in);
    destination->port = (uint16_t)unpack_number(in, UINT16_MAX);
    unpack_number(in, 0); // scope
}

static uint32_t read_boot(struct unpack *in) {
    uint32_t boot = 0;
    struct view bytes = unpack_bytes(in, sizeof boot);
    if (bytes.length == sizeof boot)
        memcpy(&boot, bytes.data, sizeof boot);
    if (!boot)
        unpack_refuse(in);
    return le32toh(boot);
}

static unsigned read_record(struct unpack *in, struct head_record *record) {
    struct view bytes = unpack_bytes(in, 2);
    if (in->is_broken)
        return 0;
    unsigned flags = (unsigned char)bytes.data[0] | (unsigned)(unsigned char)bytes.data[1] << 8;
    if (flags >= (unsigned)FLAG_FRESHNESS << COUNT(freshness_flags))
        unpack_refuse(in);
    read_address(in, &record->destination, flags & FLAG_IPV6);
    record->authority = unpack_text(in, AUTHORITY_BYTES);
    record->path = unpack_text(in, RECORD_HEAD_MAXIMUM);
    record->generation = unpack_number(in, UINT64_MAX);
    record->body_length = (int64_t)(unpack_number(in, INT64_MAX) - 1);
    record->gives_ranges = flags & FLAG_RANGES;
    record->is_contradicted = flags & FLAG_CONTRADICTED;
    record->boot = flags & FLAG_BOOT ? read_boot(in) : 0;
    return flags;
}

static void read_freshness(struct unpack *in, struct freshness *freshness, unsigned flags) {
    freshness->response_at.wall_s = (int64_t)unpack_number(in, HEAD_RECORD_SECONDS_MAXIMUM);
    freshness->response_at.steady_s = flags & FLAG_BOOT ? unpack_signed(in) : 0;
    if (__builtin_add_overflow(freshness->response_at.wall_s, unpack_signed(in), &freshness->date_s))
        unpack_refuse(in);
    for (size_t i = 0; i < COUNT(freshness_numbers); i++)
        *number_of(freshness, i) =
                (int64_t)unpack_number(in, 2 * HEAD_RECORD_SECONDS_MAXIMUM) + freshness_numbers[i].least;
    for (size_t i = 0; i < COUNT(freshness_flags); i++)
        *flag_of(freshness, i) = flags & (unsigned)FLAG_FRESHNESS << i;
}

static struct view read_name(struct unpack *in) {
    unsigned token = (unsigned)unpack_number(in, COUNT(names) - 1);
    if (token > 0) {
        if (names[token].length == 0) // the first two are none
            unpack_refuse(in);
        return names[token];
    }
    struct view name = unpack_text(in, RECORD_HEAD_MAXIMUM);
    if (name_token(name))
        unpack_refuse(in);
    return name;
}

static void read_fields(struct unpack *in, struct http_head *http) {
    for (unsigned i = 0; i < http->field_count && !in->is_broken; i++) {
        struct http_field *field = &http->fields[i];
        *field = (struct http_field){.name = read_name(in)};
        field->value = unpack_text(in, RECORD_HEAD_MAXIMUM);
        field->id = http_field_id(field->name);
    }
}

static void read_start(struct unpack *in, struct stored_head *shell, unsigned flags) {
    read_freshness(in, &shell->freshness, flags);
    shell->has_body = flags & FLAG_BODY;
    shell->content_length = (int64_t)(unpack_number(in, INT64_MAX) - 1);
    shell->http.minor_version = flags & FLAG_MINOR_VERSION ? 1 : 0;
    shell->http.status = (int)unpack_number(in, 999);
    shell->http.reason = unpack_text(in, RECORD_HEAD_MAXIMUM);
    shell->vary = unpack_text(in, VARY_NAMES_BYTES);
    shell->selectors = unpack_text(in, VARY_SELECTORS_BYTES);
    shell->http.field_count = (unsigned)unpack_number(in, HEAD_RECORD_FIELDS_MAXIMUM);
}

static int64_t steady_at(
        const struct head_record *record, struct moment written, const struct head_record_now *now) {
    if (record->boot && record->boot == now->boot && written.steady_s <= now->moment.steady_s)
        return written.steady_s;
    int64_t elapsed_s = now->moment.wall_s - written.wall_s;
    return now->moment.steady_s - (elapsed_s >= 0 ? elapsed_s : DELTA_MAXIMUM);
}

static struct stored_head *copy_of(const struct stored_head *shell) {
    struct stored_head_source source = {
            .head = &shell->http, .date_s = -1, .vary = shell->vary, .selectors = shell->selectors};
    struct stored_head *head = stored_head_new(&source);
    head->freshness = shell->freshness;
    head->content_length = shell->content_length;
    head->has_body = shell->has_body;
    return head;
}

static struct stored_head *read_rest(struct unpack *in, const struct head_record *record,
        struct stored_head *shell, const struct head_record_now *now) {
    read_fields(in, &shell->http);
    if (in->is_broken || in->left > 0 || !is_sound(record, shell))
        return NULL;
    struct moment *at = &shell->freshness.response_at;
    at->steady_s = steady_at(record, *at, now);
    return copy_of(shell);
}

static struct stored_head *decode(
        struct view bytes, const struct head_record_now *now, struct head_record *record) {
    struct http_field few[FEW_FIELDS];
    struct stored_head shell = {0}; // of views into `bytes`
    struct unpack in = unpack_from(bytes);
    read_start(&in, &shell, read_record(&in, record));
    if (in.is_broken || shell.http.field_count > in.left / 2) // a field takes two bytes at the least
        return NULL;
    bool are_few = shell.http.field_count <= FEW_FIELDS;
    shell.http.fields = are_few ? few : memory_new(shell.http.field_count * sizeof *shell.http.fields);
    struct stored_head *head = read_rest(&in, record, &shell, now);
    if (!are_few)
        free(shell.http.fields);
    return head;
}

struct stored_head *head_record_decode(
        struct view bytes, const struct head_record_now *now, struct head_record *record) {
    *record = (struct head_record){0};
    struct stored_head *head = bytes.length <= RECORD_HEAD_MAXIMUM ? decode(bytes, now, record) : NULL;
    if (!head)
        *record = (struct head_record){0};
    return head;
}

bool head_record_read(struct view bytes, struct head_record *record) {
    struct unpack in = unpack_from(bytes);
    *record = (struct head_record){0};
    read_record(&in, record);
    if (!in.is_broken && is_url(record))
        return true;
    *record = (struct head_record){0};
    return false;
}
