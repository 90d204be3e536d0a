#include "http/target.h"

#include "tests/unit/http/message.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

struct aimed {
    const char *line; // the request line without version
    const char *host; // field lines
    int status;       // 0: accepted
    enum target_form form;
    const char *authority; // normalised
    const char *path;
};

#define H(value) "Host: " value "\r\n"

static const struct aimed all[] = {
        {"GET /", H("a"), 0, TARGET_ORIGIN, "a", "/"},
        {"GET /a?b=c", H("A.Example.:80"), 0, TARGET_ORIGIN, "a.example", "/a?b=c"},
        {"GET //a/../b", H("a:8080"), 0, TARGET_ORIGIN, "a:8080", "//a/../b"},
        {"GET /http://b/", H("a"), 0, TARGET_ORIGIN, "a", "/http://b/"},
        {"GET /", H(""), 0, TARGET_ORIGIN, "", "/"},
        {"GET /", H("[::1]:81"), 0, TARGET_ORIGIN, "[::1]:81", "/"},
        {"GET /", H("[0:0:0:0:0:0:0:1]"), 0, TARGET_ORIGIN, "[::1]", "/"},
        {"GET /", H("a_b-c.d"), 0, TARGET_ORIGIN, "a_b-c.d", "/"},
        {"GET /", H("192.0.2.1"), 0, TARGET_ORIGIN, "192.0.2.1", "/"},
        {"GET /", H("a:"), 0, TARGET_ORIGIN, "a", "/"},
        {"GET /", H("a:00080"), 0, TARGET_ORIGIN, "a", "/"},
        {"FOO /", H("a"), 0, TARGET_ORIGIN, "a", "/"},
        {"OPTIONS *", H("a"), 0, TARGET_ASTERISK, "a", "*"},
        {"OPTIONS /", H("a"), 0, TARGET_ORIGIN, "a", "/"},
        {"GET http://a/", H("a"), 0, TARGET_ABSOLUTE, "a", "/"},
        {"GET http://a", H("a"), 0, TARGET_ABSOLUTE, "a", "/"},
        {"GET HTTP://A:80/b?c", H("a."), 0, TARGET_ABSOLUTE, "a", "/b?c"},
        {"GET http://a:81/", H("A:81"), 0, TARGET_ABSOLUTE, "a:81", "/"},
        {"GET http://[::1]:81/", H("[0::1]:81"), 0, TARGET_ABSOLUTE, "[::1]:81", "/"},
        {"OPTIONS http://a", H("a"), 0, TARGET_ABSOLUTE, "a", "/"},
        {"CONNECT a:443", H("a:443"), 0, TARGET_AUTHORITY, "a:443", ""},
        {"CONNECT a:443", H("proxy"), 0, TARGET_AUTHORITY, "a:443", ""},
        {"CONNECT [::1]:443", H(""), 0, TARGET_AUTHORITY, "[::1]:443", ""},
        // Host
        {"GET /", "", 400, 0, 0, 0},
        {"GET http://a/", "", 400, 0, 0, 0},
        {"GET /", H("a") H("b"), 400, 0, 0, 0},
        {"GET /", H("a") H("a"), 400, 0, 0, 0},
        {"GET /", H("a") H(""), 400, 0, 0, 0},
        {"GET /", H("a b"), 400, 0, 0, 0},
        {"GET /", H("a,b"), 400, 0, 0, 0},
        {"GET /", H("a, a"), 400, 0, 0, 0},
        {"GET /", H("u@a"), 400, 0, 0, 0},
        {"GET /", H("http://a"), 400, 0, 0, 0},
        {"GET /", H("a/"), 400, 0, 0, 0},
        {"GET /", H("a/b"), 400, 0, 0, 0},
        {"GET /", H("a?b"), 400, 0, 0, 0},
        {"GET /", H("a#b"), 400, 0, 0, 0},
        {"GET /", H("a\\b"), 400, 0, 0, 0},
        {"GET /", H("%61"), 400, 0, 0, 0},
        {"GET /", H("\xc3\xa4"), 400, 0, 0, 0},
        {"GET /", H("."), 400, 0, 0, 0},
        {"GET /", H(".a"), 400, 0, 0, 0},
        {"GET /", H("a.."), 400, 0, 0, 0},
        {"GET /", H("a..b"), 400, 0, 0, 0},
        {"GET /", H(":80"), 400, 0, 0, 0},
        {"GET /", H("a:0"), 400, 0, 0, 0},
        {"GET /", H("a:65536"), 400, 0, 0, 0},
        {"GET /", H("a:18446744073709551617"), 400, 0, 0, 0},
        {"GET /", H("a:-1"), 400, 0, 0, 0},
        {"GET /", H("a:+80"), 400, 0, 0, 0},
        {"GET /", H("a:8x"), 400, 0, 0, 0},
        {"GET /", H("a:80:80"), 400, 0, 0, 0},
        {"GET /", H("a: 80"), 400, 0, 0, 0},
        {"GET /", H("::1"), 400, 0, 0, 0},
        {"GET /", H("[::1"), 400, 0, 0, 0},
        {"GET /", H("[]"), 400, 0, 0, 0},
        {"GET /", H("[::1]x"), 400, 0, 0, 0},
        {"GET /", H("[::1]80"), 400, 0, 0, 0},
        {"GET /", H("[::1%25eth0]"), 400, 0, 0, 0},
        {"GET /", H("[fe80::1%eth0]"), 400, 0, 0, 0},
        {"GET /", H("[v1.a]"), 400, 0, 0, 0},
        {"GET /", H("[192.0.2.1]"), 400, 0, 0, 0},
        {"GET /", H("[1:2:3:4:5:6:7:8:9]"), 400, 0, 0, 0},
        // targets
        {"GET *", H("a"), 400, 0, 0, 0},
        {"GET a", H("a"), 400, 0, 0, 0},
        {"GET a:80", H("a:80"), 501, 0, 0, 0}, // "a" is a scheme here
        {"GET ?a", H("a"), 400, 0, 0, 0},
        {"GET #a", H("a"), 400, 0, 0, 0},
        {"GET /a#b", H("a"), 400, 0, 0, 0},
        {"GET http://a/#b", H("a"), 400, 0, 0, 0},
        {"GET http://a?b", H("a"), 400, 0, 0, 0},
        {"GET http:/a", H("a"), 400, 0, 0, 0},
        {"GET http:a", H("a"), 400, 0, 0, 0},
        {"GET http://", H("a"), 400, 0, 0, 0},
        {"GET http:///a", H("a"), 400, 0, 0, 0},
        {"GET http://:80/", H("a"), 400, 0, 0, 0},
        {"GET http://u@a/", H("a"), 400, 0, 0, 0},
        {"GET http://u:p@a/", H("a"), 400, 0, 0, 0},
        {"GET http://a\\b/", H("a"), 400, 0, 0, 0},
        {"GET http://a:99999/", H("a"), 400, 0, 0, 0},
        {"GET http://b/", H("a"), 400, 0, 0, 0},
        {"GET http://a/", H(""), 400, 0, 0, 0},
        {"GET http://a/", H("a:8080"), 400, 0, 0, 0},
        {"GET http://a/", H("a b"), 400, 0, 0, 0},
        {"GET http://a/", H("a") H("a"), 400, 0, 0, 0},
        {"GET ://a/", H("a"), 400, 0, 0, 0},
        {"GET +x://a/", H("a"), 400, 0, 0, 0},
        {"GET 1http://a/", H("a"), 400, 0, 0, 0},
        {"GET https://a/", H("a"), 501, 0, 0, 0},
        {"GET ftp://a/", H("a"), 501, 0, 0, 0},
        {"GET file:///etc/passwd", H("a"), 501, 0, 0, 0},
        {"GET javascript:x", H("a"), 501, 0, 0, 0},
        {"CONNECT a", H("a"), 400, 0, 0, 0},
        {"CONNECT a:", H("a"), 400, 0, 0, 0},
        {"CONNECT a:0", H("a"), 400, 0, 0, 0},
        {"CONNECT /", H("a"), 400, 0, 0, 0},
        {"CONNECT http://a:80/", H("a"), 400, 0, 0, 0},
        {"CONNECT *", H("a"), 400, 0, 0, 0},
        {"CONNECT u@a:443", H("a"), 400, 0, 0, 0},
        {"CONNECT a:443/", H("a"), 400, 0, 0, 0},
        {"CONNECT a:443", "", 400, 0, 0, 0},
};

