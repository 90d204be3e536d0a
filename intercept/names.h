// Names of forward requests, looked up through c-ares on the worker's own loop (the only door to c-ares).
// Intercepted requests never come here.
#pragma once

#include "admin/address.h"
#include "intercept/loop.h"

struct names;       // one a worker
struct names_query; // one look-up under way

// `own` is called on the loop's thread, once, with up to `count` addresses in the resolver's order, or count
// 0 and a static sentence that says why. Not called after names_cancel. May be called before names_resolve
// returns NULL (an address literal or a hosts-file entry answers at once).
typedef void names_answer(void *owner, const struct address *addresses, unsigned count, const char *why);

struct names *names_new(struct loop *loop, int64_t timeout_ms); // NULL without memory or a usable resolver
void names_free(struct names *names);
struct names_query *names_resolve(struct names *names, struct view host, names_answer *answer, void *owner);
void names_cancel(struct names_query *query); // NULL is allowed
