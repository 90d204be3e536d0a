#include "intercept/upstream.h"

#include "admin/check.h"
#include "admin/container.h"
#include "admin/mark.h"
#include "intercept/dial.h"
#include "intercept/session.h"
#include "intercept/worker.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUCKETS 1024

int upstream_pool_init(struct upstream_pool *pool) {
    pool->buckets = calloc(
            BUCKETS, sizeof(struct upstream *)); // NOLINT(bugprone-sizeof-expression): pointers are meant
    pool->newest = &pool->oldest;
    return pool->buckets ? 0 : -ENOMEM;
}

void upstream_pool_close(struct upstream_pool *pool) {
    for (struct upstream *upstream = pool->oldest, *next; upstream; upstream = next) {
        next = upstream->age_next;
        upstream_close(upstream);
    }
}

void upstream_pool_fini(struct upstream_pool *pool) {
    upstream_pool_close(pool);
    free(pool->buckets);
    pool->buckets = NULL;
}

static bool is_same_key(const struct upstream_key *a, const struct upstream_key *b) {
    return endpoint_equal(&a->destination, &b->destination) && a->spoof == b->spoof &&
           (!a->spoof || address_equal(&a->client, &b->client)) && a->class.mark == b->class.mark &&
           a->class.tos == b->class.tos;
}

void upstream_key_of_session(const struct session *session, struct upstream_key *key) {
    *key = (struct upstream_key){.destination = session->destination, .class = session->class};
    key->spoof = session->settings->config->spoof_client && session->listen->mode == LISTEN_TPROXY;
    if (key->spoof)
        key->client = session->peer.address;
}

static struct upstream **bucket_of(struct upstream_pool *pool, const struct upstream_key *key) {
    uint64_t hash = key->destination.port;
    for (size_t i = 0; i < sizeof key->destination.address.bytes; i++)
        hash = (hash ^ key->destination.address.bytes[i]) * 0x9e3779b97f4a7c15u;
    if (key->spoof)
        for (size_t i = 0; i < sizeof key->client.bytes; i++)
            hash = (hash ^ key->client.bytes[i]) * 0x9e3779b97f4a7c15u;
    return &pool->buckets[(hash >> 32) % BUCKETS];
}

static void pool_add(struct upstream_pool *pool, struct upstream *upstream) {
    struct upstream **bucket = bucket_of(pool, &upstream->key);
    upstream->next = *bucket;
    upstream->link = bucket;
    if (*bucket)
        (*bucket)->link = &upstream->next;
    *bucket = upstream;
    upstream->age_next = NULL;
    upstream->age_link = pool->newest;
    *pool->newest = upstream;
    pool->newest = &upstream->age_next;
}

static void pool_remove(struct upstream_pool *pool, struct upstream *upstream) {
    *upstream->link = upstream->next;
    if (upstream->next)
        upstream->next->link = upstream->link;
    *upstream->age_link = upstream->age_next;
    if (upstream->age_next)
        upstream->age_next->age_link = upstream->age_link;
    else
        pool->newest = upstream->age_link;
    upstream->link = NULL;
}

static void on_ready(struct watch *watch, int events) {
    struct upstream *upstream = CONTAINER_OF(watch, struct upstream, watch);
    if (upstream->owner)
        upstream->ready(upstream, events);
    else // idle: the origin closed it, or said something nobody asked for
        upstream_close(upstream);
}

static void on_idle_too_long(struct deadline *deadline) {
    struct upstream *upstream = CONTAINER_OF(deadline, struct upstream, deadline);
    CHECK(upstream->link);
    upstream_close(upstream);
}

