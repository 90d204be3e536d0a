#include "intercept/hosts.h"

#include <pthread.h>
#include <stdlib.h>

#define SHARDS 64
#define BUCKETS 256 // of each shard

struct host {
    struct address address;
    unsigned connections;
    struct host *next;
};

static struct shard {
    _Alignas(64) pthread_mutex_t lock;
    struct host *buckets[BUCKETS];
} shards[SHARDS] = {[0 ... SHARDS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static struct shard *shard_of(const struct address *client, struct host ***bucket) {
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof client->bytes; i++)
        hash = (hash ^ client->bytes[i]) * 0x9e3779b97f4a7c15u;
    struct shard *shard = &shards[hash >> 58];
    *bucket = &shard->buckets[(hash >> 40) % BUCKETS];
    return shard;
}

static struct host **find(struct host **place, const struct address *client) {
    while (*place && !address_equal(&(*place)->address, client))
        place = &(*place)->next;
    return place;
}

bool hosts_enter(const struct address *client, unsigned limit) {
    struct host **bucket;
    struct shard *shard = shard_of(client, &bucket);
    bool entered = true;
    pthread_mutex_lock(&shard->lock);
    struct host *host = *find(bucket, client);
    if (host && host->connections >= limit) {
        entered = false;
    } else if (host) {
        host->connections++;
    } else if ((host = malloc(sizeof *host))) {
        *host = (struct host){.address = *client, .connections = 1, .next = *bucket};
        *bucket = host;
    }
    pthread_mutex_unlock(&shard->lock);
    return entered;
}

void hosts_leave(const struct address *client) {
    struct host **bucket;
    struct shard *shard = shard_of(client, &bucket);
    pthread_mutex_lock(&shard->lock);
    struct host **place = find(bucket, client);
    struct host *host = *place;
    if (host && --host->connections == 0) {
        *place = host->next;
        free(host);
    }
    pthread_mutex_unlock(&shard->lock);
}
