// Why the store decided as it did: the words that the access log, Cache-Status and `weir explain` show. They
// are static strings where they are given; cache/reason.tbl says what each means.
#pragma once

enum forward { // why a request went to the origin, in Cache-Status's terms [RFC 9211 §2.2]
    FORWARD_NONE,
    FORWARD_BYPASS,    // the store was not asked
    FORWARD_METHOD,    // what the method means
    FORWARD_URI_MISS,  // nothing under the URL
    FORWARD_VARY_MISS, // nothing that the request's fields select
    FORWARD_MISS,      // nothing usable, one of the two
    FORWARD_REQUEST,   // fresh, but the request does not take it
    FORWARD_STALE,     // there, but stale
    FORWARD_PARTIAL,   // there in part
};

struct reason {
    const char *word;
    enum forward forward;
    const char *meaning;
};

// NULL: the table does not have it.
const struct reason *reason_find(const char *word);
