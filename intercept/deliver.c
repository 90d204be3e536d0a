// step deliver: writes the response to the client.
#include "admin/check.h"
#include "intercept/deliver_head.h"
#include "intercept/fetch.h"
#include "intercept/hole.h"
#include "intercept/parts.h"
#include "intercept/request.h"
#include "intercept/worker.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define PIECES 16
#define SEND_BYTES (256 * 1024) // offered to the kernel at once

static enum run give_up(struct session *session) {
    session->gone = true;
    session_goto(session, STEP_finish);
    return RUN_NEXT;
}

static enum run begin(struct session *session) {
    struct request *request = session->request;
    enum answer answer;
    if (!deliver_head_choose(session, &answer))
        return give_up(session);
    if (answer == ANSWER_RANGE && !cache_reader_seek(&session->reader, request->parts->ranges.all[0].first))
        return session->fetch ? give_up(session) : lookup_alone(session, "range-passed");
    if (!deliver_head_compose(session, answer))
        return give_up(session);
    if (request->no_content) {
        request->body_over = true;
        session_goto(session, STEP_finish);
    }
    session_wait(session, TIMEOUT_client_write);
    return RUN_NEXT;
}

// ---- the content ----

static enum run cut(struct session *session) {
    struct request *request = session->request;
    request->cut = true;
    request->reason = request->failure.reason ? request->failure.reason : "cut-short";
    session->closing = true;
    // A client that knows the length, or reads chunks, sees that the end is missing. One that reads until
    // close sees it by RST alone.
    session->reset = !request->chunked && !request->parts && request->stored.content_length < 0;
    session_goto(session, STEP_finish);
    return RUN_NEXT;
}

static enum run end(struct session *session) {
    struct request *request = session->request;
    if (request->chunked) {
        struct view trailers = {request->trailers, request->trailer_length};
        bool whole = buffer_append(&session->out, VIEW("0\r\n"), SIZE_MAX) &&
                     (!request->trailers || buffer_append(&session->out, trailers, SIZE_MAX)) &&
                     buffer_append(&session->out, VIEW("\r\n"), SIZE_MAX);
        if (!whole)
            return cut(session);
    }
    request->body_over = true;
    session_goto(session, STEP_finish);
    return RUN_NEXT;
}

// Cuts the pieces to what may go out now and returns their bytes.
static uint64_t limit_pieces(struct iovec *pieces, int *used, uint64_t most) {
    uint64_t bytes = 0;
    for (int i = 0; i < *used; i++) {
        if (pieces[i].iov_len >= most - bytes) {
            pieces[i].iov_len = (size_t)(most - bytes);
            *used = pieces[i].iov_len ? i + 1 : i;
            return most;
        }
        bytes += pieces[i].iov_len;
    }
    return bytes;
}

// Accounts for `sent` bytes: those of `out` first, then content.
static bool account(struct session *session, size_t sent) {
    struct request *request = session->request;
    size_t framing = buffer_length(&session->out);
    session_count_out(session, sent);
    if (framing > sent)
        framing = sent;
    buffer_take(&session->out, framing);
    sent -= framing;
    if (sent == 0)
        return true;
    cache_reader_advance(&session->reader, sent);
    request->content_sent += sent;
    if (request->parts)
        request->range_left -= sent;
    if (!request->chunked)
        return true;
    request->chunk_left -= sent;
    return request->chunk_left > 0 || buffer_append(&session->out, VIEW("\r\n"), SIZE_MAX);
}

// What waits for a slow client holds no memory of the store.
static enum run wait_for_client(struct session *session) {
    cache_reader_rest(&session->reader);
    session->want_write = true;
    if (session->wait_until_ms == 0) // what went out before waited for the store
        session_wait(session, TIMEOUT_client_write);
    return RUN_WAIT;
}