static void check(const struct aimed *one, const char *version) {
    char text[256], authority[AUTHORITY_BYTES + 1];
    struct message message;
    struct http_target target;
    struct http_error error = {0};
    snprintf(text, sizeof text, "%s %s\r\n%s\r\n", one->line, version, one->host);
    enum parse parse = target_of_request(message_good_request(&message, text), &target, &error);
    if (error.status != one->status)
        printf("\n  target %s %s: %d\n", one->line, one->host, error.status);
    CU_ASSERT_EQUAL(parse, one->status ? PARSE_BAD : PARSE_DONE);
    CU_ASSERT_EQUAL(error.status, one->status);
    if (one->status || parse == PARSE_BAD)
        return;
    CU_ASSERT_EQUAL(target.form, one->form);
    CU_ASSERT(view_equal(target.path, view_of(one->path)));
    CU_ASSERT_EQUAL(target.scheme.length, one->form == TARGET_ABSOLUTE ? 4 : 0);
    size_t length = authority_normalise(&target.authority, authority, sizeof authority - 1);
    authority[length] = '\0';
    CU_ASSERT_STRING_EQUAL(authority, one->authority);
    for (size_t size = 0; size < length; size++)
        CU_ASSERT_EQUAL(authority_normalise(&target.authority, authority, size), 0);
}

