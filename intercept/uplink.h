// Whether the way out is there, for `offline auto`: a state machine with hysteresis. Pure: no clock, no I/O,
// no lock (uplink_watch.h has those).
//
//     up -> down   when the last default route with a link that is up has been gone for UPLINK_ROUTE_GONE_MS;
//                  one that never was there says nothing
//                  when connections to UPLINK_FAILURES unrelated destinations failed one after another within
//                  UPLINK_FAILURES_MS, and none succeeded in between; destinations that answered lately are
//                  probed first, up to UPLINK_DOUBTS of them: what one client asks for may all be dead
//     down -> up   when a default route has been back for UPLINK_ROUTE_BACK_MS, if its absence was the
//     reason;
//                  when a connection succeeds, whatever the reason was: a probe every UPLINK_PROBE_MS, or any
//                  other; one that succeeds without a default route shows that none is needed, and from then
//                  on its absence says nothing until there is one again
//
// A connection that is refused was answered: it proves nothing about the way and counts for neither.
// Destinations are unrelated when they differ in their first 24 (IPv4) or 48 bits.
#pragma once

#include "admin/address.h"

#include <stdint.h>

#define UPLINK_FAILURES 4
#define UPLINK_FAILURES_MS 60000 // older failures are forgotten
#define UPLINK_ROUTE_GONE_MS 2000
#define UPLINK_ROUTE_BACK_MS 1000
#define UPLINK_PROBE_MS 5000 // between the begins of two probes
#define UPLINK_WANTED 8      // destinations wanted lately that probes choose from, in turn
#define UPLINK_GOOD 8        // likewise, that answered lately
#define UPLINK_GOOD_MS 600000
#define UPLINK_DOUBTS 3

enum uplink_change {
    UPLINK_SAME,
    UPLINK_ROUTE_GONE, // went down
    UPLINK_ALL_FAIL,   // went down
    UPLINK_ROUTE_BACK, // came up
    UPLINK_ANSWERED,   // came up
};

struct uplink {
    bool is_down;
    enum uplink_change why; // the last change
    // routes
    bool had_route; // its absence means something
    bool has_route;
    int64_t route_at_ms; // when has_route last changed
    // failures since the last success, unrelated ones
    unsigned failures;
    struct address failed[UPLINK_FAILURES];
    int64_t failed_at_ms[UPLINK_FAILURES];
    bool is_doubted; // enough failed: those that answered lately are probed
    unsigned doubts; // probes of these that failed
    // probes
    unsigned wanted_count, wanted_next, probe_next;
    struct endpoint wanted[UPLINK_WANTED];
    unsigned good_count, good_next, probe_good_next;
    struct endpoint good[UPLINK_GOOD];
    int64_t good_at_ms; // of the last
    bool is_good_next;
    bool is_probing;
    int64_t probed_at_ms; // when the last probe began
};

// Up; no route was seen yet.
void uplink_init(struct uplink *uplink);

// What the routing table says now. Call it again now and then, also when nothing changed: time decides.
enum uplink_change uplink_route(struct uplink *uplink, bool has_route, int64_t now_ms);

// A connection could not be made: nobody answered, or there was no route.
enum uplink_change uplink_failed(struct uplink *uplink, const struct endpoint *destination, int64_t now_ms);
enum uplink_change uplink_answered(struct uplink *uplink);
// This one answered, and lies beyond a gateway: probes may try it. The newest UPLINK_GOOD different ones are
// kept.
void uplink_good(struct uplink *uplink, const struct endpoint *destination, int64_t now_ms);

// A request wanted this destination: probes may try it. The newest UPLINK_WANTED different ones are kept.
void uplink_want(struct uplink *uplink, const struct endpoint *destination);
// Whether it is time for a probe, and of what; it counts as begun then. One at a time, while
// down (in turn of what is wanted and what was good) or in doubt.
bool uplink_probe(struct uplink *uplink, int64_t now_ms, struct endpoint *target);
// Its end.
enum uplink_change uplink_probed(struct uplink *uplink, bool answered);

// Static: what happened, for the log; "" for UPLINK_SAME.
const char *uplink_change_text(enum uplink_change change);
