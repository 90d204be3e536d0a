// What the configuration says about storing, beside the standards: refresh_pattern, default_refresh_pattern,
// pragma_no_cache, store_type and its kin, store_cookies. Built once from a configuration, then never changed
// and shared by all threads. Pure: no clock, no I/O.
//
// With none of these lines the standards hold alone: no refresh rule, every response that may be stored is.
#pragma once

#include "admin/config.h"
#include "cache/rules.h"

#define STORE_RULES_PATTERNS_MAX 1024  // refresh_pattern lines; some URLs are held against all of them
#define STORE_RULES_RESPONSES_MAX 1024 // types and statuses

struct store_rules;

// NULL with errors added; every bad line is reported, not only the first.
struct store_rules *store_rules_new(const struct config *config, struct config_errors *errors);
void store_rules_free(struct store_rules *rules); // NULL is allowed

// What holds for the responses of "http://AUTHORITY" and PATH, as one text: the first refresh_pattern that
// matches it, else default_refresh_pattern, else none. What `found` points to lives as long as `rules`.
// False: an expression gave up on this URL (acl/pattern.h), and `found` has no refresh rule.
bool store_rules_find(
        const struct store_rules *rules, struct view authority, struct view path, struct cache_rules *found);

// The line that a rule of store_rules_find() stands in; it is the configuration's. NULL for none.
const struct directive *store_rules_line(const struct store_rules *rules, const struct refresh_rule *rule);

size_t store_rules_count(const struct store_rules *rules); // refresh patterns and response rules
size_t store_rules_bytes(const struct store_rules *rules);

// For `weir check`.
bool store_rules_validate(const struct config *config, struct config_errors *errors);
