// One exchange with an origin: a request sent, a response filled into the store (or into a stream). It
// belongs to the fill, not to the client: the session that began it may leave, and readers on any worker go
// on.
#pragma once

#include "cache/cache.h"
#include "intercept/session.h"

// Begins the exchange for the session's request; takes `fill` over. NULL without memory (the fill stays the
// caller's).
struct fetch *fetch_begin(struct session *session, struct cache_fill *fill);

// Begins a refresh of what the session's request is answered with meanwhile [RFC 5861 §3]: a GET that belongs
// to no session and ends by its own deadlines; takes `fill` over. False without memory (the fill stays the
// caller's).
bool fetch_refresh(struct session *session, struct cache_fill *fill);

// Begins a fetch of what is missing in what the session delivers (cache_reader_fill): a GET with the store's
// own range, that tells the session of its end (hole_end) until fetch_leave_hole; takes `fill` over. NULL
// without memory (the fill stays the caller's).
struct fetch *fetch_hole(struct session *session, struct cache_fill *fill);
void fetch_leave_hole(struct fetch *fetch);

// The session needs it no longer. The exchange ends now, or goes on for the fill's other readers or as
// quick_abort.h has it.
void fetch_leave(struct fetch *fetch);

// The request body: how much may be handed over now (0: the session is woken when there is room), a run of
// content, its end with the trailer lines that may be forwarded.
size_t fetch_upload_room(struct fetch *fetch);
// Whether it is the origin that must act: to accept the connection, or to take what it was sent. The session
// is woken when it has.
bool fetch_upload_is_held(const struct fetch *fetch);
void fetch_upload(struct fetch *fetch, struct view content);
void fetch_upload_end(struct fetch *fetch, struct view trailers);

// The worker's thread has ended: every exchange is given up.
void fetch_end_all(struct worker *worker);

// lookup.c: whether the origin may be asked for this request at all.
bool lookup_may_go_out(struct session *session);
// lookup.c: goes to the origin without the store; 504 when nothing may go out for this request.
enum run lookup_alone(struct session *session, const char *reason);
