#include "intercept/netlink.h"

#include "admin/clock.h"
#include "tests/unit/intercept/netns.h"
#include "tests/unit/unit.h"

#include <dirent.h>
#include <poll.h>

static struct address address_of(const char *text) {
    struct address address = {0};
    CU_ASSERT_TRUE(address_parse(view_of(text), &address));
    return address;
}

static bool has(struct own_addresses *own, const char *text) {
    struct address address = address_of(text);
    return own_addresses_has(own, &address);
}

// Waits for the listening thread to see a change.
static bool becomes(struct own_addresses *own, const char *text, bool wanted) {
    int64_t until = clock_monotonic_ms() + 10000;
    while (has(own, text) != wanted) {
        if (clock_monotonic_ms() > until)
            return false;
        poll(NULL, 0, 5);
    }
    return true;
}

static int descriptors(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static int follow_changes(void) {
    int error = 0, before = descriptors();
    REQUIRE(netns_command("ip link add d0 type veth peer name d1 && ip addr add 10.77.0.1/24 brd + dev d0 && "
                          "ip link set d0 up"));
    struct own_addresses *own = own_addresses_new(&error);
    REQUIRE(own != NULL);
    REQUIRE(has(own, "10.77.0.1") && has(own, "10.77.0.255") && !has(own, "10.77.0.2"));
    REQUIRE(has(own, "127.0.0.1") && has(own, "127.200.0.1") && has(own, "::1") && has(own, "::"));
    REQUIRE(has(own, "0.0.0.0") && has(own, "255.255.255.255") && !has(own, "2001:db8::1"));
    REQUIRE(netns_command("ip addr add 2001:db8::1/64 dev d0 nodad"));
    REQUIRE(becomes(own, "2001:db8::1", true));
    REQUIRE(has(own, "2001:db8::") && !has(own, "2001:db8::2"));
    REQUIRE(netns_command("ip addr del 10.77.0.1/24 dev d0"));
    REQUIRE(becomes(own, "10.77.0.1", false));
    REQUIRE(netns_command("ip addr add 10.78.0.1 peer 10.78.0.2 dev d0"));
    REQUIRE(becomes(own, "10.78.0.1", true));
    REQUIRE(!has(own, "10.78.0.2"));
    own_addresses_free(own);
    REQUIRE(descriptors() == before);
    return 0;
}

static int survive_a_storm(void) {
    int error = 0;
    REQUIRE(netns_command("ip link add d0 type veth peer name d1 && ip link set d0 up"));
    struct own_addresses *own = own_addresses_new(&error);
    REQUIRE(own != NULL);
    REQUIRE(netns_command("for i in $(seq 1 250); do for j in 1 2 3 4; do "
                          "echo addr add 10.$j.0.$i/32 dev d0; done; done | ip -batch -"));
    REQUIRE(becomes(own, "10.4.0.250", true));
    // what was lost in the storm comes by another look at the whole, perhaps after the last one told
    REQUIRE(becomes(own, "10.1.0.1", true) && becomes(own, "10.2.0.125", true) &&
            becomes(own, "10.3.0.250", true));
    REQUIRE(netns_command("ip link del d0"));
    REQUIRE(becomes(own, "10.4.0.250", false));
    REQUIRE(becomes(own, "10.1.0.1", false));
    own_addresses_free(own);
    return 0;
}

static bool route_becomes(struct own_addresses *own, bool wanted) {
    int64_t until = clock_monotonic_ms() + 10000;
    while (own_addresses_has_route(own) != wanted) {
        if (clock_monotonic_ms() > until)
            return false;
        poll(NULL, 0, 5);
    }
    return true;
}

static int follow_routes(void) {
    int error = 0;
    struct own_addresses *own = own_addresses_new(&error);
    REQUIRE(own != NULL);
    REQUIRE(netns_command(
            "ip link add d0 type veth peer name d1 && ip addr add 10.77.0.1/24 dev d0 && "
            "ip link set d0 up && ip link set d1 up && ip addr add 2001:db8::1/64 dev d0 nodad && "
            "ip link add d2 type veth peer name d3 && ip link set d3 up && ip addr add 10.78.0.1/24 dev d2 "
            "&& ip link set d2 up"));
    REQUIRE(!own_addresses_has_route(own));
    REQUIRE(netns_command("ip route add default via 10.77.0.2"));
    REQUIRE(route_becomes(own, true));
    REQUIRE(netns_command("ip link set d1 down")); // the carrier is lost, the route stays
    REQUIRE(route_becomes(own, false));
    REQUIRE(netns_command("ip link set d1 up"));
    REQUIRE(route_becomes(own, true));
    REQUIRE(netns_command("ip link set d0 down")); // the route goes without a word
    REQUIRE(route_becomes(own, false));
    REQUIRE(netns_command("ip link set d0 up && ip route add default via 10.77.0.2"));
    REQUIRE(route_becomes(own, true));
    REQUIRE(netns_command(
            "ip addr add 2001:db8::1/64 dev d0 nodad && ip -6 route add default via 2001:db8::2 && "
            "ip route del default"));
    REQUIRE(route_becomes(own, true)); // by IPv6
    REQUIRE(netns_command("ip -6 route del default"));
    REQUIRE(route_becomes(own, false));
    REQUIRE(netns_command("ip route add default nexthop via 10.77.0.2 dev d0 nexthop via 10.78.0.2 dev d2"));
    REQUIRE(route_becomes(own, true));
    REQUIRE(netns_command("ip link set d1 down"));
    poll(NULL, 0, 300);
    REQUIRE(route_becomes(own, true)); // the other way out
    REQUIRE(netns_command("ip route del default && ip route add unreachable default"));
    REQUIRE(route_becomes(own, false));
    REQUIRE(netns_command("ip route add default via 10.78.0.2 table 77"));
    REQUIRE(route_becomes(own, true)); // of another table
    REQUIRE(netns_command("ip route del default table 77 && ip route add local default dev lo table 78"));
    REQUIRE(route_becomes(own, false));
    own_addresses_free(own);
    return 0;
}

static void follows_routes(void) {
    CU_ASSERT_TRUE(netns_passes(follow_routes));
}

static void follows_changes(void) {
    CU_ASSERT_TRUE(netns_passes(follow_changes));
}

static void survives_a_storm(void) {
    CU_ASSERT_TRUE(netns_passes(survive_a_storm));
}

SUITE(intercept_netlink, CASE(follows_changes), CASE(follows_routes), CASE(survives_a_storm))
