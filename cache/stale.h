// What a response past its lifetime may still do, [RFC 9111 §4.2.4], [RFC 5861]. Pure: time is an argument.
#pragma once

#include "cache/stored_head.h"
#include "http/cache_control.h"

// Whether it may be used now while the origin is asked behind the client's back [RFC 5861 §3].
bool stale_while_refreshing(
        const struct stored_head *head, const struct cache_control *request, struct moment now);

enum trouble {
    TROUBLE_ANSWER,       // the origin answers with an error of its own [RFC 5861 §4]
    TROUBLE_DISCONNECTED, // it cannot be reached, or broke off [RFC 9111 §4.2.4]
};

// Whether it may stand in for the origin.
bool stale_on_trouble(const struct stored_head *head, const struct cache_control *request, struct moment now,
        enum trouble trouble);
