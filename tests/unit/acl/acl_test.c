#include "acl/acl.h"
#include "tests/unit/acl/policy.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum acl_verdict client(const struct acl *acl, const char *address, struct acl_match *match) {
    struct address parsed;
    CU_ASSERT_TRUE(address_parse(view_of(address), &parsed));
    return acl_client(acl, &parsed, match);
}

// The verdict on a URL that is fetched from an address, "" for none.
static enum acl_verdict url(const struct acl *acl, const char *text, const char *address, uint16_t port) {
    struct request_text bytes;
    struct acl_request request =
            *address ? request_to(&bytes, text, address, port) : request_of_url(&bytes, text);
    return acl_url(acl, &request, NULL);
}

static void nobody_is_turned_away_without_rules(void) {
    struct acl *acl = policy_of("");
    struct acl_match match = {.line = 7};
    CU_ASSERT_EQUAL(client(acl, "10.0.0.1", &match), ACL_ALLOW);
    CU_ASSERT_EQUAL(match.rule.length, 0);
    CU_ASSERT_EQUAL(match.line, 0);
    CU_ASSERT_EQUAL(client(acl, "2001:db8::1", NULL), ACL_ALLOW);
    CU_ASSERT_EQUAL(url(acl, "http://example.com/", "192.0.2.1", 80), ACL_ALLOW);
    CU_ASSERT_EQUAL(acl_count(acl), 0);
    acl_free(acl);
    acl_free(NULL);
}

static void the_longest_prefix_decides(void) {
    struct acl *acl = policy_of("allow 10.0.0.0/8 2001:db8::/32\n"
                                "deny 10.1.0.0/255.255.0.0\n"
                                "allow 10.1.2.3\n"
                                "deny 2001:db8:bad::/48\n");
    struct acl_match match;
    CU_ASSERT_EQUAL(client(acl, "10.0.0.1", NULL), ACL_ALLOW);
    CU_ASSERT_EQUAL(client(acl, "10.1.2.2", &match), ACL_DENY);
    CU_ASSERT_TRUE(view_equal(match.rule, VIEW("deny 10.1.0.0/255.255.0.0")));
    CU_ASSERT_STRING_EQUAL(match.file, "test");
    CU_ASSERT_EQUAL(match.line, 2);
    CU_ASSERT_EQUAL(client(acl, "10.1.2.3", &match), ACL_ALLOW);
    CU_ASSERT_EQUAL(match.line, 3);
    CU_ASSERT_EQUAL(client(acl, "::ffff:10.1.2.4", NULL), ACL_DENY);
    CU_ASSERT_EQUAL(client(acl, "2001:db8::1", NULL), ACL_ALLOW);
    CU_ASSERT_EQUAL(client(acl, "2001:db8:bad::1", NULL), ACL_DENY);
    CU_ASSERT_EQUAL(client(acl, "192.0.2.1", &match), ACL_DENY);
    CU_ASSERT_EQUAL(match.rule.length, 0);
    CU_ASSERT_EQUAL(client(acl, "2001:db9::1", NULL), ACL_DENY);
    CU_ASSERT_EQUAL(acl_count(acl), 5);
    acl_free(acl);
}

static void deny_alone_lets_the_rest_in(void) {
    struct acl *acl = policy_of("deny 10.1.0.0/16\n");
    CU_ASSERT_EQUAL(client(acl, "10.1.0.1", NULL), ACL_DENY);
    CU_ASSERT_EQUAL(client(acl, "10.2.0.1", NULL), ACL_ALLOW);
    CU_ASSERT_EQUAL(client(acl, "::1", NULL), ACL_ALLOW);
    acl_free(acl);
}

static void families_stay_apart(void) {
    struct acl *acl = policy_of("deny ::/0\n");
    CU_ASSERT_EQUAL(client(acl, "2001:db8::1", NULL), ACL_DENY);
    CU_ASSERT_EQUAL(client(acl, "10.0.0.1", NULL), ACL_ALLOW);
    acl_free(acl);
}

