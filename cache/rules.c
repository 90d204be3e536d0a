#include "cache/rules.h"

#include <string.h>

static const char *const words[] = {
#define REFRESH_OPTION(member, word, meaning) word,
#include "cache/refresh_option.tbl"
};

const char *rules_option_word(enum refresh_option option) {
    return words[option];
}

enum refresh_option rules_option(const char *reason) {
    unsigned option = 0;
    while (option < REFRESH_OPTION_COUNT && strcmp(words[option], reason) != 0)
        option++;
    return (enum refresh_option)option;
}

static struct view type_of(struct view content_type) {
    return view_trim(view_take(content_type, view_find(content_type, ';')));
}

static bool is_type(const struct response_rule *rule, struct view type) {
    if (rule->type.length == 0)
        return true;
    bool is_class = rule->type.data[rule->type.length - 1] == '/';
    return is_class ? view_starts_fold(type, rule->type) : view_equal_fold(type, rule->type);
}

bool rules_store_response(const struct cache_rules *rules, int status, struct view content_type) {
    struct view type = type_of(content_type);
    for (size_t i = 0; i < rules->response_count; i++) {
        const struct response_rule *rule = &rules->responses[i];
        if ((rule->status == 0 || rule->status == status) && is_type(rule, type))
            return rule->is_stored;
    }
    return true;
}

static bool is_class(const struct http_head *response, struct view class) {
    const struct http_field *field = http_field_find(response, FIELD_CONTENT_TYPE, 0);
    return field && view_starts_fold(field->value, class);
}

bool rules_ignore_no_cache(const struct cache_rules *rules, const struct http_head *response) {
    switch (rules ? rules->no_cache : NO_CACHE_OBEYED) {
    case NO_CACHE_OBEYED:
        return false;
    case NO_CACHE_IGNORED:
        return true;
    case NO_CACHE_IGNORED_OF_IMAGES:
        return is_class(response, VIEW("image/"));
    case NO_CACHE_IGNORED_BUT_TEXT:
        return http_field_find(response, FIELD_CONTENT_TYPE, 0) && !is_class(response, VIEW("text/"));
    case NO_CACHE_IGNORED_BUT_REDIRECTS:
        return !http_field_find(response, FIELD_LOCATION, 0);
    }
    return false;
}
