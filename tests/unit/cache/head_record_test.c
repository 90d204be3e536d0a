#include "cache/head_record.h"
#include "cache/pack.h"
#include "cache/vary.h"
#include "http/target.h"
#include "tests/unit/cache/text.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))
#define NOW 1700000000
#define BOOT 0xb00710ad

static const struct head_record_now now = {{NOW + 50, 1050}, BOOT};

// ---- a sample, and what a round trip makes of it ----

static const struct freshness fresh = {.lifetime_s = 3600,
        .explicit_s = 3600,
        .modified_age_s = 86400,
        .response_at = {NOW, 1000},
        .initial_age_s = 7,
        .date_s = NOW - 2,
        .while_revalidate_s = 60,
        .if_error_s = -1,
        .has_date = true,
        .is_explicit = true,
        .must_revalidate = true};

static struct head_record sample_record(void) {
    struct head_record record = {.authority = VIEW("www.example.org:8080"),
            .path = VIEW("/a/b?c=d&\xe4"),
            .generation = 123456789,
            .body_length = 5000,
            .boot = BOOT};
    address_parse(VIEW("192.0.2.1"), &record.destination.address);
    record.destination.port = 8080;
    return record;
}

static const char sample_fields[] =
        "Date: Tue, 14 Nov 2023 22:13:18 GMT\nserver: a/1\nSERVER: a/2\n"
        "Cache-Control: max-age=3600\nX-Own:\nX-Own: \"\xfc\", b\nVary: Accept-Encoding, X\n"
        "Set-Cookie: a=b\nSet-Cookie: a=b\n";

static struct stored_head *sample_head(const char *fields) {
    struct text_head text;
    struct stored_head_source source = {.head = text_response(&text, 200, fields),
            .date_s = -1,
            .vary = VIEW("accept-encoding,x"),
            .selectors = VIEW("=gzip,br\n-\n")};
    struct stored_head *head = stored_head_new(&source);
    head->freshness = fresh;
    head->content_length = 5000;
    head->has_body = true;
    return head;
}

// Of exactly the size, so that reading on is seen. An empty view: it was refused.
static struct view encoded(const struct head_record *record, const struct stored_head *head) {
    size_t length = head_record_encode(record, head, NULL, 0);
    unsigned char *bytes = malloc(length + !length);
    CU_ASSERT_EQUAL(head_record_encode(record, head, bytes, length), length);
    return (struct view){(char *)bytes, length};
}

static bool is_same_freshness(const struct freshness *a, const struct freshness *b) {
    return a->lifetime_s == b->lifetime_s && a->explicit_s == b->explicit_s &&
           a->modified_age_s == b->modified_age_s && a->response_at.wall_s == b->response_at.wall_s &&
           a->response_at.steady_s == b->response_at.steady_s && a->initial_age_s == b->initial_age_s &&
           a->date_s == b->date_s && a->while_revalidate_s == b->while_revalidate_s &&
           a->if_error_s == b->if_error_s && a->has_date == b->has_date && a->has_age == b->has_age &&
           a->is_explicit == b->is_explicit && a->is_heuristic == b->is_heuristic &&
           a->is_redirect == b->is_redirect && a->is_immutable == b->is_immutable &&
           a->no_cache == b->no_cache && a->must_revalidate == b->must_revalidate;
}

static bool is_same_http(const struct http_head *a, const struct http_head *b) {
    if (a->status != b->status || a->minor_version != b->minor_version || !view_equal(a->reason, b->reason) ||
            a->field_count != b->field_count || b->field_capacity != b->field_count || b->method.length ||
            b->target.length)
        return false;
    for (unsigned i = 0; i < a->field_count; i++)
        if (!view_equal(a->fields[i].name, b->fields[i].name) ||
                !view_equal(a->fields[i].value, b->fields[i].value) || a->fields[i].id != b->fields[i].id ||
                b->fields[i].hop)
            return false;
    return true;
}

static bool is_same_head(const struct stored_head *a, const struct stored_head *b) {
    return is_same_http(&a->http, &b->http) && is_same_freshness(&a->freshness, &b->freshness) &&
           view_equal(a->vary, b->vary) && view_equal(a->selectors, b->selectors) && !b->first &&
           a->content_length == b->content_length && a->has_body == b->has_body;
}