static void an_innocent_host_does_not_pass(void) {
    struct acl *acl = policy_of("block 192.0.2.0/24 2001:db8:bad::/48 198.51.100.7:8080 203.0.113.*\n");
    CU_ASSERT_EQUAL(url(acl, "http://example.com/", "192.0.2.7", 80), ACL_BLOCK);
    CU_ASSERT_EQUAL(url(acl, "http://example.com/", "192.0.3.7", 80), ACL_ALLOW);
    CU_ASSERT_EQUAL(url(acl, "http://example.com/", "2001:db8:bad::7", 80), ACL_BLOCK);
    CU_ASSERT_EQUAL(url(acl, "http://192.0.2.7/", "198.51.100.1", 80), ACL_BLOCK);
    CU_ASSERT_EQUAL(url(acl, "http://[::ffff:192.0.2.7]/", "198.51.100.1", 80), ACL_BLOCK);
    CU_ASSERT_EQUAL(url(acl, "http://example.com/", "198.51.100.7", 8080), ACL_BLOCK);
    CU_ASSERT_EQUAL(url(acl, "http://example.com/", "198.51.100.7", 80), ACL_ALLOW);
    CU_ASSERT_EQUAL(url(acl, "http://example.com/", "203.0.113.9", 80), ACL_BLOCK);
    acl_free(acl);
}

static void a_tunnel_has_only_a_destination(void) {
    struct acl *acl = policy_of("block 192.0.2.0/24\n");
    struct acl_request request = {.destination.port = 443};
    struct acl_match match;
    CU_ASSERT_TRUE(address_parse(VIEW("192.0.2.9"), &request.destination.address));
    CU_ASSERT_EQUAL(acl_url(acl, &request, &match), ACL_BLOCK);
    CU_ASSERT_TRUE(view_equal(match.rule, VIEW("block 192.0.2.0/24")));
    CU_ASSERT_TRUE(address_parse(VIEW("192.0.3.9"), &request.destination.address));
    CU_ASSERT_EQUAL(acl_url(acl, &request, &match), ACL_ALLOW);
    acl_free(acl);
    acl = policy_of("block *\n");
    CU_ASSERT_EQUAL(acl_url(acl, &request, NULL), ACL_BLOCK);
    request.destination = (struct endpoint){.port = 0};
    CU_ASSERT_EQUAL(acl_url(acl, &request, NULL), ACL_ALLOW); // nothing is asked for
    acl_free(acl);
}

// The port that was connected to counts as much as the one that was named.
static void the_dialled_port_counts(void) {
    struct acl *acl = policy_of("block example.com:8080\n");
    CU_ASSERT_EQUAL(url(acl, "http://example.com/", "192.0.2.1", 8080), ACL_BLOCK);
    CU_ASSERT_EQUAL(url(acl, "http://example.com:8080/", "192.0.2.1", 80), ACL_BLOCK);
    CU_ASSERT_EQUAL(url(acl, "http://example.com/", "192.0.2.1", 80), ACL_ALLOW);
    acl_free(acl);
}

static void pass_wins(void) {
    struct acl *acl = policy_of("block *\npass example.com 192.0.2.7\n"
                                "block ads*\n");
    struct request_text text;
    struct acl_match match;
    struct acl_request request = request_to(&text, "http://www.example.com/", "198.51.100.1", 80);
    CU_ASSERT_EQUAL(acl_url(acl, &request, &match), ACL_ALLOW);
    CU_ASSERT_TRUE(view_equal(match.rule, VIEW("pass example.com")));
    CU_ASSERT_EQUAL(match.line, 2);
    CU_ASSERT_EQUAL(url(acl, "http://ads.org/", "192.0.2.7", 80), ACL_ALLOW);
    CU_ASSERT_EQUAL(url(acl, "http://ads.org/", "192.0.2.8", 80), ACL_BLOCK);
    CU_ASSERT_EQUAL(url(acl, "http://example.org/", "", 0), ACL_BLOCK);
    acl_free(acl);
}

