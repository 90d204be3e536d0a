#include "acl/mask_set.h"

#include "acl/domain.h"
#include "acl/glob.h"
#include "acl/gram.h"
#include "acl/prefix.h"
#include "admin/check.h"

#include <stdlib.h>

// The tables' values are rules, and so is their "none".
_Static_assert(PREFIX_NONE == RULE_NONE, "of prefixes");
_Static_assert(DOMAIN_NONE == RULE_NONE, "of domains");
_Static_assert(GRAM_NONE == RULE_NONE, "of grams");

struct mask_set {
    struct rule_list *rules;
    struct prefix_table *prefixes;
    struct domain_set *domains;
    struct gram_index *grams;
    size_t prefix_count;
};

struct mask_set *mask_set_new(struct rule_list *rules) {
    struct mask_set *set = calloc(1, sizeof *set);
    if (!set)
        return NULL;
    set->rules = rules;
    set->prefixes = prefix_table_new();
    set->domains = domain_set_new(&rules->pool);
    set->grams = gram_index_new();
    if (set->prefixes && set->domains && set->grams)
        return set;
    mask_set_free(set);
    return NULL;
}

void mask_set_free(struct mask_set *set) {
    if (!set)
        return;
    prefix_table_free(set->prefixes);
    domain_set_free(set->domains);
    gram_index_free(set->grams);
    free(set);
}

// The name is usually how the rule's text ends already; then it costs no bytes of its own.
static bool add_domain(struct mask_set *set, const struct mask *mask, uint32_t rule) {
    struct view name = mask->host, text = rule_text(set->rules, rule);
    struct domain_scope scope = {.port = mask->port, .below_only = mask->below_only};
    uint32_t offset = set->rules->rules[rule].text;
    size_t before = text.length >= name.length ? text.length - name.length : 0;
    if (view_equal(view_skip(text, before), name))
        offset += (uint32_t)before;
    else if (!pool_add(&set->rules->pool, name, &offset))
        return false;
    return domain_set_add(set->domains, offset, name.length, scope, rule);
}

bool mask_set_add(struct mask_set *set, struct mask *mask, uint32_t rule) {
    bool done = false;
    switch (mask->kind) {
    case MASK_ADDRESS:
        done = prefix_table_add(set->prefixes, &mask->prefix, mask->bits, rule);
        set->prefix_count++;
        break;
    case MASK_DOMAIN:
        done = add_domain(set, mask, rule);
        break;
    case MASK_PLACE:
    case MASK_ANYWHERE:
        return gram_index_add(set->grams, mask, rule);
    }
    free(mask);
    return done;
}

bool mask_set_finish(struct mask_set *set) {
    domain_set_trim(set->domains);
    return prefix_table_finish(set->prefixes, NULL, NULL);
}

uint32_t mask_set_find_one(const struct mask_set *set, const struct url *url) {
    uint32_t rule = url->is_address ? prefix_table_find(set->prefixes, &url->address)
                                    : domain_set_find(set->domains, url->host, url->port, url->other_port);
    return rule == RULE_NONE && gram_index_count(set->grams) ? gram_index_find(set->grams, url) : rule;
}

uint32_t mask_set_find_address(const struct mask_set *set, const struct url *url) {
    return url->is_address ? prefix_table_find(set->prefixes, &url->address) : RULE_NONE;
}

uint32_t mask_set_find(const struct mask_set *set, const struct url_list *urls) {
    uint32_t rule = RULE_NONE;
    for (unsigned i = 0; i < urls->count && rule == RULE_NONE; i++)
        rule = mask_set_find_one(set, &urls->url[i]);
    return rule;
}

// A place whose host has no `*` is under a domain or an address as a whole.
static uint32_t cover_host(const struct mask_set *set, const struct mask *mask) {
    struct domain_scope scope = {.port = mask->port, .below_only = mask->below_only};
    struct address address;
    if (!glob_is_literal(mask->host))
        return RULE_NONE;
    if (url_host_is_address(mask->host, &address))
        return prefix_table_find(set->prefixes, &address);
    return domain_set_cover(set->domains, mask->host, scope);
}

uint32_t mask_set_cover(const struct mask_set *set, const struct mask *mask) {
    uint32_t rule = gram_index_everything(set->grams);
    if (rule != RULE_NONE)
        return rule;
    switch (mask->kind) {
    case MASK_ADDRESS:
        return prefix_table_cover(set->prefixes, &mask->prefix, mask->bits);
    case MASK_DOMAIN:
        return cover_host(set, mask);
    case MASK_PLACE:
        rule = cover_host(set, mask);
        return rule == RULE_NONE ? gram_index_equal(set->grams, mask) : rule;
    case MASK_ANYWHERE:
        return gram_index_equal(set->grams, mask);
    }
    UNREACHABLE("a mask of no kind");
}

bool mask_set_is_empty(const struct mask_set *set) {
    return set->prefix_count == 0 && domain_set_count(set->domains) == 0 && gram_index_count(set->grams) == 0;
}

size_t mask_set_bytes(const struct mask_set *set) {
    return sizeof *set + prefix_table_bytes(set->prefixes) + domain_set_bytes(set->domains) +
           gram_index_bytes(set->grams);
}
