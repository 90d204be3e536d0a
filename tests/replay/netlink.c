#include "tests/replay/netlink.h"

#include "admin/view.h"

#include <stdlib.h>

struct own_addresses {
    struct address address;
};

static bool route = true;

void netlink_set_route(bool has_route) {
    route = has_route;
}

struct own_addresses *own_addresses_new(int *error) {
    struct own_addresses *own = calloc(1, sizeof *own);
    *error = 0;
    if (own)
        address_parse(VIEW(REPLAY_ADDRESS), &own->address);
    return own;
}

void own_addresses_free(struct own_addresses *own) {
    free(own);
}

bool own_addresses_has(const struct own_addresses *own, const struct address *address) {
    return address_equal(&own->address, address);
}

bool own_addresses_has_route(const struct own_addresses *own) {
    (void)own;
    return route;
}
