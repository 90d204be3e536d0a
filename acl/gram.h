// An index over masks with wildcards: which of ten thousand could match this URL? Each mask is filed under
// one short run of its literal bytes (a gram of 6, else of 3), the one with the fewest masks so far; a URL's
// own grams then lead to the few masks that are worth matching. Masks with no run of 3 are tried on every
// URL.
//
// A look-up costs one probe a byte of the URL, and one match for each mask whose gram occurs; no mask is
// tried twice. The index is blind to case; the match itself is not.
#pragma once

#include "acl/mask.h"

#define GRAM_NONE UINT32_MAX

struct gram_index;

struct gram_index *gram_index_new(void); // NULL: out of memory
void gram_index_free(struct gram_index *index);

// Takes the mask (MASK_PLACE or MASK_ANYWHERE), also when it fails: false when out of memory.
bool gram_index_add(struct gram_index *index, struct mask *mask, uint32_t value);

// The value of the first mask, in the order they were added, that matches; else GRAM_NONE.
uint32_t gram_index_find(const struct gram_index *index, const struct url *url);

// The value of a mask that is the same, or that is `*`; else GRAM_NONE.
uint32_t gram_index_equal(const struct gram_index *index, const struct mask *mask);
uint32_t gram_index_everything(const struct gram_index *index);

size_t gram_index_count(const struct gram_index *index);
size_t gram_index_bytes(const struct gram_index *index); // with the masks
