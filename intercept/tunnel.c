#include "intercept/tunnel.h"

#include "admin/check.h"
#include "admin/container.h"
#include "intercept/dial.h"
#include "intercept/reply.h"
#include "intercept/request.h"
#include "intercept/upstream.h"
#include "intercept/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIPE_BYTES 65536 // the kernel's default pipe
#define MOVES_A_WAKE 16  // then others have their turn

enum tunnel_state {
    TUNNEL_CONNECT, // until the connection stands
    TUNNEL_PROBE,   // both sides silent: who speaks first?
    TUNNEL_RELAY,
};

// One direction: what was read before the tunnel began, then the pipe.
struct half {
    struct buffer before;
    int pipe[2];
    size_t piped;   // bytes in the pipe
    bool over;      // the sender has closed its half
    bool shut;      // and the receiver was told
    bool blocked;   // the receiver's socket is full
    uint64_t taken; // from the sender's socket, `before` aside: whoever read that has counted it
    uint64_t given; // to the receiver
};

struct tunnel {
    enum tunnel_state state;
    bool probing;              // the client has not said anything
    struct upstream *upstream; // until the relay begins
    int fd;                    // the origin's socket from then on, -1 before
    struct watch watch;        // on fd
    struct session *session;
    struct half out; // client to origin
    struct half in;  // origin to client
    bool failed;     // a socket broke: both ends see a reset
};

// ---- life ----

static void on_ready(struct watch *watch, int events) {
    struct tunnel *tunnel = CONTAINER_OF(watch, struct tunnel, watch);
    (void)events;
    session_wake(tunnel->session, EVENT_TUNNEL);
}

static void on_upstream(struct upstream *upstream, int events) {
    (void)events;
    session_wake(upstream->owner, EVENT_TUNNEL);
}

static struct tunnel *tunnel_new(struct session *session) {
    struct tunnel *tunnel = calloc(1, sizeof *tunnel);
    if (!tunnel)
        return NULL;
    tunnel->session = session;
    tunnel->fd = -1;
    tunnel->out.pipe[0] = tunnel->out.pipe[1] = tunnel->in.pipe[0] = tunnel->in.pipe[1] = -1;
    watch_init(&tunnel->watch, session->worker->loop, on_ready);
    return session->tunnel = tunnel;
}

static void half_fini(struct half *half) {
    buffer_release(&half->before);
    for (int i = 0; i < 2; i++)
        if (half->pipe[i] >= 0)
            close(half->pipe[i]);
}