// Open and silent? What arrived since the watcher last looked would be taken for an answer to the next
// request.
static bool is_clean(const struct upstream *upstream) {
    char byte;
    return recv(upstream->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

struct upstream *upstream_take(struct worker *worker, const struct upstream_key *key) {
    struct upstream_pool *pool = &worker->pool;
    struct upstream *next;
    for (struct upstream *upstream = *bucket_of(pool, key); upstream; upstream = next) {
        next = upstream->next;
        if (!is_same_key(&upstream->key, key))
            continue;
        if (!is_clean(upstream)) {
            upstream_close(upstream);
            continue;
        }
        pool_remove(pool, upstream);
        deadline_set(&upstream->deadline, 0);
        upstream->reused = true;
        return upstream;
    }
    return NULL;
}

// Refused by nothing that is TCP; and without it the other deadlines hold.
static void set_user_timeout(const struct upstream *upstream, unsigned timeout_ms) {
    setsockopt(upstream->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
}

void upstream_doubt(struct upstream *upstream, const struct settings *settings) {
    CHECK(upstream->reused);
    set_user_timeout(upstream, (unsigned)settings->config->timeout_ms[TIMEOUT_connect]);
}

static int begin(struct worker *worker, struct settings *settings, const struct upstream_key *key) {
    struct dial dial = {
            .destination = key->destination,
            .spoof = key->spoof,
            .client = key->client,
            .class = key->class,
            .mark = mark_upstream(settings->config),
            .mask = (uint32_t)settings->config->rule_mask,
    };
    int fd = dial_begin(&dial);
    if ((fd == -EMFILE || fd == -ENFILE) && upstream_evict(worker))
        fd = dial_begin(&dial);
    return fd;
}

static bool take_place(struct worker *worker, const struct settings *settings) {
    unsigned before = atomic_fetch_add(&worker->daemon->upstreams, 1);
    if (before < settings->upstream_connections || upstream_evict(worker))
        return true;
    atomic_fetch_sub(&worker->daemon->upstreams, 1);
    return false;
}

struct upstream *upstream_dial(
        struct worker *worker, struct settings *settings, const struct upstream_key *key, int *error) {
    if (!take_place(worker, settings)) {
        *error = -EUSERS;
        return NULL;
    }
    struct upstream *upstream = calloc(1, sizeof *upstream);
    int fd = upstream ? begin(worker, settings, key) : -ENOMEM;
    if (fd < 0) {
        free(upstream);
        atomic_fetch_sub(&worker->daemon->upstreams, 1);
        *error = fd;
        return NULL;
    }
    upstream->worker = worker;
    upstream->key = *key;
    upstream->fd = fd;
    watch_init(&upstream->watch, worker->loop, on_ready);
    deadline_init(&upstream->deadline, worker->loop, on_idle_too_long);
    counter_add(&worker->counters, COUNTER_upstream_connections, 1);
    return upstream;
}

static bool has_enough_idle(struct upstream_pool *pool, const struct upstream_key *key, unsigned limit) {
    unsigned count = 0;
    for (struct upstream *upstream = *bucket_of(pool, key); upstream && count < limit;
            upstream = upstream->next)
        count += is_same_key(&upstream->key, key);
    return count >= limit;
}

void upstream_keep(struct upstream *upstream, const struct settings *settings) {
    struct worker *worker = upstream->worker;
    int64_t keep_ms = settings->config->timeout_ms[TIMEOUT_upstream_keep];
    if (keep_ms == 0 || buffer_length(&upstream->in) > 0 || worker->draining ||
            has_enough_idle(
                    &worker->pool, &upstream->key, (unsigned)settings->config->upstream_idle_per_origin)) {
        upstream_close(upstream);
        return;
    }
    buffer_release(&upstream->in);
    upstream->owner = NULL;
    upstream->ready = NULL;
    pool_add(&worker->pool, upstream);
    watch_set(&upstream->watch, upstream->fd, WATCH_READ);
    deadline_set(&upstream->deadline, loop_now_ms(worker->loop) + keep_ms);
}

static void drop(struct upstream *upstream) {
    if (upstream->link)
        pool_remove(&upstream->worker->pool, upstream);
    deadline_set(&upstream->deadline, 0);
    watch_stop(&upstream->watch);
}

void upstream_close(struct upstream *upstream) {
    drop(upstream);
    close(upstream->fd);
    upstream_forget(upstream->worker);
    buffer_release(&upstream->in);
    free(upstream);
}

int upstream_detach(struct upstream *upstream, struct buffer *left) {
    int fd = upstream->fd;
    if (upstream->reused)
        set_user_timeout(upstream, 0);
    drop(upstream);
    *left = upstream->in;
    free(upstream);
    return fd;
}

void upstream_forget(struct worker *worker) {
    atomic_fetch_sub(&worker->daemon->upstreams, 1);
}

bool upstream_evict(struct worker *worker) {
    struct upstream *oldest = worker->pool.oldest;
    if (!oldest)
        return false;
    upstream_close(oldest); // NOLINT(clang-analyzer-unix.Malloc): closing takes it out of the pool
    return true;
}
