#include "cache/vary.h"
#include "tests/unit/cache/text.h"

#include <stdio.h>
#include <stdlib.h>

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

static void names(void) {
    static const struct {
        const char *fields, *names; // NULL: matches nothing
    } rows[] = {
            {"", ""},
            {"Vary:\n", ""},
            {"Vary: ,\n", ""},
            {"Vary: Accept-Encoding\n", "accept-encoding"},
            {"vary: ACCEPT-ENCODING\n", "accept-encoding"},
            {"Vary: User-Agent , accept-encoding\n", "accept-encoding,user-agent"},
            {"Vary: accept-encoding,User-Agent\n", "accept-encoding,user-agent"},
            {"Vary: a, A, a\n", "a"},
            {"Vary: B\nVary: a, b,, A\n", "a,b"},
            {"Vary:\nVary: a\n", "a"},
            {"Vary: *\n", NULL},
            {"Vary: *, *\n", NULL},
            {"Vary: *,a\n", NULL},
            {"Vary: a,*\n", NULL},
            {"Vary: , *\n", NULL},
            {"Vary: a\nVary: b, *\n", NULL},
            {"Vary: *\nVary: a\n", NULL},
            {"Vary:\nVary: *\n", NULL},
            {"Vary: **\n", "**"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
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
        const char *names, *stored, *asked; // [RFC 9111 §4.1]
        bool matches;
    } rows[] = {
            {"", "A: 1\n", "A: 2\n", true},
            {"a", "A: 1\n", "A: 1\nB: 2\n", true},
            {"a", "A: 1\n", "A: 2\n", false},
            {"a", "A: 1\n", "", false},
            {"a", "", "A: 1\n", false},
            {"a", "A:\n", "", false}, // empty is not absent
            {"a", "A:\n", "A:\n", true},
            {"a", "", "", true},
            {"a", "A: x, y\n", "A: x ,\ty\n", true},
            {"a", "A: x, y\n", "A: x\nA: y\n", true},
            {"a", "A: x, y\n", "a: x\nB: 1\nA: y\n", true},
            {"a", "A: x, y\n", "A: y, x\n", false}, // its grammar is not known
            {"a", "A: x  y\n", "A: x y\n", true},
            {"a", "A: xy\n", "A: x y\n", false},
            {"a", "A: \"x  y\"\n", "A: \"x y\"\n", false},
            {"a", "A: \"x , y\"\n", "A: \"x,y\"\n", false},
            {"a", "A: x\n", "A: X\n", false},
            {"a", "A: x\n", "A: x\nA: x\n", false},
            {"a,b", "A: 1\nB: 2\n", "B: 2\nA: 1\n", true},
            {"a,b", "A: 1\n", "B: 1\n", false},
            {"a,b,c", "A: 1\nB: 2\nC: 3\n", "C: 3\nA: 1\nB: 2\n", true},
            {"a,b,c", "A: 1\nB: 2\nC: 3\n", "C: 3\nA: 1\nB: 4\n", false},
            {"a,b,c", "A: 1\nC: 3\n", "C: 3\nA: 1\n", true},
            {"a", "A: 1\nConnection: a\n", "A: 1\n", false}, // not sent to the origin
            {"a", "A: 1\nConnection: a\n", "", true},
            {"cookie", "Cookie: a=1; b=2\n", "Cookie: b=2; a=1\n", false},
            {"user-agent", "User-Agent: Ab\n", "User-Agent: ab\n", false},
            // Accept-Encoding [RFC 9110 §12.5.3]
            {"accept-encoding", "Accept-Encoding: gzip, br\n", "Accept-Encoding: br,gzip\n", true},
            {"accept-encoding", "Accept-Encoding: gzip, br\n", "Accept-Encoding: GZIP ,\t Br\n", true},
            {"accept-encoding", "Accept-Encoding: gzip, br\n", "Accept-Encoding: br\nAccept-Encoding: gzip\n",
                    true},
            {"accept-encoding", "Accept-Encoding: gzip, gzip\n", "Accept-Encoding: gzip\n", true},
            {"accept-encoding", "Accept-Encoding: gzip,, br,\n", "Accept-Encoding: gzip, br\n", true},
            {"accept-encoding", "Accept-Encoding: x-gzip\n", "Accept-Encoding: gzip\n", true},
            {"accept-encoding", "Accept-Encoding: x-compress;q=0.5\n", "Accept-Encoding: compress;q=0.5\n",
                    true},
            {"accept-encoding", "Accept-Encoding: gzip;q=1\n", "Accept-Encoding: gzip\n", true},
            {"accept-encoding", "Accept-Encoding: gzip;q=1.000\n", "Accept-Encoding: gzip ; Q=1.0\n", true},
            {"accept-encoding", "Accept-Encoding: gzip;q=0.50\n", "Accept-Encoding: gzip; q=0.5\n", true},
            {"accept-encoding", "Accept-Encoding: gzip;q=0\n", "Accept-Encoding: gzip;q=0.000\n", true},
            {"accept-encoding", "Accept-Encoding: gzip;q=0\n", "Accept-Encoding:\n", false},
            {"accept-encoding", "Accept-Encoding: gzip;q=0\n", "Accept-Encoding: gzip\n", false},
            {"accept-encoding", "Accept-Encoding: gzip;q=0.5\n", "Accept-Encoding: gzip;q=0.05\n", false},
            {"accept-encoding", "Accept-Encoding: gzip;q=2\n", "Accept-Encoding: gzip\n", false},
            {"accept-encoding", "Accept-Encoding: gzip;q=1.001\n", "Accept-Encoding: gzip\n", false},
            {"accept-encoding", "Accept-Encoding: gzip;q=\n", "Accept-Encoding: gzip\n", false},
            {"accept-encoding", "Accept-Encoding: gzip, br;q=0.5\n", "Accept-Encoding: br, gzip;q=0.5\n",
                    false},
            {"accept-encoding", "Accept-Encoding: gzip\n", "Accept-Encoding: gzip, br\n", false},
            {"accept-encoding", "Accept-Encoding:\n", "", false},
            {"accept-encoding", "Accept-Encoding:\n", "Accept-Encoding: ,\n", true},
            {"accept-encoding", "Accept-Encoding: identity\n", "Accept-Encoding:\n", false},
            // Accept-Language [RFC 9110 §12.5.4]
            {"accept-language", "Accept-Language: en, de\n", "Accept-Language: de, en\n", true},
            {"accept-language", "Accept-Language: en, de\n", "Accept-Language: eN, De\n", true},
            {"accept-language", "Accept-Language: en, de\n", "Accept-Language:   en ,  de\n", true},
            {"accept-language", "Accept-Language: en-US, de;q=0.8\n",
                    "Accept-Language: de;q=0.80,en-us;q=1.0\n", true},
            {"accept-language", "Accept-Language: en, de;q=0.8\n", "Accept-Language: en;q=0.8, de\n", false},
            {"accept-language", "Accept-Language: en\n", "Accept-Language: en-us\n", false},
            {"accept-charset", "Accept-Charset: UTF-8, *;q=0.1\n", "Accept-Charset: *;q=0.1,utf-8\n", true},
            // Accept [RFC 9110 §12.5.1]
            {"accept", "Accept: text/html, */*;q=0.8\n", "Accept: */*;q=0.8,Text/HTML\n", true},
            {"accept", "Accept: text/html;Level=1\n", "Accept: text/html; level=1\n", true},
            {"accept", "Accept: text/html;level=a\n", "Accept: text/html;level=A\n", false},
            {"accept", "Accept: a/b;x=\"1;q=1\"\n", "Accept: a/b;x=\"1\"\n", false},
            {"accept", "Accept: a/b;x=\"1,2\", c/d\n", "Accept: c/d, a/b;x=\"1,2\"\n", true},
            {"accept", "Accept: a/b\n", "Accept: a/*\n", false},
            // all of them
            {"accept-encoding,accept-language,user-agent",
                    "Accept-Encoding: gzip, br\nAccept-Language: en, de\nUser-Agent: x\n",
                    "User-Agent: x\nAccept-Language: DE,EN\nAccept-Encoding: br,gzip\n", true},
            {"accept-encoding,accept-language,user-agent",
                    "Accept-Encoding: gzip, br\nAccept-Language: en, de\nUser-Agent: x\n",
                    "User-Agent: y\nAccept-Language: DE,EN\nAccept-Encoding: br,gzip\n", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct text_head stored, asked;
        char text[VARY_SELECTORS_BYTES];
        struct view selectors, list = view_of(rows[i].names);
        CU_ASSERT_TRUE(vary_select(list, text_request(&stored, "GET", rows[i].stored), text, &selectors));
        bool matches = vary_matches(list, selectors, text_request(&asked, "GET", rows[i].asked));
        if (matches != rows[i].matches)
            printf("matching row %zu: %d\n%s%s", i, matches, rows[i].stored, rows[i].asked);
        CU_ASSERT_EQUAL(matches, rows[i].matches);
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

// More members than are sorted are compared as they came.
static void too_many_members(void) {
    struct text_head text;
    char fields[1024] = "Accept-Language: b", out[VARY_SELECTORS_BYTES];
    struct view selectors;
    for (int i = 1; i < 64; i++)
        strcat(fields, ",a");
    strcat(fields, "\n");
    CU_ASSERT_TRUE(vary_select(VIEW("accept-language"), text_request(&text, "GET", fields), out, &selectors));
    CU_ASSERT_TRUE(view_equal(selectors, VIEW("=a,b\n")));
    fields[strlen(fields) - 1] = 0;
    strcat(fields, ",a\n");
    CU_ASSERT_TRUE(vary_select(VIEW("accept-language"), text_request(&text, "GET", fields), out, &selectors));
    CU_ASSERT_TRUE(view_starts(selectors, VIEW("=b,a,a")) && selectors.length == 2 * 65 + 1);
}

static struct stored_head *store(const char *request, const char *response, int64_t date_s) {
    struct text_head asked, answer;
    char names_text[VARY_NAMES_BYTES], selectors_text[VARY_SELECTORS_BYTES];
    struct stored_head_source source = {.head = text_response(&answer, 200, response), .date_s = -1};
    CU_ASSERT_TRUE_FATAL(vary_names(source.head, names_text, &source.vary));
    CU_ASSERT_TRUE_FATAL(vary_select(
            source.vary, text_request(&asked, "GET", request), selectors_text, &source.selectors));
    struct stored_head *head = stored_head_new(&source);
    head->freshness.date_s = date_s;
    return head;
}

#define LANGUAGE "Vary: Accept-Language\n"
#define ENCODING "Vary: Accept-Encoding\n"
#define BOTH "Vary: Accept-Encoding, Accept-Language\n"

static void ranking(void) {
    static const struct {
        const char *stored, *response, *asked;
        enum vary_rank rank;
    } rows[] = {
            {"A: 1\n", "", "A: 2\n", VARY_ANY},
            {"A: 1\n", "Vary: A\n", "A: 1\n", VARY_SELECTED},
            {"A: 1\n", "Vary: A\n", "A: 2\n", VARY_OTHER},
            // one language above all others
            {"Accept-Language: en, de\n", LANGUAGE "Content-Language: de\n",
                    "Accept-Language: fr;q=0.5, de;q=1.0\n", VARY_PREFERRED},
            {"Accept-Language: en, de\n", LANGUAGE "Content-Language: DE\n", "Accept-Language: de\n",
                    VARY_PREFERRED},
            {"Accept-Language: en, de\n", LANGUAGE "Content-Language: de\n", "Accept-Language: de, de\n",
                    VARY_PREFERRED},
            {"", LANGUAGE "Content-Language: de\n", "Accept-Language: de, en;q=0.9\n", VARY_PREFERRED},
            {"Accept-Language: en, de\n", LANGUAGE "Content-Language: de\n", "Accept-Language: de, en\n",
                    VARY_SELECTED},
            {"Accept-Language: en, de\n", LANGUAGE "Content-Language: de\n", "Accept-Language: de, fr\n",
                    VARY_OTHER},
            {"Accept-Language: en, de\n", LANGUAGE "Content-Language: de\n",
                    "Accept-Language: de;q=0.5, fr\n", VARY_OTHER},
            {"Accept-Language: en, de\n", LANGUAGE "Content-Language: de\n", "Accept-Language: de-AT\n",
                    VARY_OTHER},
            {"Accept-Language: en, de\n", LANGUAGE "Content-Language: de-AT\n", "Accept-Language: de\n",
                    VARY_OTHER},
            {"Accept-Language: en, de\n", LANGUAGE "Content-Language: de, en\n", "Accept-Language: de\n",
                    VARY_OTHER},
            {"Accept-Language: en, de\n", LANGUAGE, "Accept-Language: de\n", VARY_OTHER},
            {"Accept-Language: en, de\n", LANGUAGE "Content-Language: de\n", "Accept-Language: *\n",
                    VARY_OTHER},
            {"Accept-Language: en, de\n", LANGUAGE "Content-Language: de\n", "Accept-Language: de;q=0\n",
                    VARY_OTHER},
            {"Accept-Language: en, de\n", LANGUAGE "Content-Language: de\n", "Accept-Language: de;q=x\n",
                    VARY_OTHER},
            {"Accept-Language: en, de\n", LANGUAGE "Content-Language: de\n", "", VARY_OTHER},
            {"Accept-Language: en\nA: 1\n", "Vary: Accept-Language, A\nContent-Language: de\n",
                    "Accept-Language: de\nA: 1\n", VARY_PREFERRED},
            {"Accept-Language: en\nA: 1\n", "Vary: Accept-Language, A\nContent-Language: de\n",
                    "Accept-Language: de\nA: 2\n", VARY_OTHER},
            // no such thing for codings: their weights say what can be read, not what is liked
            {"Accept-Encoding: gzip, br\n", ENCODING "Content-Encoding: gzip\n", "Accept-Encoding: gzip\n",
                    VARY_OTHER},
            {"Accept-Encoding: gzip\n", ENCODING, "Accept-Encoding: gzip;q=0\n", VARY_OTHER},
            {"Accept-Encoding: gzip\nAccept-Language: en\n", BOTH "Content-Language: de\n",
                    "Accept-Encoding: gzip\nAccept-Language: de\n", VARY_PREFERRED},
            {"Accept-Encoding: gzip\nAccept-Language: en\n", BOTH "Content-Language: de\n",
                    "Accept-Encoding: br\nAccept-Language: de\n", VARY_OTHER},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct text_head asked;
        struct stored_head *head = store(rows[i].stored, rows[i].response, 0);
        enum vary_rank rank = vary_rank(
                head->vary, head->selectors, text_request(&asked, "GET", rows[i].asked), &head->http);
        if (rank != rows[i].rank)
            printf("ranking row %zu: %d\n%s%s", i, rank, rows[i].response, rows[i].asked);
        CU_ASSERT_EQUAL(rank, rows[i].rank);
        free(head);
    }
}

static void choosing(void) {
    static const struct {
        const char *stored, *response;
        int64_t date_s;
    } all[] = {
            {"A: 1\n", "Vary: A\n", 10},
            {"A: 2\n", "Vary: A\n", 20},
            {"A: 1\nB: 1\n", "Vary: A, B\n", 30},
            {"", "", 40},
            {"Accept-Language: de\n", LANGUAGE "Content-Language: de\n", 50},
            {"Accept-Language: en\n", LANGUAGE "Content-Language: de\n", 60},
            {"A: 3\n", "Vary: A\n", 70},
            {"A: 3\n", "Vary: A\n", 70},
    };
    static const struct {
        const char *asked;
        unsigned count;
        int chosen;
    } rows[] = {
            {"A: 1\n", 0, -1},
            {"A: 1\n", 1, 0},
            {"A: 2\n", 1, -1},
            {"A: 2\n", 2, 1},
            {"A: 1\nB: 1\n", 4, 2}, // two are for it: the more recent
            {"A: 1\nB: 2\n", 4, 0}, // with Vary before without, though that is more recent
            {"A: 9\n", 3, -1},
            {"A: 9\n", 4, 3},
            {"A: 9\nAccept-Language: de\n", 6, 4},        // selected before preferred
            {"A: 9\nAccept-Language: de, x;q=0\n", 6, 5}, // both preferred: the more recent
            {"A: 3\n", 8, 6},
    };
    struct stored_head *heads[COUNT(all)];
    for (size_t i = 0; i < COUNT(all); i++)
        heads[i] = store(all[i].stored, all[i].response, all[i].date_s);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct text_head asked;
        int chosen = vary_choose((const struct stored_head *const *)heads, rows[i].count,
                text_request(&asked, "GET", rows[i].asked));
        if (chosen != rows[i].chosen)
            printf("choosing row %zu: %d\n", i, chosen);
        CU_ASSERT_EQUAL(chosen, rows[i].chosen);
    }
    heads[7]->freshness.response_at.steady_s = 1; // as old by Date, but it came later
    struct text_head asked;
    CU_ASSERT_EQUAL(vary_choose((const struct stored_head *const *)heads, COUNT(all),
                            text_request(&asked, "GET", "A: 3\n")),
            7);
    for (size_t i = 0; i < COUNT(all); i++)
        free(heads[i]);
}

SUITE(cache_vary, CASE(names), CASE(too_many_names), CASE(matching), CASE(too_long), CASE(too_many_members),
        CASE(ranking), CASE(choosing))
