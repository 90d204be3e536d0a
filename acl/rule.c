#include "acl/rule.h"

#include <stdlib.h>
#include <string.h>

void rule_list_init(struct rule_list *list) {
    *list = (struct rule_list){0};
    pool_init(&list->pool);
}

void rule_list_fini(struct rule_list *list) {
    for (size_t i = 0; i < list->file_count; i++)
        free(list->files[i]);
    free(list->files);
    free(list->rules);
    pool_fini(&list->pool);
}

// The number of a file's name. Rules come file by file, so the search is from the last one.
static bool intern_file(struct rule_list *list, const char *file, uint16_t *number) {
    for (size_t i = list->file_count; i-- > 0;)
        if (strcmp(list->files[i], file) == 0) {
            *number = (uint16_t)i;
            return true;
        }
    if (list->file_count == RULE_FILES_MAX)
        return false;
    char **grown = realloc(list->files, (list->file_count + 1) * sizeof *grown);
    if (!grown)
        return false;
    list->files = grown;
    grown[list->file_count] = strdup(file);
    if (!grown[list->file_count])
        return false;
    *number = (uint16_t)list->file_count++;
    return true;
}

static bool reserve_rule(struct rule_list *list) {
    if (list->count < list->capacity)
        return true;
    size_t capacity = list->capacity ? list->capacity + list->capacity / 2 : 16;
    struct rule *grown = capacity < RULE_NONE ? realloc(list->rules, capacity * sizeof *grown) : NULL;
    if (!grown)
        return false;
    list->rules = grown;
    list->capacity = capacity;
    return true;
}

uint32_t rule_list_add(
        struct rule_list *list, const char *verb, struct view word, const char *file, unsigned line) {
    struct rule rule = {.line = line};
    struct view start = view_of(verb);
    uint32_t offset;
    word = view_take(word, RULE_TEXT_MAX - start.length - 1);
    if (!reserve_rule(list) || !intern_file(list, file, &rule.file) ||
            !pool_add(&list->pool, start, &rule.text) || !pool_add(&list->pool, VIEW(" "), &offset) ||
            !pool_add(&list->pool, word, &offset))
        return RULE_NONE;
    rule.length = (uint16_t)(start.length + 1 + word.length);
    list->rules[list->count] = rule;
    return (uint32_t)list->count++;
}

void rule_list_trim(struct rule_list *list) {
    pool_trim(&list->pool);
    struct rule *fitting = list->count ? realloc(list->rules, list->count * sizeof *fitting) : NULL;
    if (fitting) {
        list->rules = fitting;
        list->capacity = list->count;
    }
}

size_t rule_list_bytes(const struct rule_list *list) {
    return list->pool.capacity + list->capacity * sizeof *list->rules;
}

struct view rule_text(const struct rule_list *list, uint32_t rule) {
    return pool_text(&list->pool, list->rules[rule].text, list->rules[rule].length);
}

const char *rule_file(const struct rule_list *list, uint32_t rule) {
    return list->files[list->rules[rule].file];
}

void rule_match(const struct rule_list *list, uint32_t rule, struct acl_match *match) {
    if (!match)
        return;
    *match = (struct acl_match){.rule = VIEW("")};
    if (rule != RULE_NONE)
        *match = (struct acl_match){rule_text(list, rule), rule_file(list, rule), list->rules[rule].line};
}
