// The state machine behind `offline auto`, as tables of events.
#include "intercept/uplink.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

enum event { ROUTE, NO_ROUTE, FAILED, ANSWERED, GOOD, WANTED, PROBE, NO_PROBE, PROBED, PROBED_IN_VAIN };

struct row {
    int64_t at_ms;
    enum event event;
    const char *address; // of FAILED, WANTED and PROBE
    enum uplink_change change;
    bool is_down; // afterwards
};

static struct endpoint endpoint_of(const char *text) {
    struct endpoint endpoint = {.port = 80};
    CU_ASSERT_TRUE_FATAL(text && address_parse(view_of(text), &endpoint.address));
    return endpoint;
}

static enum uplink_change play_row(struct uplink *uplink, const struct row *row) {
    struct endpoint endpoint = {.port = 0}, wanted;
    if (row->address)
        endpoint = endpoint_of(row->address);
    switch (row->event) {
    case ROUTE:
    case NO_ROUTE:
        return uplink_route(uplink, row->event == ROUTE, row->at_ms);
    case FAILED:
        return uplink_failed(uplink, &endpoint, row->at_ms);
    case ANSWERED:
        return uplink_answered(uplink);
    case GOOD:
        uplink_good(uplink, &endpoint, row->at_ms);
        return UPLINK_SAME;
    case WANTED:
        uplink_want(uplink, &endpoint);
        return UPLINK_SAME;
    case PROBE:
        CU_ASSERT_TRUE(uplink_probe(uplink, row->at_ms, &wanted) && endpoint_equal(&wanted, &endpoint));
        return UPLINK_SAME;
    case NO_PROBE:
        CU_ASSERT_FALSE(uplink_probe(uplink, row->at_ms, &wanted));
        return UPLINK_SAME;
    case PROBED:
    case PROBED_IN_VAIN:
        return uplink_probed(uplink, row->event == PROBED);
    }
    return UPLINK_SAME;
}

static void play(const char *name, const struct row *rows, size_t count) {
    struct uplink uplink;
    uplink_init(&uplink);
    CU_ASSERT_FALSE(uplink.is_down);
    for (size_t i = 0; i < count; i++) {
        enum uplink_change change = play_row(&uplink, &rows[i]);
        if (change != rows[i].change || uplink.is_down != rows[i].is_down) {
            printf("\n    %s, row %zu: change %d, down %d", name, i, change, uplink.is_down);
            CU_FAIL(name);
        }
        CU_ASSERT_TRUE(change == UPLINK_SAME || uplink.why == change);
    }
}

#define PLAY(rows) play(#rows, rows, sizeof(rows) / sizeof *(rows))