// A client chooses its Host: saying a passed name does not open a blocked address.
static void a_passed_name_does_not_open_a_blocked_address(void) {
    struct acl *acl =
            policy_of("pass example.com 198.51.100.9\nblock 192.0.2.0/24 198.51.100.0/24 ads.org\n");
    CU_ASSERT_EQUAL(url(acl, "http://example.com/", "203.0.113.1", 80), ACL_ALLOW);
    CU_ASSERT_EQUAL(url(acl, "http://example.com/", "192.0.2.7", 80), ACL_BLOCK);
    CU_ASSERT_EQUAL(url(acl, "http://198.51.100.9/", "198.51.100.7", 80), ACL_BLOCK);
    CU_ASSERT_EQUAL(url(acl, "http://ads.org/", "198.51.100.9", 80), ACL_ALLOW);
    acl_free(acl);
}

static void the_rule_is_named(void) {
    static const struct {
        const char *url, *rule;
        unsigned line;
    } rows[] = {
            {"http://a.ads.example.com/", "block Ads.Example.com", 1},
            {"http://www.example.com/", "block example.com", 1},
            {"http://x.org/banner/1", "block */banner/*", 2},
            {"http://x.org/1/banner/tracker", "block */banner/*", 2},
            {"http://x.org/tracker", "block *tracker*", 3},
    };
    struct acl *acl = policy_of("block example.com Ads.Example.com\nblock */banner/*\nblock *tracker*\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct request_text text;
        struct acl_match match;
        struct acl_request request = request_of_url(&text, rows[i].url);
        CU_ASSERT_EQUAL(acl_url(acl, &request, &match), ACL_BLOCK);
        CU_ASSERT_TRUE(view_equal(match.rule, view_of(rows[i].rule)));
        CU_ASSERT_EQUAL(match.line, rows[i].line);
    }
    acl_free(acl);
}

static void no_cache_is_apart(void) {
    struct acl *acl = policy_of("no_cache example.com *?sid=* 192.0.2.0/24\n");
    struct request_text text;
    struct acl_request request = request_of_url(&text, "http://example.com/");
    CU_ASSERT_TRUE(acl_no_cache(acl, &request));
    CU_ASSERT_EQUAL(acl_url(acl, &request, NULL), ACL_ALLOW);
    request = request_of_url(&text, "http://example.org/?sid=1");
    CU_ASSERT_TRUE(acl_no_cache(acl, &request));
    request = request_to(&text, "http://example.org/", "192.0.2.1", 80);
    CU_ASSERT_TRUE(acl_no_cache(acl, &request));
    request = request_to(&text, "http://example.org/", "192.0.3.1", 80);
    CU_ASSERT_FALSE(acl_no_cache(acl, &request));
    acl_free(acl);
}

static void write_over(char *out, struct view text) {
    memcpy(out, text.data, text.length);
}

static void long_urls(void) {
    static char path[70000];
    struct acl *acl = policy_of("block *needle*\nblock example.org/end\n");
    memset(path, 'a', sizeof path - 1);
    path[0] = '/';
    struct acl_request request = {.host = VIEW("example.com"), .path = view_of(path)};
    CU_ASSERT_EQUAL(acl_url(acl, &request, NULL), ACL_ALLOW);
    write_over(path + 69000, VIEW("needle"));
    CU_ASSERT_EQUAL(acl_url(acl, &request, NULL), ACL_BLOCK);
    write_over(path + sizeof path - 9, VIEW("/../end"));
    request = (struct acl_request){.host = VIEW("example.org"), .path = {path, sizeof path - 2}};
    CU_ASSERT_EQUAL(acl_url(acl, &request, NULL), ACL_BLOCK);
    acl_free(acl);
}

