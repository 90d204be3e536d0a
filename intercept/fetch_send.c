// The request of a fetch on its way to the origin: its head, then the body as the client sends it.
#include "intercept/fetch_own.h"

#include "intercept/worker.h"

#include <errno.h>
#include <sys/socket.h>

#define UPLOAD_BYTES 65536 // of a request body waiting to be sent

static void count_out(struct fetch *fetch, size_t bytes) {
    counter_add(&fetch->worker->counters, COUNTER_upstream_bytes_out, bytes);
}

// 0, -EAGAIN, or another -errno.
static int send_request(struct fetch *fetch) {
    while (fetch->head_sent < fetch->head.length) {
        ssize_t sent = send(fetch->upstream->fd, fetch->head.data + fetch->head_sent,
                fetch->head.length - fetch->head_sent, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return -errno;
        fetch->head_sent += (size_t)sent;
        count_out(fetch, (size_t)sent);
    }
    bool was_full = buffer_length(&fetch->out) >= UPLOAD_BYTES / 2;
    while (buffer_length(&fetch->out) > 0) {
        ssize_t sent = buffer_send(&fetch->out, fetch->upstream->fd);
        if (sent == -EINTR)
            continue;
        if (sent < 0)
            return (int)sent;
        count_out(fetch, (size_t)sent);
        fetch_set_deadline(fetch, TIMEOUT_first_byte);
    }
    if (fetch->session && !fetch->upload_over && (was_full || fetch->head_sent == fetch->head.length))
        session_wake(fetch->session, EVENT_FETCH);
    return 0;
}

// An origin that answers early may stop reading: its answer counts, not our failure to send.
void fetch_send_push(struct fetch *fetch, int *events) {
    bool owed = buffer_length(&fetch->out) > 0 || fetch->head_sent < fetch->head.length;
    if (fetch->upload_broken || !owed)
        return;
    int result = send_request(fetch);
    if (result == -EAGAIN) {
        *events |= WATCH_WRITE;
        return;
    }
    if (result < 0) {
        fetch->upload_broken = true;
        fetch->upload_reset = result != -EPIPE; // EPIPE: it had closed its half before
        buffer_release(&fetch->out);
        if (fetch->session)
            session_wake(fetch->session, EVENT_FETCH);
    }
}

size_t fetch_upload_room(struct fetch *fetch) {
    if (fetch->upload_broken)
        return UPLOAD_BYTES; // taken and dropped
    if (fetch->step == FETCH_CONNECT)
        return 0;
    size_t waiting = buffer_length(&fetch->out);
    return waiting >= UPLOAD_BYTES ? 0 : UPLOAD_BYTES - waiting;
}

bool fetch_upload_is_held(const struct fetch *fetch) {
    bool owed = buffer_length(&fetch->out) > 0 || fetch->head_sent < fetch->head.length;
    return fetch->step == FETCH_CONNECT || (!fetch->upload_broken && owed);
}

static void put(struct fetch *fetch, struct view bytes) {
    if (!fetch->upload_broken && !buffer_append(&fetch->out, bytes, SIZE_MAX)) {
        fetch->upload_broken = true; // no memory: the origin sees an unfinished request
        buffer_release(&fetch->out);
    }
}

void fetch_upload(struct fetch *fetch, struct view content) {
    fetch->upload_begun = true;
    if (fetch->upload_chunked) {
        char head[BODY_CHUNK_HEAD_BYTES];
        put(fetch, (struct view){head, body_chunk_head(content.length, head)});
    }
    put(fetch, content);
    if (fetch->upload_chunked)
        put(fetch, VIEW("\r\n"));
    worker_mark(fetch->worker, &fetch->task);
}

void fetch_upload_end(struct fetch *fetch, struct view trailers) {
    fetch->upload_over = true;
    if (fetch->upload_chunked) {
        fetch->upload_begun = true; // an empty one has a last chunk, too
        put(fetch, VIEW("0\r\n"));
        put(fetch, trailers);
        put(fetch, VIEW("\r\n"));
    }
    if (fetch->step == FETCH_HEAD)
        fetch_set_deadline(fetch, TIMEOUT_first_byte);
    worker_mark(fetch->worker, &fetch->task);
}
