// A set of masks, each filed where it is found fastest: addresses in a prefix table, domains in a domain set,
// everything else in the gram index.
#pragma once

#include "acl/mask.h"
#include "acl/rule.h"

struct mask_set;

// `rules` outlives the set and holds the names of its domains. NULL: out of memory.
struct mask_set *mask_set_new(struct rule_list *rules);
void mask_set_free(struct mask_set *set);

// Takes the mask of this rule. False when out of memory.
bool mask_set_add(struct mask_set *set, struct mask *mask, uint32_t rule);
bool mask_set_finish(struct mask_set *set); // before the first look-up; false when out of memory

// A rule that matches one of the URLs, or RULE_NONE. The name's URL goes first; for each the longest prefix
// or the longest domain, then the earliest of the other masks.
uint32_t mask_set_find(const struct mask_set *set, const struct url_list *urls);

// The same for one of them, and for the addresses and prefixes alone.
uint32_t mask_set_find_one(const struct mask_set *set, const struct url *url);
uint32_t mask_set_find_address(const struct mask_set *set, const struct url *url);

// A rule of this finished set that matches whatever `mask` matches under a name (under its addresses, for an
// address), as far as that can be told from the masks alone; else RULE_NONE.
uint32_t mask_set_cover(const struct mask_set *set, const struct mask *mask);

bool mask_set_is_empty(const struct mask_set *set);
size_t mask_set_bytes(const struct mask_set *set);
