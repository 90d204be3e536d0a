#include "intercept/explain.h"

#include "admin/option.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

static char *text;
static size_t length;

static void print(const struct explain_writer *writer, const struct explained *explained,
        const struct explained_place *places, unsigned count) {
    free(text);
    FILE *out = open_memstream(&text, &length);
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    writer->begin(explained, out);
    for (unsigned i = 0; i < count; i++)
        writer->place(explained, &places[i], i, out);
    writer->end(explained, out);
    CU_ASSERT_EQUAL(fclose(out), 0);
}

// The manual and `weir explain` begin a meaning with a capital, which a directive's name has not.
static void meanings_do_not_begin_with_a_directive(void) {
    static const char *const meanings[] = {
#define REASON(word, forward, meaning) meaning,
#include "cache/reason.tbl"
#define REFRESH_OPTION(member, word, meaning) meaning,
#include "cache/refresh_option.tbl"
#define COUNTER(name, meaning) meaning,
#define GAUGE(name, meaning) meaning,
#include "admin/counter.tbl"
#define SCALAR(name, type, default_text, minimum, maximum, unit, meaning) meaning,
#define LIST(name, words_minimum, words_maximum, grammar, default_text, meaning) meaning,
#include "admin/option.tbl"
    };
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        char first[64];
        size_t end = strspn(meanings[i], "abcdefghijklmnopqrstuvwxyz_");
        snprintf(first, sizeof first, "%.*s", (int)end, meanings[i]);
        if (option_find(first) >= 0 && strchr(first, '_'))
            CU_FAIL(meanings[i]);
    }
}

static struct explained sample(void) {
    struct explained explained = {.url = VIEW("http://a.example/x"),
            .method = VIEW("GET"),
            .authority = VIEW("a.example"),
            .path = VIEW("/x"),
            .has_client = true,
            .client_verdict = ACL_ALLOW,
            .client_rule = {.rule = VIEW("allow 10.0.0.0/8"), .file = "weir.conf", .line = 3},
            .destination_count = 1};
    CU_ASSERT_TRUE(address_parse(VIEW("10.0.0.7"), &explained.client));
    return explained;
}

static struct explained_place *place_new(void) {
    struct explained_place *place = calloc(1, sizeof *place);
    CU_ASSERT_PTR_NOT_NULL_FATAL(place);
    place->is_known = true;
    place->destination.port = 80;
    CU_ASSERT_TRUE(address_parse(VIEW("192.0.2.1"), &place->destination.address));
    place->cache.lookup = LOOKUP_STALE;
    place->cache.reason = "expired";
    strcpy(place->cache.fields, "If-None-Match: \"e\"\r\nIf-Modified-Since: Sun\r\n");
    place->cache.variant_count = 1;
    place->cache.variants[0] = (struct cache_variant){.state = VARIANT_STORED,
            .is_selected = true,
            .status = 200,
            .age_s = 70,
            .lifetime_s = 60,
            .content_length = 5,
            .content_bytes = 5,
            .memory_bytes = 400,
            .disk_path = "/v",
            .span_count = 1,
            .spans = {{0, 4}},
            .is_never_stale = true,
            .vary = "accept-language,cookie",
            .selectors = "=cs\n-\n",
            .etag = "\"e\""};
    return place;
}

static void for_people(void) {
    struct explained explained = sample();
    struct explained_place *place = place_new();
    print(&explain_text, &explained, place, 1);
    CU_ASSERT_STRING_EQUAL(text,
            "GET http://a.example/x\n"
            "client 10.0.0.7: allowed, by \"allow 10.0.0.0/8\" (weir.conf:3)\n"
            "destination 192.0.2.1:80\n"
            "  url       allowed, no rule holds it\n"
            "  storing   allowed, no rule holds it\n"
            "  key       192.0.2.1:80 a.example /x\n"
            "  answer    from the store if the origin confirms it, else from the origin\n"
            "  because   expired: past its lifetime\n"
            "  asks      If-None-Match: \"e\"\n"
            "  asks      If-Modified-Since: Sun\n"
            "  stored    200, 5 bytes (400 in memory); on disk: /v\n"
            "            age 70 s, lifetime 60 s: stale for 10 s; never served stale\n"
            "            ETag: \"e\"\n"
            "            Vary: accept-language = \"cs\"\n"
            "            Vary: cookie absent\n");
    free(place);
}

