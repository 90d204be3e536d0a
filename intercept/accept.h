// Takes connections from the listening sockets, within the limits.
#pragma once

#include "intercept/worker.h"

void accept_ready(struct watch *watch, int events); // a listener's watch
void accept_resume(struct worker *worker);
// A session for a connection that was taken from `listener`, or its end when the client has too many. Takes
// over `fd`.
void accept_connection(
        struct listener *listener, int fd, const struct endpoint *peer, const struct endpoint *local);

// A worker's room_letter (worker_ask_for_room).
void accept_make_room(struct letter *letter);

// A client left: its place is free for another.
void accept_release(struct worker *worker, const struct address *client);