static bool is_same_record(const struct head_record *a, const struct head_record *b) {
    return endpoint_equal(&a->destination, &b->destination) && view_equal(a->authority, b->authority) &&
           view_equal(a->path, b->path) && a->generation == b->generation &&
           a->body_length == b->body_length && a->gives_ranges == b->gives_ranges &&
           a->is_contradicted == b->is_contradicted && a->boot == b->boot;
}

static bool is_no_record(const struct head_record *record) {
    static const struct head_record nothing;
    return is_same_record(record, &nothing);
}

// Its bytes are all there is of it: they are gone when it is looked at. False: it could not be kept.
static bool comes_back(const struct head_record *record, const struct stored_head *head) {
    struct head_record found, read;
    struct view bytes = encoded(record, head);
    if (bytes.length == 0)
        return free((void *)bytes.data), false;
    struct stored_head *decoded = head_record_decode(bytes, &now, &found);
    CU_ASSERT_FATAL(decoded != NULL);
    CU_ASSERT_TRUE(is_same_record(record, &found));
    CU_ASSERT_TRUE(head_record_read(bytes, &read) && is_same_record(record, &read));
    free((void *)bytes.data);
    CU_ASSERT_TRUE(is_same_head(head, decoded));
    CU_ASSERT_TRUE(decoded->bytes <= HEAD_RECORD_MEMORY_MAXIMUM);
    free(decoded);
    return true;
}

static void a_whole_head(void) {
    struct head_record record = sample_record();
    struct stored_head *head = sample_head(sample_fields);
    CU_ASSERT_TRUE(comes_back(&record, head));
    free(head);
}

// The format, byte for byte: what was stored by one version of the program is read by the next.
static void on_disk(void) {
    static const char expected[] = "\x66\x21\xc0\x00\x02\x01\x50\x00\x01"
                                   "a\x02/b\x07\x04\xad\x10\x07\xb0\x80\xe2\xcf\xaa\x06\xd0\x0f\x03"
                                   "\x90\x1c\x90\x1c\x80\xa3\x05\x07\x3e\x01\x04\xc8\x01\x02OK\x01"
                                   "a\x03=b\n\x03\x0a\x02X3\x04\x01s\x00\x03"
                                   "Foo\x00";
    struct http_field fields[] = {{.name = VIEW("ETag"), .value = VIEW("X3")},
            {.name = VIEW("Server"), .value = VIEW("s")}, {.name = VIEW("Foo"), .value = VIEW("")}};
    struct stored_head head = {.http = {.status = 200,
                                       .minor_version = 1,
                                       .reason = VIEW("OK"),
                                       .field_count = 3,
                                       .fields = fields},
            .freshness = fresh,
            .vary = VIEW("a"),
            .selectors = VIEW("=b\n"),
            .content_length = 3,
            .has_body = true};
    struct head_record record = {
            .authority = VIEW("a"), .path = VIEW("/b"), .generation = 7, .body_length = 3, .boot = BOOT};
    address_parse(VIEW("192.0.2.1"), &record.destination.address);
    record.destination.port = 80;
    head.freshness.date_s = NOW - 2;
    struct view bytes = encoded(&record, &head);
    CU_ASSERT_TRUE(view_equal(bytes, ((struct view){expected, sizeof expected - 1})));
    free((void *)bytes.data);
}

static void every_kind_of_destination(void) {
    static const char *const addresses[] = {"192.0.2.1", "0.0.0.0", "255.255.255.255", "2001:db8::1",
            "::", "::1", "fe80::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"};
    struct stored_head *head = sample_head("");
    for (size_t i = 0; i < COUNT(addresses); i++) {
        struct head_record record = sample_record();
        CU_ASSERT_TRUE(address_parse(view_of(addresses[i]), &record.destination.address));
        CU_ASSERT_TRUE(comes_back(&record, head));
        record.destination.port = UINT16_MAX;
        record.destination.scope = 0;
        CU_ASSERT_TRUE(comes_back(&record, head));
    }
    free(head);
}

