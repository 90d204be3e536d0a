#include "intercept/listen.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG 4096 // the kernel takes net.core.somaxconn when that is less

static const char *const mode_names[] = {
        [LISTEN_REDIRECT] = "redirect",
        [LISTEN_TPROXY] = "tproxy",
        [LISTEN_FORWARD] = "forward",
        [LISTEN_ANY] = "any",
};

const char *listen_mode_name(enum listen_mode mode) {
    return mode_names[mode];
}

// ---- the directives ----

static bool parse_mode(const char *text, enum listen_mode *mode) {
    for (size_t i = 0; i < sizeof mode_names / sizeof *mode_names; i++)
        if (view_equal_fold(view_of(text), view_of(mode_names[i]))) {
            *mode = (enum listen_mode)i;
            return true;
        }
    return false;
}

static struct view strip_brackets(struct view text) {
    if (text.length >= 2 && text.data[0] == '[' && text.data[text.length - 1] == ']')
        return view_take(view_skip(text, 1), text.length - 2);
    return text;
}

// Splits "ADDRESS:PORT" at the last colon that no bracket follows; without one all of it is the port.
static bool split(struct view text, struct view *address, struct view *port) {
    *address = (struct view){"", 0};
    *port = text;
    for (size_t i = text.length; i-- > 0 && text.data[i] != ']';)
        if (text.data[i] == ':') {
            *address = view_take(text, i);
            *port = view_skip(text, i + 1);
            return i > 0;
        }
    return true;
}

static const char *parse_place(struct view text, struct listen_point *point) {
    static const struct address none;
    struct view address, port;
    uint64_t number;
    if (!split(text, &address, &port) || !view_number(port, &number) || number == 0 || number > 65535)
        return "the port must be 1 to 65535; write PORT, ADDRESS:PORT or [IPV6]:PORT";
    point->address = (struct endpoint){.port = (uint16_t)number};
    point->any_address = true;
    if (address.length == 0 || view_equal(address, VIEW("*")))
        return NULL;
    bool bracketed = address.data[0] == '[';
    if (!address_parse(strip_brackets(address), &point->address.address) ||
            bracketed == address_is_ipv4(&point->address.address))
        return "not an address; write 192.0.2.1:PORT or [2001:db8::1]:PORT";
    point->any_address = address_equal(&point->address.address, &none);
    return NULL;
}

static bool is_loopback(const struct address *address) {
    static const uint8_t loopback[16] = {[15] = 1};
    return address_is_ipv4(address) ? address->bytes[12] == 127 : memcmp(address->bytes, loopback, 16) == 0;
}

static bool is_unspecified(const struct listen_point *point) {
    static const uint8_t none[4];
    const struct address *address = &point->address.address;
    return point->any_address || (address_is_ipv4(address) && memcmp(address->bytes + 12, none, 4) == 0);
}

static bool overlap(const struct listen_point *a, const struct listen_point *b) {
    return a->address.port == b->address.port &&
           (is_unspecified(a) || is_unspecified(b) ||
                   address_equal(&a->address.address, &b->address.address));
}

static const struct listen_point *find_overlap(
        const struct listen_set *set, const struct listen_point *point) {
    for (unsigned i = 0; i < set->count; i++)
        if (overlap(&set->points[i], point))
            return &set->points[i];
    return NULL;
}

static bool parse_point(
        const struct directive *directive, struct listen_point *point, struct config_errors *errors) {
    point->directive = directive;
    const char *why = parse_place(view_of(directive->words[0].text), point);
    if (why) {
        config_error(errors, directive, 0, "%s: %s", directive->words[0].text, why);
        return false;
    }
    if (!parse_mode(directive->words[1].text, &point->mode)) {
        config_error(errors, directive, 1, "%s is no way to listen; write redirect, tproxy, forward or any",
                directive->words[1].text);
        return false;
    }
    bool redirected = point->mode == LISTEN_REDIRECT || point->mode == LISTEN_ANY;
    if (redirected && is_loopback(&point->address.address)) {
        config_error(errors, directive, 0,
                "netfilter redirects to the address of the interface a packet came in by, never to "
                "loopback; leave the address out, or use forward");
        return false;
    }
    return true;
}

static bool add_point(
        struct listen_set *set, const struct listen_point *point, struct config_errors *errors) {
    const struct listen_point *other = find_overlap(set, point);
    if (other) {
        config_error(errors, point->directive, 0, "port %u is taken by line %u already; give each its own",
                (unsigned)point->address.port, other->directive->line);
        return false;
    }
    if (set->count == LISTEN_MAXIMUM) {
        config_error(errors, point->directive, -1, "more than %d listen lines; remove some", LISTEN_MAXIMUM);
        return false;
    }
    set->points[set->count++] = *point;
    return true;
}

