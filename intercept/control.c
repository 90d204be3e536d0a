#include "intercept/control.h"

#include "admin/check.h"
#include "admin/clock.h"
#include "admin/container.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PEERS_MAXIMUM 16
#define PEER_TIMEOUT_MS 10000
#define ACCEPT_AGAIN_MS 1000 // when all descriptors are taken

struct peer {
    struct control *control;
    struct watch watch;
    struct deadline deadline;
    int fd; // -1: free
    bool answered, held;
    char request[CONTROL_REQUEST_BYTES];
    size_t request_length;
    char *answer;
    size_t answer_length, answer_sent;
};

struct control {
    struct sockaddr_un address;
    dev_t device; // of the socket file, to know whether it is still ours
    ino_t inode;
    int fd;
    struct loop *loop;
    struct watch watch;
    struct deadline accept_again;
    control_handler *handler;
    void *context;
    struct peer *peers[PEERS_MAXIMUM];
};

// ---- the socket file ----

static int connect_to(const struct sockaddr_un *address) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0)
        return fd;
    int error = errno;
    close(fd);
    return -error;
}

static int set_address(struct sockaddr_un *address, const char *path) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address->sun_path)
        return -ENAMETOOLONG;
    memcpy(address->sun_path, path, strlen(path) + 1);
    return 0;
}

