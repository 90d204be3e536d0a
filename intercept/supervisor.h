// The main thread: it serves no client. Signals, the control socket, the watchdog, reload, drain and stop.
//
// SIGTERM, SIGINT: drain, then stop; once more: stop at once. SIGHUP: reload. SIGUSR1: open the logs again.
#pragma once

#include "admin/view.h"
#include "intercept/control.h"
#include "intercept/daemon.h"

#include <stdio.h>

struct supervisor {
    struct daemon *daemon;
    struct settings *settings; // in force; a reference
    struct settings *retired;  // of each a reference, so that the last one goes here and never on a worker
    const char *file;          // what reload reads
    char *started_user, *started_control; // what a reload cannot change
    struct loop *loop;
    int signals; // signalfd
    struct watch signal_watch;
    struct deadline tick;
    int64_t began_at_ms;
    int64_t watchdog_ms; // 0: nobody waits
    bool draining, stopping;
    int64_t until_ms; // monotonic: what runs then is cut
};

// Blocks the signals above in this thread and those it starts; call it before the first thread. SIGPIPE is
// ignored.
int supervisor_block_signals(void);

// Takes a reference to `settings`. 0 or -errno.
int supervisor_init(struct supervisor *supervisor, struct daemon *daemon, struct settings *settings,
        const char *file, struct control *control);
void supervisor_run(struct supervisor *supervisor); // until it is time to stop
void supervisor_fini(struct supervisor *supervisor);

// Reads the configuration again. True when it is in force now; else the old one stays, and why is written to
// `out`, a line each. What needs a restart is named there too.
bool supervisor_reload(struct supervisor *supervisor, FILE *out);
void supervisor_drain(struct supervisor *supervisor); // no new connections; returns at once
void supervisor_stop(struct supervisor *supervisor);  // drains, then ends supervisor_run
