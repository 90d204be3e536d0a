// How connection attempts end, in a namespace: one that is answered, one that is refused, one that nobody
// hears.
#include "intercept/dial.h"

#include "tests/unit/intercept/netns.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#define PORT 8080

static const char network[] =
        "ip link add near type veth peer name far && ip addr add 10.78.0.1/24 dev near && "
        "ip link set near up && ip link set far up";

static int begin(const char *address) {
    struct dial dial = {.destination.port = PORT};
    CU_ASSERT_TRUE(address_parse(view_of(address), &dial.destination.address));
    return dial_begin(&dial);
}

static int wait_for_end(int fd) {
    struct pollfd wanted = {.fd = fd, .events = POLLOUT};
    return poll(&wanted, 1, 5000) == 1 ? dial_result(fd) : -ETIMEDOUT;
}

static int open_listener(void) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&here, sizeof here) == 0 && listen(fd, 1) == 0);
    return 0;
}

// Nobody has 10.78.0.2: the attempt runs on, and is not taken for one that succeeded.
static int runs_on(void) {
    REQUIRE(netns_command(network));
    int fd = begin("10.78.0.2");
    REQUIRE(fd >= 0);
    REQUIRE(dial_result(fd) == -EINPROGRESS);
    REQUIRE(dial_result(fd) == -EINPROGRESS);
    close(fd);
    return 0;
}

static int refused(void) {
    int fd = begin("127.0.0.1");
    REQUIRE(fd >= 0 && wait_for_end(fd) == -ECONNREFUSED);
    close(fd);
    return 0;
}

static int answered(void) {
    REQUIRE(open_listener() == 0);
    int fd = begin("127.0.0.1");
    REQUIRE(fd >= 0 && wait_for_end(fd) == 0 && dial_result(fd) == 0);
    close(fd);
    return 0;
}

// Said by connect(2) itself.
static int unreachable(void) {
    REQUIRE(begin("192.0.2.1") == -ENETUNREACH);
    return 0;
}

static void ends_of_an_attempt(void) {
    CU_ASSERT_TRUE(netns_passes(runs_on));
    CU_ASSERT_TRUE(netns_passes(refused));
    CU_ASSERT_TRUE(netns_passes(answered));
    CU_ASSERT_TRUE(netns_passes(unreachable));
}

SUITE(intercept_dial, CASE(ends_of_an_attempt))