static void targets(void) {
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        check(&all[i], "HTTP/1.1");
        if (all[i].host[0])
            check(&all[i], "HTTP/1.0");
    }
}

// HTTP/1.0 needs no Host.
static void without_host(void) {
    static const struct aimed old[] = {{"GET /a", "", 0, TARGET_ORIGIN, "", "/a"},
            {"GET http://a/b", "", 0, TARGET_ABSOLUTE, "a", "/b"},
            {"CONNECT a:443", "", 0, TARGET_AUTHORITY, "a:443", ""}};
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        check(&old[i], "HTTP/1.0");
}

static void longest_host(void) {
    char text[300], out[AUTHORITY_BYTES];
    struct authority authority;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i % 50 == 49 ? '.' : 'a';
    CU_ASSERT(authority_parse(message_guarded((struct view){text, 255}), &authority));
    CU_ASSERT_EQUAL(authority_normalise(&authority, out, sizeof out), 255);
    CU_ASSERT_FALSE(authority_parse((struct view){text, 256}, &authority));
    memcpy(text + 255, ":65535", 6);
    CU_ASSERT(authority_parse((struct view){text, 261}, &authority));
    CU_ASSERT_EQUAL(authority_normalise(&authority, out, sizeof out), 261);
    CU_ASSERT(authority_parse(VIEW("[1111:2222:3333:4444:5555:6666:111.122.133.144]:65535"), &authority));
    CU_ASSERT(authority_normalise(&authority, out, sizeof out) > 0);
    CU_ASSERT_FALSE(authority_parse(VIEW(""), &authority));
    CU_ASSERT_FALSE(authority_parse(VIEW("a\0b"), &authority));
    CU_ASSERT_FALSE(authority_parse(VIEW("[::\0]"), &authority));
}

SUITE(http_target, CASE(targets), CASE(without_host), CASE(longest_host))
