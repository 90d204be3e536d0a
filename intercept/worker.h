// A worker: one thread, one loop, one listening socket for each listen point, its sessions and its upstream
// connections. A session lives and dies on its worker.
#pragma once

#include "admin/counter.h"
#include "intercept/daemon.h"
#include "intercept/loop.h"
#include "intercept/settings.h"
#include "intercept/task.h"
#include "intercept/upstream.h"

struct names;
struct session;

struct listener {
    struct worker *worker;
    const struct listen_point *point;
    int fd;
    struct watch watch;
};

// Fields belong to the worker's own thread unless said otherwise.
struct worker {
    struct daemon *daemon;
    unsigned number;
    struct loop *loop;
    pthread_t thread;
    bool started;
    struct counter_row counters;
    struct settings *settings; // for new sessions
    struct listener listeners[LISTEN_MAXIMUM];
    unsigned listener_count;
    bool accept_paused;
    struct deadline accept_again;
    struct deadline tick;
    struct task *tasks; // marked ones, in order
    struct task **tasks_end;
    unsigned round;
    struct session *sessions; // all; the newest first
    unsigned session_count;
    struct upstream_pool pool;
    struct names *names; // made when first needed
    bool draining;
    int64_t drain_until_ms;
    struct fetch *fetches;                     // all
    char scratch[65536];                       // one read from an origin
    struct http_field fields[HTTP_FIELDS_MAX]; // of the head being parsed
    // from other threads
    struct letter reload_letter, drain_letter, room_letter;
    pthread_mutex_t lock; // of the two below
    struct settings *next_settings;
    int64_t next_drain_until_ms;
    _Atomic int64_t heartbeat_ms;
    _Atomic bool idle;
};

// `sockets` are this worker's listening sockets, one for each point of daemon->listen, taken over. Takes a
// reference to `settings`. NULL without memory or descriptors (the sockets are closed).
struct worker *worker_new(
        struct daemon *daemon, unsigned number, struct settings *settings, const int *sockets);
int worker_start(struct worker *worker); // the thread; 0 or -errno
void worker_run(struct worker *worker);  // what it runs: in the calling thread, until loop_stop
// From any thread. New sessions use `settings` (a reference is taken); running ones keep theirs.
void worker_reload(struct worker *worker, struct settings *settings);
// From any thread. Stops accepting, closes idle connections, lets running requests end with Connection:
// close; at `until_ms` (monotonic) what still runs is cut. worker_idle turns true when nothing is left.
void worker_drain(struct worker *worker, int64_t until_ms);
bool worker_idle(const struct worker *worker);
struct moment worker_now(struct worker *worker);        // as of this round; its own thread
bool worker_drain_is_over(const struct worker *worker); // its own thread: what still runs is to be cut
// Places and descriptors are shared by all workers, connections are not: asks the others to let go of one
// that is not in use, or of some that only wait. Its own thread; they do so a moment later.
void worker_ask_for_room(struct worker *worker);
void worker_stop(struct worker *worker); // ends the thread and joins it
void worker_free(struct worker *worker);

// The loop's last round began at (monotonic ms), at least once in 500 ms while it is well: for the watchdog.
// Any thread.
int64_t worker_heartbeat_ms(const struct worker *worker);
struct counter_row *worker_counters(struct worker *worker);
