// Freshening stored responses by a 304 or by the answer to a HEAD, [RFC 9111 §3.2, §4.3.4, §4.3.5]. Pure, the
// allocation aside.
#pragma once

#include "cache/stored_head.h"
#include "http/head.h"

enum update_match { // how a 304 speaks of a stored response, in ascending order
    UPDATE_NONE,    // of another one
    UPDATE_BARE,    // it has no validator: it can only mean the one response that was asked about
    UPDATE_DATED,   // not both have an entity tag, and Last-Modified is the same; a strong one, if the 304
                    // alone has a strong tag
    UPDATE_WEAK,    // the entity tags are equal weakly (If-None-Match compares so [RFC 9110 §13.1.2], and
                    // what compresses on its way weakens the tag of a 200, but not that of a 304)
    UPDATE_STRONG,  // the entity tags are equal, and strong
};
enum update_match update_match(const struct http_head *stored, const struct http_head *not_modified);

// Which of the stored responses that were asked about the 304 confirms: the best match, among equals the most
// recent by Date. A bare one stands for the only one there is, or the only one without a validator. Its
// index, -1: none, and the 304 must change nothing [§4.3.4].
int update_choose(
        const struct stored_head *const *stored, unsigned count, const struct http_head *not_modified);

enum update_by_head {
    UPDATE_BY_HEAD_NOTHING,  // its status says nothing of the stored response
    UPDATE_BY_HEAD_FRESHENS, // no validator and no length contradicts: update_merge()
    UPDATE_BY_HEAD_STALE,    // something does: to be confirmed before its next use
};
// What the answer to a HEAD means for a stored GET response that it selects. `length`: of the stored content,
// -1 when it is not known.
enum update_by_head update_by_head(
        const struct http_head *stored, int64_t length, const struct http_head *answer);

#define UPDATE_HEAD_BYTES 131072 // of names and values

// Whether what was merged is not out of bounds: it is no larger than the stored one was, or has at most
// HTTP_FIELDS_MAX fields and UPDATE_HEAD_BYTES. Else it must not be stored: updates that bring names never
// seen before would have it grow for ever.
bool update_fits(const struct http_head *merged, const struct http_head *stored);

// The stored head with the update's fields in place of its own of the same names, without Date when the
// update has none. Left as they are: what describes the stored bytes (Content-Length, Content-Encoding,
// Content-Range, Transfer-Encoding) and the validators they have (ETag; Last-Modified too, unless both
// heads have the same strong tag, which tells them then). Hop-by-hop fields of
// the update are left out. Views point into both; `merged->fields` is heap memory: free it.
void update_merge(struct http_head *merged, const struct http_head *stored, const struct http_head *update);
