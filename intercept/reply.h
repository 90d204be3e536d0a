// weir's own answers: short pages for errors and refusals.
#pragma once

#include "intercept/session.h"

// Composes the page into `out`, closes after it, and goes to finish. `text` is a sentence (plain text;
// escaped here); `detail` may be empty. Allowed once a request, and only before any part of a response head
// was written. Returns RUN_NEXT.
enum run reply_page(struct session *session, int status, enum result result, const char *reason,
        const char *text, struct view detail);

// A head alone with extra field lines ("Allow: GET\r\n"), no content.
enum run reply_head(
        struct session *session, int status, enum result result, const char *reason, const char *fields);
