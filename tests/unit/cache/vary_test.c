#include "cache/vary.h"
#include "tests/unit/cache/text.h"

static void names(void) {
    static const struct {
        const char *fields, *names; // NULL: matches nothing
    } rows[] = {
            {"", ""},
            {"Vary: Accept-Encoding\n", "accept-encoding"},
            {"Vary: User-Agent , accept-encoding\n", "accept-encoding,user-agent"},
            {"Vary: B\nVary: a, b,, A\n", "a,b"},
            {"Vary: *\n", NULL},
            {"Vary: a\nVary: b, *\n", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct text_head text;
        char out[VARY_NAMES_BYTES];
        struct view list;
        bool known = vary_names(text_response(&text, 200, rows[i].fields), out, &list);
        CU_ASSERT_EQUAL(known, rows[i].names != NULL);
        if (rows[i].names)
            CU_ASSERT_TRUE(view_equal(list, view_of(rows[i].names)));
    }
}

static void too_many_names(void) {
    struct text_head text;
    char fields[512] = "Vary: x", out[VARY_NAMES_BYTES];
    struct view list;
    for (int i = 1; i < VARY_NAMES_MAX; i++)
        strcat(fields, (char[]){',', 'a', (char)('a' + i % 26), (char)('a' + i / 26), 0});
    strcat(fields, "\n");
    CU_ASSERT_TRUE(vary_names(text_response(&text, 200, fields), out, &list));
    strcat(fields, "Vary: one-more\n");
    CU_ASSERT_FALSE(vary_names(text_response(&text, 200, fields), out, &list));
}

static void matching(void) {
    static const struct {
        const char *names, *stored, *asked;
        bool matches;
    } rows[] = {
            {"", "A: 1\n", "A: 2\n", true},
            {"a", "A: 1\n", "A: 1\nB: 2\n", true},
            {"a", "A: 1\n", "A: 2\n", false},
            {"a", "A: 1\n", "", false},
            {"a", "A:\n", "", false}, // empty is not absent
            {"a", "", "", true},
            {"a", "A: x, y\n", "A: x ,\ty\n", true},
            {"a", "A: x, y\n", "A: x\nA: y\n", true},
            {"a", "A: x  y\n", "A: x y\n", true},
            {"a", "A: xy\n", "A: x y\n", false},
            {"a", "A: \"x  y\"\n", "A: \"x y\"\n", false},
            {"a", "A: x\n", "A: X\n", false},
            {"a,b", "A: 1\nB: 2\n", "B: 2\nA: 1\n", true},
            {"a,b", "A: 1\n", "B: 1\n", false},
            {"a", "A: 1\nConnection: a\n", "A: 1\n", false}, // not sent to the origin
            {"a", "A: 1\nConnection: a\n", "", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct text_head stored, asked;
        char text[VARY_SELECTORS_BYTES];
        struct view selectors, list = view_of(rows[i].names);
        CU_ASSERT_TRUE(vary_select(list, text_request(&stored, "GET", rows[i].stored), text, &selectors));
        CU_ASSERT_EQUAL(
                vary_matches(list, selectors, text_request(&asked, "GET", rows[i].asked)), rows[i].matches);
    }
}

static void too_long(void) {
    struct text_head text;
    char fields[VARY_SELECTORS_BYTES + 64] = "A: ", out[VARY_SELECTORS_BYTES];
    struct view selectors;
    memset(fields + 3, 'x', VARY_SELECTORS_BYTES);
    strcpy(fields + 3 + VARY_SELECTORS_BYTES, "\n");
    CU_ASSERT_FALSE(vary_select(VIEW("a"), text_request(&text, "GET", fields), out, &selectors));
    CU_ASSERT_TRUE(vary_select(VIEW("b"), &text.head, out, &selectors));
}

SUITE(cache_vary, CASE(names), CASE(too_many_names), CASE(matching), CASE(too_long))
