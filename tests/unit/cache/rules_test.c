#include "cache/rules.h"

#include "tests/unit/cache/text.h"

static void whose_no_cache_is_seen(void) {
    static const struct {
        const char *fields;
        bool ignored[5]; // by NO_CACHE_OBEYED and so on
    } rows[] = {
            {"Content-Type: text/html\n", {false, true, false, false, true}},
            {"Content-Type: TEXT/plain; charset=utf-8\n", {false, true, false, false, true}},
            {"Content-Type: image/png\n", {false, true, true, true, true}},
            {"Content-Type: Image/PNG\n", {false, true, true, true, true}},
            {"Content-Type: application/json\n", {false, true, false, true, true}},
            {"", {false, true, false, false, true}},
            {"Location: /x\n", {false, true, false, false, false}},
            {"Content-Type: image/png\nLocation: /x\n", {false, true, true, true, false}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int rule = NO_CACHE_OBEYED; rule <= NO_CACHE_IGNORED_BUT_REDIRECTS; rule++) {
            struct cache_rules rules = {.no_cache = (enum no_cache_rule)rule};
            struct text_head text;
            const struct http_head *head = text_response(&text, 200, rows[i].fields);
            if (rules_ignore_no_cache(&rules, head) != rows[i].ignored[rule])
                CU_FAIL(rows[i].fields);
            CU_ASSERT_FALSE(rules_ignore_no_cache(NULL, head));
        }
}

static void the_first_response_rule_decides(void) {
    const struct response_rule responses[] = {{.type = VIEW("video/mp4"), .is_stored = false},
            {.type = VIEW("image/"), .is_stored = true}, {.type = VIEW("video/"), .is_stored = true},
            {.type = VIEW(""), .status = 404, .is_stored = true}, {.type = VIEW(""), .is_stored = false}};
    static const struct {
        const char *type;
        int status;
        bool with_last, without_last;
    } rows[] = {{"video/mp4", 200, false, false}, {"Video/MP4; codecs=x", 404, false, false},
            {"video/webm", 200, true, true}, {"image/png", 500, true, true}, {"imagex/png", 200, false, true},
            {"", 404, true, true}, {"", 200, false, true}, {"text/html", 404, true, true},
            {"text/html", 200, false, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cache_rules rules = {.responses = responses, .response_count = 5};
        bool with_last = rules_store_response(&rules, rows[i].status, view_of(rows[i].type));
        rules.response_count = 4;
        bool without_last = rules_store_response(&rules, rows[i].status, view_of(rows[i].type));
        if (with_last != rows[i].with_last || without_last != rows[i].without_last)
            CU_FAIL(rows[i].type);
    }
}

static void reasons_name_their_option(void) {
    for (unsigned option = 0; option < REFRESH_OPTION_COUNT; option++)
        CU_ASSERT_EQUAL(rules_option(rules_option_word(option)), option);
    CU_ASSERT_EQUAL(rules_option("fresh"), REFRESH_OPTION_COUNT);
    CU_ASSERT_EQUAL(rules_option("max-stale"), REFRESH_OPTION_COUNT); // the client's
}

SUITE(cache_rules, CASE(whose_no_cache_is_seen), CASE(the_first_response_rule_decides),
        CASE(reasons_name_their_option))
