// Connections to origins, and the pool of unused ones. Each belongs to one worker. A connection is reused
// only for what may share it: the same address and port, the same spoofed client, the same mark and DSCP.
#pragma once

#include "intercept/buffer.h"
#include "intercept/loop.h"
#include "intercept/origdst.h"

struct session;
struct settings;
struct worker;

struct upstream_key {
    struct endpoint destination;
    bool spoof;
    struct address client; // zero unless spoof
    struct client_class class;
};

struct upstream {
    struct worker *worker;
    struct upstream_key key;
    int fd;
    struct watch watch;
    struct deadline deadline; // while idle
    struct buffer in;
    bool connected;
    bool reused;       // taken from the pool
    unsigned requests; // sent on it
    int64_t used_at_ms;
    // the user's, NULL while idle: records the event and marks its owner
    void *owner;
    void (*ready)(struct upstream *upstream, int events);
    struct upstream *next, **link; // the pool
    struct upstream *age_next, **age_link;
};

// What the session's upstream connections may be shared by.
void upstream_key_of_session(const struct session *session, struct upstream_key *key);

struct upstream_pool {
    struct upstream **buckets;
    struct upstream *oldest; // idle ones by age; newest at *newest
    struct upstream **newest;
};

int upstream_pool_init(struct upstream_pool *pool);
void upstream_pool_close(struct upstream_pool *pool); // the idle ones
void upstream_pool_fini(struct upstream_pool *pool);  // closes the idle ones

// An unused connection with this key that is still open and silent, or NULL.
struct upstream *upstream_take(struct worker *worker, const struct upstream_key *key);

// The way may be gone since a kept connection was last used, and no word of it came: it ends with ETIMEDOUT
// when what is sent on it is not acknowledged for `timeout connect`, as long as a new one would have been
// given. Not for uploads, which a server may hold up. A connection that is detached is free of it.
void upstream_doubt(struct upstream *upstream, const struct settings *settings);

// Begins a new one. NULL with *error: -EUSERS when the limit on upstream connections is reached, else the
// failed call's.
struct upstream *upstream_dial(
        struct worker *worker, struct settings *settings, const struct upstream_key *key, int *error);

// Gives back a connection that is clean: no bytes in `in`, nothing owed in either direction. It is kept until
// `timeout upstream_keep`, the origin's close, or the bound per origin; or closed at once.
void upstream_keep(struct upstream *upstream, const struct settings *settings);

void upstream_close(struct upstream *upstream);

// Takes the descriptor out (for a tunnel) and frees the rest; `in` is moved to *left. The connection still
// counts until upstream_forget.
int upstream_detach(struct upstream *upstream, struct buffer *left);
void upstream_forget(struct worker *worker);

// Closes the oldest idle connection to free a descriptor. False when there is none.
bool upstream_evict(struct worker *worker);