// Each line of configuration is refused, with these words in the errors.
static void refused_rules(void) {
    static const struct {
        const char *lines, *error;
    } rows[] = {
            {"allow 10.0.0.1/8",
                    "test:1:7: \"10.0.0.1/8\": bits are set behind the prefix, write 10.0.0.0/8\n"},
            {"\nblock x 2001:db8::1/32",
                    "test:2:9: \"2001:db8::1/32\": bits are set behind the prefix, write "
                    "2001:db8::/32\n"},
            {"deny 10.0.0.0/255.0.255.0", "holes"},
            {"deny lan", "not an IP address, write"},
            {"block \"\"", "the mask is empty, write"},
            {"pass \"a b\"", "blank"},
            {"no_cache https://x/", "only http URLs"},
            {"allow 10.0.0.0/8\ndeny 10.0.0.0/8", "test:1:7: \"10.0.0.0/8\" can never match: \"deny "
                                                  "10.0.0.0/8\" in test:2 is the same prefix"},
            {"deny 10.0.0.0/8\nallow 10.0.0.0/255.0.0.0", "\"allow 10.0.0.0/255.0.0.0\" in test:2"},
            {"allow 10.0.0.0/8\ndeny 10.0.0.0/9 10.128.0.0/9",
                    "test:1:7: \"10.0.0.0/8\" can never match: longer prefixes cover all of it"},
            {"pass example.com\nblock ads.example.com",
                    "test:2:7: \"ads.example.com\" can never match: \"pass example.com\" in test:1 wins"},
            {"block ads.example.com/x*\npass example.com", "test:1:7: \"ads.example.com/x*\" can never"},
            {"block *ads*\npass *ads*", "can never match: \"pass *ads*\" in test:2"},
            {"block x*\npass http://X*", "can never match: \"pass http://X*\" in test:2"},
            {"block example.com\npass *", "can never match: \"pass *\" in test:2"},
            {"block 192.0.2.0/24\npass 192.0.2.0/25 192.0.2.128/25", "can never match"},
            {"block 192.0.2.7/x*\npass 192.0.2.0/24", "can never match"},
            {"block *.example.com\npass example.com", "can never match"},
            {"block example.com:8080\npass example.com", "can never match"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *errors = policy_errors(rows[i].lines);
        if (!strstr(errors, rows[i].error)) {
            fprintf(stderr, "%s\n-> %s", rows[i].lines, errors);
            CU_FAIL("another error");
        }
        free(errors);
    }
}

static void every_bad_rule_is_reported(void) {
    char *errors = policy_errors("allow x\nblock \"\" https://x/\ndeny y\n");
    unsigned lines = 0;
    for (const char *at = errors; (at = strchr(at, '\n')); at++)
        lines++;
    CU_ASSERT_EQUAL(lines, 4);
    free(errors);
}

// What looks alike and is none: these are all taken.
static void rules_that_can_match(void) {
    static const char *const rows[] = {"allow 10.0.0.0/8 10.0.0.0/8", "block example.com example.com",
            "pass ads.example.com\nblock example.com", "pass example.com:8080\nblock example.com",
            "pass *.example.com\nblock example.com", "pass example.com/x*\nblock example.com/*",
            "block 192.0.2.0/24\npass 192.0.2.0/25", "allow 10.0.0.0/8\ndeny 10.0.0.0/9",
            "block *ads*\npass *Ads*", "block 192.0.2.7\npass 192.0.2.7:80"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        acl_free(policy_of(rows[i]));
}

static void checking(void) {
    struct config_errors errors = {0};
    struct config *config = config_load_text("test", VIEW("block \"\"\n"), &errors);
    CU_ASSERT_PTR_NOT_NULL_FATAL(config);
    CU_ASSERT_FALSE(acl_validate(config, &errors));
    CU_ASSERT_EQUAL(errors.count, 1);
    config_free(config);
    config_errors_fini(&errors);
    config = config_load_text("test", VIEW("block x\n"), &errors);
    CU_ASSERT_PTR_NOT_NULL_FATAL(config);
    CU_ASSERT_TRUE(acl_validate(config, &errors));
    config_free(config);
    config_errors_fini(&errors);
}

SUITE(acl, CASE(nobody_is_turned_away_without_rules), CASE(the_longest_prefix_decides),
        CASE(deny_alone_lets_the_rest_in), CASE(families_stay_apart), CASE(an_innocent_host_does_not_pass),
        CASE(a_tunnel_has_only_a_destination), CASE(the_dialled_port_counts), CASE(pass_wins),
        CASE(a_passed_name_does_not_open_a_blocked_address), CASE(the_rule_is_named), CASE(no_cache_is_apart),
        CASE(long_urls), CASE(refused_rules), CASE(every_bad_rule_is_reported), CASE(rules_that_can_match),
        CASE(checking))