static void the_route_goes_and_returns(void) {
    static const struct row a_blip[] = {
            {0, ROUTE, NULL, UPLINK_SAME, false},
            {500, ROUTE, NULL, UPLINK_SAME, false},
            {1000, NO_ROUTE, NULL, UPLINK_SAME, false},
            {2500, NO_ROUTE, NULL, UPLINK_SAME, false},
            {2900, ROUTE, NULL, UPLINK_SAME, false},
            {3000, NO_ROUTE, NULL, UPLINK_SAME, false},
            {4999, NO_ROUTE, NULL, UPLINK_SAME, false},
    };
    static const struct row gone_and_back[] = {
            {0, ROUTE, NULL, UPLINK_SAME, false},
            {1000, NO_ROUTE, NULL, UPLINK_SAME, false},
            {3000, NO_ROUTE, NULL, UPLINK_ROUTE_GONE, true},
            {3500, NO_ROUTE, NULL, UPLINK_SAME, true},
            {4000, ROUTE, NULL, UPLINK_SAME, true},
            {4500, NO_ROUTE, NULL, UPLINK_SAME, true}, // a blip the other way
            {5000, ROUTE, NULL, UPLINK_SAME, true},
            {5999, ROUTE, NULL, UPLINK_SAME, true},
            {6000, ROUTE, NULL, UPLINK_ROUTE_BACK, false},
            {6500, ROUTE, NULL, UPLINK_SAME, false},
            {7000, NO_ROUTE, NULL, UPLINK_SAME, false},
            {9000, NO_ROUTE, NULL, UPLINK_ROUTE_GONE, true},
    };
    static const struct row never_there[] = {
            {0, NO_ROUTE, NULL, UPLINK_SAME, false},
            {9000, NO_ROUTE, NULL, UPLINK_SAME, false},
            {9500, ROUTE, NULL, UPLINK_SAME, false},
    };
    // Specific routes will do: the missing default route means nothing any more, until there is one again.
    static const struct row not_needed[] = {
            {0, ROUTE, NULL, UPLINK_SAME, false},
            {1000, NO_ROUTE, NULL, UPLINK_SAME, false},
            {3000, NO_ROUTE, NULL, UPLINK_ROUTE_GONE, true},
            {3100, WANTED, "192.0.2.1", UPLINK_SAME, true},
            {3200, PROBE, "192.0.2.1", UPLINK_SAME, true},
            {3300, PROBED, NULL, UPLINK_ANSWERED, false},
            {9000, NO_ROUTE, NULL, UPLINK_SAME, false},
            {9500, ROUTE, NULL, UPLINK_SAME, false},
            {10000, NO_ROUTE, NULL, UPLINK_SAME, false},
            {12000, NO_ROUTE, NULL, UPLINK_ROUTE_GONE, true},
    };
    PLAY(a_blip);
    PLAY(gone_and_back);
    PLAY(never_there);
    PLAY(not_needed);
}

static void unrelated_destinations_fail(void) {
    static const struct row four[] = {
            {0, FAILED, "192.0.2.1", UPLINK_SAME, false},
            {1, FAILED, "198.51.100.1", UPLINK_SAME, false},
            {2, FAILED, "203.0.113.1", UPLINK_SAME, false},
            {3, FAILED, "2001:db8::1", UPLINK_ALL_FAIL, true},
            {4, FAILED, "2001:db8:1::1", UPLINK_SAME, true},
            {5, ANSWERED, NULL, UPLINK_ANSWERED, false},
            {6, FAILED, "192.0.2.1", UPLINK_SAME, false}, // counted anew
            {7, FAILED, "198.51.100.1", UPLINK_SAME, false},
            {8, FAILED, "203.0.113.1", UPLINK_SAME, false},
            {9, FAILED, "10.0.0.1", UPLINK_ALL_FAIL, true},
    };
    static const struct row related[] = {
            {0, FAILED, "192.0.2.1", UPLINK_SAME, false},
            {1, FAILED, "192.0.2.2", UPLINK_SAME, false},
            {2, FAILED, "192.0.2.255", UPLINK_SAME, false},
            {3, FAILED, "2001:db8::1", UPLINK_SAME, false},
            {4, FAILED, "2001:db8::2:1", UPLINK_SAME, false},
            {5, FAILED, "2001:db8:0:1::1", UPLINK_SAME, false},
            {6, FAILED, "192.0.3.1", UPLINK_SAME, false},
            {7, FAILED, "192.0.2.3", UPLINK_SAME, false},
            {8, FAILED, "192.0.4.1", UPLINK_ALL_FAIL, true},
    };
    static const struct row one_answers[] = {
            {0, FAILED, "192.0.2.1", UPLINK_SAME, false},
            {1, FAILED, "198.51.100.1", UPLINK_SAME, false},
            {2, FAILED, "203.0.113.1", UPLINK_SAME, false},
            {3, ANSWERED, NULL, UPLINK_SAME, false},
            {4, FAILED, "10.0.0.1", UPLINK_SAME, false},
            {5, FAILED, "10.0.1.1", UPLINK_SAME, false},
            {6, FAILED, "10.0.2.1", UPLINK_SAME, false},
    };
    static const struct row long_ago[] = {
            {0, FAILED, "192.0.2.1", UPLINK_SAME, false},
            {30000, FAILED, "198.51.100.1", UPLINK_SAME, false},
            {60001, FAILED, "203.0.113.1", UPLINK_SAME, false},
            {60002, FAILED, "10.0.0.1", UPLINK_SAME, false},
            {60003, FAILED, "10.0.1.1", UPLINK_ALL_FAIL, true},
    };
    // The route alone does not end what was not its fault.
    static const struct row route_is_no_cure[] = {
            {0, ROUTE, NULL, UPLINK_SAME, false},
            {1, FAILED, "192.0.2.1", UPLINK_SAME, false},
            {2, FAILED, "198.51.100.1", UPLINK_SAME, false},
            {3, FAILED, "203.0.113.1", UPLINK_SAME, false},
            {4, FAILED, "10.0.0.1", UPLINK_ALL_FAIL, true},
            {9000, ROUTE, NULL, UPLINK_SAME, true},
            {9001, NO_ROUTE, NULL, UPLINK_SAME, true},
            {20000, NO_ROUTE, NULL, UPLINK_SAME, true},
            {20001, ROUTE, NULL, UPLINK_SAME, true},
            {29001, ROUTE, NULL, UPLINK_SAME, true},
            {29002, PROBE, "192.0.2.1", UPLINK_SAME, true},
            {29003, PROBED, NULL, UPLINK_ANSWERED, false},
    };
    PLAY(four);
    PLAY(related);
    PLAY(one_answers);
    PLAY(long_ago);
    PLAY(route_is_no_cure);
}

