// Responses of which only parts are stored [RFC 9111 §3.3, §3.4]: a 206 stored as what it is, or a 200 that
// broke off. Such an object has the head that the whole would have, its complete length, and spans of the
// content; it serves requests for ranges within them. When the spans cover all it is as good as a whole.
// Parts are combined under an equal strong validator and an equal complete length alone: without, the later
// one replaces.
#pragma once

#include "cache/store.h"
#include "http/range.h"

// Whether the stored object has all that this request would be sent of it, or is about to.
bool partial_serves(const struct cache_object *object, const struct cache_query *query);

// The same for one that still arrives, whose head is there; what is close may be waited for.
bool partial_will_serve(struct cache_object *object, const struct cache_query *query);

// Whether a fill that goes out with the one request's Range can answer the other request.
bool partial_is_alike(const struct http_head *a, const struct http_head *b);

// Whether the two are of the same representation, octet for octet: ETag compared strongly, else an equal
// Last-Modified that is strong in both [RFC 9110 §8.8.2.2].
bool partial_is_same(const struct http_head *a, const struct http_head *b);

// The first hole in what this request would be sent of the stored object, when the origin can be asked for
// it: there is a strong validator, and the origin has shown that it answers ranges. `flow`: as body_find_hole
// has it. False: there is none that nobody fills yet.
bool partial_find_hole(const struct cache_object *object, const struct cache_query *query, struct flow *flow,
        struct body_hole *hole);
// Whether the origin can be asked for what a reader of the object misses. Of what was stored as a whole, and
// is not to be had from its disk any more: also an origin of which it is not known that it answers ranges;
// the whole that it gives then fills the hole as well.
bool partial_can_ask(struct cache_object *object);
// Whether some of what the request would be sent lies within `hole`.
bool partial_wants(
        const struct cache_object *object, const struct cache_query *query, const struct body_hole *hole);

// The fill's response is about to be published under `head`, and may be stored: when the index has a part of
// the same representation, they share the body from now on. The shard's lock is held, and stays so until the
// head is published: of two that come at once one must find the other. Returns the body that it had before,
// to be put without the lock; NULL: it keeps it.
struct body *partial_choose_body(struct cache_fill *fill, const struct stored_head *head);
// Whether parts under this head can be told from those of another representation.
bool partial_is_provable(const struct stored_head *head);
// Of a 206's: the head that the whole would have; freed with free().
struct stored_head *partial_whole_head(const struct stored_head *head);

// A 206 as the head of the whole it is a part of: 200 and without Content-Range. `whole->fields` is heap
// memory: free it.
void partial_read_head(struct http_head *whole, const struct http_head *partial);

// The fill ends, and what has arrived is a part of a response, or completes one: takes it into what is
// stored. `is_broken`: it ends before its time; a whole that is stored stays then. The fill leaves the index.
void partial_store(struct cache_fill *fill, bool is_broken);
// Whether a fill that breaks off leaves something that can be proven and completed.
bool partial_is_kept(const struct cache_fill *fill);
