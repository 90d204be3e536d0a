#include "intercept/access_line.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct access_entry sample(void) {
    struct access_entry entry = {
            .began_at_ms = 1700000000123,
            .duration_ms = 42,
            .client.port = 50123,
            .destination.port = 80,
            .contacted = true,
            .method = VIEW("GET"),
            .scheme = VIEW("http"),
            .host = VIEW("www.example.com"),
            .target = VIEW("/a?b=c"),
            .minor_version = 1,
            .status = 200,
            .bytes_out = 1234,
            .body_bytes = 1000,
            .bytes_in = 99,
            .result = RESULT_MISS,
            .reason = "absent",
            .asked = "expired",
            .referer = VIEW("http://r.example/"),
            .user_agent = VIEW("agent/1"),
            .content_type = VIEW("text/html; charset=utf-8"),
    };
    CU_ASSERT_TRUE(address_parse(VIEW("192.0.2.7"), &entry.client.address));
    CU_ASSERT_TRUE(address_parse(VIEW("198.51.100.1"), &entry.destination.address));
    return entry;
}

static char line[ACCESS_LINE_BYTES + 1];

static const char *format(enum access_format form, const struct access_entry *entry) {
    size_t length = access_line_format(form, entry, line);
    CU_ASSERT_TRUE_FATAL(length > 0 && length <= ACCESS_LINE_BYTES);
    CU_ASSERT_EQUAL(line[length - 1], '\n');
    CU_ASSERT_PTR_EQUAL(memchr(line, '\n', length), line + length - 1); // one line is one line
    line[length - 1] = '\0';
    return line;
}

static void use_utc(void) {
    setenv("TZ", "UTC0", 1);
    tzset();
}

static void golden_lines(void) {
    struct access_entry entry = sample();
    use_utc();
    CU_ASSERT_STRING_EQUAL(format(ACCESS_COMMON, &entry),
            "192.0.2.7 - - [14/Nov/2023:22:13:20 +0000] \"GET "
            "http://www.example.com/a?b=c HTTP/1.1\" 200 1000 MISS:absent");
    CU_ASSERT_STRING_EQUAL(format(ACCESS_COMBINED, &entry),
            "192.0.2.7 - - [14/Nov/2023:22:13:20 +0000] \"GET http://www.example.com/a?b=c HTTP/1.1\" 200 "
            "1000 "
            "\"http://r.example/\" \"agent/1\" MISS:absent");
    CU_ASSERT_STRING_EQUAL(format(ACCESS_SQUID, &entry),
            "1700000000.123     42 192.0.2.7 TCP_MISS/200 1234 GET http://www.example.com/a?b=c - "
            "HIER_DIRECT/198.51.100.1 text/html MISS:absent");
    CU_ASSERT_STRING_EQUAL(format(ACCESS_JSON, &entry),
            "{\"time\":\"2023-11-14T22:13:20.123Z\",\"client\":\"192.0.2.7\",\"client_port\":50123,"
            "\"destination\":\"198.51.100.1:80\",\"method\":\"GET\",\"url\":\"http://www.example.com/a?b=c\","
            "\"status\":200,\"bytes\":1234,\"body_bytes\":1000,\"bytes_in\":99,\"duration_ms\":42,"
            "\"result\":\"MISS\",\"reason\":\"absent\",\"lookup\":\"expired\",\"rule\":\"\",\"upstream\":"
            "true,"
            "\"referer\":\"http://r.example/\",\"user_agent\":\"agent/1\","
            "\"content_type\":\"text/html; charset=utf-8\"}");
}

