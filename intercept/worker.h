// A worker: one thread, one loop, one listening socket for each listen point, its sessions and its upstream
// connections. A session lives and dies on its worker.
#pragma once

#include "admin/counter.h"
#include "intercept/daemon.h"
#include "intercept/loop.h"
#include "intercept/settings.h"

struct worker;

// `sockets` are this worker's listening sockets, one for each point of daemon->listen, taken over.
struct worker *worker_new(
        struct daemon *daemon, unsigned number, struct settings *settings, const int *sockets);
int worker_start(struct worker *worker); // the thread; 0 or -errno
// From any thread. New sessions use `settings` (a reference is taken); running ones keep theirs.
void worker_reload(struct worker *worker, struct settings *settings);
// From any thread. Stops accepting, closes idle connections, lets running requests end with Connection:
// close; at `until_ms` (monotonic) what still runs is cut. worker_idle turns true when nothing is left.
void worker_drain(struct worker *worker, int64_t until_ms);
bool worker_idle(const struct worker *worker);
void worker_stop(struct worker *worker); // ends the thread and joins it
void worker_free(struct worker *worker);

// The loop's last round began at (monotonic ms): for the watchdog. Any thread.
int64_t worker_heartbeat_ms(const struct worker *worker);
struct counter_row *worker_counters(struct worker *worker);
