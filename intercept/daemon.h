// The running daemon, seen from its threads.
#pragma once

#include "admin/counter.h"
#include "cache/cache.h"
#include "cache/disk.h"
#include "intercept/listen.h"
#include "intercept/netlink.h"
#include "intercept/settings.h"
#include "intercept/uplink_watch.h"

// Shared by all workers; outlives them.
struct daemon {
    struct cache *cache;
    struct disk *disk; // NULL: no volumes so far
    struct store_judge *judge;
    struct own_addresses *own;
    struct uplink_watch *uplink;
    struct listen_set listen;
    _Atomic unsigned sessions;  // client connections open, all workers
    _Atomic unsigned upstreams; // connections to origins, all workers
    unsigned worker_count;
    struct worker **workers;
};