static void every_kind_of_number(void) {
    static const int64_t lengths[] = {-1, 0, 1, 65536, INT64_C(500) << 30, INT64_MAX - 1};
    static const int statuses[] = {100, 200, 404, 999};
    struct stored_head *head = sample_head("");
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (size_t j = 0; j < COUNT(statuses); j++)
            for (unsigned bits = 0; bits < 16; bits++) {
                struct head_record record = sample_record();
                record.body_length = lengths[i];
                record.generation = bits & 8 ? UINT64_MAX : 0;
                record.gives_ranges = bits & 1;
                record.is_contradicted = bits & 2;
                head->content_length = lengths[COUNT(lengths) - 1 - i];
                head->has_body = bits & 4;
                head->http.status = statuses[j];
                head->http.minor_version = bits & 1;
                CU_ASSERT_TRUE(comes_back(&record, head));
            }
    free(head);
}

static void every_kind_of_freshness(void) {
    static const struct freshness rows[] = {
            {.response_at = {0, 0}},
            {.response_at = {NOW, -100}, .date_s = HEAD_RECORD_SECONDS_MAXIMUM},
            {.response_at = {HEAD_RECORD_SECONDS_MAXIMUM, 1050}, .date_s = 0},
            {.lifetime_s = HEAD_RECORD_SECONDS_MAXIMUM, .while_revalidate_s = -2, .if_error_s = -2},
            {.explicit_s = HEAD_RECORD_SECONDS_MAXIMUM, .if_error_s = HEAD_RECORD_SECONDS_MAXIMUM},
            {.modified_age_s = HEAD_RECORD_SECONDS_MAXIMUM, .while_revalidate_s = 2147483648},
            {.initial_age_s = HEAD_RECORD_SECONDS_MAXIMUM, .while_revalidate_s = -1},
            {.has_date = true},
            {.has_age = true},
            {.is_explicit = true},
            {.is_heuristic = true},
            {.is_redirect = true},
            {.is_immutable = true},
            {.no_cache = true},
            {.must_revalidate = true},
            {0, 0, 0, {0, 0}, 0, 0, 0, 0, true, true, true, true, true, true, true, true},
    };
    struct head_record record = sample_record();
    struct stored_head *head = sample_head("");
    for (size_t i = 0; i < COUNT(rows); i++) {
        head->freshness = rows[i];
        CU_ASSERT_TRUE(comes_back(&record, head));
    }
    free(head);
}

static void names_of_fields(void) {
#define NAME(code, usual, lower) {usual, lower, code},
    static const struct {
        const char *usual, *lower;
        int code;
    } rows[] = {
#include "cache/head_record.tbl"
    };
    struct head_record record = sample_record();
    for (size_t i = 0; i < COUNT(rows); i++) {
        CU_ASSERT_TRUE(view_equal_fold(view_of(rows[i].usual), view_of(rows[i].lower)));
        CU_ASSERT_FALSE(view_equal(view_of(rows[i].usual), view_of(rows[i].lower)));
        for (const char *at = rows[i].lower; *at; at++)
            CU_ASSERT_EQUAL(view_lower(*at), *at);
        for (size_t j = 0; j < i; j++)
            CU_ASSERT_FALSE(strcmp(rows[i].lower, rows[j].lower) == 0 || rows[i].code == rows[j].code);
        struct http_field fields[] = {{.name = view_of(rows[i].usual)}, {.name = view_of(rows[i].lower)}};
        fields[0].id = fields[1].id = http_field_id(fields[0].name);
        struct stored_head head = {.http = {.status = 200, .field_count = 2, .fields = fields}};
        CU_ASSERT_TRUE(comes_back(&record, &head));
        struct view bytes = encoded(&record, &head); // a byte for each name, and one for each value
        size_t with = bytes.length;
        free((void *)bytes.data);
        head.http.field_count = 0;
        bytes = encoded(&record, &head);
        CU_ASSERT_EQUAL(with, bytes.length + 4);
        free((void *)bytes.data);
    }
}

// ---- time ----

