// What masks mean: each row is held against acl_mask_matches and against a policy with that one block.
#include "acl/acl.h"
#include "tests/unit/acl/policy.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

struct row {
    const char *mask, *url;
    bool matches;
};

static void check_row(const struct row *row) {
    struct request_text text;
    struct acl_request request = request_of_url(&text, row->url);
    const char *why;
    struct acl_mask *mask = acl_mask_new(row->mask, &why);
    if (!mask) {
        fprintf(stderr, "%s: %s\n", row->mask, why);
        CU_FAIL("a good mask was refused");
        return;
    }
    char lines[512];
    snprintf(lines, sizeof lines, "block \"%s\"\nno_cache \"%s\"\n", row->mask, row->mask);
    struct acl *acl = policy_of(lines);
    bool one = acl_mask_matches(mask, &request), set = acl_url(acl, &request, NULL) == ACL_BLOCK;
    bool no_cache = acl_no_cache(acl, &request);
    if (one != row->matches || set != row->matches || no_cache != row->matches) {
        fprintf(stderr, "%s %s: mask %d set %d no_cache %d\n", row->mask, row->url, one, set, no_cache);
        CU_FAIL("a mask means something else");
    }
    acl_mask_free(mask);
    acl_free(acl);
}

static void check_rows(const struct row *rows, size_t count) {
    for (size_t i = 0; i < count; i++)
        check_row(&rows[i]);
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof rows / sizeof *rows)

static void domains(void) {
    static const struct row rows[] = {
            {"example.com", "http://example.com/", true},
            {"example.com", "http://www.example.com/x", true},
            {"example.com", "http://a.b.c.example.com:8080/", true},
            {"example.com", "http://EXAMPLE.Com./", true},
            {"example.com", "http://www.example.com../", true},
            {"example.com", "http://badexample.com/", false},
            {"example.com", "http://example.org/", false},
            {"example.com", "http://example.com.evil.org/", false},
            {"example.com", "http://evil.org/example.com", false},
            {"example.com", "http://com/", false},
            {"example.com", "https://example.com/", true},
            {"Example.COM.", "http://example.com/", true},
            {".example.com", "http://example.com/", true},
            {".example.com", "http://x.example.com/", true},
            {"http://example.com", "http://x.example.com/y", true},
            {"HTTP://example.com", "http://example.com/", true},
            {"*://example.com", "http://example.com/", true},
            {"com", "http://example.com/", true},
            {"localhost", "http://localhost/", true},
            {"ex%61mple.com", "http://example.com/", true},
            {"example.com", "http://ex%61mple.com/", true},
            {"b\xc3\xbc-cher.de", "http://b%C3%BC-cher.de/", true},
            {"*.example.com", "http://example.com/", false},
            {"*.example.com", "http://www.example.com/", true},
            {"*.example.com", "http://a.b.example.com/x", true},
            {"*.example.com", "http://wwwexample.com/", false},
            {"*.example.com", "http://evil.org/?x=www.example.com", false},
            {"*.example.com", "http://evil.org/www.example.com/", false},
    };
    CHECK_ROWS(rows);
}

static void ports(void) {
    static const struct row rows[] = {
            {"example.com:8080", "http://example.com:8080/", true},
            {"example.com:8080", "http://www.example.com:8080/x", true},
            {"example.com:8080", "http://example.com/", false},
            {"example.com:80", "http://example.com/", true},
            {"example.com:80", "http://example.com:80/", true},
            {"example.com:80", "http://example.com:8080/", false},
            {"example.com:443", "https://example.com/", true},
            {"example.com:*", "http://example.com:81/", true},
            {"*:8080", "http://anything:8080/x", true},
            {"*:8080", "http://anything/x", false},
            {"*:8080", "http://anything/:8080", false},
            {"*.example.com:81", "http://a.example.com:81/", true},
            {"*.example.com:81", "http://example.com:81/", false},
            {"example.com:81/x*", "http://example.com:81/xy", true},
            {"example.com:81/x*", "http://example.com/xy", false},
            {"example.com/x*", "http://example.com:81/xy", true},
    };
    CHECK_ROWS(rows);
}