static void probes_take_turns(void) {
    static const struct row rows[] = {
            {0, WANTED, "192.0.2.1", UPLINK_SAME, false},
            {0, NO_PROBE, NULL, UPLINK_SAME, false}, // up
            {1, FAILED, "192.0.2.1", UPLINK_SAME, false},
            {2, FAILED, "198.51.100.1", UPLINK_SAME, false},
            {3, FAILED, "203.0.113.1", UPLINK_SAME, false},
            {4, FAILED, "10.0.0.1", UPLINK_ALL_FAIL, true},
            {5, PROBE, "192.0.2.1", UPLINK_SAME, true},
            {6000, NO_PROBE, NULL, UPLINK_SAME, true}, // one at a time
            {6001, PROBED_IN_VAIN, NULL, UPLINK_SAME, true},
            {6002, PROBE, "198.51.100.1", UPLINK_SAME, true},
            {6003, PROBED_IN_VAIN, NULL, UPLINK_SAME, true},
            {11001, NO_PROBE, NULL, UPLINK_SAME, true},
            {11002, PROBE, "203.0.113.1", UPLINK_SAME, true},
            {11003, PROBED_IN_VAIN, NULL, UPLINK_SAME, true},
            {16002, PROBE, "10.0.0.1", UPLINK_SAME, true},
            {16003, PROBED_IN_VAIN, NULL, UPLINK_SAME, true},
            {21002, PROBE, "192.0.2.1", UPLINK_SAME, true},
            {21003, ANSWERED, NULL, UPLINK_ANSWERED, false}, // another connection, meanwhile
            {21004, PROBED, NULL, UPLINK_SAME, false},
            {30000, NO_PROBE, NULL, UPLINK_SAME, false},
    };
    PLAY(rows);
}

static void the_newest_wanted_are_kept(void) {
    struct uplink uplink;
    struct endpoint target;
    char text[32];
    uplink_init(&uplink);
    CU_ASSERT_FALSE(uplink_probe(&uplink, 0, &target));
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < UPLINK_WANTED + 3; i++) {
            snprintf(text, sizeof text, "10.0.%u.1", i);
            struct endpoint endpoint = endpoint_of(text);
            uplink_want(&uplink, &endpoint);
            uplink_want(&uplink, &endpoint);
        }
    CU_ASSERT_EQUAL(uplink.wanted_count, UPLINK_WANTED);
    for (unsigned i = 0; i < uplink.wanted_count; i++)
        for (unsigned j = 0; j < i; j++)
            CU_ASSERT_FALSE(endpoint_equal(&uplink.wanted[i], &uplink.wanted[j]));
}

