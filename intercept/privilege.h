// What the process may do: which capabilities it needs, who it becomes, and what it gives up. The only door
// to libcap-ng in this folder.
//
// CAP_NET_ADMIN         tproxy listeners (IP_TRANSPARENT), spoof_client, marks on upstream sockets; kept
// CAP_NET_BIND_SERVICE  ports below net.ipv4.ip_unprivileged_port_start; given up once the sockets are open
// CAP_SETUID, _SETGID   to become `user` when started as root; given up
#pragma once

#include "admin/config.h"
#include "intercept/listen.h"

// Looks, before anything is opened, whether what the configuration needs is there. False, with a line in the
// log for each that is not: its name, what needs it, the cure. With redirect alone a missing CAP_NET_ADMIN is
// a warning: marks are not carried to the origin.
bool privilege_suffices(const struct config *config, const struct listen_set *listen);

// Started as root: becomes `user`, with its groups. In any case keeps CAP_NET_ADMIN alone, if it was there,
// and can gain nothing any more (no_new_privs, empty bounding set). Threads inherit it: call it before the
// first. 0 or -errno, with a line in the log.
int privilege_give_up(const struct config *config);

// Raises the soft limit of descriptors to the hard one; the limit in force.
uint64_t privilege_raise_descriptors(void);