bool listen_parse(const struct config *config, struct listen_set *set, struct config_errors *errors) {
    bool good = true;
    set->count = 0;
    for (size_t i = 0; i < config->directive_count; i++) {
        struct listen_point point;
        if (config->directives[i].id != DIRECTIVE_listen)
            continue;
        if (!parse_point(&config->directives[i], &point, errors) || !add_point(set, &point, errors))
            good = false;
    }
    return good;
}

bool listen_validate(const struct config *config, struct config_errors *errors) {
    struct listen_set set;
    bool good = listen_parse(config, &set, errors), has_tproxy = false;
    for (unsigned i = 0; good && i < set.count; i++)
        has_tproxy = has_tproxy || set.points[i].mode == LISTEN_TPROXY;
    if (!good || has_tproxy || !config->spoof_client)
        return good;
    config_error(errors, config->set_by[DIRECTIVE_spoof_client], -1,
            "spoof_client works with tproxy alone, add a line listen PORT tproxy or take it out");
    return false;
}

// ---- the sockets ----

struct socket_option {
    int level, name, value;
    bool wanted;
    const char *what;
};

static int set_options(int fd, const struct listen_point *point, bool ipv6, bool share, const char **what) {
    bool tproxy = point->mode == LISTEN_TPROXY;
    const struct socket_option options[] = {
            {SOL_SOCKET, SO_REUSEADDR, 1, true, "SO_REUSEADDR"},
            {SOL_SOCKET, SO_REUSEPORT, 1, share, "SO_REUSEPORT"},
            {SOL_IPV6, IPV6_V6ONLY, !point->any_address, ipv6, "IPV6_V6ONLY"},
            {SOL_IP, IP_TRANSPARENT, 1, tproxy, "IP_TRANSPARENT"},
            {SOL_IPV6, IPV6_TRANSPARENT, 1, tproxy && ipv6, "IPV6_TRANSPARENT"},
            {SOL_IP, IP_RECVTOS, 1, true, "IP_RECVTOS"},
            {SOL_IPV6, IPV6_RECVTCLASS, 1, ipv6, "IPV6_RECVTCLASS"},
            {IPPROTO_TCP, TCP_NODELAY, 1, true, "TCP_NODELAY"}, // accepted sockets inherit it
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const struct socket_option *one = &options[i];
        *what = one->what;
        if (one->wanted && setsockopt(fd, one->level, one->name, &one->value, sizeof one->value) < 0)
            return -errno;
    }
    return 0;
}

// A probe binds alone: nobody may connect to what nobody will accept from.
static int bind_and_listen(
        int fd, const struct endpoint *endpoint, bool ipv6, bool share, const char **what) {
    struct sockaddr_storage address;
    socklen_t length = endpoint_to_sockaddr(endpoint, ipv6, &address);
    *what = "bind";
    if (bind(fd, (struct sockaddr *)&address, length) < 0)
        return -errno;
    if (!share)
        return 0;
    *what = "listen";
    return listen(fd, BACKLOG) < 0 ? -errno : 0;
}

static int open_family(const struct listen_point *point, bool ipv6, bool share, const char **what) {
    struct endpoint endpoint = point->address;
    if (point->any_address && !ipv6) // 0.0.0.0
        endpoint.address.bytes[10] = endpoint.address.bytes[11] = 0xff;
    *what = "socket";
    int fd = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (fd < 0)
        return -errno;
    int result = set_options(fd, point, ipv6, share, what);
    if (result == 0)
        result = bind_and_listen(fd, &endpoint, ipv6, share, what);
    if (result < 0)
        close(fd);
    return result < 0 ? result : fd;
}

static int open_point(const struct listen_point *point, bool share, const char **what) {
    if (!point->any_address)
        return open_family(point, !address_is_ipv4(&point->address.address), share, what);
    int fd = open_family(point, true, share, what);
    // A kernel without IPv6 (ipv6.disable=1) still has clients.
    return fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL ? open_family(point, false, share, what) : fd;
}

int listen_open(const struct listen_point *point, const char **what) {
    return open_point(point, true, what);
}

int listen_probe(const struct listen_point *point) {
    const char *what;
    int fd = open_point(point, false, &what);
    if (fd >= 0)
        close(fd);
    return fd == -EADDRINUSE ? fd : 0;
}
