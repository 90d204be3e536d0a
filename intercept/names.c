#include "intercept/names.h"

#include "admin/check.h"
#include "admin/container.h"

#include <ares.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define QUERIES_MAXIMUM 256 // under way at once, given-up ones included; more are answered "too many"
#define ADDRESSES_MAXIMUM 16
#define NAME_BYTES_MAXIMUM 254 // [RFC 1035 §2.3.4], and a trailing dot
#define RESOLVER_FILE "/etc/resolv.conf"
#define RESOLVER_CHECK_MS 5000
#define TRIES 3

// One descriptor of c-ares.
struct names_socket {
    struct watch watch;
    struct names *names;
    struct names_socket *next;
    int fd;
};

struct names {
    struct loop *loop;
    ares_channel channel;
    struct deadline retry; // when c-ares wants to be looked after without any packet
    struct names_socket *sockets;
    int64_t timeout_ms;
    unsigned queries;
    int64_t resolver_checked_ms;
    struct timespec resolver_changed;
};

struct names_query {
    struct names *names;
    names_answer *answer; // NULL: answered, or nobody waits any more
    void *owner;
    struct deadline limit;
    bool beginning, finished; // c-ares may finish within the call that began it
};

// ---- c-ares on our loop ----

static void look_again(struct names *names) {
    struct timeval buffer, *wait = ares_timeout(names->channel, NULL, &buffer);
    int64_t at_ms = 0;
    if (wait)
        at_ms = loop_now_ms(names->loop) + wait->tv_sec * 1000 + wait->tv_usec / 1000 + 1;
    deadline_set(&names->retry, at_ms);
}

