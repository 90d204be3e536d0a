// A client connection: a step of the data path plus what it waits for. Loop callbacks only record the event
// and mark the session runnable. session_run is the only caller of steps, session_goto the only writer of the
// step, session_rearm the only place that starts or stops its watcher and deadline; session_destroy is called
// by the runner alone.
#pragma once

#include "acl/acl.h"
#include "cache/cache.h"
#include "http/body.h"
#include "http/target.h"
#include "intercept/access_log.h"
#include "intercept/buffer.h"
#include "intercept/listen.h"
#include "intercept/loop.h"
#include "intercept/names.h"
#include "intercept/origdst.h"
#include "intercept/settings.h"
#include "intercept/task.h"

#define SESSION_HEAD_BYTES 4096   // the first read for a request's head
#define SESSION_READ_BYTES 16384  // one read from a client
#define SESSION_AHEAD_BYTES 16384 // what is read ahead of the current request (pipelining)
#define SESSION_OUT_BYTES 262144  // heads, interim responses and error pages waiting to be sent

#define HOLE_FETCHES 4 // of what is missing in a stored response, at once

struct fetch;
struct parts;
struct tunnel;
struct upstream;

enum step {
#define STEP(id, file, meaning) STEP_##id,
#include "intercept/steps.tbl"
};

enum run {
    RUN_NEXT, // run again at once: the step changed, or there is more to do
    RUN_WAIT, // nothing to do until an event or the deadline
    RUN_END,  // destroy the session
};

enum session_event {
    EVENT_SOCKET = 1,   // the client's socket is ready
    EVENT_DEADLINE = 2, // the deadline passed
    EVENT_READER = 4,   // the store made progress
    EVENT_FETCH = 8,    // the fetch made progress, failed or took upload bytes
    EVENT_NAMES = 16,   // the resolver answered
    EVENT_TUNNEL = 32,  // the tunnel's other socket is ready
    EVENT_DRAIN = 64,   // the worker is draining
    EVENT_EVICT = 128,  // another connection needs this one's descriptor
};

// Why no response will come from the origin: set by the fetch before the fill is abandoned.
struct failure {
    int status;         // 502, 504, 503; 0: none
    const char *reason; // the log's word: "connect-refused"
    const char *text;   // a sentence for the page
};

// One request, from its parsed head to its log line. Heap, one block, gone with the request.
struct request {
    char *head_bytes; // what the head's views point into
    struct http_head head;
    struct http_target target;
    struct framing framing;
    struct body_decoder body;
    bool body_begun;       // any of the body was read
    bool body_done;        // all of it
    bool body_bad;         // its framing broke: nothing more is read
    bool expects_continue; // Expect: 100-continue, and neither 100 nor a final response was sent yet
    bool wants_upgrade;    // Upgrade with Connection: upgrade
    char authority[300];   // normalised
    size_t authority_length;
    bool has_rules;                 // store_rules is filled
    struct cache_rules store_rules; // of this URL; from the session's settings
    enum lookup lookup;
    enum fill_kind fill_kind;  // once the fetch has it
    const char *asked;         // the lookup's reason; NULL: it was not looked up
    const char *lookup_reason; // the same until the fill gives its own
    int origin_status;         // of the origin's final response; 0: none so far
    unsigned vain_lookups;     // joined, and what came was not for this request
    bool skips_disk;           // waited for what is on a disk in vain
    bool is_asked_by_store;    // the origin was asked with the store's own conditions, not with the client's
    struct failure failure;
    int64_t began_at_ms; // monotonic
    int64_t began_wall_ms;
    int64_t total_at_ms;       // the total deadline
    uint64_t client_in_before; // session counters when it began
    uint64_t client_out_before;
    // the response
    bool answered;            // a response head was written to `out`
    bool chunked;             // its content goes out in chunks
    bool no_content;          // no content goes out (HEAD, 304...)
    struct cache_head stored; // what is delivered; valid while the reader is attached
    char *trailers;           // heap: trailer fields of the response, set by the fetch before the fill ends
    size_t trailer_length;
    struct parts *parts; // heap: the ranges that go out, NULL when it is not by ranges
    uint64_t range_left; // of the one that goes out now
    uint64_t chunk_left; // of the chunk whose head was written
    bool body_over;      // all content and framing is in `out` or sent
    bool cut;            // it ended early
    int status;
    uint64_t content_sent;
    struct hole {
        struct fetch *fetches[HOLE_FETCHES]; // running ones that this request began; NULL: a free place
        uint64_t at;                         // content_sent as it last stood before a hole
        unsigned tries;                      // so often in a row
        int64_t until_ms;                    // the last try there begins before
        int64_t next_at_ms;                  // not to be tried again before
        uint64_t ahead_at;                   // content_sent from which on it looks ahead again
        bool is_refused;                     // the origin has something else now: no use in trying again
        bool is_resting;                     // the session's deadline is next_at_ms
    } hole;
    enum result result;
    const char *reason;
    struct acl_match match;
    bool logged;
    bool contacted;             // the origin was asked
    struct http_field fields[]; // settings' limit
};