static void paths(void) {
    static const struct row rows[] = {
            {"example.com/", "http://example.com/", true},
            {"example.com/", "http://example.com", true},
            {"example.com/", "http://example.com/x", false},
            {"example.com/", "http://example.com/?q", false},
            {"example.com/", "http://www.example.com/", false},
            {"example.com/*", "http://example.com/x?y", true},
            {"example.com/*", "http://www.example.com/x", false},
            {"example.com/x*", "http://example.com/x", true},
            {"example.com/x*", "http://example.com/xyz/a?b", true},
            {"http://example.com/x*", "http://example.com/xyz", true},
            {"example.com/x*", "http://example.com/X", false},
            {"EXAMPLE.com/x*", "http://example.COM/x", true},
            {"example.com/x", "http://example.com/x?", false},
            {"example.com/x", "http://example.com/x", true},
            {"example.com/?a=b", "http://example.com/?a=b", true},
            {"example.com/*?a=*", "http://example.com/x?a=1", true},
            {"example.com/a*b*c", "http://example.com/a/b/c", true},
            {"example.com/a*b*c", "http://example.com/a/c/b", false},
            {"example.com/a*a", "http://example.com/a", false},
            {"example.com/a*a", "http://example.com/aa", true},
            {"/x*", "http://any.where/xy", true},
            {"/x*", "http://any.where/y/x", false},
            {"*/x/*", "http://any/x/", true},
            {"*/x/*", "http://any/a/b/x/c", true},
            {"*/x/*", "http://x/a", false},
            {"*/*.gif", "http://any/a/b.gif", true},
            {"*/*.gif", "http://any.gif/", false},
            {"*/*.gif", "http://any/b.gif?x", false},
            {"*.gif", "http://any/b.gif", false},
            {"*:80/x/*", "http://any/a/x/", false},
            {"*:80/x/*", "http://any/x/a", true},
    };
    CHECK_ROWS(rows);
}

static void wildcards(void) {
    static const struct row rows[] = {
            {"*", "http://x/", true},
            {"**", "http://x/", true},
            {"*ads*", "http://ads.x/", true},
            {"*ads*", "http://x/loads/y", true},
            {"*ads*", "http://x/?q=ads", true},
            {"*ads*", "http://x/ad/s", false},
            {"*ads*", "http://ADS.x/", true},
            {"*ads*", "http://x/ADS", false},
            {"*Ads*", "http://Ads.x/", true},
            {"*Ads*", "http://x/Ads", true},
            {"*Ads*", "http://x/ads", false},
            {"*x.org/a*", "http://x.org/ab", true},
            {"*x.org/a*", "http://y/x.org/ab", false},
            {"ads*", "http://ads.example.com/y", true},
            {"ads*", "http://x/ads", false},
            {"ads*", "http://load.ads.com/", false},
            {"*-ads.*.com", "http://x-ads.y.com/z", true},
            {"*-ads.*.com", "http://x-ads.y.org/.com", false},
            {"www.*.com", "http://www.a.b.com/", true},
            {"www.*.com", "http://www.com/", false},
            {"*a*", "http://x/a", true},
            {"*a*", "http://x/b", false},
            {"*a*b*", "http://x/ab", true},
            {"*a*b*", "http://x/ba", false},
            {"*.google.*", "http://x/a.google.b", true},
            {"*.google.*/*", "http://x/a.google.b", false},
            {"*.google.*/*", "http://www.google.com/y", true},
            {"x*", "http://x/", true},
            {"*example.com", "http://myexample.com/", true},
            {"*example.com", "http://example.com/", true},
            {"*example.com", "http://x/example.com", false},
    };
    CHECK_ROWS(rows);
}

static void spellings(void) {
    static const struct row rows[] = {
            {"example.com/abc", "http://example.com/%61%62%63", true},
            {"example.com/%61bc", "http://example.com/abc", true},
            {"example.com/a,b", "http://example.com/a%2Cb", true},
            {"example.com/a%2fb", "http://example.com/a%2Fb", true},
            {"example.com/a/b", "http://example.com/a%2fb", false},
            {"example.com/a%2541", "http://example.com/a%2541", true},
            {"example.com/aA", "http://example.com/a%2541", false},
            {"example.com/100%*", "http://example.com/100%x", true},
            {"example.com/b", "http://example.com/a/../b", true},
            {"example.com/b", "http://example.com/a/%2e%2E/b", true},
            {"example.com/b", "http://example.com/./b", true},
            {"example.com/b", "http://example.com/../../b", true},
            {"example.com/b/", "http://example.com/b/x/..", true},
            {"example.com/b/", "http://example.com/b/.", true},
            {"example.com/b", "http://example.com//b", false},
            {"example.com/?a/../b", "http://example.com/?a/../b", true},
            {"example.com/a%2Ab", "http://example.com/a*b", true},
            {"example.com/a%2Ab", "http://example.com/axb", false},
            {"example.com/a*b", "http://example.com/a*b", true},
            {"example.com/caf\xc3\xa9", "http://example.com/caf%c3%a9", true},
            {"example.com/a%20b", "http://example.com/a%20b", true},
            {"example.com/...", "http://example.com/...", true},
    };
    CHECK_ROWS(rows);
}