static void golden_tunnel_and_nothing(void) {
    struct access_entry tunnel = {.result = RESULT_TUNNEL, .reason = "tls", .destination.port = 443};
    struct access_entry bad = {.result = RESULT_BAD, .reason = "head", .status = 400};
    use_utc();
    CU_ASSERT_TRUE(address_parse(VIEW("2001:db8::7"), &tunnel.client.address));
    CU_ASSERT_TRUE(address_parse(VIEW("2001:db8::1"), &tunnel.destination.address));
    CU_ASSERT_STRING_EQUAL(format(ACCESS_COMBINED, &tunnel),
            "2001:db8::7 - - [01/Jan/1970:00:00:00 +0000] \"TUNNEL "
            "[2001:db8::1]:443\" 000 - \"-\" \"-\" TUNNEL:tls");
    CU_ASSERT_STRING_EQUAL(format(ACCESS_SQUID, &tunnel),
            "0.000      0 2001:db8::7 TCP_TUNNEL/000 0 TUNNEL [2001:db8::1]:443 - HIER_NONE/- - TUNNEL:tls");
    CU_ASSERT_STRING_EQUAL(
            format(ACCESS_COMMON, &bad), ":: - - [01/Jan/1970:00:00:00 +0000] \"- -\" 400 - BAD:head");
    CU_ASSERT_PTR_NOT_NULL(
            strstr(format(ACCESS_JSON, &bad), "\"destination\":\"\",\"method\":\"-\",\"url\":\"-\""));
}

static const char *url_of(const char *host, const char *target, uint16_t port) {
    static char url[ACCESS_LINE_BYTES];
    struct access_entry entry = sample();
    entry.host = view_of(host);
    entry.target = view_of(target);
    entry.destination.port = port;
    const char *start = strstr(format(ACCESS_JSON, &entry), "\"url\":\"") + 7;
    snprintf(url, sizeof url, "%.*s", (int)strcspn(start, "\""), start);
    return url;
}

static void urls(void) {
    CU_ASSERT_STRING_EQUAL(url_of("h:8080", "/", 8080), "http://h:8080/");
    CU_ASSERT_STRING_EQUAL(url_of("", "/x", 80), "http://198.51.100.1/x");
    CU_ASSERT_STRING_EQUAL(url_of("", "/x", 8080), "http://198.51.100.1:8080/x");
    CU_ASSERT_STRING_EQUAL(url_of("", "/x", 0), "http://-/x");
    CU_ASSERT_STRING_EQUAL(url_of("h", "http://other/y", 80), "http://other/y");
    CU_ASSERT_STRING_EQUAL(url_of("h", "h:443", 443), "h:443");
    CU_ASSERT_STRING_EQUAL(url_of("h", "*", 80), "*");
}

