// What the configuration asks of netfilter, in one struct: which connections, which of weir's ports takes
// them, and how. Both backends' templates are filled from it.
#pragma once

#include "admin/address.h"
#include "admin/config.h"
#include "iptables/problem.h"

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#define PLAN_INTERFACES_MAX 64
#define PLAN_HTTP_PORT 80

enum family { FAMILY_IPV4, FAMILY_IPV6, FAMILY_COUNT };

enum plan_mode { PLAN_REDIRECT, PLAN_TPROXY };

struct plan_target {
    bool on;                          // some listener takes this family
    char address[ADDRESS_TEXT_BYTES]; // where it is bound; empty for every address
    uint16_t port;
};

struct plan {
    enum plan_mode mode; // with listeners of both kinds: tproxy
    bool pass_when_gone; // on_failure open
    struct plan_target target[FAMILY_COUNT];
    unsigned interface_count;
    char interfaces[PLAN_INTERFACES_MAX][IFNAMSIZ]; // a last '+' stands for any ending
    uint32_t intercept;
    uint32_t upstream;
    uint32_t mask;
    uint32_t table;
};

// Reads the configuration, and where it names no `lan` interface, the interfaces and default routes of this
// moment. -EINVAL for a configuration that cannot work, with the cure in `problem`.
int plan_make(const struct config *config, struct plan *plan, struct problem *problem);

const char *family_name(enum family family); // "IPv4", "IPv6"
