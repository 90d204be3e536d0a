// What the tests of acl/ share: a policy from lines of configuration, a request from the text of a URL.
#pragma once

#include "acl/acl.h"

// Fails the running case when the lines are refused.
struct acl *policy_of(const char *lines);

// The errors of lines that are refused, a line each; freed by the caller. Fails the case when they are taken.
char *policy_errors(const char *lines);

struct request_text {
    char bytes[512];
};

// "SCHEME://HOST[:PORT][/PATH]"; the views point into `text`. Without and with a destination.
struct acl_request request_of_url(struct request_text *text, const char *url);
struct acl_request request_to(struct request_text *text, const char *url, const char *address, uint16_t port);

// Reproducible numbers.
uint32_t random_below(uint64_t *state, uint32_t bound);
