#include "acl/pattern.h"

#include "admin/check.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct pattern {
    pcre2_code *code;
    pcre2_match_context *limits; // only read while matching
};

// ---- what a thread needs for matching ----

static pthread_key_t match_key;
static pthread_once_t match_once = PTHREAD_ONCE_INIT;

static void free_match(void *match) {
    pcre2_match_data_free(match);
}

static void make_key(void) {
    CHECK(pthread_key_create(&match_key, free_match) == 0);
}

// Of this thread; room for the match as a whole, no groups. NULL without memory.
static pcre2_match_data *match_of_thread(void) {
    pthread_once(&match_once, make_key);
    pcre2_match_data *match = pthread_getspecific(match_key);
    if (match)
        return match;
    match = pcre2_match_data_create(1, NULL);
    if (match && pthread_setspecific(match_key, match) != 0) {
        pcre2_match_data_free(match);
        return NULL;
    }
    return match;
}

// ---- life ----

static pcre2_match_context *make_limits(void) {
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    if (!limits)
        return NULL;
    pcre2_set_match_limit(limits, PATTERN_STEPS_MAX);
    pcre2_set_depth_limit(limits, PATTERN_DEPTH_MAX);
    pcre2_set_heap_limit(limits, PATTERN_HEAP_KIB_MAX);
    return limits;
}

static bool fail(struct pattern_error *error, size_t offset, const char *problem) {
    snprintf(error->problem, sizeof error->problem, "%s", problem);
    error->offset = offset;
    return false;
}

static bool compile(
        struct pattern *pattern, struct view text, bool ignore_case, struct pattern_error *error) {
    uint32_t options = PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOTALL |
                       PCRE2_DOLLAR_ENDONLY | (ignore_case ? PCRE2_CASELESS : 0);
    int number;
    size_t offset;
    pattern->code = pcre2_compile((PCRE2_SPTR)text.data, text.length, options, &number, &offset, NULL);
    if (pattern->code)
        return true;
    unsigned char words[PATTERN_PROBLEM_BYTES] = "";
    pcre2_get_error_message(number, words, sizeof words);
    return fail(error, offset < text.length ? offset : text.length, (const char *)words);
}

struct pattern *pattern_new(struct view text, bool ignore_case, struct pattern_error *error) {
    *error = (struct pattern_error){.offset = 0};
    if (text.length > PATTERN_BYTES_MAX) {
        fail(error, PATTERN_BYTES_MAX, "it is longer than 4096 bytes");
        return NULL;
    }
    struct pattern *pattern = calloc(1, sizeof *pattern);
    if (!pattern || !(pattern->limits = make_limits())) {
        fail(error, 0, "out of memory");
        pattern_free(pattern);
        return NULL;
    }
    if (!compile(pattern, text, ignore_case, error)) {
        pattern_free(pattern);
        return NULL;
    }
    pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE); // without it the match is interpreted
    return pattern;
}

void pattern_free(struct pattern *pattern) {
    if (!pattern)
        return;
    pcre2_code_free(pattern->code);
    pcre2_match_context_free(pattern->limits);
    free(pattern);
}

// ---- use ----

static int run(
        const struct pattern *pattern, struct view subject, uint32_t options, pcre2_match_data *match) {
    const char *data = subject.data ? subject.data : "";
    return pcre2_match(pattern->code, (PCRE2_SPTR)data, subject.length, 0, options, match, pattern->limits);
}

enum pattern_match pattern_match(const struct pattern *pattern, struct view subject) {
    pcre2_match_data *match = match_of_thread();
    if (!match)
        return PATTERN_GAVE_UP;
    int result = run(pattern, subject, 0, match);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) // machine code has 32 KiB of stack, the interpreter more
        result = run(pattern, subject, PCRE2_NO_JIT, match);
    if (result >= 0) // 0: more groups than there is room for
        return PATTERN_MATCHES;
    return result == PCRE2_ERROR_NOMATCH ? PATTERN_DIFFERS : PATTERN_GAVE_UP;
}

size_t pattern_bytes(const struct pattern *pattern) {
    size_t code = 0, machine = 0;
    pcre2_pattern_info(pattern->code, PCRE2_INFO_SIZE, &code);
    pcre2_pattern_info(pattern->code, PCRE2_INFO_JITSIZE, &machine);
    return sizeof *pattern + code + machine;
}

void pattern_report(struct config_errors *errors, const struct directive *directive, unsigned word,
        const struct pattern_error *error) {
    struct config_word place = directive->words[word];
    struct directive there = *directive;
    place.column += (unsigned)error->offset;
    there.words = &place;
    there.word_count = 1;
    config_error(errors, &there, 0, "\"%.80s\" is no regular expression: %s, at byte %zu of it",
            directive->words[word].text, error->problem, error->offset + 1);
}