static void for_programs(void) {
    struct explained explained = sample();
    struct explained_place *place = place_new();
    print(&explain_json, &explained, place, 1);
    CU_ASSERT_STRING_EQUAL(text,
            "{\"method\":\"GET\",\"url\":\"http://a.example/x\",\"authority\":\"a.example\",\"path\":\"/x\","
            "\"client\":{\"address\":\"10.0.0.7\",\"allowed\":true,\"rule\":\"allow 10.0.0.0/8\","
            "\"file\":\"weir.conf\",\"line\":3},\"destination_count\":1,\"destinations\":["
            "{\"destination\":\"192.0.2.1:80\",\"own\":false,"
            "\"url\":{\"allowed\":true,\"rule\":\"\",\"file\":\"\",\"line\":0},"
            "\"storing\":{\"allowed\":true,\"rule\":\"\",\"file\":\"\",\"line\":0},\"refresh\":null,"
            "\"lookup\":\"STALE\",\"reason\":\"expired\",\"meaning\":\"past its lifetime\","
            "\"refused\":false,\"unavailable\":false,\"refreshed\":false,\"unread\":false,"
            "\"sent\":[\"If-None-Match: \\\"e\\\"\",\"If-Modified-Since: Sun\"],"
            "\"variant_count\":1,\"variants\":[{\"state\":\"stored\",\"selected\":true,\"status\":200,"
            "\"age_s\":70,\"lifetime_s\":60,\"content_length\":5,\"content_bytes\":5,\"memory_bytes\":400,"
            "\"disk\":\"/v\",\"partial\":false,\"spans\":[[0,4]],"
            "\"confirmed_first\":false,\"never_stale\":true,\"content_type\":\"\",\"etag\":\"\\\"e\\\"\","
            "\"last_modified\":\"\",\"vary\":{\"accept-language\":\"cs\",\"cookie\":null}}]}]}\n");
    free(place);
}

// Nothing that an origin or a URL holds reaches a terminal as a control byte, or breaks the JSON.
static void hostile_bytes(void) {
    const struct explain_writer *const writers[] = {&explain_text, &explain_json};
    struct explained explained = sample();
    struct explained_place *place = place_new();
    explained.url = VIEW("http://a.example/\x1b[31m\xff");
    explained.path = VIEW("/\x1b[31m\xff");
    strcpy(place->cache.variants[0].etag, "\"\x1b]0;x\x07\x80\"");
    strcpy(place->cache.variants[0].selectors, "=\x1b[2J\n=\xc2\x9b\n");
    strcpy(place->cache.fields, "If-None-Match: \"\x1b]0;x\x07\"\r\n");
    for (int i = 0; i < 2; i++) {
        print(writers[i], &explained, place, 1);
        for (size_t at = 0; at < length; at++)
            CU_ASSERT_TRUE((unsigned char)text[at] >= 0x20 || text[at] == '\n');
        CU_ASSERT_PTR_NULL(strstr(text, "\xc2\x9b"));
        CU_ASSERT_PTR_NOT_NULL(strstr(text, "\\u001b"));
    }
    free(place);
}

static void what_a_rule_refuses_asks_nothing(void) {
    struct explained explained = sample();
    struct explained_place *place = place_new();
    place->verdict = ACL_BLOCK;
    place->is_refused = true;
    place->rule = (struct acl_match){.rule = VIEW("block a.example"), .file = "weir.conf", .line = 9};
    print(&explain_text, &explained, place, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "url       refused, by \"block a.example\" (weir.conf:9)\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "answer    403"));
    CU_ASSERT_PTR_NULL(strstr(text, "asks "));
    CU_ASSERT_PTR_NULL(strstr(text, "because"));
    free(place);
}

static void what_is_stored_in_parts(void) {
    struct explained explained = sample();
    struct explained_place *place = place_new();
    struct cache_variant *variant = &place->cache.variants[0];
    variant->is_partial = true;
    variant->content_length = 900;
    variant->content_bytes = 30;
    variant->span_count = EXPLAIN_SPANS_MAX + 1;
    variant->spans[1].first = 100;
    variant->spans[1].last = 109;
    print(&explain_text, &explained, place, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(
            text, "stored    200, 30 of 900 bytes (400 in memory); on disk: /v; in parts: 0-4, 100-109, "));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, " and 1 more\n"));
    print(&explain_json, &explained, place, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"partial\":true,\"spans\":[[0,4],[100,109],"));
    free(place);
}

static void more_than_is_shown_is_counted(void) {
    struct explained explained = sample();
    struct explained_place *place = place_new();
    explained.destination_count = EXPLAIN_DESTINATIONS_MAX + 3;
    place->cache.variant_count = EXPLAIN_VARIANTS_MAX + 2;
    print(&explain_text, &explained, place, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "and 2 more\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "stored under 19 destinations; the first 16 are shown\n"));
    free(place);
    free(text);
    text = NULL;
}

SUITE(intercept_explain, CASE(for_people), CASE(for_programs), CASE(hostile_bytes),
        CASE(what_a_rule_refuses_asks_nothing), CASE(what_is_stored_in_parts),
        CASE(more_than_is_shown_is_counted), CASE(meanings_do_not_begin_with_a_directive))