static void close_origin(struct tunnel *tunnel) {
    if (tunnel->fd < 0)
        return;
    watch_stop(&tunnel->watch);
    if (tunnel->failed) {
        struct linger linger = {.l_onoff = 1, .l_linger = 0};
        setsockopt(tunnel->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    }
    close(tunnel->fd);
    upstream_forget(tunnel->session->worker);
}

void tunnel_free(struct session *session) {
    struct tunnel *tunnel = session->tunnel;
    if (!tunnel)
        return;
    session->tunnel = NULL;
    close_origin(tunnel);
    if (tunnel->upstream)
        upstream_close(tunnel->upstream);
    half_fini(&tunnel->out);
    half_fini(&tunnel->in);
    free(tunnel);
}

bool tunnel_is_waiting(const struct session *session) {
    return session->tunnel && session->tunnel->probing && session->tunnel->state != TUNNEL_RELAY;
}

// ---- the end ----

static enum run end(struct session *session, enum result result, const char *reason) {
    if (session->request) {
        session->request->result = result;
        session->request->content_sent = session->tunnel ? session->tunnel->in.given : 0;
    }
    request_log(session, result, reason);
    return RUN_END;
}

static enum run end_broken(struct session *session, const char *reason) {
    if (session->tunnel)
        session->tunnel->failed = true;
    session->reset = true;
    return end(session, RESULT_TUNNEL, reason);
}

static enum run cannot_connect(struct session *session, int status, const char *reason, const char *text) {
    if (session_next_destination(session)) { // CONNECT to a name with several addresses
        tunnel_free(session);
        return RUN_NEXT;
    }
    counter_add(&session->worker->counters, COUNTER_upstream_failed, 1);
    if (session->request && session->request->answered) // an accepted upgrade: the 101 cannot be taken back
        return end_broken(session, reason);
    tunnel_free(session);
    if (session->request) { // CONNECT
        char origin[ADDRESS_TEXT_BYTES];
        return reply_page(session, status, RESULT_ERROR, reason, text,
                view_of(endpoint_print(&session->destination, origin)));
    }
    session->reset = true; // as the destination would have done
    return end(session, RESULT_ERROR, reason);
}

// ---- begin ----

// There is no request to hold against the policy yet: client and destination are.
static bool may_pass(struct session *session, enum result *result) {
    struct acl_match match;
    struct acl_request acl = {.scheme = VIEW("tcp"), .destination = session->destination};
    if (acl_client(session->settings->acl, &session->peer.address, &match) == ACL_DENY)
        *result = RESULT_DENIED;
    else if (acl_url(session->settings->acl, &acl, &match) == ACL_BLOCK)
        *result = RESULT_BLOCKED;
    else
        return true;
    return false;
}

static void tell_uplink(struct session *session, int result) {
    uplink_watch_told(session->worker->daemon->uplink, &session->destination, result,
            loop_now_ms(session->worker->loop));
}

// A client that said nothing yet may still ask for something that is stored.
static enum run refuse_offline(struct session *session, bool probing) {
    if (!probing)
        return cannot_connect(
                session, 504, "offline", "The gateway is set to ask nothing of any server (offline).");
    session->probed = true;
    session_goto(session, STEP_request);
    return RUN_NEXT;
}

static enum run begin_connect(struct session *session) {
    enum result result;
    bool probing = !session->request && buffer_length(&session->in) == 0 && !session->read_over;
    if (!session->request && !may_pass(session, &result)) {
        if (probing) { // a client that said nothing yet may still ask properly, and be told
            session->probed = true;
            session_goto(session, STEP_request);
            return RUN_NEXT;
        }
        session->reset = true;
        return end(session, result, result == RESULT_DENIED ? "denied" : "blocked");
    }
    if (session->settings->config->offline == OFFLINE_ON)
        return refuse_offline(session, probing);
    struct tunnel *tunnel = tunnel_new(session);
    struct upstream_key key;
    int error = -ENOMEM;
    upstream_key_of_session(session, &key);
    if (tunnel)
        tunnel->upstream = upstream_dial(session->worker, session->settings, &key, &error);
    if (tunnel && !tunnel->upstream)
        tell_uplink(session, error);
    if (error == -EUSERS)
        return cannot_connect(session, 503, "upstream-limit",
                "The gateway has as many connections to servers as it may (upstream_connections).");
    if (!tunnel || !tunnel->upstream)
        return cannot_connect(
                session, 502, "connect-failed", "The connection to the server could not be begun.");
    tunnel->probing = probing;
    tunnel->upstream->owner = session;
    tunnel->upstream->ready = on_upstream;
    if (session->request)
        session->request->contacted = true;
    watch_set(&tunnel->upstream->watch, tunnel->upstream->fd, WATCH_WRITE);
    session_wait(session, TIMEOUT_connect);
    session->want_read = probing;
    return RUN_WAIT;
}

bool tunnel_begin_upgraded(struct session *session) {
    return tunnel_new(session) != NULL;
}

void tunnel_give_upstream(struct session *session, struct upstream *upstream) {
    struct tunnel *tunnel = session->tunnel;
    tunnel->upstream = upstream;
    tunnel->in.before = upstream->in; // came along with the 101
    upstream->in = (struct buffer){0};
    upstream->owner = session;
    upstream->ready = on_upstream;
    watch_stop(&upstream->watch);
    session_wake(session, EVENT_TUNNEL);
}

static bool make_pipes(struct session *session) {
    struct tunnel *tunnel = session->tunnel;
    struct half *halves[] = {&tunnel->out, &tunnel->in};
    for (int i = 0; i < 2; i++) {
        int made = pipe2(halves[i]->pipe, O_NONBLOCK | O_CLOEXEC);
        if (made < 0 && errno == EMFILE && upstream_evict(session->worker))
            made = pipe2(halves[i]->pipe, O_NONBLOCK | O_CLOEXEC);
        if (made < 0) {
            halves[i]->pipe[0] = halves[i]->pipe[1] = -1;
            return false;
        }
    }
    return true;
}

static enum run begin_relay(struct session *session) {
    struct tunnel *tunnel = session->tunnel;
    struct buffer left;
    if (!make_pipes(session))
        return cannot_connect(session, 503, "no-descriptor", "The gateway is out of descriptors.");
    watch_stop(&tunnel->upstream->watch);
    tunnel->fd = upstream_detach(tunnel->upstream, &left);
    tunnel->upstream = NULL;
    CHECK(buffer_length(&left) == 0); // moved when it was given, or nothing was read yet
    buffer_release(&left);
    tunnel->out.before = session->in;
    session->in = (struct buffer){0};
    tunnel->out.over = session->read_over;
    tunnel->state = TUNNEL_RELAY;
    if (session->request && session->request->head.method_id == METHOD_CONNECT) {
        session->request->answered = true;
        session->request->status = 200;
        if (!buffer_append(
                    &session->out, VIEW("HTTP/1.1 200 Connection established\r\n\r\n"), SESSION_OUT_BYTES))
            return end_broken(session, "no-memory");
    }
    session_wait(session, TIMEOUT_tunnel_idle);
    return RUN_NEXT;
}

// ---- connect and probe ----

// The client spoke (or left) while the server was being waited for. If it spoke it is an HTTP client, and the
// connection is kept for its request.
static enum run back_to_request(struct session *session) {
    struct tunnel *tunnel = session->tunnel;
    struct upstream *upstream = tunnel->upstream;
    char byte;
    bool asks = recv(session->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
    tunnel->upstream = NULL;
    watch_stop(&upstream->watch);
    if (upstream->connected && asks)
        upstream_keep(upstream, session->settings);
    else
        upstream_close(upstream);
    tunnel_free(session);
    session->probed = true;
    session_goto(session, STEP_request);
    return RUN_NEXT;
}

static bool client_spoke(struct session *session) {
    char byte;
    ssize_t got = recv(session->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got >= 0 || errno != EAGAIN;
}

static enum run run_connect(struct session *session) {
    struct tunnel *tunnel = session->tunnel;
    if (tunnel->probing && client_spoke(session))
        return back_to_request(session);
    bool late = session_is_late(session);
    int result = late ? -ETIMEDOUT : dial_result(tunnel->upstream->fd);
    if (result == -EINPROGRESS || result == -EALREADY)
        return RUN_WAIT;
    tell_uplink(session, result);
    if (result < 0 && tunnel->probing && late)
        return back_to_request(session); // its request will be told properly
    if (result == -ECONNREFUSED)
        return cannot_connect(session, 502, "connect-refused", "The server refused the connection.");
    if (result == -ETIMEDOUT)
        return cannot_connect(
                session, 504, "connect-timeout", "The server did not accept the connection in time.");
    if (result < 0)
        return cannot_connect(session, 502, "unreachable", "The server cannot be reached.");
    tunnel->upstream->connected = true;
    if (!tunnel->probing)
        return begin_relay(session);
    tunnel->state = TUNNEL_PROBE;
    watch_set(&tunnel->upstream->watch, tunnel->upstream->fd, WATCH_READ);
    session_wait(session, TIMEOUT_client_idle);
    return RUN_NEXT;
}

static enum run run_probe(struct session *session) {
    struct tunnel *tunnel = session->tunnel;
    char byte;
    ssize_t got = recv(tunnel->upstream->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got > 0)
        return begin_relay(session);
    if (got == 0 || errno != EAGAIN) // the server has no patience: the client sees what it would have seen
        return client_spoke(session) ? back_to_request(session) : RUN_END;
    if (client_spoke(session))
        return back_to_request(session);
    if (session_is_late(session))
        return RUN_END;
    session->want_read = true;
    return RUN_WAIT;
}

// ---- relay ----

enum moved { MOVED_SOME, MOVED_NOTHING, MOVED_BROKEN };

static enum moved send_before(struct half *half, int to) {
    ssize_t sent = buffer_send(&half->before, to);
    if (sent == -EAGAIN) {
        half->blocked = true;
        return MOVED_NOTHING;
    }
    if (sent < 0)
        return sent == -EINTR ? MOVED_SOME : MOVED_BROKEN;
    half->given += (uint64_t)sent;
    if (buffer_length(&half->before) == 0)
        buffer_release(&half->before);
    return MOVED_SOME;
}

static enum moved drain_pipe(struct half *half, int to) {
    ssize_t moved = splice(half->pipe[0], NULL, to, NULL, half->piped, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (moved < 0 && errno == EAGAIN) {
        half->blocked = true;
        return MOVED_NOTHING;
    }
    if (moved <= 0)
        return errno == EINTR ? MOVED_SOME : MOVED_BROKEN;
    half->piped -= (size_t)moved;
    half->given += (uint64_t)moved;
    return MOVED_SOME;
}

// Only into an empty pipe, so that EAGAIN means an empty socket and never a full pipe.
static enum moved fill_pipe(struct half *half, int from) {
    ssize_t moved = splice(from, NULL, half->pipe[1], NULL, PIPE_BYTES, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (moved < 0 && errno == EAGAIN)
        return MOVED_NOTHING;
    if (moved < 0)
        return errno == EINTR ? MOVED_SOME : MOVED_BROKEN;
    if (moved == 0)
        half->over = true;
    half->piped = (size_t)moved;
    half->taken += (uint64_t)moved;
    return MOVED_SOME;
}

static enum moved move(struct half *half, int from, int to) {
    half->blocked = false;
    if (buffer_length(&half->before) > 0)
        return send_before(half, to);
    if (half->piped > 0)
        return drain_pipe(half, to);
    if (!half->over)
        return fill_pipe(half, from);
    if (half->shut)
        return MOVED_NOTHING;
    half->shut = true;
    return shutdown(to, SHUT_WR) == 0 ? MOVED_SOME : MOVED_BROKEN;
}

static void rearm(struct session *session) {
    struct tunnel *tunnel = session->tunnel;
    bool out_empty = buffer_length(&tunnel->out.before) == 0 && tunnel->out.piped == 0;
    bool in_empty = buffer_length(&tunnel->in.before) == 0 && tunnel->in.piped == 0;
    session->read_over = tunnel->out.over;
    session->want_read = out_empty && !tunnel->out.over;
    session->want_write = tunnel->in.blocked || buffer_length(&session->out) > 0;
    int events = tunnel->out.blocked ? WATCH_WRITE : 0;
    if (in_empty && !tunnel->in.over)
        events |= WATCH_READ;
    watch_set(&tunnel->watch, tunnel->fd, events);
}

// What the relay moved since `out` and `in` were noted.
static void count(struct session *session, const struct half *out, const struct half *in) {
    struct tunnel *tunnel = session->tunnel;
    uint64_t up = tunnel->out.given - out->given, down = tunnel->in.given - in->given;
    uint64_t from_client = tunnel->out.taken - out->taken;
    struct counter_row *counters = &session->worker->counters;
    session->bytes_in += from_client; // else session_receive counts
    session_count_out(session, down);
    counter_add(counters, COUNTER_client_bytes_in, from_client);
    counter_add(counters, COUNTER_upstream_bytes_out, up);
    counter_add(counters, COUNTER_upstream_bytes_in, tunnel->in.taken - in->taken);
    if (up || down)
        session_wait(session, TIMEOUT_tunnel_idle);
}

static enum run run_relay(struct session *session) {
    struct tunnel *tunnel = session->tunnel;
    int flushed = session_flush(session); // the 101 or 200 goes first
    if (flushed < 0 && flushed != -EAGAIN)
        return end_broken(session, "client-left");
    const struct half out_before = tunnel->out, in_before = tunnel->in;
    enum moved out = MOVED_SOME, in = flushed == 0 ? MOVED_SOME : MOVED_NOTHING;
    for (int i = 0; i < MOVES_A_WAKE && (out == MOVED_SOME || in == MOVED_SOME); i++) {
        if (out == MOVED_SOME)
            out = move(&tunnel->out, session->fd, tunnel->fd);
        if (in == MOVED_SOME)
            in = move(&tunnel->in, tunnel->fd, session->fd);
    }
    count(session, &out_before, &in_before);
    if (out == MOVED_BROKEN || in == MOVED_BROKEN)
        return end_broken(session, "reset");
    if (tunnel->out.shut && tunnel->in.shut)
        return end(session, RESULT_TUNNEL, "closed");
    if (session_is_late(session))
        return end_broken(session, "tunnel-idle-timeout");
    rearm(session);
    return out == MOVED_SOME || in == MOVED_SOME ? RUN_NEXT : RUN_WAIT;
}

enum run step_tunnel(struct session *session) {
    struct tunnel *tunnel = session->tunnel;
    if (!tunnel)
        return begin_connect(session);
    if (session->events & EVENT_EVICT && tunnel_is_waiting(session))
        return RUN_END;
    if (worker_drain_is_over(session->worker))
        return tunnel_is_waiting(session) ? RUN_END : end_broken(session, "stopped");
    if (tunnel->state == TUNNEL_CONNECT && tunnel->upstream->connected) // an upgraded one
        return begin_relay(session);
    switch (tunnel->state) {
    case TUNNEL_CONNECT:
        return run_connect(session);
    case TUNNEL_PROBE:
        return run_probe(session);
    case TUNNEL_RELAY:
        return run_relay(session);
    }
    UNREACHABLE("tunnel state");
}
