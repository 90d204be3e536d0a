#include "intercept/netlink.h"

#include "admin/check.h"
#include "admin/log.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define ADDRESSES_MAXIMUM 65536 // more are not looked at, with a line in the log
#define DUMP_ATTEMPTS 8         // a table that changes while it is read is read again
#define BUFFER_BYTES 32768      // what the kernel fills at most in one go of a dump
#define EVENTS_A_ROUND 256      // under a storm of changes the table is still read now and then
#define RETRY_MS 200            // after a dump that failed
#define ROUTES_MAXIMUM 64       // default routes; of more, the rest is not looked at

struct table { // sorted
    size_t count, capacity;
    struct address *addresses;
};

struct own_addresses {
    struct mnl_socket *events; // in all groups
    int stop;                  // eventfd
    pthread_t thread;
    pthread_rwlock_t lock; // guards the table; held for a look-up or a swap
    struct table table;
    _Atomic bool has_route;
};

// Links that default routes lead to, and whether one of them is up.
struct routes {
    unsigned count;
    uint32_t link[ROUTES_MAXIMUM];
    bool is_up;
};

// What has to be read again.
struct changes {
    bool addresses, routes;
};

// ---- the table ----

static int compare_addresses(const void *a, const void *b) {
    return memcmp(a, b, sizeof(struct address));
}

static bool table_add(struct table *table, const struct address *address) {
    static struct log_limit full;
    if (table->count == ADDRESSES_MAXIMUM) {
        log_limited(
                &full, 60000, "more than %d own addresses: the rest is not recognised", ADDRESSES_MAXIMUM);
        return true;
    }
    if (table->count == table->capacity) {
        size_t capacity = table->capacity ? 2 * table->capacity : 64;
        struct address *grown = realloc(table->addresses, capacity * sizeof *grown);
        if (!grown)
            return false;
        table->addresses = grown;
        table->capacity = capacity;
    }
    table->addresses[table->count++] = *address;
    return true;
}

static bool table_has(const struct table *table, const struct address *address) {
    return table->count != 0 &&
           bsearch(address, table->addresses, table->count, sizeof *address, compare_addresses) != NULL;
}

// ---- reading ----

static bool attribute_address(const struct nlattr *attribute, int family, struct address *address) {
    const uint8_t *bytes = mnl_attr_get_payload(attribute);
    size_t length = mnl_attr_get_payload_len(attribute);
    *address = (struct address){0};
    if (family == AF_INET6 && length == 16) {
        memcpy(address->bytes, bytes, 16);
    } else if (family == AF_INET && length == 4) {
        address->bytes[10] = address->bytes[11] = 0xff;
        memcpy(address->bytes + 12, bytes, 4);
    } else {
        return false;
    }
    return true;
}

static bool add_attribute(struct table *table, const struct nlattr *attribute, int family) {
    struct address address;
    return !attribute || !attribute_address(attribute, family, &address) || table_add(table, &address);
}

// A router answers for the lowest address of each of its prefixes [RFC 4291 §2.6.1].
static bool add_subnet_router(struct table *table, const struct nlattr *attribute, unsigned bits) {
    struct address address;
    if (bits == 0 || bits > 126 || !attribute || !attribute_address(attribute, AF_INET6, &address))
        return true;
    address_mask(&address, bits);
    return table_add(table, &address);
}

static int take_message(const struct nlmsghdr *header, void *context) {
    struct table *table = context;
    const struct ifaddrmsg *message = mnl_nlmsg_get_payload(header);
    const struct nlattr *attribute, *found[IFA_MAX + 1] = {NULL};
    if (header->nlmsg_type != RTM_NEWADDR)
        return MNL_CB_OK;
    mnl_attr_for_each(attribute, header, sizeof *message) {
        if (mnl_attr_get_type(attribute) <= IFA_MAX)
            found[mnl_attr_get_type(attribute)] = attribute;
    }
    // On a point-to-point link IFA_ADDRESS is the other end, and IFA_LOCAL is ours.
    const struct nlattr *own = found[IFA_LOCAL] ? found[IFA_LOCAL] : found[IFA_ADDRESS];
    bool added = add_attribute(table, own, message->ifa_family) &&
                 add_attribute(table, found[IFA_BROADCAST], message->ifa_family) &&
                 add_attribute(table, found[IFA_ANYCAST], message->ifa_family) &&
                 (message->ifa_family != AF_INET6 || add_subnet_router(table, own, message->ifa_prefixlen));
    if (added)
        return MNL_CB_OK;
    errno = ENOMEM;
    return MNL_CB_ERROR;
}

