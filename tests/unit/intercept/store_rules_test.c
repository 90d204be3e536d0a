#include "intercept/store_rules.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct store_rules *build(const char *text, struct config **config) {
    struct config_errors errors = {0};
    *config = config_load_text("t", view_of(text), &errors);
    CU_ASSERT_PTR_NOT_NULL_FATAL(*config);
    struct store_rules *rules = store_rules_new(*config, &errors);
    if (!rules)
        printf("\n    %s", errors.text ? errors.text : "");
    CU_ASSERT_EQUAL(errors.count, 0);
    config_errors_fini(&errors);
    CU_ASSERT_PTR_NOT_NULL_FATAL(rules);
    return rules;
}

static struct cache_rules find(const struct store_rules *rules, const char *authority, const char *path) {
    struct cache_rules found;
    CU_ASSERT_TRUE(store_rules_find(rules, view_of(authority), view_of(path), &found));
    return found;
}

static void nothing_is_said_by_default(void) {
    struct config *config;
    struct store_rules *rules = build("", &config);
    struct cache_rules found = find(rules, "a", "/");
    CU_ASSERT_PTR_NULL(found.refresh);
    CU_ASSERT_EQUAL(found.response_count, 0);
    CU_ASSERT_EQUAL(found.cookies, STORE_COOKIES_EXPLICIT);
    CU_ASSERT_EQUAL(found.no_cache, NO_CACHE_OBEYED);
    CU_ASSERT_EQUAL(store_rules_count(rules), 0);
    store_rules_free(rules);
    store_rules_free(NULL);
    config_free(config);
}

#define BIT(option) (1u << REFRESH_OPTION_##option)

static unsigned bits_of(const struct refresh_rule *rule) {
    unsigned bits = 0;
    for (unsigned option = 0; option < REFRESH_OPTION_COUNT; option++)
        bits |= (unsigned)rule->options[option] << option;
    return bits;
}