static void retry_due(struct deadline *deadline) {
    struct names *names = CONTAINER_OF(deadline, struct names, retry);
    ares_process_fd(names->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    look_again(names);
}

static void socket_ready(struct watch *watch, int events) {
    struct names_socket *one = (struct names_socket *)watch; // its first member
    struct names *names = one->names;
    int fd = one->fd; // `one` may be gone after the call
    ares_process_fd(names->channel, events & WATCH_READ ? fd : ARES_SOCKET_BAD,
            events & WATCH_WRITE ? fd : ARES_SOCKET_BAD);
    look_again(names);
}

static struct names_socket **find_socket(struct names *names, int fd) {
    struct names_socket **link = &names->sockets;
    while (*link && (*link)->fd != fd)
        link = &(*link)->next;
    return link;
}

static void drop_socket(struct names_socket **link) {
    struct names_socket *one = *link;
    *link = one->next;
    watch_stop(&one->watch);
    free(one);
}

static struct names_socket *add_socket(struct names *names, int fd) {
    struct names_socket *one = calloc(1, sizeof *one);
    if (!one)
        return NULL; // c-ares runs into its timeout, and asks again
    watch_init(&one->watch, names->loop, socket_ready);
    one->names = names;
    one->fd = fd;
    one->next = names->sockets;
    names->sockets = one;
    return one;
}

static void socket_state(void *context, ares_socket_t fd, int readable, int writable) {
    struct names *names = context;
    struct names_socket **link = find_socket(names, fd);
    if (!readable && !writable) {
        if (*link)
            drop_socket(link);
        return;
    }
    struct names_socket *one = *link ? *link : add_socket(names, fd);
    if (one)
        watch_set(&one->watch, fd, (readable ? WATCH_READ : 0) | (writable ? WATCH_WRITE : 0));
}

// ---- the resolver in use ----

static pthread_once_t library_once = PTHREAD_ONCE_INIT;
static int library_status;

static void init_library(void) {
    library_status = ares_library_init(ARES_LIB_INIT_ALL);
}

static struct timespec resolver_file_time(void) {
    struct stat status;
    return stat(RESOLVER_FILE, &status) == 0 ? status.st_mtim : (struct timespec){0};
}

// An uplink that comes up again may bring other resolvers. c-ares takes them only while it asks nothing.
static void follow_resolver_file(struct names *names) {
    int64_t now_ms = loop_now_ms(names->loop);
    if (names->queries > 0 || now_ms - names->resolver_checked_ms < RESOLVER_CHECK_MS)
        return;
    names->resolver_checked_ms = now_ms;
    struct timespec changed = resolver_file_time();
    if (memcmp(&changed, &names->resolver_changed, sizeof changed) == 0)
        return;
    ares_channel fresh;
    struct ares_addr_port_node *servers = NULL;
    if (ares_init(&fresh) != ARES_SUCCESS)
        return;
    if (ares_get_servers_ports(fresh, &servers) == ARES_SUCCESS &&
            ares_set_servers_ports(names->channel, servers) == ARES_SUCCESS)
        names->resolver_changed = changed;
    ares_free_data(servers);
    ares_destroy(fresh);
}

bool names_set_servers(struct names *names, const char *servers) {
    return ares_set_servers_ports_csv(names->channel, servers) == ARES_SUCCESS;
}

static bool open_channel(struct names *names) {
    struct ares_options options = {
            .timeout = (int)(names->timeout_ms / 4 > 0 ? names->timeout_ms / 4 : 1), // 1 + 2 + 4 of them
            .tries = TRIES,
            .sock_state_cb = socket_state,
            .sock_state_cb_data = names,
    };
    pthread_once(&library_once, init_library);
    return library_status == ARES_SUCCESS &&
           ares_init_options(&names->channel, &options,
                   ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB) == ARES_SUCCESS;
}

struct names *names_new(struct loop *loop, int64_t timeout_ms) {
    struct names *names = calloc(1, sizeof *names);
    if (!names)
        return NULL;
    names->loop = loop;
    names->timeout_ms = timeout_ms;
    names->resolver_changed = resolver_file_time();
    names->resolver_checked_ms = loop_now_ms(loop);
    deadline_init(&names->retry, loop, retry_due);
    if (!open_channel(names)) {
        free(names);
        return NULL;
    }
    return names;
}

void names_free(struct names *names) {
    if (!names)
        return;
    ares_destroy(names->channel); // answers every query
    CHECK(names->queries == 0);
    while (names->sockets)
        drop_socket(&names->sockets);
    deadline_set(&names->retry, 0);
    free(names);
}

// ---- queries ----

static const char *reason_of(int status) {
    switch (status) {
    case ARES_ENOTFOUND:
        return "the name does not exist";
    case ARES_ENODATA:
        return "the name has no address";
    case ARES_ETIMEOUT:
        return "the resolver did not answer in time";
    case ARES_ECONNREFUSED:
        return "no resolver could be asked";
    case ARES_ESERVFAIL:
    case ARES_EREFUSED:
        return "the resolver could not answer";
    case ARES_EBADNAME:
        return "not a host name";
    case ARES_EDESTRUCTION:
        return "weir is stopping";
    default:
        return "the look-up failed";
    }
}

static void answer_once(
        struct names_query *query, const struct address *addresses, unsigned count, const char *why) {
    names_answer *answer = query->answer;
    query->answer = NULL;
    deadline_set(&query->limit, 0);
    if (answer)
        answer(query->owner, addresses, count, count ? NULL : why);
}

static unsigned collect(const struct ares_addrinfo *info, struct address addresses[ADDRESSES_MAXIMUM]) {
    unsigned count = 0;
    const struct ares_addrinfo_node *node = info ? info->nodes : NULL;
    for (; node && count < ADDRESSES_MAXIMUM; node = node->ai_next) {
        struct endpoint endpoint;
        if (endpoint_from_sockaddr(&endpoint, node->ai_addr))
            addresses[count++] = endpoint.address;
    }
    return count;
}

static void query_done(void *context, int status, int timeouts, struct ares_addrinfo *info) {
    (void)timeouts;
    struct names_query *query = context;
    struct address addresses[ADDRESSES_MAXIMUM];
    unsigned count = status == ARES_SUCCESS ? collect(info, addresses) : 0;
    if (info)
        ares_freeaddrinfo(info);
    query->names->queries--;
    answer_once(query, addresses, count, reason_of(status == ARES_SUCCESS ? ARES_ENODATA : status));
    if (query->beginning)
        query->finished = true;
    else
        free(query);
}

static void query_expired(struct deadline *deadline) {
    struct names_query *query = CONTAINER_OF(deadline, struct names_query, limit);
    answer_once(query, NULL, 0, reason_of(ARES_ETIMEOUT)); // c-ares frees it when it gives up itself
}

static struct names_query *begin_query(
        struct names *names, const char *name, names_answer *answer, void *owner) {
    static const struct ares_addrinfo_hints hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct names_query *query = calloc(1, sizeof *query);
    if (!query) {
        answer(owner, NULL, 0, "out of memory");
        return NULL;
    }
    *query = (struct names_query){.names = names, .answer = answer, .owner = owner, .beginning = true};
    deadline_init(&query->limit, names->loop, query_expired);
    deadline_set(&query->limit, loop_now_ms(names->loop) + names->timeout_ms);
    names->queries++;
    ares_getaddrinfo(names->channel, name, NULL, &hints, query_done, query);
    look_again(names);
    query->beginning = false;
    if (!query->finished)
        return query;
    free(query);
    return NULL;
}

struct names_query *names_resolve(struct names *names, struct view host, names_answer *answer, void *owner) {
    struct address literal;
    char name[NAME_BYTES_MAXIMUM + 1];
    if (address_parse(host, &literal)) {
        answer(owner, &literal, 1, NULL);
        return NULL;
    }
    if (host.length == 0 || host.length > NAME_BYTES_MAXIMUM || memchr(host.data, 0, host.length)) {
        answer(owner, NULL, 0, reason_of(ARES_EBADNAME));
        return NULL;
    }
    if (names->queries == QUERIES_MAXIMUM) {
        answer(owner, NULL, 0, "too many names are being looked up");
        return NULL;
    }
    memcpy(name, host.data, host.length);
    name[host.length] = '\0';
    follow_resolver_file(names);
    return begin_query(names, name, answer, owner);
}

void names_cancel(struct names_query *query) {
    if (!query)
        return;
    query->answer = NULL;
    deadline_set(&query->limit, 0);
}