static int run_dump(struct mnl_socket *dump, uint16_t type, mnl_cb_t take, void *context) {
    char buffer[BUFFER_BYTES];
    struct nlmsghdr *header = mnl_nlmsg_put_header(buffer);
    header->nlmsg_type = type;
    header->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    header->nlmsg_seq = 1;
    struct rtgenmsg *message = mnl_nlmsg_put_extra_header(header, sizeof *message);
    message->rtgen_family = AF_UNSPEC;
    if (mnl_socket_sendto(dump, header, header->nlmsg_len) < 0)
        return -errno;
    for (int state = MNL_CB_OK; state > MNL_CB_STOP;) {
        ssize_t length = mnl_socket_recvfrom(dump, buffer, sizeof buffer);
        if (length < 0)
            return -errno;
        state = mnl_cb_run(buffer, (size_t)length, 1, mnl_socket_get_portid(dump), take, context);
        if (state == MNL_CB_ERROR)
            return -errno;
    }
    return 0;
}

// A socket of its own each time, so that what is left of an interrupted dump is not taken for the next one.
static int read_once(uint16_t type, mnl_cb_t take, void *context) {
    struct mnl_socket *dump = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
    if (!dump)
        return -errno;
    int result =
            mnl_socket_bind(dump, 0, MNL_SOCKET_AUTOPID) < 0 ? -errno : run_dump(dump, type, take, context);
    mnl_socket_close(dump);
    return result;
}

static int read_addresses(struct own_addresses *own) {
    struct table table = {0};
    int result = -EINTR;
    for (int attempt = 0; attempt < DUMP_ATTEMPTS && result == -EINTR; attempt++) {
        table.count = 0;
        result = read_once(RTM_GETADDR, take_message, &table);
    }
    if (result == 0) {
        if (table.count)
            qsort(table.addresses, table.count, sizeof *table.addresses, compare_addresses);
        pthread_rwlock_wrlock(&own->lock);
        struct table old = own->table;
        own->table = table;
        pthread_rwlock_unlock(&own->lock);
        table = old;
    }
    free(table.addresses);
    return result;
}

// ---- default routes ----

static void add_link(struct routes *routes, uint32_t link) {
    if (routes->count < ROUTES_MAXIMUM)
        routes->link[routes->count++] = link;
}

static void add_hops(struct routes *routes, const struct nlattr *attribute) {
    const struct rtnexthop *hop = mnl_attr_get_payload(attribute);
    int left = mnl_attr_get_payload_len(attribute);
    while (left >= (int)sizeof *hop && RTNH_OK(hop, left)) {
        add_link(routes, (uint32_t)hop->rtnh_ifindex);
        left -= RTNH_ALIGN(hop->rtnh_len);
        hop = RTNH_NEXT(hop);
    }
}

static bool is_default(const struct rtmsg *message) {
    return message->rtm_dst_len == 0 && message->rtm_type == RTN_UNICAST;
}

static int take_route(const struct nlmsghdr *header, void *context) {
    struct routes *routes = context;
    const struct rtmsg *message = mnl_nlmsg_get_payload(header);
    const struct nlattr *attribute;
    bool has_link = false;
    if (header->nlmsg_type != RTM_NEWROUTE || !is_default(message))
        return MNL_CB_OK;
    mnl_attr_for_each(attribute, header, sizeof *message) {
        unsigned type = mnl_attr_get_type(attribute);
        has_link = has_link || type == RTA_OIF || type == RTA_MULTIPATH;
        if (type == RTA_OIF)
            add_link(routes, mnl_attr_get_u32(attribute));
        else if (type == RTA_MULTIPATH)
            add_hops(routes, attribute);
    }
    if (!has_link) // a next hop object of which only the number is told: taken for good
        routes->is_up = true;
    return MNL_CB_OK;
}

static int take_link(const struct nlmsghdr *header, void *context) {
    struct routes *routes = context;
    const struct ifinfomsg *message = mnl_nlmsg_get_payload(header);
    bool is_up = message->ifi_flags & IFF_UP && message->ifi_flags & IFF_RUNNING;
    for (unsigned i = 0; header->nlmsg_type == RTM_NEWLINK && is_up && i < routes->count; i++)
        routes->is_up = routes->is_up || routes->link[i] == (uint32_t)message->ifi_index;
    return MNL_CB_OK;
}

static int read_routes(struct own_addresses *own) {
    struct routes routes = {0};
    int result = read_once(RTM_GETROUTE, take_route, &routes);
    if (result == 0 && routes.count > 0 && !routes.is_up)
        result = read_once(RTM_GETLINK, take_link, &routes);
    if (result == 0)
        atomic_store(&own->has_route, routes.is_up);
    return result;
}

// ---- following ----

static void note_change(const struct nlmsghdr *header, struct changes *changes) {
    switch (header->nlmsg_type) {
    case RTM_NEWADDR:
    case RTM_DELADDR:
        changes->addresses = true;
        return;
    case RTM_NEWLINK: // IPv4 routes go without a word when their link goes down
    case RTM_DELLINK:
        changes->routes = true;
        return;
    case RTM_NEWROUTE:
    case RTM_DELROUTE:
        changes->routes = changes->routes || is_default(mnl_nlmsg_get_payload(header));
        return;
    }
}

