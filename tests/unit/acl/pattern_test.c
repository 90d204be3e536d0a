#include "acl/pattern.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct pattern *compiled(const char *text, bool ignore_case) {
    struct pattern_error error;
    struct pattern *pattern = pattern_new(view_of(text), ignore_case, &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(pattern);
    return pattern;
}

static void matches_as_perl_does(void) {
    static const struct {
        const char *text;
        bool ignore_case;
        const char *subject;
        enum pattern_match wanted;
    } rows[] = {
            {".", false, "http://a/", PATTERN_MATCHES},
            {".", false, "", PATTERN_DIFFERS},
            {"", false, "", PATTERN_MATCHES},
            {"^http://", false, "http://a/", PATTERN_MATCHES},
            {"^ftp:", false, "http://a/?ftp:", PATTERN_DIFFERS},
            {"\\.gif$", false, "http://a/x.gif", PATTERN_MATCHES},
            {"\\.gif$", false, "http://a/x.gif?y", PATTERN_DIFFERS},
            {"\\.gif$", false, "http://a/x.GIF", PATTERN_DIFFERS},
            {"\\.gif$", true, "http://a/x.GIF", PATTERN_MATCHES},
            {"\\.(deb|rpm)(\\?.*)?$", false, "http://a/x.deb?1", PATTERN_MATCHES},
            {"[[:digit:]]{3}", false, "http://a/12", PATTERN_DIFFERS},
            {"[[:digit:]]{3}", false, "http://a/123", PATTERN_MATCHES},
            {"(a)(b)(c)\\3", false, "abcc", PATTERN_MATCHES},
            {"a.b", false, "a\nb", PATTERN_MATCHES},
            {"b$", false, "b\n", PATTERN_DIFFERS},
            {"^.\xe9$", false, "a\xe9", PATTERN_MATCHES},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pattern *pattern = compiled(rows[i].text, rows[i].ignore_case);
        if (pattern_match(pattern, view_of(rows[i].subject)) != rows[i].wanted)
            CU_FAIL(rows[i].text);
        CU_ASSERT_TRUE(pattern_bytes(pattern) > 0);
        pattern_free(pattern);
    }
    struct pattern *pattern = compiled("a.b", false);
    CU_ASSERT_EQUAL(pattern_match(pattern, VIEW("a\0b")), PATTERN_MATCHES);
    CU_ASSERT_EQUAL(pattern_match(pattern, (struct view){NULL, 0}), PATTERN_DIFFERS);
    pattern_free(pattern);
    pattern_free(NULL);
}

