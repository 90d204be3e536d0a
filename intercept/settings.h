// What is in force: configuration, policy and logs, built together, never changed, counted. A reload builds
// another and hands it to the workers; a session keeps the one it began with.
#pragma once

#include "acl/acl.h"
#include "admin/config.h"
#include "intercept/access_log.h"

#include <stdatomic.h>

struct settings {
    struct config *config;
    struct acl *acl;
    struct access_log *access_log;
    char via_name[64];                        // our pseudonym in Via
    bool connect_ports[65536];                // which ports CONNECT may reach on a forward port
    struct endpoint forward_default_endpoint; // unused unless forward_default is an address; port 0: none
    unsigned client_connections;              // limits in force, after `0: from the descriptor limit`
    unsigned client_connections_per_host;
    unsigned upstream_connections;
    _Atomic unsigned references;
};

// Loads and builds everything; NULL with errors. `access_log` opens files.
struct settings *settings_load(const char *file, struct config_errors *errors);
struct settings *settings_get(struct settings *settings); // another reference
void settings_put(struct settings *settings);             // NULL is allowed; the last one frees