// How it changed is not looked at, that something did is enough; so an overrun (ENOBUFS) loses nothing.
static void drop_events(struct own_addresses *own, struct changes *changes) {
    char buffer[BUFFER_BYTES];
    for (int i = 0; i < EVENTS_A_ROUND; i++) {
        ssize_t length = mnl_socket_recvfrom(own->events, buffer, sizeof buffer);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0 && errno != ENOBUFS && errno != ENOSPC)
            return;
        if (length < 0)
            *changes = (struct changes){true, true};
        int left = (int)length;
        for (const struct nlmsghdr *header = (void *)buffer; mnl_nlmsg_ok(header, left);
                header = mnl_nlmsg_next(header, &left))
            note_change(header, changes);
    }
}

static void read_changes(struct own_addresses *own, struct changes *changes) {
    static struct log_limit addresses_limit, routes_limit;
    int result = changes->addresses ? read_addresses(own) : 0;
    changes->addresses = result < 0;
    if (result < 0 && result != -EINTR) // -EINTR: it changes faster than it can be read
        log_limited(&addresses_limit, 60000, "cannot read our own addresses: %s; trying again",
                strerror(-result));
    result = changes->routes ? read_routes(own) : 0;
    changes->routes = result < 0;
    if (result < 0 && result != -EINTR)
        log_limited(
                &routes_limit, 60000, "cannot read the default routes: %s; trying again", strerror(-result));
}

static void *follow(void *context) {
    struct own_addresses *own = context;
    struct pollfd wanted[2] = {
            {.fd = own->stop, .events = POLLIN}, {.fd = mnl_socket_get_fd(own->events), .events = POLLIN}};
    struct changes changes = {.routes = true};
    for (;;) {
        read_changes(own, &changes);
        int ready = poll(wanted, 2, changes.addresses || changes.routes ? RETRY_MS : -1);
        if (wanted[0].revents)
            return NULL;
        if (ready < 0 && errno != EINTR)
            CHECK(errno == ENOMEM);
        if (ready > 0 && wanted[1].revents)
            drop_events(own, &changes);
    }
}

static int join_groups(struct mnl_socket *events) {
    int groups[] = {
            RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_LINK, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE};
    if (mnl_socket_bind(events, 0, MNL_SOCKET_AUTOPID) < 0)
        return -errno;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (mnl_socket_setsockopt(events, NETLINK_ADD_MEMBERSHIP, &groups[i], sizeof groups[i]) < 0)
            return -errno;
    return 0;
}

static int open_all(struct own_addresses *own) {
    own->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (own->stop < 0)
        return -errno;
    own->events = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (!own->events)
        return -errno;
    int result = join_groups(own->events); // before the first dump: nothing falls between
    if (result == 0)
        result = read_addresses(own);
    return result == 0 ? -pthread_create(&own->thread, NULL, follow, own) : result;
}

static void close_all(struct own_addresses *own) {
    if (own->events)
        mnl_socket_close(own->events);
    if (own->stop >= 0)
        close(own->stop);
    pthread_rwlock_destroy(&own->lock);
    free(own->table.addresses);
    free(own);
}

struct own_addresses *own_addresses_new(int *error) {
    struct own_addresses *own = calloc(1, sizeof *own);
    if (!own) {
        *error = ENOMEM;
        return NULL;
    }
    pthread_rwlock_init(&own->lock, NULL);
    int result = open_all(own);
    if (result < 0) {
        *error = -result;
        close_all(own);
        return NULL;
    }
    return own;
}

void own_addresses_free(struct own_addresses *own) {
    if (!own)
        return;
    uint64_t one = 1;
    CHECK(write(own->stop, &one, sizeof one) == sizeof one);
    pthread_join(own->thread, NULL);
    close_all(own);
}

// ---- asking ----

static bool is_always_own(const struct address *address) {
    static const uint8_t none[16], loopback[16] = {[15] = 1}, broadcast[4] = {255, 255, 255, 255};
    if (!address_is_ipv4(address))
        return memcmp(address->bytes, none, 16) == 0 || memcmp(address->bytes, loopback, 16) == 0;
    const uint8_t *ipv4 = address->bytes + 12;
    return ipv4[0] == 127 || memcmp(ipv4, none, 4) == 0 || memcmp(ipv4, broadcast, 4) == 0;
}

bool own_addresses_has(const struct own_addresses *own, const struct address *address) {
    if (is_always_own(address))
        return true;
    pthread_rwlock_t *lock = (pthread_rwlock_t *)&own->lock;
    pthread_rwlock_rdlock(lock);
    bool found = table_has(&own->table, address);
    pthread_rwlock_unlock(lock);
    return found;
}

bool own_addresses_has_route(const struct own_addresses *own) {
    return atomic_load(&own->has_route);
}
