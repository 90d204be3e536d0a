// `weir explain`: walks a request that nobody has sent past the same decisions as one that arrives, without
// any of their effects: who may ask, which rule holds for the URL, what is stored, and what would be answered
// or asked of the origin.
//
// Over the control socket it is one line, its words separated by tabs: explain, text or json, URL, METHOD,
// CLIENT, DESTINATION and any number of "Name: value" fields. CLIENT and DESTINATION may be empty: without
// the former nobody is held against allow and deny; without the latter it is told of every destination under
// which the URL is stored, at most EXPLAIN_DESTINATIONS_MAX.
#pragma once

#include "acl/acl.h"
#include "cache/cache.h"
#include "http/head.h"
#include "intercept/supervisor.h"

#include <stdio.h>

// Answers "explain ..." in the form of the control socket.
void explain_answer(const struct supervisor *supervisor, struct view request, FILE *out);

// IP or IP:PORT, as --destination takes it; IPv6 with a port stands in brackets.
bool explain_read_destination(struct view text, struct endpoint *destination);

// ---- for explain_print.c ----

struct explained { // the request
    struct view url, method;
    struct view authority, path; // normalised, as it is filed
    bool has_client;
    struct address client;
    enum acl_verdict client_verdict;
    struct acl_match client_rule;
    unsigned destination_count; // all under which it is stored
};

struct explained_place { // one destination
    bool is_known;       // else it is told what holds whatever the destination
    bool is_own;         // the gateway itself
    struct endpoint destination;
    enum acl_verdict verdict;
    struct acl_match rule;
    bool is_never_stored; // no_cache
    struct acl_match store_rule;
    bool gave_up;                    // an expression of refresh_pattern did
    const struct directive *refresh; // the refresh_pattern, or its default, that holds; NULL: none
    bool is_refused;                 // some verdict keeps it from the store and from the origin
    struct cache_explanation cache;
};

struct explain_writer {
    void (*begin)(const struct explained *explained, FILE *out);
    void (*place)(const struct explained *explained, const struct explained_place *place, unsigned number,
            FILE *out);
    void (*end)(const struct explained *explained, FILE *out);
};
extern const struct explain_writer explain_text, explain_json;
