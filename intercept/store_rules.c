#include "intercept/store_rules.h"

#include "acl/pattern.h"
#include "admin/check.h"
#include "intercept/refresh_line.h"
#include "intercept/response_line.h"

#include <stdlib.h>
#include <string.h>

#define URL_ROOM 2048 // longer ones are put together on the heap

struct refresh_pattern {
    struct pattern *pattern;
    struct refresh_rule rule;
    bool ignore_case;
    const struct directive *directive;
    const char *expression; // while building
};

struct store_rules {
    size_t pattern_count;
    struct refresh_pattern *patterns;
    const struct refresh_rule *otherwise; // NULL, or:
    struct refresh_rule default_rule;
    const struct directive *default_line;
    struct response_lines responses;
    enum store_cookies cookies;
    enum no_cache_rule no_cache;
};

struct build {
    struct store_rules *rules;
    struct config_errors *errors;
    const struct directive *default_line;
};

// ---- refresh_pattern ----

static bool is_everything(const char *text) {
    static const char *const all[] = {"", ".", ".*", "^", "^.", "^.*", "http:", "^http:", "^http://"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(text, all[i]) == 0)
            return true;
    return false;
}

// An earlier line that matches whatever this one does, as far as their texts tell.
static const struct refresh_pattern *cover_of(
        const struct store_rules *rules, const char *text, bool ignore_case) {
    for (size_t i = 0; i < rules->pattern_count; i++) {
        const struct refresh_pattern *earlier = &rules->patterns[i];
        bool is_same = strcmp(earlier->expression, text) == 0 && (earlier->ignore_case || !ignore_case);
        if (is_same || is_everything(earlier->expression))
            return earlier;
    }
    return NULL;
}

static bool is_reachable(
        struct build *build, const struct directive *directive, const struct refresh_line *line) {
    const char *text = directive->words[line->expression].text;
    const struct refresh_pattern *earlier = cover_of(build->rules, text, line->ignore_case);
    if (earlier)
        config_error(build->errors, directive, (int)line->expression,
                "\"%.80s\" can never match: \"%.80s\" at %.255s:%u matches first, put this line before it",
                text, earlier->expression, earlier->directive->file, earlier->directive->line);
    return !earlier;
}

static bool add_pattern(struct build *build, const struct directive *directive) {
    struct store_rules *rules = build->rules;
    struct refresh_line line;
    struct pattern_error error;
    bool good = refresh_line_read(directive, &line, build->errors);
    if (directive->word_count <= line.expression)
        return false;
    const char *text = directive->words[line.expression].text;
    struct pattern *pattern = pattern_new(view_of(text), line.ignore_case, &error);
    if (!pattern)
        pattern_report(build->errors, directive, line.expression, &error);
    if (!pattern || !is_reachable(build, directive, &line) || !good) {
        pattern_free(pattern);
        return false;
    }
    rules->patterns[rules->pattern_count++] = (struct refresh_pattern){.pattern = pattern,
            .rule = line.rule,
            .ignore_case = line.ignore_case,
            .directive = directive,
            .expression = text};
    return true;
}

static bool set_default(struct build *build, const struct directive *directive) {
    const struct directive *first = build->default_line;
    if (first) {
        config_error(build->errors, directive, -1,
                "default_refresh_pattern is set already at %.255s:%u, take one of the two out", first->file,
                first->line);
        return false;
    }
    build->default_line = build->rules->default_line = directive;
    build->rules->otherwise = &build->rules->default_rule;
    return refresh_line_read_default(directive, &build->rules->default_rule, build->errors);
}

// ---- building ----

static bool take(struct build *build, const struct directive *directive) {
    switch ((int)directive->id) {
    case DIRECTIVE_refresh_pattern:
        return add_pattern(build, directive);
    case DIRECTIVE_default_refresh_pattern:
        return set_default(build, directive);
    case DIRECTIVE_store_type:
    case DIRECTIVE_no_store_type:
    case DIRECTIVE_store_status:
    case DIRECTIVE_no_store_status:
        return response_lines_add(&build->rules->responses, directive, build->errors);
    default:
        return true;
    }
}

// How much room is needed; false when it is more than there may be.
static bool count_room(
        const struct config *config, size_t *patterns, size_t *responses, struct config_errors *errors) {
    *patterns = *responses = 0;
    for (size_t i = 0; i < config->directive_count; i++) {
        const struct directive *directive = &config->directives[i];
        *patterns += directive->id == DIRECTIVE_refresh_pattern;
        *responses += response_line_is_one(directive) ? directive->word_count : 0;
        if (*patterns <= STORE_RULES_PATTERNS_MAX && *responses <= STORE_RULES_RESPONSES_MAX)
            continue;
        config_error(errors, directive, -1, "more than %d %s, join some of them",
                *patterns > STORE_RULES_PATTERNS_MAX ? STORE_RULES_PATTERNS_MAX : STORE_RULES_RESPONSES_MAX,
                *patterns > STORE_RULES_PATTERNS_MAX ? "refresh_pattern lines" : "types and statuses");
        return false;
    }
    return true;
}