static void time_goes_on(void) {
    static const struct {
        uint32_t written_boot, boot;
        struct moment now;
        int64_t age_s; // since it was written at NOW, 1000
    } rows[] = {
            {BOOT, BOOT, {NOW + 50, 1050}, 50},
            {BOOT, BOOT, {NOW - 9999, 1050}, 50}, // the wall clock was set back, and forth
            {BOOT, BOOT, {NOW + 9999, 1050}, 50},
            {BOOT, BOOT, {0, 1000}, 0},
            {BOOT, BOOT, {NOW + 50, 999}, 50},   // no such time in this start
            {BOOT, BOOT + 1, {NOW + 50, 3}, 50}, // another start
            {BOOT, BOOT + 1, {NOW + 50, 5000}, 50},
            {BOOT, BOOT + 1, {NOW, 5000}, 0},
            {BOOT, BOOT + 1, {NOW + 86400, 0}, 86400},
            {BOOT, BOOT + 1, {NOW - 1, 5000}, 2147483648}, // nobody knows
            {BOOT, BOOT + 1, {0, 5000}, 2147483648},
            {BOOT, 0, {NOW + 50, 1050}, 50},
            {0, BOOT, {NOW + 70, 1050}, 70},
            {0, 0, {NOW + 70, 1050}, 70},
            {0, 0, {NOW - 70, 1050}, 2147483648},
    };
    struct stored_head *head = sample_head("");
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct head_record record = sample_record(), found;
        struct head_record_now at = {rows[i].now, rows[i].boot};
        record.boot = rows[i].written_boot;
        struct view bytes = encoded(&record, head);
        struct stored_head *decoded = head_record_decode(bytes, &at, &found);
        CU_ASSERT_FATAL(decoded != NULL);
        CU_ASSERT_EQUAL(decoded->freshness.response_at.wall_s, NOW);
        CU_ASSERT_EQUAL(freshness_age(&decoded->freshness, at.moment), fresh.initial_age_s + rows[i].age_s);
        free(decoded);
        free((void *)bytes.data);
    }
    free(head);
}

// ---- what cannot be kept ----

static void refused_by_encode(const struct head_record *record, const struct stored_head *head) {
    unsigned char out[4096];
    CU_ASSERT_EQUAL(head_record_encode(record, head, out, sizeof out), 0);
}

static void bad_numbers(void) {
    static const struct freshness rows[] = {
            {.response_at.wall_s = -1},
            {.response_at.wall_s = HEAD_RECORD_SECONDS_MAXIMUM + 1},
            {.response_at.steady_s = HEAD_RECORD_SECONDS_MAXIMUM + 1},
            {.response_at.steady_s = INT64_MIN},
            {.date_s = -1},
            {.date_s = INT64_MAX},
            {.lifetime_s = -1},
            {.lifetime_s = INT64_MAX},
            {.explicit_s = -1},
            {.modified_age_s = -1},
            {.initial_age_s = -1},
            {.initial_age_s = HEAD_RECORD_SECONDS_MAXIMUM + 1},
            {.while_revalidate_s = -3},
            {.if_error_s = INT64_MIN},
    };
    struct stored_head *head = sample_head("");
    struct head_record record = sample_record();
    for (size_t i = 0; i < COUNT(rows); i++) {
        head->freshness = rows[i];
        refused_by_encode(&record, head);
    }
    head->freshness = fresh;
    head->content_length = -2;
    refused_by_encode(&record, head);
    head->content_length = INT64_MAX;
    refused_by_encode(&record, head);
    head->content_length = 0;
    record.body_length = -2;
    refused_by_encode(&record, head);
    record.body_length = INT64_MAX;
    refused_by_encode(&record, head);
    record.body_length = 0;
    head->http.status = 99;
    refused_by_encode(&record, head);
    head->http.status = 1000;
    refused_by_encode(&record, head);
    head->http.status = 200;
    head->http.minor_version = 2;
    refused_by_encode(&record, head);
    head->http.minor_version = 1;
    CU_ASSERT_TRUE(comes_back(&record, head));
    free(head);
}

static void bad_fields(void) {
    static const struct {
        struct view name, value;
        bool is_kept;
    } rows[] = {
            {VIEW("A"), VIEW("b c\t\xff"), true},
            {VIEW(""), VIEW("b"), false},
            {VIEW("A b"), VIEW("b"), false},
            {VIEW("A:"), VIEW("b"), false},
            {VIEW("A\0"), VIEW("b"), false},
            {VIEW("A"), VIEW("b\r\nC: d"), false}, // another field
            {VIEW("A"), VIEW("b\n"), false},
            {VIEW("A"), VIEW("b\0"), false},
            {VIEW("A"), VIEW("b\x7f"), false},
            {VIEW("A"), VIEW(" b"), false},
            {VIEW("A"), VIEW("b\t"), false},
            {VIEW("A"), VIEW("\t"), false},
            {VIEW("Transfer-Encoding"), VIEW("chunked"), false}, // would frame the answer anew
            {VIEW("content-length"), VIEW("5"), false},
            {VIEW("Connection"), VIEW("close"), false},
            {VIEW("Upgrade"), VIEW("h2c"), false},
            {VIEW("Age"), VIEW("5"), false},
    };
    struct head_record record = sample_record();
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct http_field field = {rows[i].name, rows[i].value, http_field_id(rows[i].name), false};
        struct stored_head head = {.http = {.status = 200, .field_count = 1, .fields = &field}};
        CU_ASSERT_EQUAL(comes_back(&record, &head), rows[i].is_kept);
        field.hop = true; // by Connection
        refused_by_encode(&record, &head);
    }
}