static void hostile_bytes(void) {
    struct access_entry entry = sample();
    use_utc();
    entry.target = VIEW("/\"\\\x01\r\n\x7f \xff\xc3\xa9\xc2\x85\xc0\x80\xed\xa0\x80");
    entry.user_agent = VIEW("a\"b\nc\0d");
    CU_ASSERT_PTR_NOT_NULL(strstr(format(ACCESS_COMBINED, &entry),
            "com/\\x22\\x5c\\x01\\x0d\\x0a\\x7f "
            "\\xff\xc3\xa9\\xc2\\x85\\xc0\\x80\\xed\\xa0\\x80 HTTP/1.1\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(line, "\"a\\x22b\\x0ac\\x00d\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(format(ACCESS_SQUID, &entry), "\\x7f\\x20\\xff"));
    CU_ASSERT_PTR_NOT_NULL(strstr(format(ACCESS_JSON, &entry),
            "com/\\\"\\\\\\u0001\\r\\n\\u007f "
            "\\ufffd\xc3\xa9\\u0085\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\""));
}

// The longest of everything, and all of it escaped: a bounded line, cut where one can see it.
static void long_values_are_cut(void) {
    static char quotes[40000], accents[40000];
    memset(quotes, 1, sizeof quotes);
    for (size_t i = 0; i < sizeof accents; i += 2)
        memcpy(accents + i, "\xc3\xa9", 2);
    for (int i = 0; i < ACCESS_FORMAT_COUNT; i++) {
        struct access_entry entry = sample();
        struct view hostile = {quotes, sizeof quotes};
        entry.method = entry.host = entry.target = entry.rule = entry.referer = hostile;
        entry.user_agent = entry.content_type = hostile;
        entry.duration_ms = INT64_MAX;
        entry.bytes_out = entry.body_bytes = entry.bytes_in = UINT64_MAX;
        CU_ASSERT_PTR_NOT_NULL(strstr(format((enum access_format)i, &entry), "1..."));
    }
    struct access_entry entry = sample();
    entry.target = (struct view){accents, sizeof accents};
    CU_ASSERT_PTR_NOT_NULL(strstr(format(ACCESS_JSON, &entry), "\xc3\xa9...\",\"status\""));
}

static void every_result_has_its_words(void) {
    for (int i = 0; i < RESULT_COUNT; i++) {
        struct access_entry entry = sample();
        entry.result = (enum result)i;
        CU_ASSERT_PTR_NOT_NULL(strstr(format(ACCESS_JSON, &entry), result_word((enum result)i)));
        CU_ASSERT_PTR_NULL(strstr(format(ACCESS_SQUID, &entry), "(null)"));
    }
    enum access_format found;
    CU_ASSERT_TRUE(access_format_find("JSON", &found));
    CU_ASSERT_EQUAL(found, ACCESS_JSON);
    CU_ASSERT_FALSE(access_format_find("xml", &found));
}

// What Squid's documentation says that its words mean.
static void squids_words(void) {
    static const struct {
        enum result result;
        int status;
        const char *asked, *reason;
        bool is_confirming;
        const char *word;
    } rows[] = {
            {RESULT_HIT, 200, "fresh", "fresh", false, "TCP_MEM_HIT"},
            {RESULT_HIT, 206, "fresh", "fresh", false, "TCP_MEM_HIT"},
            {RESULT_HIT, 304, "fresh", "fresh", false, "TCP_IMS_HIT"},
            {RESULT_STALE, 200, "max-stale", "max-stale", false, "TCP_MEM_HIT"},
            {RESULT_STALE, 200, "offline", "offline", false, "TCP_OFFLINE_HIT"},
            {RESULT_STALE, 200, "expired", "stale-if-error", true, "TCP_REFRESH_FAIL_OLD"},
            {RESULT_STALE, 200, "expired", "disconnected", true, "TCP_REFRESH_FAIL_OLD"},
            {RESULT_REVALIDATED, 200, "expired", "confirmed", true, "TCP_REFRESH_UNMODIFIED"},
            {RESULT_REVALIDATED, 304, "request-no-cache", "confirmed", true, "TCP_REFRESH_UNMODIFIED"},
            {RESULT_JOINED, 200, "awaited", "awaited", false, "TCP_CF_HIT"},
            {RESULT_MISS, 200, "absent", "stored", false, "TCP_MISS"},
            {RESULT_MISS, 200, "expired", "stored", false, "TCP_MISS"},
            {RESULT_MISS, 200, "expired", "stored", true, "TCP_REFRESH_MODIFIED"},
            {RESULT_PASS, 200, "expired", "private", true, "TCP_REFRESH_MODIFIED"},
            {RESULT_PASS, 503, "expired", "trouble", true, "TCP_REFRESH_FAIL_ERR"},
            {RESULT_MISS, 200, "request-no-cache", "stored", true, "TCP_CLIENT_REFRESH_MISS"},
            {RESULT_MISS, 200, "request-max-age", "stored", false, "TCP_CLIENT_REFRESH_MISS"},
            {RESULT_PASS, 200, "method", "method", false, "TCP_MISS"},
            {RESULT_ERROR, 502, "absent", "connect-refused", false, "TCP_MISS"},
            {RESULT_ERROR, 502, "expired", "connect-refused", true, "TCP_REFRESH_FAIL_ERR"},
            {RESULT_ERROR, 504, "only-if-cached", "only-if-cached", false, "TCP_MISS"},
            {RESULT_DENIED, 403, NULL, "denied", false, "TCP_DENIED"},
            {RESULT_BAD, 400, NULL, "bad-request", false, "NONE_NONE"},
            {RESULT_ABORTED, 0, "absent", "client-left", false, "TCP_MISS_ABORTED"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct access_entry entry = sample();
        char expected[64];
        entry.result = rows[i].result;
        entry.status = rows[i].status;
        entry.asked = rows[i].asked;
        entry.reason = rows[i].reason;
        entry.is_confirming = rows[i].is_confirming;
        snprintf(expected, sizeof expected, " %s/%03d ", rows[i].word, rows[i].status);
        CU_ASSERT_PTR_NOT_NULL(strstr(format(ACCESS_SQUID, &entry), expected));
    }
}

SUITE(intercept_access_line, CASE(squids_words), CASE(golden_lines), CASE(golden_tunnel_and_nothing),
        CASE(urls), CASE(hostile_bytes), CASE(long_values_are_cut), CASE(every_result_has_its_words))
