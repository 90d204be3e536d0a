// What is in force: configuration, policy and logs, built together, never changed, counted. A reload builds
// another and hands it to the workers; a session keeps the one it began with.
//
// Limits come from the descriptor limit (RLIMIT_NOFILE, `files` below) where the configuration says 0:
//
//     free                 = files - 24 - access logs - workers x (4 + listen points), at least 3
//     client_connections   = free / 3, at most 65536, and what `memory` has room for (memory_plan.h)
//     upstream_connections = free / 3, at most 65536, kept ones included
//     the last third       : pipes of tunnels, four descriptors each
//     client_connections_per_host = client_connections / 4, at least 8 (at most client_connections)
//
// A configured number stands as it is; when the descriptors cannot hold it, a warning says so.
#pragma once

#include "acl/acl.h"
#include "admin/config.h"
#include "cache/cache.h"
#include "intercept/access_log.h"
#include "intercept/memory_plan.h"
#include "intercept/penalty_lines.h"
#include "intercept/quick_abort.h"
#include "intercept/store_rules.h"

#include <stdatomic.h>

struct settings {
    struct config *config;
    struct acl *acl;
    struct store_rules *store_rules;
    struct access_log *access_log;
    struct penalty_lines *penalties;
    struct memory_plan memory;
    char via_name[64];           // our pseudonym in Via
    bool connect_ports[65536];   // which ports CONNECT may reach on a forward port
    unsigned client_connections; // limits in force, after `0: from the descriptor limit`
    unsigned client_connections_per_host;
    unsigned upstream_connections;
    struct quick_abort quick_abort;
    struct settings *next_retired; // the supervisor's: replaced, but still in use
    _Atomic unsigned references;
};

// Loads and builds everything; NULL with errors. `access_log` opens files.
struct settings *settings_load(const char *file, struct config_errors *errors);
// The same from a configuration that is loaded already. Consumes it, also when it fails.
struct settings *settings_build(struct config *config, struct config_errors *errors);
// What the store is given of it.
void settings_cache_limits(const struct settings *settings, struct cache_limits *limits);
// Whether what `memory` is to hold fits into it; for `weir check`.
bool settings_validate(const struct config *config, struct config_errors *errors);
// How many event loops `workers` means: `auto` is one a processor we may run on.
unsigned settings_workers(const struct config *config);
struct settings *settings_get(struct settings *settings); // another reference
// NULL is allowed. The last one frees, which waits for the log's writer: workers must not have that one.
void settings_put(struct settings *settings);
bool settings_is_last(const struct settings *settings); // the caller's reference is the only one left
