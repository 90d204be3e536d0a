// Names of forward requests, looked up through c-ares on the worker's own loop (the only door to c-ares).
// Intercepted requests never come here.
#pragma once

#include "admin/address.h"
#include "intercept/loop.h"

struct names;       // one a worker
struct names_query; // one look-up under way

// `answer` is called on the loop's thread, once, with `count` (at most 16) addresses in the order in which to
// try them [RFC 6724], or count 0 and a static sentence that says why. Not called after names_cancel. May be
// called before names_resolve returns NULL (an address literal or a hosts-file entry answers at once). The
// query is gone once it was answered: it must not be cancelled then.
typedef void names_answer(void *owner, const struct address *addresses, unsigned count, const char *why);

// Each query is answered within `timeout_ms`. The servers of /etc/resolv.conf, looked at again when the file
// changes. NULL without memory.
struct names *names_new(struct loop *loop, int64_t timeout_ms);
void names_free(struct names *names); // answers what is still open with count 0
// At most 256 queries a worker at once; one more is answered at once with count 0.
struct names_query *names_resolve(struct names *names, struct view host, names_answer *answer, void *owner);
void names_cancel(struct names_query *query); // NULL is allowed

// Other servers than the system's: "192.0.2.1:53,[2001:db8::1]:53". For tests. False when malformed.
bool names_set_servers(struct names *names, const char *servers);
