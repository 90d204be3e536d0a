#include "intercept/uplink.h"

#include "admin/check.h"

void uplink_init(struct uplink *uplink) {
    *uplink = (struct uplink){.probed_at_ms = INT64_MIN};
}

static void forget_failures(struct uplink *uplink) {
    uplink->failures = uplink->doubts = 0;
    uplink->is_doubted = false;
}

static enum uplink_change change(struct uplink *uplink, bool is_down, enum uplink_change why) {
    uplink->is_down = is_down;
    uplink->why = why;
    forget_failures(uplink);
    return why;
}

// ---- routes ----

enum uplink_change uplink_route(struct uplink *uplink, bool has_route, int64_t now_ms) {
    if (has_route != uplink->has_route) {
        uplink->has_route = has_route;
        uplink->route_at_ms = now_ms;
    }
    uplink->had_route = uplink->had_route || has_route;
    int64_t lasted_ms = now_ms - uplink->route_at_ms;
    if (!uplink->is_down && uplink->had_route && !has_route && lasted_ms >= UPLINK_ROUTE_GONE_MS)
        return change(uplink, true, UPLINK_ROUTE_GONE);
    if (uplink->is_down && uplink->why == UPLINK_ROUTE_GONE && has_route && lasted_ms >= UPLINK_ROUTE_BACK_MS)
        return change(uplink, false, UPLINK_ROUTE_BACK);
    return UPLINK_SAME;
}

// ---- connections ----

static struct address network_of(const struct address *address) {
    struct address network = *address;
    address_mask(&network, address_is_ipv4(address) ? 96 + 24 : 48);
    return network;
}

static void drop_failure(struct uplink *uplink, unsigned which) {
    uplink->failures--;
    for (unsigned i = which; i < uplink->failures; i++) {
        uplink->failed[i] = uplink->failed[i + 1];
        uplink->failed_at_ms[i] = uplink->failed_at_ms[i + 1];
    }
}

// Those that are too old, and an earlier one of the same network.
static void drop_failures(struct uplink *uplink, const struct address *network, int64_t now_ms) {
    for (unsigned i = uplink->failures; i-- > 0;)
        if (now_ms - uplink->failed_at_ms[i] > UPLINK_FAILURES_MS ||
                address_equal(&uplink->failed[i], network))
            drop_failure(uplink, i);
}

enum uplink_change uplink_failed(struct uplink *uplink, const struct endpoint *destination, int64_t now_ms) {
    struct address network = network_of(&destination->address);
    uplink_want(uplink, destination);
    if (uplink->is_down || uplink->is_doubted)
        return UPLINK_SAME;
    drop_failures(uplink, &network, now_ms);
    CHECK(uplink->failures < UPLINK_FAILURES);
    uplink->failed[uplink->failures] = network;
    uplink->failed_at_ms[uplink->failures++] = now_ms;
    if (uplink->failures < UPLINK_FAILURES)
        return UPLINK_SAME;
    uplink->is_doubted = uplink->good_count > 0 && now_ms - uplink->good_at_ms <= UPLINK_GOOD_MS;
    return uplink->is_doubted ? UPLINK_SAME : change(uplink, true, UPLINK_ALL_FAIL);
}

enum uplink_change uplink_answered(struct uplink *uplink) {
    forget_failures(uplink);
    if (uplink->is_down)
        uplink->had_route = uplink->has_route;
    return uplink->is_down ? change(uplink, false, UPLINK_ANSWERED) : UPLINK_SAME;
}

// ---- probes ----

// A ring without repeats.
static void keep(struct endpoint *ring, unsigned size, unsigned *count, unsigned *next,
        const struct endpoint *destination) {
    for (unsigned i = 0; i < *count; i++)
        if (endpoint_equal(&ring[i], destination))
            return;
    ring[*next] = *destination;
    *next = (*next + 1) % size;
    if (*count < size)
        ++*count;
}

void uplink_want(struct uplink *uplink, const struct endpoint *destination) {
    keep(uplink->wanted, UPLINK_WANTED, &uplink->wanted_count, &uplink->wanted_next, destination);
}

void uplink_good(struct uplink *uplink, const struct endpoint *destination, int64_t now_ms) {
    uplink->good_at_ms = now_ms;
    keep(uplink->good, UPLINK_GOOD, &uplink->good_count, &uplink->good_next, destination);
}

static struct endpoint next_of(const struct endpoint *ring, unsigned count, unsigned *next) {
    unsigned at = *next % count;
    *next = (at + 1) % count;
    return ring[at];
}

bool uplink_probe(struct uplink *uplink, int64_t now_ms, struct endpoint *target) {
    bool is_time = uplink->is_doubted || uplink->probed_at_ms == INT64_MIN ||
                   now_ms - uplink->probed_at_ms >= UPLINK_PROBE_MS;
    bool is_any = uplink->wanted_count + uplink->good_count > 0;
    if ((!uplink->is_down && !uplink->is_doubted) || uplink->is_probing || !is_any || !is_time)
        return false;
    if (uplink->is_down)
        uplink->is_good_next = !uplink->is_good_next;
    bool is_good = uplink->good_count > 0 &&
                   (uplink->is_doubted || uplink->is_good_next || uplink->wanted_count == 0);
    *target = is_good ? next_of(uplink->good, uplink->good_count, &uplink->probe_good_next)
                      : next_of(uplink->wanted, uplink->wanted_count, &uplink->probe_next);
    uplink->is_probing = true;
    uplink->probed_at_ms = now_ms;
    return true;
}

enum uplink_change uplink_probed(struct uplink *uplink, bool answered) {
    uplink->is_probing = false;
    if (answered)
        return uplink_answered(uplink);
    if (!uplink->is_doubted || ++uplink->doubts < UPLINK_DOUBTS)
        return UPLINK_SAME;
    return change(uplink, true, UPLINK_ALL_FAIL);
}

const char *uplink_change_text(enum uplink_change change) {
    switch (change) {
    case UPLINK_SAME:
        return "";
    case UPLINK_ROUTE_GONE:
        return "no default route with a link that is up is left";
    case UPLINK_ALL_FAIL:
        return "connections to unrelated destinations fail one after another";
    case UPLINK_ROUTE_BACK:
        return "a default route is back";
    case UPLINK_ANSWERED:
        return "a connection succeeded";
    }
    UNREACHABLE("uplink change");
}
