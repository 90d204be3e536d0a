// The control socket: a local stream socket, 0600, on which `weir stats`, `purge`, `explain`, `reload`,
// `drain` and `stop` talk to the running daemon. One request line; the answer is text: `ok` or `error: why`
// on the first line, then what is to be printed; the end of the stream ends it. Runs on the main thread's
// loop; at most 16 peers at once, one that is slow is cut off after 10 seconds.
#pragma once

#include "admin/view.h"
#include "intercept/loop.h"

#include <stdio.h>

#define CONTROL_REQUEST_BYTES 20000 // a line with its newline

struct control;

struct control_reply {
    FILE *out; // in memory; begins with "ok\n" or "error: ...\n"
    bool hold; // keep the connection open until control_close: its end tells that the daemon is gone
};

// Answers one request, without its newline.
typedef void control_handler(void *context, struct view request, struct control_reply *reply);

// Binds and listens, before the process changes its user. A socket file that nobody answers at is replaced.
// NULL with *error: EADDRINUSE when another daemon answers there, EEXIST when the path is no socket.
struct control *control_open(const char *path, int *error);
// From now on peers are answered; `control` must be closed before `loop` is freed.
void control_serve(struct control *control, struct loop *loop, control_handler *handler, void *context);
void control_close(struct control *control); // removes the socket file if it is still ours; NULL is allowed

// The other side: sends `request` (without newline), writes what comes after the first line to `out`. 0, or
// -errno with nothing written (-ENOENT, -ECONNREFUSED, -EACCES: no daemon to talk to; -ETIMEDOUT), or 1 when
// the daemon answered `error: why`, which is then in `why`.
int control_ask(const char *path, const char *request, int64_t timeout_ms, FILE *out, char *why, size_t size);

// A command that asks the daemon of its configuration and prints what it answers. The exit status.
struct command_call;
int control_run(const struct command_call *call, const char *request);
