// Real redirects of real connections, in a namespace: loopback plays both sides.
#include "intercept/origdst.h"

#include "intercept/dial.h"
#include "tests/unit/intercept/netns.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define PORT 3129

struct pair {
    int client, server;
    struct endpoint peer;
};

static struct endpoint endpoint_of(const char *text, uint16_t port) {
    struct endpoint endpoint = {.port = port};
    CU_ASSERT_TRUE(address_parse(view_of(text), &endpoint.address));
    return endpoint;
}

// Dials through dial.c, so that both files are held against a kernel.
static int connect_pair(int listener, const struct dial *dial, struct pair *pair) {
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    pair->client = dial_begin(dial);
    REQUIRE(pair->client >= 0);
    struct pollfd wanted = {.fd = listener, .events = POLLIN};
    REQUIRE(poll(&wanted, 1, 5000) == 1);
    pair->server = accept4(listener, (struct sockaddr *)&address, &length, SOCK_CLOEXEC);
    REQUIRE(pair->server >= 0);
    REQUIRE(endpoint_from_sockaddr(&pair->peer, (struct sockaddr *)&address));
    wanted = (struct pollfd){.fd = pair->client, .events = POLLOUT};
    REQUIRE(poll(&wanted, 1, 5000) == 1 && dial_result(pair->client) == 0);
    return 0;
}

static void close_pair(struct pair *pair) {
    close(pair->client);
    close(pair->server);
}

// What origdst_find says of a connection to `to`, redirected or not.
static int find(int listener, enum listen_mode mode, const struct own_addresses *own, struct endpoint to,
        enum origdst *found, struct endpoint *destination) {
    struct pair pair;
    int error;
    REQUIRE(connect_pair(listener, &(struct dial){.destination = to}, &pair) == 0);
    *found = origdst_find(pair.server, mode, &pair.peer, own, destination, &error);
    close_pair(&pair);
    return 0;
}

static const char rules[] =
        "ip addr add 10.77.0.1/32 dev lo && ip addr add 2001:db8:77::1/128 dev lo nodad && "
        "ip route add 198.51.100.0/24 dev lo src 10.77.0.1 && "
        "ip -6 route add 2001:db8:1::/64 dev lo src 2001:db8:77::1 && "
        "iptables -w -t nat -A OUTPUT -p tcp --dport 80 -j REDIRECT --to-ports 3129 && "
        "ip6tables -w -t nat -A OUTPUT -p tcp --dport 80 -j REDIRECT --to-ports 3129";

static int redirected(void) {
    const char *what;
    int error;
    enum origdst found;
    struct endpoint got, ipv4 = endpoint_of("198.51.100.1", 80), ipv6 = endpoint_of("2001:db8:1::9", 80);
    REQUIRE(netns_command(rules));
    struct own_addresses *own = own_addresses_new(&error);
    struct listen_point point = {.address.port = PORT, .any_address = true, .mode = LISTEN_REDIRECT};
    int listener = listen_open(&point, &what);
    REQUIRE(own != NULL && listener >= 0);
    REQUIRE(find(listener, LISTEN_REDIRECT, own, ipv4, &found, &got) == 0);
    REQUIRE(found == ORIGDST_INTERCEPTED && endpoint_equal(&got, &ipv4));
    REQUIRE(find(listener, LISTEN_ANY, own, ipv6, &found, &got) == 0);
    REQUIRE(found == ORIGDST_INTERCEPTED && endpoint_equal(&got, &ipv6));
    REQUIRE(find(listener, LISTEN_REDIRECT, own, endpoint_of("10.77.0.1", 80), &found, &got) == 0);
    REQUIRE(found == ORIGDST_OWN);
    REQUIRE(find(listener, LISTEN_REDIRECT, own, endpoint_of("2001:db8:77::1", 80), &found, &got) == 0);
    REQUIRE(found == ORIGDST_OWN);
    REQUIRE(find(listener, LISTEN_REDIRECT, own, endpoint_of("10.77.0.1", PORT), &found, &got) == 0);
    REQUIRE(found == ORIGDST_DIRECT);
    REQUIRE(find(listener, LISTEN_REDIRECT, own, endpoint_of("::1", PORT), &found, &got) == 0);
    REQUIRE(found == ORIGDST_DIRECT);
    REQUIRE(find(listener, LISTEN_ANY, own, endpoint_of("10.77.0.1", PORT), &found, &got) == 0);
    REQUIRE(found == ORIGDST_FORWARD);
    REQUIRE(find(listener, LISTEN_FORWARD, own, ipv4, &found, &got) == 0);
    REQUIRE(found == ORIGDST_FORWARD);
    close(listener);
    own_addresses_free(own);
    return 0;
}

// Without any rule conntrack may know nothing at all: the same answers.
static int without_rules(void) {
    const char *what;
    int error;
    enum origdst found;
    struct endpoint got;
    struct own_addresses *own = own_addresses_new(&error);
    struct listen_point point = {.address.port = PORT, .any_address = true, .mode = LISTEN_REDIRECT};
    int listener = listen_open(&point, &what);
    REQUIRE(own != NULL && listener >= 0);
    REQUIRE(find(listener, LISTEN_REDIRECT, own, endpoint_of("127.0.0.1", PORT), &found, &got) == 0);
    REQUIRE(found == ORIGDST_DIRECT);
    REQUIRE(find(listener, LISTEN_ANY, own, endpoint_of("::1", PORT), &found, &got) == 0);
    REQUIRE(found == ORIGDST_FORWARD);
    int pipes[2];
    REQUIRE(pipe(pipes) == 0);
    struct endpoint peer = endpoint_of("127.0.0.1", 1);
    REQUIRE(origdst_find(pipes[0], LISTEN_REDIRECT, &peer, own, &got, &error) == ORIGDST_FAILED);
    REQUIRE(error == ENOTSOCK);
    close(listener);
    own_addresses_free(own);
    return 0;
}

