// The head of a response to the client: what becomes of what the store has, and how the client learns where
// it ends.
#pragma once

#include "intercept/session.h"

// What kind of answer it becomes, the request's conditions and range being held against what the store has.
enum answer { ANSWER_WHOLE, ANSWER_NOT_MODIFIED, ANSWER_FAILED, ANSWER_RANGE, ANSWER_UNSATISFIABLE };

// Holds the request's conditions and ranges against what the reader has, and notes the result.
// ANSWER_RANGE: request->parts are the ranges; else it is NULL. False without memory.
bool deliver_head_choose(struct session *session, enum answer *answer);

// Writes the head to `out`; says in the request how the content is framed, and whether there is any. False
// without memory.
bool deliver_head_compose(struct session *session, enum answer answer);
