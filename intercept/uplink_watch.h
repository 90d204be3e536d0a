// The uplink as all threads share it, for `offline auto`: workers tell what becomes of their connections, the
// main thread looks at routes and probes, everybody asks. What workers do often costs an atomic load; the
// rest takes a lock for a few instructions. Each change is one line in the log.
#pragma once

#include "intercept/loop.h"
#include "intercept/netlink.h"
#include "intercept/settings.h"

struct uplink_watch;

struct uplink_watch *uplink_watch_new(void);        // NULL without memory
void uplink_watch_free(struct uplink_watch *watch); // NULL is allowed; no probe may run

// Any thread. Whether requests are answered without asking: `offline on`, or auto while the uplink is down.
bool uplink_watch_is_offline(const struct uplink_watch *watch, const struct config *config);
// Any thread. How an attempt to connect ended: 0 or -errno; refusals and want of our own are told apart here.
void uplink_watch_told(
        struct uplink_watch *watch, const struct endpoint *destination, int result, int64_t now_ms);
// Any thread. A request wanted it while nothing could be asked.
void uplink_watch_want(struct uplink_watch *watch, const struct endpoint *destination);

// The main thread, about twice a second and as soon as other settings are in force, lest a route that goes
// right then was never seen: looks at the routes, and begins a probe on `loop` when it is time, with the
// marks and the connect timeout of `settings`. With `offline` other than auto nothing is probed.
void uplink_watch_tick(struct uplink_watch *watch, struct loop *loop, const struct own_addresses *own,
        const struct settings *settings, int64_t now_ms);
// The main thread, before its loop goes: gives up a probe that runs.
void uplink_watch_stop(struct uplink_watch *watch);
