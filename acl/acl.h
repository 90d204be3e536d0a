// Access policy: who may use the gateway's proxy, and which URLs and destinations are refused. Built once
// from a configuration, then never changed and shared by all threads; a reload builds another. Pure: no
// clock, no I/O. Tables are made for a million entries: a look-up costs no more with a million than with ten.
#pragma once

#include "admin/address.h"
#include "admin/config.h"
#include "admin/view.h"

#include <stdbool.h>

struct acl; // immutable

enum acl_verdict {
    ACL_ALLOW, // goes on
    ACL_DENY,  // the client may not use the proxy: 403 Cache access denied
    ACL_BLOCK, // the URL or destination is refused: 403 with a page that names the rule
};

// Which rule decided. `rule` is empty when none did (the default).
struct acl_match {
    struct view
            rule; // as it was written: "deny 10.1.0.0/16", "block ads.example.com"; lives as long as the acl
    const char *file;
    unsigned line;
};

// What is asked for. Views are borrowed for the call. Any of them may be empty (a tunnel has only a
// destination).
struct acl_request {
    struct view scheme; // "http"
    struct view host;   // of Host or the target, as sent: any case, trailing dot, brackets round IPv6
    uint16_t port;      // of Host or the target; 0: the scheme's own
    struct view path;   // path and query, as sent
    struct endpoint destination; // original destination, or the resolved address of a forward request
};

// Builds the policy from allow, deny, block, pass and no_cache. NULL with errors added when a rule is
// malformed or can never match. Every bad rule is reported, not only the first.
struct acl *acl_new(const struct config *config, struct config_errors *errors);
void acl_free(struct acl *acl); // NULL is allowed

// Who: ACL_ALLOW or ACL_DENY. The longest matching prefix of allow and deny decides (one that stands in both
// is refused by acl_new); with none matching: deny when there is any allow, else allow.
enum acl_verdict acl_client(const struct acl *acl, const struct address *client, struct acl_match *match);

// What: ACL_ALLOW or ACL_BLOCK. Masks (grammar: mask.h) are held against the normalised URL (url.h: host in
// lower case, no trailing dot, percent-encoding undone, dot segments resolved), and against the same URL with
// the original destination as its host, so that neither a spelling nor an innocent Host gets past. pass wins
// over block, with one exception: a client chooses its Host, so a pass that only the name matches does not
// lift a block of the destination's address or prefix; a pass of the address does. `match` names the rule
// that decided, a pass too.
enum acl_verdict acl_url(const struct acl *acl, const struct acl_request *request, struct acl_match *match);

// Whether no_cache forbids storing this URL.
bool acl_no_cache(const struct acl *acl, const struct acl_request *request);
// The same, with the rule that does.
bool acl_no_cache_rule(const struct acl *acl, const struct acl_request *request, struct acl_match *match);

// One mask by itself, for access_log MASK PATH. NULL: malformed, `why` says what is wrong.
struct acl_mask;
struct acl_mask *acl_mask_new(const char *text, const char **why);
bool acl_mask_matches(const struct acl_mask *mask, const struct acl_request *request);
void acl_mask_free(struct acl_mask *mask);

// Rules, and the memory they take, for `weir stats` and tests.
size_t acl_count(const struct acl *acl);
size_t acl_bytes(const struct acl *acl);

// Builds the policy and drops it: what `weir check` reports of it. Whether there was no error.
bool acl_validate(const struct config *config, struct config_errors *errors);