static enum run send_pieces(struct session *session, struct iovec *pieces, int used) {
    struct request *request = session->request;
    uint64_t most = request->parts && request->range_left < SEND_BYTES ? request->range_left : SEND_BYTES;
    if (request->chunked && request->chunk_left > 0 && request->chunk_left < most)
        most = request->chunk_left;
    uint64_t bytes = limit_pieces(pieces, &used, most);
    if (request->chunked && request->chunk_left == 0) {
        char head[BODY_CHUNK_HEAD_BYTES];
        size_t length = body_chunk_head(bytes, head);
        if (!buffer_append(&session->out, (struct view){head, length}, SIZE_MAX))
            return cut(session);
        request->chunk_left = bytes;
    }
    struct iovec all[PIECES + 1];
    int count = 0;
    struct view out = buffer_view(&session->out);
    if (out.length)
        all[count++] = (struct iovec){(char *)out.data, out.length};
    for (int i = 0; i < used; i++)
        all[count++] = pieces[i];
    struct msghdr message = {.msg_iov = all, .msg_iovlen = (size_t)count};
    ssize_t sent = sendmsg(session->fd, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN)
        return wait_for_client(session);
    if (sent < 0 && errno == EINTR)
        return RUN_NEXT;
    if (sent < 0 || !account(session, (size_t)sent)) {
        session->gone = true;
        session_goto(session, STEP_finish);
        return RUN_NEXT;
    }
    session_wait(session, TIMEOUT_client_write);
    return RUN_NEXT;
}

static enum run wait_for_content(struct session *session) {
    int flushed = session_flush(session);
    if (flushed < 0 && flushed != -EAGAIN) {
        session->gone = true;
        session_goto(session, STEP_finish);
        return RUN_NEXT;
    }
    if (flushed == 0)
        session->wait_until_ms = 0; // the client owes nothing; the fetch has its own deadlines
    return RUN_WAIT;
}

static enum run fill_hole(struct session *session) {
    switch (hole_fill(session)) {
    case HOLE_FILLS:
        return RUN_NEXT;
    case HOLE_STAYS:
        return cut(session);
    case HOLE_RESTS:
        break;
    }
    enum run run = wait_for_content(session);
    if (run == RUN_WAIT)
        hole_rest(session);
    return run;
}

// On to the next range. False when its bytes are not to be had any more.
static bool next_range(struct session *session, bool *is_over) {
    struct request *request = session->request;
    bool ok;
    const struct range *range = parts_next(request->parts, &session->out, &ok);
    *is_over = !range;
    if (!range)
        return ok;
    request->range_left = range->last - range->first + 1;
    return ok && cache_reader_seek(&session->reader, range->first);
}

static enum run send_content(struct session *session) {
    struct request *request = session->request;
    struct iovec pieces[PIECES];
    int used = 0;
    bool is_over = false;
    if (request->parts && request->range_left == 0 && !next_range(session, &is_over))
        return cut(session);
    if (is_over)
        return end(session);
    hole_look_ahead(session);
    switch (cache_reader_peek(&session->reader, pieces, PIECES, &used)) {
    case READ_READY:
        return send_pieces(session, pieces, used);
    case READ_WAIT:
        return wait_for_content(session);
    case READ_END:
        return request->parts ? cut(session) : end(session); // of a range something is missing
    case READ_BROKEN:
    case READ_GONE:
        return cut(session);
    case READ_HOLE:
        return fill_hole(session);
    }
    UNREACHABLE("read");
}

enum run step_deliver(struct session *session) {
    struct request *request = session->request;
    if (!session->entered)
        return begin(session);
    bool is_full = session->want_write;
    hole_wake(session);
    if (session_is_late(session) || worker_drain_is_over(session->worker)) {
        request->reason = worker_drain_is_over(session->worker) ? "stopped" : "client-slow";
        request->cut = true;
        session->gone = session->reset = true;
        session_goto(session, STEP_finish);
        return RUN_NEXT;
    }
    int64_t until = session->wait_until_ms;
    if (!request_upload(session))
        return RUN_NEXT;
    session->wait_until_ms = until; // the upload's deadline is not this step's
    if (!session_read_ahead(session)) {
        session->gone = true;
        session_goto(session, STEP_finish);
        return RUN_NEXT;
    }
    if (is_full && !(session->events & EVENT_SOCKET) && !cache_reader_is_cut(&session->reader))
        return RUN_WAIT; // nothing else makes room
    session->want_write = false;
    return send_content(session);
}