static void says_where_it_is_wrong(void) {
    static const struct {
        const char *text;
        size_t offset;
        const char *word;
    } rows[] = {
            {"a(b", 3, "parenthesis"},
            {"ab)", 2, "parenthesis"},
            {"x[a-", 4, "]"},
            {"*a", 0, "quantifier"},
            {"a{3,1}", 5, "{}"},
            {"\\", 1, "\\"},
            {"(*UTF)a", 6, "UTF"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pattern_error error;
        CU_ASSERT_PTR_NULL(pattern_new(view_of(rows[i].text), false, &error));
        if (error.offset != rows[i].offset || !strstr(error.problem, rows[i].word)) {
            printf("\n    \"%s\": %s at %zu", rows[i].text, error.problem, error.offset);
            CU_FAIL(rows[i].text);
        }
    }
    char longer[PATTERN_BYTES_MAX + 1];
    struct pattern_error error;
    memset(longer, 'a', sizeof longer);
    CU_ASSERT_PTR_NULL(pattern_new((struct view){longer, sizeof longer}, false, &error));
    struct pattern *pattern = pattern_new((struct view){longer, sizeof longer - 1}, false, &error);
    CU_ASSERT_PTR_NOT_NULL(pattern);
    pattern_free(pattern);
}

static void reports_the_column(void) {
    struct config_errors errors = {0};
    struct config_word words[2] = {{"x", 9}, {"ab)", 11}};
    struct directive directive = {.file = "f", .line = 3, .column = 1, .word_count = 2, .words = words};
    struct pattern_error error;
    CU_ASSERT_PTR_NULL(pattern_new(view_of(words[1].text), false, &error));
    pattern_report(&errors, &directive, 1, &error);
    CU_ASSERT_EQUAL(errors.count, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(errors.text);
    CU_ASSERT_EQUAL(strncmp(errors.text, "f:3:13: \"ab)\" is no regular expression: ", 40), 0);
    config_errors_fini(&errors);
}

static int64_t spent_ms(void) {
    return (int64_t)clock() * 1000 / CLOCKS_PER_SEC;
}

// Expressions that would take ages, against subjects made to have them do so.
static void runaways_give_up(void) {
    static const char *const texts[] = {"^(a+)+$", "(a|aa)+$", "(.*)*b", "(x+x+)+y",
            "^(([a-z])+.)+[A-Z]([a-z])+$", "(?:(?:a*)*)*c", "^(?:a?){50}a{50}$"};
    char subject[16384];
    memset(subject, 'a', sizeof subject);
    subject[sizeof subject - 1] = '!';
    int64_t start = spent_ms();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct pattern *pattern = compiled(texts[i], false);
        CU_ASSERT_NOT_EQUAL(pattern_match(pattern, (struct view){subject, sizeof subject}), PATTERN_MATCHES);
        pattern_free(pattern);
    }
    struct pattern *pattern = compiled("^(a+)+$", false);
    CU_ASSERT_EQUAL(pattern_match(pattern, (struct view){subject, sizeof subject}), PATTERN_GAVE_UP);
    pattern_free(pattern);
    printf("\n    runaways: %lld ms each", (long long)(spent_ms() - start) / 8);
    CU_ASSERT_TRUE(spent_ms() - start < 8000); // some milliseconds each, without a sanitizer
}

// One that every URL of the longest kind takes, within the bounds.
static void long_urls_match(void) {
    char subject[16384] = "http://example.com/";
    size_t start = strlen(subject);
    memset(subject + start, 'b', sizeof subject - start);
    memcpy(subject + sizeof subject - 4, ".png", 4);
    struct pattern *pattern = compiled("^http://.*example.*/.*\\.(gif|png|jpe?g)$", true);
    CU_ASSERT_EQUAL(pattern_match(pattern, (struct view){subject, sizeof subject}), PATTERN_MATCHES);
    pattern_free(pattern);
    pattern = compiled("(foo|bar|b)*\\.png", false); // deep for machine code's stack
    CU_ASSERT_EQUAL(
            pattern_match(pattern, (struct view){subject + sizeof subject - 4000, 4000}), PATTERN_MATCHES);
    pattern_free(pattern);
}

struct matcher {
    pthread_t thread;
    const struct pattern *pattern;
    bool good;
};

static void *match_often(void *context) {
    struct matcher *matcher = context;
    matcher->good = true;
    for (int i = 0; i < 2000; i++)
        matcher->good = matcher->good &&
                        pattern_match(matcher->pattern, VIEW("http://a/x.GIF")) == PATTERN_MATCHES &&
                        pattern_match(matcher->pattern, VIEW("http://a/x.giff")) == PATTERN_DIFFERS;
    return NULL;
}

static void threads_share_one(void) {
    struct pattern *pattern = compiled("/([a-z]+)\\.gif$", true);
    struct matcher matchers[4];
    for (int i = 0; i < 4; i++) {
        matchers[i] = (struct matcher){.pattern = pattern};
        CU_ASSERT_EQUAL_FATAL(pthread_create(&matchers[i].thread, NULL, match_often, &matchers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(matchers[i].thread, NULL);
        CU_ASSERT_TRUE(matchers[i].good);
    }
    pattern_free(pattern);
}

SUITE(acl_pattern, CASE(matches_as_perl_does), CASE(says_where_it_is_wrong), CASE(reports_the_column),
        CASE(runaways_give_up), CASE(long_urls_match), CASE(threads_share_one))
