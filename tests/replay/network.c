#include "tests/replay/network.h"

#include "admin/check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MAXIMUM 4096 // open at once
#define PIECE_BYTES 65536

// A connection with both its ends.
struct pair {
    unsigned id;
    int ours;   // the driver's end, -1 once closed
    int theirs; // the daemon's, -1 once closed
    struct endpoint destination;
    int error; // of the attempt: what network_dial_result says
    bool paused, heard_end, reset_by_them;
    bool shuts, closes; // once `out` is sent
    unsigned char *out; // what the socket has not taken yet
    size_t out_length;
};

static struct pair *pairs;
static unsigned pair_count, last_id;
static int refuse_error;
static unsigned refuse_count; // 0: without end

int __real_close(int fd);
int __wrap_close(int fd);

static struct pair *find_id(unsigned id) {
    for (unsigned i = 0; i < pair_count; i++)
        if (pairs[i].id == id && pairs[i].ours >= 0)
            return &pairs[i];
    return NULL;
}

static struct pair *find_theirs(int fd) {
    for (unsigned i = 0; fd >= 0 && i < pair_count; i++)
        if (pairs[i].theirs == fd)
            return &pairs[i];
    return NULL;
}

// ---- beginnings ----

static struct pair *add(const struct endpoint *destination) {
    if (!pairs)
        pairs = calloc(CONNECTIONS_MAXIMUM, sizeof *pairs);
    CHECK(pairs && pair_count < CONNECTIONS_MAXIMUM);
    struct pair *pair = &pairs[pair_count++];
    *pair = (struct pair){.id = ++last_id, .ours = -1, .theirs = -1, .destination = *destination};
    return pair;
}

static void open_pair(struct pair *pair) {
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    pair->ours = ends[0];
    pair->theirs = ends[1];
}

int network_connect(const struct endpoint *destination, unsigned *id) {
    struct pair *pair = add(destination);
    open_pair(pair);
    *id = pair->id;
    return pair->theirs;
}

const struct endpoint *network_destination(int fd) {
    const struct pair *pair = find_theirs(fd);
    CHECK(pair);
    return &pair->destination;
}

void network_refuse(int error, unsigned count) {
    refuse_error = error;
    refuse_count = count;
}

static int take_refusal(void) {
    int error = refuse_error;
    if (error && refuse_count > 0 && --refuse_count == 0)
        refuse_error = 0;
    return error;
}

// An attempt that never ends: the read end of a pipe is never writable.
static void open_hanging(struct pair *pair) {
    int ends[2];
    CHECK(pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0);
    pair->theirs = ends[0];
    pair->ours = ends[1];
    pair->heard_end = true;
}

int network_dial(const struct endpoint *destination) {
    char text[ADDRESS_TEXT_BYTES];
    int error = take_refusal();
    struct pair *pair = add(destination);
    printf("dial %u %s %d\n", pair->id, endpoint_print(destination, text), error);
    pair->error = error;
    if (error == ENETUNREACH) { // connect(2) itself says so
        pair_count--;
        return -error;
    }
    if (error == ETIMEDOUT) {
        open_hanging(pair);
        return pair->theirs;
    }
    open_pair(pair);
    if (error) {
        __real_close(pair->ours);
        pair->ours = -1;
    }
    return pair->theirs;
}

int network_dial_result(int fd) {
    const struct pair *pair = find_theirs(fd);
    CHECK(pair);
    return pair->error == ETIMEDOUT ? -EINPROGRESS : -pair->error;
}

// ---- endings ----

static void close_ours(struct pair *pair) {
    if (pair->ours >= 0)
        __real_close(pair->ours);
    pair->ours = -1;
    free(pair->out);
    pair->out = NULL;
    pair->out_length = 0;
}

// Linked in place of close(2): whether the daemon's end went with a reset is not to be seen on a socket pair.
int __wrap_close(int fd) {
    struct pair *pair = find_theirs(fd);
    struct linger linger = {0};
    socklen_t length = sizeof linger;
    if (pair) {
        if (getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &length) == 0)
            pair->reset_by_them = linger.l_onoff && linger.l_linger == 0;
        pair->theirs = -1;
    }
    return __real_close(fd);
}

