// The conditional fields and entity tags, [RFC 9110 §13, §8.8].
#pragma once

#include "http/head.h"

enum condition {
    CONDITION_NONE,         // answer as if there were no condition
    CONDITION_NOT_MODIFIED, // 304
    CONDITION_FAILED,       // 412
};

// Evaluates If-Match, If-None-Match, If-Modified-Since and If-Unmodified-Since of a GET or HEAD request
// against the stored response's validators, in the order of [RFC 9110 §13.2.2]. `now_s` is for date parsing
// alone. If-None-Match also knows a tag that has lost its quotes, or says "w/"; If-Match does not.
enum condition condition_evaluate(
        const struct http_head *request, const struct http_head *response, int64_t now_s);

// Whether If-Range lets the Range apply: true without If-Range [RFC 9110 §13.1.5] (strong comparison; a date
// must be equal to Last-Modified).
bool condition_range_applies(
        const struct http_head *request, const struct http_head *response, int64_t now_s);

// Whether Last-Modified tells the representation octet for octet: it is at least a second before Date [RFC
// 9110 §8.8.2.2]. Both said once and in full, since without a clock a year of two digits is none.
bool condition_has_strong_date(const struct http_head *response);

// Entity tags: weak and strong comparison [RFC 9110 §8.8.3.2]. False for malformed ones.
bool etag_equal_weak(struct view a, struct view b);
bool etag_equal_strong(struct view a, struct view b);