struct session {
    struct task task;
    struct worker *worker;
    struct session *next, **link; // the worker's list
    struct settings *settings;
    const struct listen_point *listen;
    int fd;
    struct watch watch;
    struct deadline deadline;
    struct letter letter; // from the reader's wake
    enum step step;
    unsigned events;
    bool entered; // the current step ran before: this is no first call
    bool moved;   // session_goto was called in this run of a step
    int64_t began_at_ms;
    int64_t step_at_ms;        // when the step, or the last progress within it, began
    int64_t wait_until_ms;     // the step's deadline; 0: none
    enum timeout_id waits_for; // which timeout set it
    bool read_over;            // the client half-closed or closed
    bool want_read;            // for session_rearm
    bool want_write;           // the socket took less than there was
    bool closing;              // no further request on this connection
    bool lingering;
    bool reset;  // end with RST: the client must see that something is missing
    bool gone;   // the client's socket failed: nothing more can be sent
    bool probed; // the server was given its chance to speak first
    // arriving
    struct endpoint peer, local, destination;
    enum origdst arrival;
    struct client_class class;
    unsigned requests;
    uint64_t bytes_in, bytes_out;
    uint64_t lingered_bytes;
    int64_t linger_until_ms;
    size_t seen; // of `in`, known to hold no end of a head
    struct buffer in, out;
    // the current request
    struct request *request;
    struct cache_reader reader;
    struct fetch *fetch;
    struct names_query *names;
    struct address resolved[8];
    unsigned resolved_count, resolved_next;
    bool resolved_done;
    struct tunnel *tunnel;
};

// ---- worker.c and accept.c ----
// Takes over `fd`. NULL without memory (the descriptor is closed).
struct session *session_new(struct worker *worker, int fd, const struct listen_point *listen,
        const struct endpoint *peer, const struct endpoint *local);

// ---- the steps' side ----
void session_goto(struct session *session, enum step step);
void session_wake(struct session *session, unsigned events);
// The step's deadline: `timeout` from now; replaces the one before.
void session_wait(struct session *session, enum timeout_id timeout);
// Whether that deadline is what woke the session, and no step has moved it since.
bool session_is_late(const struct session *session);
// Sends what `out` holds. 0 when all went, -EAGAIN when the socket is full (want_write is set), another
// -errno when the client is gone.
int session_flush(struct session *session);
// Reads once into `in`, at most up to `limit`. Bytes, 0 at the end, -EAGAIN, -ENOBUFS, -errno.
ssize_t session_receive(struct session *session, size_t limit);
void session_count_out(struct session *session, size_t bytes);

// Detaches the reader; no wake of it is on its way any more.
void session_detach(struct session *session);

// Reads ahead of the current request, bounded, so that a client that resets is noticed. False when it did.
bool session_read_ahead(struct session *session);

// Ends every session of the worker at once (its thread has ended).
void session_end_all(struct worker *worker);

// A forward request's next address of its name becomes the destination. False when there is none (left);
// always for an intercepted connection, whose destination is the kernel's word.
bool session_next_destination(struct session *session);

// The request is over without a log line (its memory goes); detaches reader, fetch and look-up.
void session_drop_request(struct session *session);

#define STEP(id, file, meaning) enum run step_##id(struct session *session);
#include "intercept/steps.tbl"