// 0 when a left-over file was removed.
static int replace_stale(const struct sockaddr_un *address) {
    struct stat status;
    if (lstat(address->sun_path, &status) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(status.st_mode))
        return -EEXIST;
    int fd = connect_to(address);
    if (fd >= 0)
        close(fd);
    if (fd >= 0 || fd == -EAGAIN)
        return -EADDRINUSE;
    if (fd != -ECONNREFUSED)
        return fd;
    return unlink(address->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

static int bind_private(int fd, const struct sockaddr_un *address) {
    mode_t before = umask(0177);
    int result = bind(fd, (const struct sockaddr *)address, sizeof *address) < 0 ? -errno : 0;
    umask(before);
    return result;
}

static int open_socket(struct control *control) {
    struct stat status;
    control->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (control->fd < 0)
        return -errno;
    int result = bind_private(control->fd, &control->address);
    if (result == -EADDRINUSE) {
        result = replace_stale(&control->address);
        if (result == 0)
            result = bind_private(control->fd, &control->address);
    }
    if (result < 0)
        return result;
    if (lstat(control->address.sun_path, &status) < 0 || listen(control->fd, PEERS_MAXIMUM) < 0)
        return -errno;
    control->device = status.st_dev;
    control->inode = status.st_ino;
    return 0;
}

struct control *control_open(const char *path, int *error) {
    struct control *control = calloc(1, sizeof *control);
    int result = control ? set_address(&control->address, path) : -ENOMEM;
    if (result == 0) {
        control->fd = -1;
        result = open_socket(control);
        if (result < 0 && control->fd >= 0)
            close(control->fd);
    }
    if (result == 0)
        return control;
    *error = -result;
    free(control);
    return NULL;
}

// ---- peers ----

static void peer_free(struct peer *peer) {
    for (unsigned i = 0; i < PEERS_MAXIMUM; i++)
        if (peer->control->peers[i] == peer)
            peer->control->peers[i] = NULL;
    watch_stop(&peer->watch);
    deadline_set(&peer->deadline, 0);
    close(peer->fd);
    free(peer->answer);
    free(peer);
}

static void peer_expired(struct deadline *deadline) {
    peer_free(CONTAINER_OF(deadline, struct peer, deadline));
}

static void touch(struct peer *peer) {
    deadline_set(&peer->deadline, clock_monotonic_ms() + PEER_TIMEOUT_MS);
}

static void send_answer(struct peer *peer) {
    while (peer->answer_sent < peer->answer_length) {
        ssize_t count = send(peer->fd, peer->answer + peer->answer_sent,
                peer->answer_length - peer->answer_sent, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno == EAGAIN) {
            watch_set(&peer->watch, peer->fd, WATCH_WRITE);
            return;
        }
        if (count < 0) {
            peer_free(peer);
            return;
        }
        peer->answer_sent += (size_t)count;
        touch(peer);
    }
    if (!peer->held) {
        peer_free(peer);
        return;
    }
    watch_stop(&peer->watch);
    deadline_set(&peer->deadline, 0);
}

static void answer_request(struct peer *peer, struct view request) {
    struct control_reply reply = {.out = open_memstream(&peer->answer, &peer->answer_length)};
    peer->answered = true;
    if (!reply.out) {
        peer_free(peer);
        return;
    }
    peer->control->handler(peer->control->context, request, &reply);
    peer->held = reply.hold;
    bool whole = !ferror(reply.out);
    if (fclose(reply.out) != 0 || !whole)
        peer_free(peer);
    else
        send_answer(peer);
}

static void refuse_request(struct peer *peer, const char *why) {
    peer->answered = true;
    peer->answer = strdup(why);
    peer->answer_length = peer->answer ? strlen(why) : 0;
    send_answer(peer);
}

static void read_request(struct peer *peer) {
    ssize_t count = recv(
            peer->fd, peer->request + peer->request_length, sizeof peer->request - peer->request_length, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count <= 0) {
        peer_free(peer);
        return;
    }
    peer->request_length += (size_t)count;
    struct view all = {peer->request, peer->request_length};
    size_t end = view_find(all, '\n');
    if (end < all.length)
        answer_request(peer, view_take(all, end));
    else if (all.length == sizeof peer->request)
        refuse_request(peer, "error: the request is too long\n");
}

static void peer_ready(struct watch *watch, int events) {
    (void)events;
    struct peer *peer = CONTAINER_OF(watch, struct peer, watch);
    if (peer->answered)
        send_answer(peer);
    else
        read_request(peer);
}

static struct peer **free_place(struct control *control) {
    for (unsigned i = 0; i < PEERS_MAXIMUM; i++)
        if (!control->peers[i])
            return &control->peers[i];
    return NULL;
}

static void add_peer(struct control *control, int fd) {
    static const char busy[] = "error: too many commands at once; try again\n";
    struct peer **place = free_place(control);
    struct peer *peer = place ? calloc(1, sizeof *peer) : NULL;
    if (!peer) {
        ssize_t ignored = send(fd, busy, sizeof busy - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)ignored;
        close(fd);
        return;
    }
    peer->control = control;
    peer->fd = fd;
    watch_init(&peer->watch, control->loop, peer_ready);
    deadline_init(&peer->deadline, control->loop, peer_expired);
    watch_set(&peer->watch, fd, WATCH_READ);
    touch(peer);
    *place = peer;
}

static void accept_peers(struct watch *watch, int events) {
    (void)events;
    struct control *control = CONTAINER_OF(watch, struct control, watch);
    int fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        add_peer(control, fd);
    else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        watch_stop(&control->watch);
        deadline_set(&control->accept_again, clock_monotonic_ms() + ACCEPT_AGAIN_MS);
    }
}

static void accept_again(struct deadline *deadline) {
    struct control *control = CONTAINER_OF(deadline, struct control, accept_again);
    watch_set(&control->watch, control->fd, WATCH_READ);
}

void control_serve(struct control *control, struct loop *loop, control_handler *handler, void *context) {
    control->loop = loop;
    control->handler = handler;
    control->context = context;
    watch_init(&control->watch, loop, accept_peers);
    deadline_init(&control->accept_again, loop, accept_again);
    watch_set(&control->watch, control->fd, WATCH_READ);
}

void control_close(struct control *control) {
    struct stat status;
    if (!control)
        return;
    if (control->loop) {
        watch_stop(&control->watch);
        deadline_set(&control->accept_again, 0);
    }
    if (lstat(control->address.sun_path, &status) == 0 && status.st_dev == control->device &&
            status.st_ino == control->inode)
        unlink(control->address.sun_path); // fails in a folder that is not ours: the next start replaces it
    close(control->fd);
    for (unsigned i = 0; i < PEERS_MAXIMUM; i++)
        if (control->peers[i])
            peer_free(control->peers[i]);
    free(control);
}
