#include "http/cache_control.h"

#include "tests/unit/http/message.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

static struct cache_control parse(const char *fields) {
    char text[512];
    struct message message;
    struct cache_control control;
    snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\n%s\r\n", fields);
    cache_control_parse(message_good_response(&message, text), &control);
    return control;
}

static struct cache_control parse_value(const char *value) {
    char text[256];
    snprintf(text, sizeof text, "Cache-Control: %s\r\n", value);
    return parse(text);
}

static void absent(void) {
    struct cache_control control = parse("Pragma: no-cache\r\n");
    CU_ASSERT_FALSE(control.present || control.no_store || control.no_cache || control.is_private);
    CU_ASSERT_EQUAL(control.max_age, DELTA_NONE);
    CU_ASSERT_EQUAL(control.stale_if_error, DELTA_NONE);
    CU_ASSERT(parse("Cache-Control:\r\n").present);
}

static void flags(void) {
    struct cache_control all =
            parse("Cache-Control: no-store, NO-CACHE,no-transform ,only-if-cached\r\n"
                  "cache-control: must-revalidate,proxy-revalidate,public\r\n"
                  "Cache-Control: private, must-understand,, immutable, x=\"no-store\"\r\n");
    CU_ASSERT(all.no_store && all.no_cache && all.no_transform && all.only_if_cached && all.must_revalidate &&
              all.proxy_revalidate && all.is_public && all.is_private && all.must_understand &&
              all.immutable);
    CU_ASSERT_FALSE(all.no_cache_fields || all.private_fields);
    struct cache_control none =
            parse_value("x-no-store, no-storex, \"no-store\", a=\"b, no-store\", no store");
    CU_ASSERT_FALSE(none.no_store);
    CU_ASSERT(parse_value("a=\"b, no-store").no_store); // a quote without an end hides nothing
    CU_ASSERT(parse_value("no-store=1").no_store);
    CU_ASSERT(parse_value("no-store ; x").no_store);
}

static void fields(void) {
    struct cache_control some = parse_value("no-cache=\"set-cookie, a\", private=b");
    CU_ASSERT(some.no_cache_fields && some.private_fields);
    CU_ASSERT_FALSE(some.no_cache || some.is_private);
    struct cache_control both = parse_value("no-cache=\"a\", no-cache, private, private=\"a\"");
    CU_ASSERT(both.no_cache_fields && both.private_fields && both.no_cache && both.is_private);
    // they mean the whole
    static const char *const doubtful[] = {"no-cache=", "no-cache=\"\"", "no-cache=\"a", "no-cache x",
            "no-cache =\"a\"", "no-cache=a b", "no-cache=\"a b\"", "no-cache=\"a;b\"", "no-cache=\",\"",
            "no-cache=\"a\"b", "no-cache=\"a\\\"b\""};
    for (size_t i = 0; i < sizeof doubtful / sizeof *doubtful; i++)
        CU_ASSERT(parse_value(doubtful[i]).no_cache && parse_value(doubtful[i]).name_count == 0);
}

// [RFC 9111 §5.2.2.4, §5.2.2.7]
static void names(void) {
    static const struct {
        const char *value;
        const char *names[3]; // that must be left out, and no others
    } all[] = {{"no-cache=\"a\"", {"A"}}, {"no-cache=a", {"a"}}, {"private=\"A , b\"", {"a", "B"}},
            {"no-cache=\"a\", private=\"b,,c,\"", {"a", "b", "c"}}, {"no-cache", {NULL}},
            {"no-cache=\"a b, c\"", {NULL}}, {"no-cachex=\"a\"", {NULL}}, {"foo=\"private=a\"", {NULL}}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct cache_control control = parse_value(all[i].value);
        unsigned count = 0;
        for (; count < 3 && all[i].names[count]; count++)
            CU_ASSERT(cache_control_leaves_out(&control, view_of(all[i].names[count])));
        CU_ASSERT_EQUAL(control.name_count, count);
        CU_ASSERT_FALSE(cache_control_leaves_out(&control, VIEW("")));
        CU_ASSERT_FALSE(cache_control_leaves_out(&control, VIEW("d")));
    }
    char value[128] = "private=\"a";
    for (int i = 1; i < CACHE_CONTROL_NAMES_MAX; i++)
        strcat(value, ",x");
    CU_ASSERT_EQUAL(parse_value(strcat(value, "\"")).name_count, CACHE_CONTROL_NAMES_MAX);
    value[strlen(value) - 1] = 0;
    struct cache_control over = parse_value(strcat(value, ",y\""));
    CU_ASSERT(over.is_private && !over.private_fields && over.name_count == 0);
}

static void deltas(void) {
    static const struct {
        const char *value;
        int64_t max_age;
    } all[] = {{"max-age=0", 0}, {"max-age=3600", 3600}, {"MAX-AGE=\"60\"", 60}, {"max-age=007", 7},
            {"max-age=2147483647", 2147483647}, {"max-age=2147483648", DELTA_MAXIMUM},
            {"max-age=99999999999999999999999999", DELTA_MAXIMUM}, {"max-age", DELTA_INVALID},
            {"max-age=", DELTA_INVALID}, {"max-age=\"\"", DELTA_INVALID}, {"max-age=-1", DELTA_INVALID},
            {"max-age=+1", DELTA_INVALID}, {"max-age=1.5", DELTA_INVALID}, {"max-age=1s", DELTA_INVALID},
            {"max-age=0x10", DELTA_INVALID}, {"max-age =1", DELTA_INVALID}, {"max-age= 1", DELTA_INVALID},
            {"max-age=\"1", DELTA_INVALID}, {"max-age:1", DELTA_INVALID}, {"max-age=a", DELTA_INVALID},
            {"max-age=5, max-age=9", 5}, {"x-max-age=5", DELTA_NONE}, {"max-age=5;s-maxage=6", DELTA_INVALID},
            {"max-age = 1", DELTA_INVALID}, {"max-age=1 2", DELTA_INVALID},
            {"max-age=\"\\1\"", DELTA_INVALID}, {"max-age=1, ", 1},
            {"max-age=18446744073709551616", DELTA_MAXIMUM}, {"max-age=1_000", DELTA_INVALID},
            {"max-age=1e3", DELTA_INVALID}, {"max-age='1'", DELTA_INVALID}, {"max-age==1", DELTA_INVALID},
            {"max-age=x, max-age=9", DELTA_INVALID}, {"a=\"max-age=1\", max-age=2", 2},
            {"a=\"\\\", max-age=1\", max-age=2", 2}, {"\tmax-age=1\t,b", 1}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CU_ASSERT_EQUAL(parse_value(all[i].value).max_age, all[i].max_age);
    struct cache_control many =
            parse_value("s-maxage=1, min-fresh=2, max-stale=3, stale-while-revalidate=4, stale-if-error=5");
    CU_ASSERT(many.s_maxage == 1 && many.min_fresh == 2 && many.max_stale == 3 &&
              many.stale_while_revalidate == 4 && many.stale_if_error == 5 && !many.max_stale_any);
    struct cache_control any = parse_value("max-stale");
    CU_ASSERT(any.max_stale_any && any.max_stale == DELTA_NONE);
    CU_ASSERT_EQUAL(parse_value("max-stale=x").max_stale, DELTA_INVALID);
}

SUITE(http_cache_control, CASE(absent), CASE(flags), CASE(fields), CASE(names), CASE(deltas))