static void every_change_has_its_words(void) {
    for (int change = UPLINK_SAME; change <= UPLINK_ANSWERED; change++)
        CU_ASSERT_EQUAL(strlen(uplink_change_text((enum uplink_change)change)) > 0, change != UPLINK_SAME);
}

// One client's dead destinations are not the LAN's uplink.
static void dead_destinations_alone(void) {
    static const struct row rows[] = {
            {1, GOOD, "192.0.2.1", UPLINK_SAME, false},
            {1, GOOD, "192.0.2.2", UPLINK_SAME, false},
            {2, FAILED, "198.51.100.1", UPLINK_SAME, false},
            {3, FAILED, "203.0.113.1", UPLINK_SAME, false},
            {4, NO_PROBE, NULL, UPLINK_SAME, false},
            {5, FAILED, "10.1.0.1", UPLINK_SAME, false},
            {6, FAILED, "10.2.0.1", UPLINK_SAME, false}, // enough: in doubt
            {7, PROBE, "192.0.2.1", UPLINK_SAME, false},
            {8, FAILED, "10.3.0.1", UPLINK_SAME, false},
            {9, NO_PROBE, NULL, UPLINK_SAME, false}, // one at a time
            {10, PROBED_IN_VAIN, NULL, UPLINK_SAME, false},
            {11, PROBE, "192.0.2.2", UPLINK_SAME, false}, // at once
            {12, PROBED, NULL, UPLINK_SAME, false},       // no doubt any more
            {13, NO_PROBE, NULL, UPLINK_SAME, false},
            {14, FAILED, "10.1.0.1", UPLINK_SAME, false},
            {15, FAILED, "10.2.0.1", UPLINK_SAME, false},
            {16, FAILED, "10.3.0.1", UPLINK_SAME, false},
            {17, FAILED, "10.4.0.1", UPLINK_SAME, false},
            {18, PROBE, "192.0.2.1", UPLINK_SAME, false},
            {19, PROBED_IN_VAIN, NULL, UPLINK_SAME, false},
            {20, PROBE, "192.0.2.2", UPLINK_SAME, false},
            {21, PROBED_IN_VAIN, NULL, UPLINK_SAME, false},
            {22, PROBE, "192.0.2.1", UPLINK_SAME, false},
            {23, PROBED_IN_VAIN, NULL, UPLINK_ALL_FAIL, true},
            {24, NO_PROBE, NULL, UPLINK_SAME, true},
            {5022, PROBE, "192.0.2.2", UPLINK_SAME, true}, // down: what was good and what is wanted in turn
            {5023, PROBED_IN_VAIN, NULL, UPLINK_SAME, true},
            {10022, PROBE, "198.51.100.1", UPLINK_SAME, true},
            {10023, PROBED_IN_VAIN, NULL, UPLINK_SAME, true},
            {15022, PROBE, "192.0.2.1", UPLINK_SAME, true},
            {15023, PROBED, NULL, UPLINK_ANSWERED, false},
            // what was good long ago says nothing
            {1000000, FAILED, "10.1.0.1", UPLINK_SAME, false},
            {1000001, FAILED, "10.2.0.1", UPLINK_SAME, false},
            {1000002, FAILED, "10.3.0.1", UPLINK_SAME, false},
            {1000003, FAILED, "10.4.0.1", UPLINK_ALL_FAIL, true},
    };
    PLAY(rows);
}

SUITE(intercept_uplink, CASE(dead_destinations_alone), CASE(the_route_goes_and_returns),
        CASE(unrelated_destinations_fail), CASE(probes_take_turns), CASE(the_newest_wanted_are_kept),
        CASE(every_change_has_its_words))
