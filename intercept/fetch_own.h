// The inside of a fetch, for the files that make it up: fetch.c (life and runner), fetch_connect.c,
// fetch_send.c, fetch_answer.c and fetch_body.c. Nobody else includes it.
#pragma once

#include "http/body.h"
#include "intercept/fetch.h"
#include "intercept/fetch_head.h"
#include "intercept/task.h"
#include "intercept/upstream.h"

enum fetch_step {
    FETCH_CONNECT, // until the connection stands
    FETCH_HEAD,    // sends the request and waits for the final response head
    FETCH_BODY,    // fills the response
};

struct fetch {
    struct task task;
    struct worker *worker;
    struct fetch *next, **link;
    struct settings *settings;
    struct cache_rules rules; // of the URL; from `settings`
    struct session *session;  // NULL once it left
    struct session *asker;    // of a hole: who delivers what is missing; NULL once it left
    struct cache_fill *fill;
    struct upstream_key key;
    struct upstream *upstream;
    struct deadline deadline;
    struct letter letter;     // room in the fill
    int64_t held_until_ms;    // without room: when to cut off the readers that hold it up; 0: there was room
    bool is_refresh;          // for the store alone
    bool is_hole;             // for what is missing in something stored
    int64_t refresh_until_ms; // when to give it up
    int64_t alone_since_ms;   // with neither client nor reader; 0: not alone
    enum fetch_step step;
    uint64_t alone_bytes; // received in that time
    bool is_answered;     // its client left with all that it was to have
    bool late;            // the deadline passed
    bool looks;           // `deadline` is none: it wakes the fetch to see whether anybody still reads
    // the request
    enum method_id method;
    bool wants_upgrade;
    bool expects_continue;
    bool upload_chunked;
    bool upload_begun;
    bool upload_over;
    bool upload_broken; // the origin takes no more of it
    bool upload_reset;  // the origin's reset was told to a send: what is read after it ends as if it were
                        // closed
    bool retried;
    unsigned place_waits;
    struct fetch_head head;
    size_t head_sent;
    bool again;        // without the store's own conditions, which the origin had answered with a riddle
    struct buffer out; // request body, framed
    struct moment request_at;
    // the response
    unsigned interims;
    size_t seen;
    bool answered; // any byte of a response arrived
    bool keeps_alive;
    struct body_decoder body;
    int64_t content_length;
};

// Ends the exchange without a (whole) response: tells the session why, abandons the fill, closes the
// connection. RUN_END: the runner frees the fetch.
enum run fetch_give_up(struct fetch *fetch, int status, const char *reason, const char *text);
// The same, because of the origin: what is stored may stand in for it.
enum run fetch_fail(struct fetch *fetch, int status, const char *reason, const char *text);
// The session has all it needs from the fetch; it is woken.
void fetch_let_go(struct fetch *fetch);
void fetch_set_deadline(struct fetch *fetch, enum timeout_id timeout); // from now
// Wakes the fetch then, without any deadline having passed.
void fetch_look_at(struct fetch *fetch, int64_t at_ms);
void fetch_on_room(void *owner); // for cache_fill_room; from any thread

enum run fetch_connect_begin(struct fetch *fetch, bool may_reuse);
enum run fetch_connect_run(struct fetch *fetch);
// Done with the connection: keeps it when nothing is owed on it in either direction, else closes it.
void fetch_connect_end(struct fetch *fetch);
// Sends what is owed of head and body; adds WATCH_WRITE to *events when the socket is full.
void fetch_send_push(struct fetch *fetch, int *events);
enum run fetch_answer_run(struct fetch *fetch); // FETCH_HEAD
enum run fetch_body_run(struct fetch *fetch);   // FETCH_BODY