static void lines_are_read(void) {
    static const struct {
        const char *line;
        int64_t min_s, percent, max_s, max_stale_s;
        unsigned options;
    } rows[] = {
            {"refresh_pattern x 0 20% 4320", 0, 20, 259200, -1, 0},
            {"refresh_pattern x 0 20 4320", 0, 20, 259200, -1, 0},
            {"Refresh_Pattern +i x 1440 0% 525600", 86400, 0, 31536000, -1, 0},
            {"refresh_pattern x 30s 5% 2h", 30, 5, 7200, -1, 0},
            {"refresh_pattern x 0 10000% 5256000", 0, 10000, 315360000, -1, 0},
            {"refresh_pattern x 1 2 3 max-stale=10", 60, 2, 180, 600, 0},
            {"refresh_pattern x 1 2 3 max-stale=0", 60, 2, 180, 0, 0},
            {"refresh_pattern x 9 2 3 override-expire", 540, 2, 180, -1, BIT(override_expire)},
            {"refresh_pattern x 1 2 3 override-lastmod", 60, 2, 180, -1, BIT(override_lastmod)},
            {"refresh_pattern x 1 2 3 reload-into-ims", 60, 2, 180, -1, BIT(reload_into_ims)},
            {"refresh_pattern x 1 2 3 ignore-reload", 60, 2, 180, -1, BIT(ignore_reload)},
            {"refresh_pattern x 1 2 3 ignore-no-store", 60, 2, 180, -1, BIT(ignore_no_store)},
            {"refresh_pattern x 1 2 3 ignore-private", 60, 2, 180, -1, BIT(ignore_private)},
            {"refresh_pattern x 1 2 3 refresh-ims store-stale", 60, 2, 180, -1,
                    BIT(refresh_ims) | BIT(store_stale)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct config *config;
        struct store_rules *rules = build(rows[i].line, &config);
        const struct refresh_rule *got = find(rules, "x", "/").refresh;
        CU_ASSERT_PTR_NOT_NULL_FATAL(got);
        bool same = got->min_s == rows[i].min_s && got->max_s == rows[i].max_s &&
                    got->percent == rows[i].percent && got->max_stale_s == rows[i].max_stale_s &&
                    got->reload_s == -1 && got->expire_s == -1 && got->redirect_s == -1 &&
                    bits_of(got) == rows[i].options;
        if (!same)
            CU_FAIL(rows[i].line);
        CU_ASSERT_PTR_NULL(find(rules, "y", "/").refresh);
        store_rules_free(rules);
        config_free(config);
    }
}

static void smart_caches_line_is_read(void) {
    static const struct {
        const char *line;
        int64_t reload_s, min_s, max_s, expire_s, redirect_s;
        unsigned percent;
    } rows[] = {
            {"default_refresh_pattern 2 10 0.2 10080", 120, 600, 604800, -1, -1, 20},
            {"default_refresh_pattern 0 0 .05 7d 5 15s", 0, 0, 604800, 300, 15, 5},
            {"default_refresh_pattern 0 0 1. 60 0 0", 0, 0, 3600, 0, 0, 100},
            {"Default_Refresh_Pattern 0 0 100 60", 0, 0, 3600, -1, -1, 10000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct config *config;
        struct store_rules *rules = build(rows[i].line, &config);
        const struct refresh_rule *got = find(rules, "x", "/").refresh;
        CU_ASSERT_PTR_NOT_NULL_FATAL(got);
        bool same = got->reload_s == rows[i].reload_s && got->min_s == rows[i].min_s &&
                    got->max_s == rows[i].max_s && got->expire_s == rows[i].expire_s &&
                    got->redirect_s == rows[i].redirect_s && got->percent == rows[i].percent &&
                    got->max_stale_s == -1;
        if (!same)
            CU_FAIL(rows[i].line);
        store_rules_free(rules);
        config_free(config);
    }
}

static void the_first_match_wins(void) {
    struct config *config;
    struct store_rules *rules = build("refresh_pattern -i \\.deb$ 1 0% 60\n"
                                      "default_refresh_pattern 0 7 0 60\n"
                                      "refresh_pattern ^http://a(:[0-9]+)?/ 2 0% 60\n"
                                      "refresh_pattern ^ftp: 3 0% 60\n"
                                      "refresh_pattern \\?q= 4 0% 60\n",
            &config);
    static const struct {
        const char *authority, *path;
        int64_t min_s;
    } rows[] = {
            {"a", "/x.DEB", 60},
            {"a", "/x", 120},
            {"a:8080", "/x", 120},
            {"ba", "/x?q=1", 240},
            {"ba", "/x", 420},
            {"ftp:", "/x", 420},
            {"[2001:db8::1]:81", "/?q=", 240},
            {"", "*", 420},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cache_rules found = find(rules, rows[i].authority, rows[i].path);
        if (!found.refresh || found.refresh->min_s != rows[i].min_s)
            CU_FAIL(rows[i].path);
    }
    char path[20000] = "/";
    memset(path + 1, 'y', sizeof path - 2);
    memcpy(path + sizeof path - 5, ".deb", 5);
    CU_ASSERT_EQUAL(find(rules, "b", path).refresh->min_s, 60);
    store_rules_free(rules);
    config_free(config);
}

static void responses_keep_their_order(void) {
    struct config *config;
    struct store_rules *rules = build("no_store_type Video/MP4\n"
                                      "store_type image/* VIDEO/*\n"
                                      "store_status 404\n"
                                      "no_store_status 301 500\n"
                                      "no_store_type */*\n"
                                      "store_cookies shared\npragma_no_cache 3\n",
            &config);
    struct cache_rules found = find(rules, "a", "/");
    static const struct {
        const char *type;
        int status;
        bool is_stored;
    } rows[] = {{"video/mp4", 0, false}, {"image/", 0, true}, {"video/", 0, true}, {"", 404, true},
            {"", 301, false}, {"", 500, false}, {"", 0, false}};
    CU_ASSERT_EQUAL_FATAL(found.response_count, sizeof rows / sizeof *rows);
    for (size_t i = 0; i < found.response_count; i++)
        CU_ASSERT_TRUE(view_equal(found.responses[i].type, view_of(rows[i].type)) &&
                       found.responses[i].status == rows[i].status &&
                       found.responses[i].is_stored == rows[i].is_stored);
    CU_ASSERT_EQUAL(found.cookies, STORE_COOKIES_SHARED);
    CU_ASSERT_EQUAL(found.no_cache, NO_CACHE_IGNORED_BUT_TEXT);
    store_rules_free(rules);
    config_free(config);
}

// What matches some response first, or keeps one from a later line, stands.
static void lines_that_decide_something_are_taken(void) {
    static const char *const rows[] = {
            "no_store_type image/png image/*",
            "store_type text/css\nno_store_type image/* text/*",
            "store_status 200\nno_store_type text/*",
            "store_type text/*\nno_store_status 404 410",
            "no_store_type imagex/y image/y image/*",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct config *config;
        store_rules_free(build(rows[i], &config));
        config_free(config);
    }
}

static void every_error_has_its_place(void) {
    static const struct {
        const char *lines, *place, *words;
    } rows[] = {
            {"refresh_pattern a(b 0 20% 10", "t:1:20:", "no regular expression: missing closing parenthesis"},
            {"refresh_pattern -i [a 0 20% 10", "t:1:22:", "no regular expression"},
            {"refresh_pattern x a 20% 10", "t:1:19:", "MIN \"a\" is no time"},
            {"refresh_pattern x -1 20% 10", "t:1:19:", "MIN \"-1\" is no time"},
            {"refresh_pattern x 0.5 20% 10", "t:1:19:", "MIN \"0.5\" is no time"},
            {"refresh_pattern x 0 % 10", "t:1:21:", "PERCENT \"%\" is no number"},
            {"refresh_pattern x 0 20.5% 10", "t:1:21:", "PERCENT"},
            {"refresh_pattern x 0 10001% 10", "t:1:21:", "PERCENT \"10001%\" is out of range"},
            {"refresh_pattern x 0 99999999999999999999 10", "t:1:21:", "PERCENT"},
            {"refresh_pattern x 0 20% 5256001", "t:1:25:", "MAX \"5256001\" is over ten years"},
            {"refresh_pattern x 0 20% 99999999999999999999", "t:1:25:", "MAX"},
            {"refresh_pattern x 11 20% 10", "t:1:19:", "MIN is above MAX"},
            {"refresh_pattern -i x 0 20%", "t:1:1:", "too few words"},
            {"refresh_pattern -i -i -i -i", "t:1:1:", "too few words"},
            {"refresh_pattern x 0 20%", "t:1:1:", "needs more words"},
            {"refresh_pattern x 0 20% 10 override-expire override-expire", "t:1:44:", "stands twice"},
            {"refresh_pattern x 0 20% 10 max-stale=1 max-stale=2", "t:1:40:", "stands twice"},
            {"refresh_pattern x 0 20% 10 max-stale", "t:1:28:", "did you mean max-stale=?"},
            {"refresh_pattern x 0 20% 10 max-stale=", "t:1:28:", "max-stale \"\" is no time"},
            {"refresh_pattern x 0 20% 10 override-expire=1", "t:1:28:", "is no option"},
            {"refresh_pattern x 0 20% 10 ignore-privat", "t:1:28:", "did you mean ignore-private?"},
            {"refresh_pattern x 0 20% 10 ignore-no-cache", "t:1:28:", "is no option any more"},
            {"refresh_pattern x 0 20% 10 ignore-must-revalidate", "t:1:28:", "is no option any more"},
            {"refresh_pattern x 0 20% 10 ignore-auth", "t:1:28:", "is no option any more"},
            {"refresh_pattern . 0 20% 10\nrefresh_pattern x 0 20% 10",
                    "t:2:17:", "can never match: \".\" at t:1"},
            {"refresh_pattern -i x 0 20% 10\nrefresh_pattern x 0 20% 10", "t:2:17:", "can never match"},
            {"default_refresh_pattern 1 2 0.3", "t:1:1:", "needs more words"},
            {"default_refresh_pattern 1 2 0.3 4 5", "t:1:1:", "has 5 words"},
            {"default_refresh_pattern 1 2 0.3 4 5 6 7", "t:1:39:", "too many words"},
            {"default_refresh_pattern x 2 0.3 4", "t:1:25:", "RELOAD \"x\" is no time"},
            {"default_refresh_pattern 1 2 0.333 4", "t:1:29:", "FACTOR \"0.333\" is no fraction"},
            {"default_refresh_pattern 1 2 . 4", "t:1:29:", "FACTOR \".\" is no fraction"},
            {"default_refresh_pattern 1 2 20% 4", "t:1:29:", "FACTOR"},
            {"default_refresh_pattern 1 2 101 4", "t:1:29:", "FACTOR \"101\" is out of range"},
            {"default_refresh_pattern 1 5 0.2 4", "t:1:27:", "MIN is above MAX"},
            {"default_refresh_pattern 1 2 0.2 4\ndefault_refresh_pattern 1 2 0.2 4",
                    "t:2:1:", "set already at t:1"},
            {"refresh_pattern -x abc 0 20% 4320",
                    "t:1:17:", "\"-x\" is no flag of refresh_pattern, write -i"},
            {"refresh_pattern -i -x abc def 0 20% 9", "t:1:20:", "\"-x\" is no flag"},
            {"refresh_pattern -I abc 0 20% 9", "t:1:17:", "\"-I\" is no flag"},
            {"refresh_pattern -i abc def 0 20% 4320", "t:1:20:", "in quotes: \"abc def\""},
            {"refresh_pattern a b c d 0 20 4320 ignore-reload", "t:1:17:", "4 words stand before MIN"},
            {"refresh_pattern abc# 0 20% 4320", "t:1:1:", "needs more words, write"},
            {"refresh_pattern abc# 0 20% 4320",
                    "t:1:1:", "a # begins a comment, put a word that has one in quotes"},
            {"refresh_pattern -i abc 0 20%# 4320", "t:1:1:", "a # begins a comment"},
            {"default_refresh_pattern 1 2 0.3 4 5#6", "t:1:1:", "a # begins a comment"},
            {"store_cookies #shared", "t:1:1:", "a # begins a comment"},
            {"refresh_pattern x 0 20% 10 4320",
                    "t:1:28:", "\"4320\" is no option of refresh_pattern, write one of override-expire, "},
            {"store_cookies on", "t:1:15:", "is none of explicit|shared|off, write one of these"},
            {"pragma_no_cache 5", "t:1:17:", "out of range"},
            {"store_cookies some", "t:1:15:", "none of explicit|shared|off"},
            {"offline maybe", "t:1:9:", "none of off|on|auto"},
            {"no_store_type image", "t:1:15:", "no media type"},
            {"no_store_type image/", "t:1:15:", "no media type"},
            {"no_store_type /png", "t:1:15:", "no media type"},
            {"no_store_type */png", "t:1:15:", "no media type"},
            {"no_store_type image/p*", "t:1:15:", "no media type"},
            {"no_store_type text/html;charset=utf-8", "t:1:15:", "no media type"},
            {"no_store_status 199", "t:1:17:", "no final status"},
            {"no_store_status 200 600", "t:1:21:", "no final status"},
            {"no_store_status 4xx", "t:1:17:", "no final status"},
            {"no_store_type x/y\nstore_type image/*", "t:2:12:", "anything of \"image/*\" out"},
            {"no_store_type x/y\nstore_status 404", "t:2:14:", "changes nothing"},
            {"store_type text/*\nno_store_type video/*", "t:1:12:", "changes nothing"},
            {"store_type image/png text/css\nno_store_type text/*", "t:1:12:", "changes nothing"},
            {"store_status 404\nno_store_status 301", "t:1:14:", "changes nothing"},
            {"no_store_type image/* Image/PNG",
                    "t:1:23:", "can never match: \"image/*\" at t:1:15 matches first, take it out here"},
            {"no_store_status 404 404", "t:1:21:", "\"404\" at t:1:17 matches first, take it out here"},
            {"no_store_type *\nno_store_status 404", "t:2:17:", "\"*\" at t:1:15 matches first"},
            {"no_store_type */*\nno_store_type *", "t:2:15:", "can never match"},
            {"no_store_type x/*\nno_store_type */*\nstore_type x/y",
                    "t:3:12:", "\"x/*\" at t:1:15 matches first, put this line above that one"},
            {"store_type *\nno_store_type *", "t:2:15:", "take one of the two out"},
            {"store_type a/*\nno_store_type a/b", "t:2:15:", "put this line above that one"},
            {"store_status 404\nno_store_status 404", "t:2:17:", "take one of the two out"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct config_errors errors = {0};
        struct config *config = config_load_text("t", view_of(rows[i].lines), &errors);
        struct store_rules *rules = config ? store_rules_new(config, &errors) : NULL;
        CU_ASSERT_PTR_NULL(rules);
        CU_ASSERT_EQUAL(errors.count, 1);
        if (errors.count != 1 || strncmp(errors.text, rows[i].place, strlen(rows[i].place)) != 0 ||
                !strstr(errors.text, rows[i].words)) {
            printf("\n    %s: %s", rows[i].lines, errors.text ? errors.text : "no error");
            CU_FAIL(rows[i].lines);
        }
        store_rules_free(rules);
        config_free(config);
        config_errors_fini(&errors);
    }
}

static void squids_own_lines_are_taken(void) {
    struct config *config;
    struct store_rules *rules =
            build("refresh_pattern ^ftp:\t\t1440\t20%\t10080\n"
                  "refresh_pattern ^gopher:\t1440\t0%\t1440\n"
                  "refresh_pattern -i (/cgi-bin/|\\?) 0\t0%\t0\n"
                  "refresh_pattern (Release|Packages(.gz)*)$      0       20%     2880\n"
                  "refresh_pattern -i \\.(gif|png|jpg|jpeg|ico)$ 10080 90% 43200 override-expire "
                  "ignore-no-store ignore-private\n"
                  "refresh_pattern .\t\t0\t20%\t4320\n",
                    &config);
    CU_ASSERT_EQUAL(find(rules, "a", "/x").refresh->percent, 20);
    CU_ASSERT_EQUAL(find(rules, "a", "/cgi-bin/x").refresh->max_s, 0);
    CU_ASSERT_EQUAL(find(rules, "a", "/x.JPG").refresh->percent, 90);
    CU_ASSERT_EQUAL(store_rules_count(rules), 6);
    store_rules_free(rules);
    config_free(config);
}

// An expression that gives up leaves the URL to the standards.
static void a_runaway_decides_nothing(void) {
    struct config *config;
    struct store_rules *rules =
            build("refresh_pattern ^(h?t?t?p?:?/?/?a*)+$ 1 0% 60\nrefresh_pattern . 2 0% 60\n", &config);
    struct cache_rules found;
    char path[4096];
    memset(path, 'a', sizeof path);
    path[sizeof path - 1] = '!';
    CU_ASSERT_FALSE(store_rules_find(rules, VIEW("a"), (struct view){path, sizeof path}, &found));
    CU_ASSERT_PTR_NULL(found.refresh);
    store_rules_free(rules);
    config_free(config);
}

// As many lines as there may be: what a URL costs that none of them matches.
static void the_largest_set(void) {
    size_t size = 64 * (STORE_RULES_PATTERNS_MAX + 1), used = 0;
    char *text = malloc(size);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    for (unsigned i = 0; i < STORE_RULES_PATTERNS_MAX; i++)
        used += (size_t)snprintf(text + used, size - used,
                "refresh_pattern -i ^http://site%u\\..*\\.(deb|rpm)$ 1 20%% 60\n", i);
    struct config *config;
    struct store_rules *rules = build(text, &config);
    struct cache_rules found;
    clock_t start = clock();
    for (int i = 0; i < 1000; i++)
        CU_ASSERT_TRUE(
                store_rules_find(rules, VIEW("www.example.com"), VIEW("/a/path/to/a/file.deb"), &found));
    double us = (double)(clock() - start) * 1e6 / CLOCKS_PER_SEC / 1000;
    printf("\n    %d patterns: %.1f us a URL that none matches, %.0f bytes a pattern",
            STORE_RULES_PATTERNS_MAX, us, (double)store_rules_bytes(rules) / STORE_RULES_PATTERNS_MAX);
    CU_ASSERT_PTR_NULL(found.refresh);
    CU_ASSERT_TRUE(us < 20000);
    store_rules_free(rules);
    config_free(config);
    snprintf(text + used, size - used, "refresh_pattern y 1 2 3\n");
    struct config_errors errors = {0};
    config = config_load_text("t", view_of(text), &errors);
    CU_ASSERT_PTR_NULL(store_rules_new(config, &errors));
    CU_ASSERT_TRUE(
            errors.count == 1 && strstr(errors.text, "t:1025:1: more than 1024 refresh_pattern lines"));
    config_errors_fini(&errors);
    config_free(config);
    free(text);
}

SUITE(intercept_store_rules, CASE(nothing_is_said_by_default), CASE(lines_are_read),
        CASE(smart_caches_line_is_read), CASE(the_first_match_wins), CASE(responses_keep_their_order),
        CASE(lines_that_decide_something_are_taken), CASE(every_error_has_its_place),
        CASE(squids_own_lines_are_taken), CASE(a_runaway_decides_nothing), CASE(the_largest_set))