static void addresses(void) {
    static const struct row rows[] = {
            {"192.0.2.7", "http://192.0.2.7/x", true},
            {"192.0.2.7", "http://192.0.2.7.:81/x", true},
            {"192.0.2.7", "http://192.0.2.8/", false},
            {"192.0.2.7", "http://1.192.0.2.7/", false},
            {"192.0.2.0/24", "http://192.0.2.255/", true},
            {"192.0.2.0/255.255.255.0", "http://192.0.2.0/", true},
            {"192.0.2.0/24", "http://192.0.3.0/", false},
            {"192.0.2.7", "http://[::ffff:192.0.2.7]/", true},
            {"192.0.2.7", "http://[::FFFF:c000:207]/", true},
            {"192.0.2.7", "http://3221225991/", false},
            {"192.0.2.7", "http://192.0.2.007/", false},
            {"192.0.2.7:81", "http://192.0.2.7:81/", true},
            {"192.0.2.7:81", "http://192.0.2.7/", false},
            {"192.0.2.7/x*", "http://192.0.2.7/xy", true},
            {"http://192.0.2.0/24", "http://192.0.2.0/24", true},
            {"http://192.0.2.0/24", "http://192.0.2.1/", false},
            {"192.0.2.0/24*", "http://192.0.2.0/24x", true},
            {"192.0.2.*", "http://192.0.2.77/", true},
            {"192.0.2.*", "http://192.0.3.1/", false},
            {"2001:db8::1", "http://[2001:DB8:0::1]/", true},
            {"[2001:db8::1]", "http://[2001:db8::1]:81/", true},
            {"2001:db8::/32", "http://[2001:db8:1::]/", true},
            {"[2001:db8::]/32", "http://[2001:db8:1::]/", true},
            {"2001:db8::/32", "http://[2001:db9::]/", false},
            {"[2001:db8::1]:81", "http://[2001:db8::1]:81/", true},
            {"[2001:db8::1]:81", "http://[2001:db8::1]/", false},
            {"[2001:db8:0::1]/x*", "http://[2001:db8::1]/x", true},
            {"::/0", "http://192.0.2.7/", false},
            {"0.0.0.0/0", "http://192.0.2.7/", true},
            {"0.0.0.0/0", "http://[::1]/", false},
    };
    CHECK_ROWS(rows);
}

static void refusing(void) {
    static const struct {
        const char *mask, *why;
    } rows[] = {
            {"", "empty"},
            {"a b", "blank"},
            {"a\tb", "blank"},
            {"a\nb", "control"},
            {"https://example.com/", "only http"},
            {"ftp://x", "only http"},
            {"http://", "follows the scheme"},
            {"example.com/#x", "fragment"},
            {"example.com/a/../b", "dot segments"},
            {"example.com/.", "dot segments"},
            {"example.com/%2e/b", "dot segments"},
            {"*/../*", "dot segments"},
            {"example.com:0", "port"},
            {"example.com:65536", "port"},
            {"example.com:", "port"},
            {"example.com:80x", "port"},
            {":80", "port alone"},
            {"*:80*", "colon"},
            {"192.0.2.256", "not an IPv4"},
            {"192.0.02.1", "not an IPv4"},
            {"192.0.2.0/33", "above 32"},
            {"192.0.2.0/255.0.255.0", "holes"},
            {"192.0.2.7/24", "behind the prefix"},
            {"[2001:db8::1]/32", "behind the prefix"},
            {"2001:db8::1/x", "brackets"},
            {"[2001:db8::1", "host name"},
            {"a..b", "empty label"},
            {"..", "dots"},
            {"..example.com", "empty label"},
            {".example.com/x", "start with a dot"},
            {"user@example.com", "user name"},
            {"example.com?x", "query"},
            {"exa$mple.com", "host name"},
            {"example.com\\x", "backslash"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *why = NULL;
        struct acl_mask *mask = acl_mask_new(rows[i].mask, &why);
        CU_ASSERT_PTR_NULL(mask);
        if (!why || !strstr(why, rows[i].why)) {
            fprintf(stderr, "%s: %s\n", rows[i].mask, why ? why : "(taken)");
            CU_FAIL("another reason");
        }
        acl_mask_free(mask);
    }
}

static void bounds(void) {
    static char text[5000];
    const char *why;
    memset(text, 'a', sizeof text - 1);
    CU_ASSERT_PTR_NULL(acl_mask_new(text, &why));
    text[0] = '/';
    text[4096] = '\0';
    struct acl_mask *mask = acl_mask_new(text, &why);
    CU_ASSERT_PTR_NOT_NULL_FATAL(mask);
    struct acl_request request = {.host = VIEW("x"), .path = view_of(text)};
    CU_ASSERT_TRUE(acl_mask_matches(mask, &request));
    acl_mask_free(mask);
    text[0] = 'a';
    text[254] = '\0';
    CU_ASSERT_PTR_NULL(acl_mask_new(text, &why));
    text[253] = '\0';
    mask = acl_mask_new(text, &why);
    CU_ASSERT_PTR_NOT_NULL(mask);
    acl_mask_free(mask);
}

SUITE(acl_mask, CASE(domains), CASE(ports), CASE(paths), CASE(wildcards), CASE(spellings), CASE(addresses),
        CASE(refusing), CASE(bounds))
