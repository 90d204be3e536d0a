// Every rule of a policy as it was written and where, so that a verdict can name it. 12 bytes a rule besides
// its text.
#pragma once

#include "acl/acl.h"
#include "acl/pool.h"

#define RULE_NONE UINT32_MAX
#define RULE_TEXT_MAX UINT16_MAX // bytes of a rule's text; longer ones are cut for display
#define RULE_FILES_MAX UINT16_MAX

struct rule {
    uint32_t text; // offset into the pool
    uint32_t line;
    uint16_t length, file;
};

struct rule_list {
    struct pool pool; // the texts; tables may keep offsets into it
    struct rule *rules;
    size_t count, capacity;
    char **files;
    size_t file_count;
};

void rule_list_init(struct rule_list *list);
void rule_list_fini(struct rule_list *list);

// Adds "VERB WORD". The rule's number, or RULE_NONE when out of memory.
uint32_t rule_list_add(
        struct rule_list *list, const char *verb, struct view word, const char *file, unsigned line);
void rule_list_trim(struct rule_list *list); // once nothing more is added
size_t rule_list_bytes(const struct rule_list *list);

// "VERB WORD" as it was written, and its file.
struct view rule_text(const struct rule_list *list, uint32_t rule);
const char *rule_file(const struct rule_list *list, uint32_t rule);

// Fills `match`, which may be NULL; RULE_NONE empties it.
void rule_match(const struct rule_list *list, uint32_t rule, struct acl_match *match);