static struct store_rules *allocate(const struct config *config, struct config_errors *errors) {
    static const struct directive nowhere = {.file = "refresh_pattern"};
    size_t patterns, responses;
    if (!count_room(config, &patterns, &responses, errors))
        return NULL;
    struct store_rules *rules = calloc(1, sizeof *rules);
    if (rules)
        rules->patterns = calloc(patterns + 1, sizeof *rules->patterns);
    if (rules && response_lines_init(&rules->responses, responses) && rules->patterns)
        return rules;
    config_error(errors, config->directive_count ? config->directives : &nowhere, -1, "out of memory");
    store_rules_free(rules);
    return NULL;
}

struct store_rules *store_rules_new(const struct config *config, struct config_errors *errors) {
    struct build build = {.rules = allocate(config, errors), .errors = errors};
    if (!build.rules)
        return NULL;
    build.rules->cookies = (enum store_cookies)config->store_cookies;
    build.rules->no_cache = (enum no_cache_rule)config->pragma_no_cache;
    bool good = true;
    for (size_t i = 0; i < config->directive_count; i++)
        good = take(&build, &config->directives[i]) && good;
    good = good && response_lines_check(&build.rules->responses, errors);
    if (good)
        return build.rules;
    store_rules_free(build.rules);
    return NULL;
}

void store_rules_free(struct store_rules *rules) {
    if (!rules)
        return;
    for (size_t i = 0; i < rules->pattern_count; i++)
        pattern_free(rules->patterns[i].pattern);
    response_lines_fini(&rules->responses);
    free(rules->patterns);
    free(rules);
}

// ---- use ----

// The first line that matches, NULL for none. False: one gave up.
static bool find_pattern(
        const struct store_rules *rules, struct view url, const struct refresh_rule **found) {
    *found = NULL;
    for (size_t i = 0; i < rules->pattern_count; i++) {
        switch (pattern_match(rules->patterns[i].pattern, url)) {
        case PATTERN_MATCHES:
            *found = &rules->patterns[i].rule;
            return true;
        case PATTERN_DIFFERS:
            break;
        case PATTERN_GAVE_UP:
            return false;
        }
    }
    *found = rules->otherwise;
    return true;
}

static bool find_url(const struct store_rules *rules, struct view authority, struct view path,
        const struct refresh_rule **found) {
    static const char scheme[] = "http://";
    char room[URL_ROOM], *url = room;
    size_t length = sizeof scheme - 1 + authority.length + path.length;
    if (length > sizeof room && !(url = malloc(length)))
        return false;
    memcpy(url, scheme, sizeof scheme - 1);
    if (authority.length)
        memcpy(url + sizeof scheme - 1, authority.data, authority.length);
    if (path.length)
        memcpy(url + sizeof scheme - 1 + authority.length, path.data, path.length);
    bool decided = find_pattern(rules, (struct view){url, length}, found);
    if (url != room)
        free(url);
    return decided;
}

bool store_rules_find(
        const struct store_rules *rules, struct view authority, struct view path, struct cache_rules *found) {
    *found = (struct cache_rules){
            .refresh = rules->otherwise,
            .responses = rules->responses.rules,
            .response_count = rules->responses.count,
            .cookies = rules->cookies,
            .no_cache = rules->no_cache,
    };
    return rules->pattern_count == 0 || find_url(rules, authority, path, &found->refresh);
}

const struct directive *store_rules_line(const struct store_rules *rules, const struct refresh_rule *rule) {
    for (size_t i = 0; i < rules->pattern_count; i++)
        if (rule == &rules->patterns[i].rule)
            return rules->patterns[i].directive;
    return rule ? rules->default_line : NULL;
}

size_t store_rules_count(const struct store_rules *rules) {
    return rules->pattern_count + rules->responses.count;
}

size_t store_rules_bytes(const struct store_rules *rules) {
    size_t bytes =
            sizeof *rules + rules->pattern_count * sizeof *rules->patterns +
            rules->responses.count * (sizeof *rules->responses.rules + sizeof *rules->responses.places);
    for (size_t i = 0; i < rules->pattern_count; i++)
        bytes += pattern_bytes(rules->patterns[i].pattern);
    for (size_t i = 0; i < rules->responses.count; i++)
        bytes += rules->responses.rules[i].type.length;
    return bytes;
}

bool store_rules_validate(const struct config *config, struct config_errors *errors) {
    struct store_rules *rules = store_rules_new(config, errors);
    store_rules_free(rules);
    return rules != NULL;
}