// A transparent socket's own name is the destination, as TPROXY leaves it.
static int transparent(void) {
    const char *what;
    int error;
    enum origdst found;
    struct endpoint got, ipv4 = endpoint_of("198.51.100.1", PORT), ipv6 = endpoint_of("2001:db8:1::9", PORT);
    REQUIRE(netns_command("ip addr add 10.77.0.1/32 dev lo && ip route add local 198.51.100.0/24 dev lo && "
                          "ip -6 route add local 2001:db8:1::/64 dev lo"));
    struct own_addresses *own = own_addresses_new(&error);
    struct listen_point point = {.address.port = PORT, .any_address = true, .mode = LISTEN_TPROXY};
    int listener = listen_open(&point, &what);
    REQUIRE(own != NULL && listener >= 0);
    REQUIRE(find(listener, LISTEN_TPROXY, own, ipv4, &found, &got) == 0);
    REQUIRE(found == ORIGDST_INTERCEPTED && endpoint_equal(&got, &ipv4));
    REQUIRE(find(listener, LISTEN_TPROXY, own, ipv6, &found, &got) == 0);
    REQUIRE(found == ORIGDST_INTERCEPTED && endpoint_equal(&got, &ipv6));
    REQUIRE(find(listener, LISTEN_TPROXY, own, endpoint_of("10.77.0.1", PORT), &found, &got) == 0);
    REQUIRE(found == ORIGDST_OWN);
    close(listener);
    own_addresses_free(own);
    return 0;
}

static int carries(const char *to, const char *from, bool accept_marks) {
    const char *what;
    struct pair pair;
    struct client_class class;
    struct listen_point point = {.address.port = PORT, .any_address = true, .mode = LISTEN_REDIRECT};
    int listener = listen_open(&point, &what);
    struct dial dial = {.destination = endpoint_of(to, PORT),
            .spoof = true,
            .class = {.mark = 0x99000007, .tos = 0xb8},
            .mark = 0x57000000,
            .mask = 0xff000000};
    REQUIRE(address_parse(view_of(from), &dial.client));
    REQUIRE(listener >= 0 && connect_pair(listener, &dial, &pair) == 0);
    origdst_class(pair.server, &pair.peer, &class);
    REQUIRE(class.tos == 0xb8);
    REQUIRE(class.mark == (accept_marks ? 0x57000007u : 0));
    REQUIRE(address_equal(&pair.peer.address, &dial.client));
    close_pair(&pair);
    close(listener);
    return 0;
}

// Mark, DSCP and the client's address: what dial sends, class and peer see.
static int class_and_spoof(void) {
    REQUIRE(netns_command("ip route add local 198.51.100.0/24 dev lo && "
                          "ip -6 route add local 2001:db8:1::/64 dev lo"));
    REQUIRE(carries("127.0.0.1", "198.51.100.7", false) == 0);
    REQUIRE(carries("::1", "2001:db8:1::7", false) == 0);
    REQUIRE(netns_command("sysctl -qw net.ipv4.tcp_fwmark_accept=1"));
    REQUIRE(carries("127.0.0.1", "198.51.100.7", true) == 0);
    REQUIRE(carries("::1", "2001:db8:1::7", true) == 0);
    return 0;
}

static int failures(void) {
    struct dial dial = {.destination = endpoint_of("127.0.0.1", 9)};
    int fd = dial_begin(&dial);
    REQUIRE(fd >= 0);
    struct pollfd wanted = {.fd = fd, .events = POLLOUT};
    REQUIRE(poll(&wanted, 1, 5000) == 1);
    REQUIRE(dial_result(fd) == -ECONNREFUSED);
    close(fd);
    dial.destination = endpoint_of("203.0.113.1", 80);
    REQUIRE(dial_begin(&dial) == -ENETUNREACH);
    dial.spoof = true;
    dial.client = endpoint_of("2001:db8::1", 0).address;
    REQUIRE(dial_begin(&dial) == -EAFNOSUPPORT);
    int next = dup(0); // nothing was left open by the failures
    REQUIRE(next == fd);
    return 0;
}

static void finds_what_was_redirected(void) {
    CU_ASSERT_TRUE(netns_passes(redirected));
}

static void finds_nothing_without_rules(void) {
    CU_ASSERT_TRUE(netns_passes(without_rules));
}

static void trusts_a_transparent_socket(void) {
    CU_ASSERT_TRUE(netns_passes(transparent));
}

static void carries_mark_dscp_and_address(void) {
    CU_ASSERT_TRUE(netns_passes(class_and_spoof));
}

static void dial_fails_cleanly(void) {
    CU_ASSERT_TRUE(netns_passes(failures));
}

SUITE(intercept_origdst, CASE(finds_what_was_redirected), CASE(finds_nothing_without_rules),
        CASE(trusts_a_transparent_socket), CASE(carries_mark_dscp_and_address), CASE(dial_fails_cleanly))
