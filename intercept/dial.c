#include "intercept/dial.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24 // Linux >= 4.2
#endif

static int set_number(int fd, int level, int name, int value) {
    return setsockopt(fd, level, name, &value, sizeof value) < 0 ? -errno : 0;
}

// The kernel chooses the port at connect time, by the whole 4-tuple: a client address has 64512 of them for
// each origin, not for all origins together.
static int bind_to_client(int fd, const struct dial *dial, bool ipv4) {
    if (address_is_ipv4(&dial->client) != ipv4)
        return -EAFNOSUPPORT;
    int result =
            ipv4 ? set_number(fd, SOL_IP, IP_TRANSPARENT, 1) : set_number(fd, SOL_IPV6, IPV6_TRANSPARENT, 1);
    if (result < 0)
        return result;
    result = set_number(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    if (result < 0)
        return result;
    struct endpoint source = {.address = dial->client, .scope = dial->destination.scope};
    struct sockaddr_storage address;
    socklen_t length = endpoint_to_sockaddr(&source, false, &address);
    return bind(fd, (struct sockaddr *)&address, length) < 0 ? -errno : 0;
}

static int carry_class(int fd, const struct dial *dial, bool ipv4) {
    uint32_t mark = (dial->class.mark & ~dial->mask) | dial->mark;
    int result = mark ? set_number(fd, SOL_SOCKET, SO_MARK, (int)mark) : 0;
    if (result < 0 && result != -EPERM)
        return result;
    if (dial->class.tos == 0)
        return 0;
    return ipv4 ? set_number(fd, SOL_IP, IP_TOS, dial->class.tos)
                : set_number(fd, SOL_IPV6, IPV6_TCLASS, dial->class.tos);
}

static int begin_connect(int fd, const struct endpoint *destination) {
    struct sockaddr_storage address;
    socklen_t length = endpoint_to_sockaddr(destination, false, &address);
    if (connect(fd, (struct sockaddr *)&address, length) == 0 || errno == EINPROGRESS || errno == EINTR)
        return 0;
    return -errno;
}

int dial_begin(const struct dial *dial) {
    bool ipv4 = address_is_ipv4(&dial->destination.address);
    int fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (fd < 0)
        return -errno;
    int result = set_number(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (result == 0)
        result = carry_class(fd, dial, ipv4);
    if (result == 0 && dial->spoof)
        result = bind_to_client(fd, dial, ipv4);
    if (result == 0)
        result = begin_connect(fd, &dial->destination);
    if (result < 0)
        close(fd);
    return result < 0 ? result : fd;
}

// SO_DONTROUTE lets through what a route of link scope leads to; connecting a datagram socket sends nothing.
bool dial_is_on_link(const struct endpoint *destination) {
    int fd = address_is_ipv4(&destination->address) ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    if (fd < 0)
        return false;
    bool is_on_link = set_number(fd, SOL_SOCKET, SO_DONTROUTE, 1) == 0 && begin_connect(fd, destination) == 0;
    close(fd);
    return is_on_link;
}

int dial_result(int fd) {
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    int error = 0;
    if (poll(&one, 1, 0) == 0) // SO_ERROR says 0 while it is under way as well
        return -EINPROGRESS;
    socklen_t length = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
        return -errno;
    return -error;
}