// A socket pair says ECONNRESET to the one end when the other is closed with something unread.
static void reset(struct pair *pair) {
    if (pair->theirs >= 0 && !pair->heard_end)
        (void)!send(pair->theirs, "", 1, MSG_NOSIGNAL);
    close_ours(pair);
}

bool network_end(unsigned id, enum network_end how) {
    struct pair *pair = find_id(id);
    if (!pair)
        return false;
    pair->shuts = pair->shuts || how == NETWORK_SHUTDOWN;
    pair->closes = pair->closes || how == NETWORK_CLOSE;
    if (how == NETWORK_RESET)
        reset(pair);
    return true;
}

bool network_pause(unsigned id, bool paused) {
    struct pair *pair = find_id(id);
    if (pair)
        pair->paused = paused;
    return pair;
}

bool network_send(unsigned id, const void *data, size_t length) {
    struct pair *pair = find_id(id);
    if (!pair || pair->closes || pair->shuts)
        return false;
    pair->out = realloc(pair->out, pair->out_length + length + 1);
    CHECK(pair->out);
    memcpy(pair->out + pair->out_length, data, length);
    pair->out_length += length;
    return true;
}

// ---- moving ----

static void say_end(struct pair *pair, bool with_reset) {
    pair->heard_end = true;
    printf("%s %u\n", with_reset || pair->reset_by_them ? "rst" : "fin", pair->id);
}

static bool receive(struct pair *pair) {
    static unsigned char piece[PIECE_BYTES];
    bool any = false;
    while (!pair->paused && !pair->heard_end && pair->ours >= 0) {
        ssize_t got = recv(pair->ours, piece, sizeof piece, 0);
        if (got < 0 && errno == EAGAIN)
            return any;
        any = true;
        if (got <= 0) {
            say_end(pair, got < 0);
            return true;
        }
        printf("data %u ", pair->id);
        for (ssize_t i = 0; i < got; i++)
            printf("%02x", piece[i]);
        putchar('\n');
    }
    return any;
}

static bool transmit(struct pair *pair) {
    size_t sent = 0;
    while (sent < pair->out_length) {
        ssize_t count = send(pair->ours, pair->out + sent, pair->out_length - sent, MSG_NOSIGNAL);
        if (count < 0 && errno == EAGAIN)
            break;
        sent = count < 0 ? pair->out_length : sent + (size_t)count; // nobody takes it any more
    }
    memmove(pair->out, pair->out + sent, pair->out_length - sent);
    pair->out_length -= sent;
    return sent > 0;
}

static bool end_when_sent(struct pair *pair) {
    if (pair->out_length > 0 || !(pair->shuts || pair->closes))
        return false;
    if (pair->closes)
        close_ours(pair);
    else
        shutdown(pair->ours, SHUT_WR);
    pair->shuts = false;
    return true;
}

static bool move_pair(struct pair *pair) {
    if (pair->ours < 0 || pair->error)
        return false;
    bool any = pair->out_length > 0 && transmit(pair);
    any = receive(pair) || any;
    return end_when_sent(pair) || any;
}

static void forget_gone(void) {
    unsigned kept = 0;
    for (unsigned i = 0; i < pair_count; i++) {
        struct pair *pair = &pairs[i];
        if (pair->theirs < 0 && (pair->error || pair->heard_end) && (pair->error || pair->closes))
            close_ours(pair);
        if (pair->ours >= 0 || pair->theirs >= 0)
            pairs[kept++] = *pair;
    }
    pair_count = kept;
}

bool network_move(void) {
    bool any = false;
    for (unsigned i = 0; i < pair_count; i++)
        any = move_pair(&pairs[i]) || any;
    forget_gone();
    return any;
}

void network_end_all(void) {
    for (unsigned i = 0; i < pair_count; i++)
        close_ours(&pairs[i]);
}

unsigned network_open(void) {
    unsigned open = 0;
    for (unsigned i = 0; i < pair_count; i++)
        open += pairs[i].theirs >= 0;
    return open;
}

void network_free(void) {
    network_end_all();
    free(pairs);
    pairs = NULL;
    pair_count = 0;
}
