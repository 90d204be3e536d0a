// Whatever reason the code gives has its meaning in a table, and so in the manual: the sources are read for
// them. The runner's folder is the project's.
#include "cache/reason.h"

#include "admin/view.h"
#include "cache/rules.h"
#include "tests/unit/unit.h"

#include <ctype.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const others[] = {
#define REASON(word, meaning) word,
#include "intercept/reason.tbl"
};

// What gives a reason in intercept/: up to the statement's end, its literals that are words are reasons.
static const char *const givers[] = {"fetch_give_up(", "no_answer(", "reply_page(", "reply_head(",
        "lookup_alone(", "request_log(", "request_give_up(", "cannot_connect(", "cut_short(", "end_broken(",
        "reason = ", "(struct failure){"};

static char *read_file(const char *path) {
    FILE *file = fopen(path, "re");
    char *text = calloc(1, 1 << 18);
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    size_t length = fread(text, 1, (1 << 18) - 1, file);
    CU_ASSERT_TRUE(length > 0 && length < (1 << 18) - 1);
    fclose(file);
    return text;
}

static bool is_word(struct view text) {
    if (text.length < 3 || !islower((unsigned char)text.data[0]))
        return false;
    for (size_t i = 0; i < text.length; i++)
        if (!islower((unsigned char)text.data[i]) && !isdigit((unsigned char)text.data[i]) &&
                text.data[i] != '-')
            return false;
    return true;
}

// Words in cache/*.c that are names of files: in a volume's directory, or of one in memory.
static const char *const file_names[] = {"super", "seg", "index", "probe", "probe-speed", "repair", "weir"};

static bool is_known(struct view word, bool of_cache_alone) {
    char text[64];
    if (word.length >= sizeof text)
        return false;
    snprintf(text, sizeof text, VIEW_FORMAT, VIEW_ARGUMENT(word));
    for (size_t i = 0; !of_cache_alone && i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i], text) == 0)
            return true;
    for (size_t i = 0; of_cache_alone && i < sizeof file_names / sizeof *file_names; i++)
        if (strcmp(file_names[i], text) == 0)
            return true;
    return reason_find(text) != NULL;
}

// Looks at each literal from `at` up to `end`. How many were reasons.
static unsigned check_literals(const char *path, const char *at, const char *end, bool of_cache_alone) {
    unsigned count = 0;
    while ((at = memchr(at, '"', (size_t)(end - at)))) {
        const char *close = memchr(at + 1, '"', (size_t)(end - at - 1));
        if (!close)
            break;
        struct view word = {at + 1, (size_t)(close - at - 1)};
        at = close + 1;
        if (!is_word(word))
            continue;
        count++;
        if (!is_known(word, of_cache_alone)) {
            fprintf(stderr, "%s gives the reason \"" VIEW_FORMAT "\", which no reason.tbl has\n", path,
                    VIEW_ARGUMENT(word));
            CU_FAIL("a reason that no table has");
        }
    }
    return count;
}

static unsigned check_cache(const char *path, const char *text) {
    return check_literals(path, text, text + strlen(text), true);
}

static unsigned check_intercept(const char *path, const char *text) {
    unsigned count = 0;
    for (size_t i = 0; i < sizeof givers / sizeof *givers; i++)
        for (const char *at = text; (at = strstr(at, givers[i])); at++) {
            const char *end = at + strcspn(at, ";{");
            if (givers[i][strlen(givers[i]) - 1] == '{')
                end = at + strcspn(at, ";");
            count += check_literals(path, at, end, false);
        }
    return count;
}

static unsigned check_files(const char *pattern, unsigned (*check)(const char *path, const char *text)) {
    glob_t found;
    unsigned count = 0;
    CU_ASSERT_EQUAL_FATAL(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *text = read_file(found.gl_pathv[i]);
        count += check(found.gl_pathv[i], text);
        free(text);
    }
    globfree(&found);
    return count;
}

static void every_reason_of_the_store_has_its_meaning(void) {
    CU_ASSERT_TRUE(check_files("cache/*.c", check_cache) > 30); // it does find them
}

static void every_other_reason_has_its_meaning(void) {
    CU_ASSERT_TRUE(check_files("intercept/*.c", check_intercept) > 40);
}

static void every_refresh_option_has_its_meaning(void) {
    for (int id = 0; id < REFRESH_OPTION_COUNT; id++)
        CU_ASSERT_PTR_NOT_NULL(reason_find(rules_option_word((enum refresh_option)id)));
}

static void what_leads_forward_says_so(void) {
    CU_ASSERT_EQUAL(reason_find("absent")->forward, FORWARD_URI_MISS);
    CU_ASSERT_EQUAL(reason_find("expired")->forward, FORWARD_STALE);
    CU_ASSERT_EQUAL(reason_find("fresh")->forward, FORWARD_NONE);
    CU_ASSERT_PTR_NULL(reason_find("no such word"));
    CU_ASSERT_PTR_NULL(reason_find(NULL));
}

SUITE(cache_reason, CASE(every_reason_of_the_store_has_its_meaning), CASE(every_other_reason_has_its_meaning),
        CASE(every_refresh_option_has_its_meaning), CASE(what_leads_forward_says_so))