static void bad_texts(void) {
    static const struct {
        struct view authority, path, reason, vary, selectors;
        bool is_kept;
    } rows[] = {
            {VIEW(""), VIEW(""), VIEW(""), VIEW(""), VIEW(""), true},
            {VIEW("a"), VIEW("/"), VIEW("No thing\t\xff"), VIEW("a,b"), VIEW("-\n=\t\xff\n"), true},
            {VIEW("a b"), VIEW("/"), VIEW(""), VIEW(""), VIEW(""), false},
            {VIEW("a\n"), VIEW("/"), VIEW(""), VIEW(""), VIEW(""), false},
            {VIEW("a"), VIEW("/ HTTP/1.1"), VIEW(""), VIEW(""), VIEW(""), false},
            {VIEW("a"), VIEW("/\x1b[2J"), VIEW(""), VIEW(""), VIEW(""), false},
            {VIEW("a"), VIEW("/\0"), VIEW(""), VIEW(""), VIEW(""), false},
            {VIEW("a"), VIEW("/"), VIEW("OK\r\nA: b"), VIEW(""), VIEW(""), false},
            {VIEW("a"), VIEW("/"), VIEW(""), VIEW("a"), VIEW(""), false}, // no line for it
            {VIEW("a"), VIEW("/"), VIEW(""), VIEW("a"), VIEW("-"), false},
            {VIEW("a"), VIEW("/"), VIEW(""), VIEW("a"), VIEW("-\n-\n"), false},
            {VIEW("a"), VIEW("/"), VIEW(""), VIEW("a"), VIEW("-\n-"), false},
            {VIEW("a"), VIEW("/"), VIEW(""), VIEW("a,b"), VIEW("-\n"), false},
            {VIEW("a"), VIEW("/"), VIEW(""), VIEW(""), VIEW("-\n"), false},
            {VIEW("a"), VIEW("/"), VIEW(""), VIEW("a b"), VIEW("-\n"), false},
            {VIEW("a"), VIEW("/"), VIEW(""), VIEW("a"), VIEW("=\r\n"), false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct head_record record = sample_record();
        struct stored_head head = {.http = {.status = 200, .reason = rows[i].reason},
                .vary = rows[i].vary,
                .selectors = rows[i].selectors};
        record.authority = rows[i].authority;
        record.path = rows[i].path;
        CU_ASSERT_EQUAL(comes_back(&record, &head), rows[i].is_kept);
    }
}

static struct view run_of(size_t length) {
    static char text[RECORD_HEAD_MAXIMUM + 1];
    memset(text, 'a', sizeof text);
    return (struct view){text, length};
}

static void longest(void) {
    struct head_record record = sample_record();
    struct http_field field = {.name = VIEW("A")};
    struct stored_head head = {.http = {.status = 200, .field_count = 1, .fields = &field}};
    size_t empty = head_record_encode(&record, &head, NULL, 0);
    field.value = run_of(RECORD_HEAD_MAXIMUM - empty - 2); // its length takes two bytes more
    CU_ASSERT_EQUAL(head_record_encode(&record, &head, NULL, 0), RECORD_HEAD_MAXIMUM);
    CU_ASSERT_TRUE(comes_back(&record, &head));
    field.value = run_of(field.value.length + 1);
    refused_by_encode(&record, &head);
    field.value = run_of(0);
    record.authority = run_of(AUTHORITY_BYTES);
    CU_ASSERT_TRUE(comes_back(&record, &head));
    record.authority = run_of(AUTHORITY_BYTES + 1);
    refused_by_encode(&record, &head);
    record.authority = run_of(1);
    head.vary = run_of(VARY_NAMES_BYTES);
    head.selectors = VIEW("-\n");
    CU_ASSERT_TRUE(comes_back(&record, &head));
    head.vary = run_of(VARY_NAMES_BYTES + 1);
    refused_by_encode(&record, &head);
}

// The most fields, of the names that grow the most.
static void most_fields(void) {
    struct head_record record = sample_record();
    struct http_field fields[HEAD_RECORD_FIELDS_MAXIMUM + 1];
    struct stored_head head = {.http = {.status = 200, .fields = fields}};
    for (size_t i = 0; i < COUNT(fields); i++)
        fields[i] = (struct http_field){.name = VIEW("Access-Control-Allow-Credentials")};
    for (unsigned count = 40; count <= 60; count++) {
        head.http.field_count = count;
        CU_ASSERT_TRUE(comes_back(&record, &head));
    }
    head.http.field_count = HEAD_RECORD_FIELDS_MAXIMUM;
    CU_ASSERT_TRUE(comes_back(&record, &head));
    head.http.field_count = HEAD_RECORD_FIELDS_MAXIMUM + 1;
    refused_by_encode(&record, &head);
}

// ---- bytes that are not what they were ----

static struct stored_head *decode_exact(struct view bytes, struct head_record *record) {
    char *exact = memcpy(malloc(bytes.length + !bytes.length), bytes.data, bytes.length);
    struct stored_head *head = head_record_decode((struct view){exact, bytes.length}, &now, record);
    if (head) // views into what is freed now
        *record = (struct head_record){0};
    CU_ASSERT_TRUE(is_no_record(record));
    free(exact);
    return head;
}

static void every_truncation(void) {
    struct head_record record = sample_record(), found;
    struct stored_head *head = sample_head(sample_fields);
    struct view bytes = encoded(&record, head);
    for (size_t length = 0; length < bytes.length; length++)
        CU_ASSERT_PTR_NULL(decode_exact(view_take(bytes, length), &found));
    char *longer = memcpy(malloc(bytes.length + 1), bytes.data, bytes.length);
    for (int last = 0; last < 256; last += 5) {
        longer[bytes.length] = (char)last;
        CU_ASSERT_PTR_NULL(decode_exact((struct view){longer, bytes.length + 1}, &found));
    }
    free(longer);
    free((void *)bytes.data);
    free(head);
}

// Whatever comes out was told by these bytes and no others.
static void takes_or_refuses(struct view bytes) {
    struct head_record record;
    struct head_record_now at = {{HEAD_RECORD_SECONDS_MAXIMUM, HEAD_RECORD_SECONDS_MAXIMUM}, 0};
    if (head_record_read(bytes, &record))
        at.boot = record.boot;
    struct stored_head *head = head_record_decode(bytes, &at, &record);
    if (!head) {
        CU_ASSERT_TRUE(is_no_record(&record));
        return;
    }
    struct view again = encoded(&record, head);
    CU_ASSERT_TRUE(view_equal(again, bytes));
    CU_ASSERT_TRUE(head->bytes <= HEAD_RECORD_MEMORY_MAXIMUM);
    free((void *)again.data);
    free(head);
}

// The checksum has seen it before; here it is seen that nothing depends on that.
static void every_flipped_bit(void) {
    struct head_record record = sample_record();
    struct stored_head *head = sample_head(sample_fields);
    struct view bytes = encoded(&record, head);
    struct record header = {.type = RECORD_HEAD};
    unsigned char *data = (unsigned char *)bytes.data;
    record_set_head(&header, data, bytes.length);
    CU_ASSERT_TRUE(record_check_head(&header, data));
    for (size_t bit = 0; bit < 8 * bytes.length; bit++) {
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        CU_ASSERT_FALSE(record_check_head(&header, data));
        takes_or_refuses(bytes);
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    takes_or_refuses(bytes);
    free(data);
    free(head);
}

// A field count that promises more than there is costs nothing.
static void promises(void) {
    struct head_record record = sample_record(), found;
    struct stored_head head = {.http = {.status = 200}};
    struct view bytes = encoded(&record, &head);
    unsigned char *data = malloc(bytes.length + 100);
    for (uint64_t count = 1; count < UINT64_C(1) << 60; count *= 3) {
        struct pack pack = {data, bytes.length + 100, 0};
        pack_bytes(&pack, bytes.data, bytes.length - 1);
        pack_number(&pack, count);
        CU_ASSERT_PTR_NULL(decode_exact((struct view){(char *)data, pack.length}, &found));
        pack_bytes(&pack, "\x02\x00\x02\x00\x02", 5); // two, and a half
        struct stored_head *two = decode_exact((struct view){(char *)data, pack.length}, &found);
        CU_ASSERT_PTR_NULL(two);
        free(two);
    }
    free(data);
    free((void *)bytes.data);
}

static void other_forms(void) {
    struct head_record record = sample_record(), found;
    struct http_field field = {.name = VIEW("Foo")};
    struct stored_head head = {.http = {.status = 200, .field_count = 1, .fields = &field}};
    struct view bytes = encoded(&record, &head);
    unsigned char *data = malloc(bytes.length + 16), *name = data + bytes.length - 4;
    memcpy(data, bytes.data, bytes.length);
    struct stored_head *decoded = decode_exact((struct view){(char *)data, bytes.length}, &found);
    CU_ASSERT_PTR_NOT_NULL(decoded);
    free(decoded);
    memcpy(name, "Via", 3); // as text, though it has a code
    CU_ASSERT_PTR_NULL(decode_exact((struct view){(char *)data, bytes.length}, &found));
    memcpy(name, "VIA", 3); // a spelling of its own
    decoded = decode_exact((struct view){(char *)data, bytes.length}, &found);
    CU_ASSERT_TRUE(decoded && decoded->http.fields[0].id == FIELD_VIA);
    free(decoded);
    for (int token = 1; token < 256; token++) { // codes that none has
        name[-2] = (unsigned char)token;
        name[-1] = 0;
        bool is_known = token >= 2 && token <= 59 * 2 + 1;
        decoded = decode_exact((struct view){(char *)data, bytes.length - 4}, &found);
        CU_ASSERT_EQUAL(decoded != NULL, is_known);
        free(decoded);
    }
    free(data);
    free((void *)bytes.data);
}

// IPv4 in sixteen bytes is another spelling of the same.
static void mapped_address(void) {
    unsigned char data[128] = {1, 0, [12] = 0xff, 0xff, 192, 0, 2, 1};
    struct head_record found;
    struct pack pack = {data, sizeof data, 18};
    pack_number(&pack, 80);
    pack_number(&pack, 0);
    pack_text(&pack, VIEW("a"));
    pack_text(&pack, VIEW("/"));
    pack_number(&pack, 1);
    pack_number(&pack, 1);
    CU_ASSERT_FALSE(head_record_read((struct view){(char *)data, pack.length}, &found));
    CU_ASSERT_TRUE(is_no_record(&found));
    data[12] = 0; // another address
    CU_ASSERT_TRUE(head_record_read((struct view){(char *)data, pack.length}, &found));
    CU_ASSERT_TRUE(view_equal(found.path, VIEW("/")));
}

// ---- any head ----

static uint64_t random_state;
static uint32_t random_below(uint32_t limit) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return limit ? (uint32_t)(random_state >> 33) % limit : 0;
}

static struct view random_text(char **end, size_t length, const char *from) {
    struct view text = {*end, length};
    size_t kinds = strlen(from);
    for (size_t i = 0; i < length; i++)
        *(*end)++ = from[random_below((uint32_t)kinds)];
    return text;
}

static int64_t random_seconds(int64_t least) {
    int64_t seconds = (int64_t)((uint64_t)random_below(1u << 31) << 9) >> random_below(41);
    return random_below(8) ? seconds : least;
}

static void random_freshness(struct freshness *freshness) {
    *freshness = (struct freshness){random_seconds(0), random_seconds(0), random_seconds(0),
            {random_seconds(0), -random_seconds(0)}, random_seconds(0), random_seconds(0), random_seconds(-2),
            random_seconds(-1), random_below(2), random_below(2), random_below(2), random_below(2),
            random_below(2), random_below(2), random_below(2), random_below(2)};
}

struct any_head {
    char text[20000];
    struct http_field fields[70];
    struct head_record record;
    struct stored_head head;
};

#define LETTERS "abcXYZ019-_!~"
#define TEXT_OCTETS "ab \t,;=\"\\\x80\xff"

static void random_fields(struct any_head *any, char **end) {
    static const char *const known[] = {"Date", "date", "DATE", "ETag", "Foo", "Set-Cookie", "X-Cache"};
    struct http_head *http = &any->head.http;
    http->fields = any->fields;
    http->field_count = random_below(random_below(4) ? 20 : COUNT(any->fields));
    for (unsigned i = 0; i < http->field_count; i++) {
        struct view name = random_below(2) ? view_of(known[random_below(COUNT(known))])
                                           : random_text(end, 1 + random_below(30), LETTERS);
        struct view value = random_text(end, random_below(random_below(10) ? 30 : 200), TEXT_OCTETS);
        any->fields[i] = (struct http_field){name, view_trim(value), http_field_id(name), false};
    }
}

static void random_vary(struct any_head *any, char **end) {
    char *vary = *end;
    unsigned names = random_below(4);
    for (unsigned i = 0; i < names; i++) {
        if (i)
            *(*end)++ = ',';
        random_text(end, 1 + random_below(20), LETTERS);
    }
    any->head.vary = (struct view){vary, (size_t)(*end - vary)};
    char *selectors = *end;
    for (unsigned i = 0; i < names; i++) {
        random_text(end, random_below(100), TEXT_OCTETS);
        *(*end)++ = '\n';
    }
    any->head.selectors = (struct view){selectors, (size_t)(*end - selectors)};
}

static void random_head(struct any_head *any) {
    char *end = any->text;
    *any = (struct any_head){.record = {.generation = (uint64_t)random_below(UINT32_MAX) << random_below(40),
                                     .body_length = random_seconds(-1),
                                     .gives_ranges = random_below(2),
                                     .is_contradicted = random_below(2),
                                     .boot = BOOT},
            .head = {.http = {.status = 100 + (int)random_below(900), .minor_version = (int)random_below(2)},
                    .content_length = random_seconds(-1),
                    .has_body = random_below(2)}};
    for (size_t i = 0; i < 16; i++)
        any->record.destination.address.bytes[i] = (uint8_t)random_below(256);
    if (random_below(2))
        address_parse(VIEW("10.1.2.3"), &any->record.destination.address);
    any->record.destination.port = (uint16_t)random_below(65536);
    any->record.destination.scope = 0;
    any->record.authority = random_text(&end, random_below(60), LETTERS ".:");
    any->record.path = random_text(&end, random_below(300), LETTERS "/?%&=\xfe");
    any->head.http.reason = random_text(&end, random_below(20), TEXT_OCTETS);
    random_freshness(&any->head.freshness);
    random_vary(any, &end);
    random_fields(any, &end);
}

static void any_head_comes_back(void) {
    struct any_head *any = malloc(sizeof *any);
    random_state = 20240229;
    for (int i = 0; i < 3000; i++) {
        random_head(any);
        CU_ASSERT_TRUE(comes_back(&any->record, &any->head));
    }
    free(any);
}

// Spoilt in several places, cut, and put together from two.
static void any_spoilt_head(void) {
    struct any_head *any = malloc(sizeof *any);
    random_state = 7;
    for (int i = 0; i < 3000; i++) {
        random_head(any);
        struct view bytes = encoded(&any->record, &any->head);
        unsigned char *data = (unsigned char *)bytes.data;
        for (int round = 0; round < 8; round++) {
            unsigned changes = 1 + random_below(3);
            while (changes--)
                data[random_below((uint32_t)bytes.length)] = (unsigned char)random_below(256);
            takes_or_refuses(bytes);
        }
        size_t from = random_below((uint32_t)bytes.length), to = random_below((uint32_t)bytes.length);
        size_t most = bytes.length - (from > to ? from : to);
        memmove(data + to, data + from, most);
        takes_or_refuses(bytes);
        free(data);
    }
    free(any);
}

SUITE(cache_head_record, CASE(a_whole_head), CASE(on_disk), CASE(every_kind_of_destination),
        CASE(every_kind_of_number), CASE(every_kind_of_freshness), CASE(names_of_fields), CASE(time_goes_on),
        CASE(bad_numbers), CASE(bad_fields), CASE(bad_texts), CASE(longest), CASE(most_fields),
        CASE(every_truncation), CASE(every_flipped_bit), CASE(promises), CASE(other_forms),
        CASE(mapped_address), CASE(any_head_comes_back), CASE(any_spoilt_head))
