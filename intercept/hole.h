// What is missing in a stored response while it is delivered: the session begins fetches of it, several at
// once, and a little ahead of the client. They belong to the store, as every fetch does.
#pragma once

#include "intercept/session.h"

enum hole_outcome {
    HOLE_FILLS, // look again: a fetch was begun
    HOLE_RESTS, // not yet: wait; hole_rest() says until when
    HOLE_STAYS, // it was tried often enough, or the origin may not be asked
};

// The reader stands before a hole.
enum hole_outcome hole_fill(struct session *session);
// The session waits: its deadline becomes that of the next try, unless the client owes something.
void hole_rest(struct session *session);
// The session was woken, by whatever: that deadline does not hold any more.
void hole_wake(struct session *session);
// Begins fetches of what is missing ahead of the reader. Cheap, for every run of the step.
void hole_look_ahead(struct session *session);
// What the origin has now is another representation: no more of this one is to be had.
void hole_refuse(struct session *session);
// A fetch ends: its place is free, the session is woken.
void hole_end(struct session *session, struct fetch *fetch);
// The request is over: what it began no longer belongs to it.
void hole_leave(struct request *request);
