// acl masks held against URLs that the store names, and not against requests: for `weir purge --mask` and
// urlmask lines. There is no destination then: a mask of an address means URLs whose host it is. Pure.
#pragma once

#include "acl/acl.h"

// False: no URL, and no mask matches it. Views are borrowed.
bool url_mask_request(struct acl_request *request, struct view authority, struct view path);
bool url_mask_matches(const struct acl_mask *mask, struct view authority, struct view path);
