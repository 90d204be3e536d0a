#include "intercept/privilege.h"

#include "admin/log.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define CURE                                                                                                 \
    "start weir as root, or give it the capability: AmbientCapabilities=%s in the systemd unit, or setcap "  \
    "%s+ep on the program"

static bool has(unsigned capability) {
    return capng_have_capability(CAPNG_EFFECTIVE, capability) != 0;
}

static bool is_user(const char *name) {
    return name && *name && strcmp(name, "root") != 0;
}

// ---- what is needed ----

static unsigned unprivileged_port_start(void) {
    unsigned start = 1024;
    FILE *file = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "re");
    if (!file)
        return start;
    if (fscanf(file, "%u", &start) != 1)
        start = 1024;
    fclose(file);
    return start;
}

static const struct listen_point *find_mode(const struct listen_set *listen, enum listen_mode mode) {
    for (unsigned i = 0; i < listen->count; i++)
        if (listen->points[i].mode == mode)
            return &listen->points[i];
    return NULL;
}

static const struct listen_point *find_low_port(const struct listen_set *listen) {
    unsigned start = unprivileged_port_start();
    for (unsigned i = 0; i < listen->count; i++)
        if (listen->points[i].address.port < start)
            return &listen->points[i];
    return NULL;
}

static bool check_net_admin(const struct config *config, const struct listen_set *listen) {
    const struct listen_point *tproxy = find_mode(listen, LISTEN_TPROXY);
    if (has(CAP_NET_ADMIN))
        return true;
    if (tproxy)
        log_error("CAP_NET_ADMIN is missing: listen %u tproxy needs it; " CURE, tproxy->address.port,
                "CAP_NET_ADMIN", "cap_net_admin");
    else if (config->spoof_client)
        log_error("CAP_NET_ADMIN is missing: spoof_client needs it; " CURE, "CAP_NET_ADMIN", "cap_net_admin");
    else
        log_warning("without CAP_NET_ADMIN packet marks are not carried to the origin; " CURE,
                "CAP_NET_ADMIN", "cap_net_admin");
    return !tproxy && !config->spoof_client;
}

static bool check_low_ports(const struct listen_set *listen) {
    const struct listen_point *low = find_low_port(listen);
    if (!low || has(CAP_NET_BIND_SERVICE))
        return true;
    log_error("CAP_NET_BIND_SERVICE is missing: listen %u needs it; choose a port from %u on, or " CURE,
            low->address.port, unprivileged_port_start(), "CAP_NET_BIND_SERVICE", "cap_net_bind_service");
    return false;
}

// "user id 0" without the right to change it: some containers.
static bool check_change_of_user(const struct config *config) {
    if (geteuid() != 0 || !is_user(config->user) || (has(CAP_SETUID) && has(CAP_SETGID)))
        return true;
    log_error("CAP_SETUID and CAP_SETGID are missing: user %s needs them; give them to the process, or write "
              "user root",
            config->user);
    return false;
}

bool privilege_suffices(const struct config *config, const struct listen_set *listen) {
    capng_get_caps_process();
    bool good = check_net_admin(config, listen);
    good = check_low_ports(listen) && good;
    return check_change_of_user(config) && good;
}

// ---- giving up ----

static int keep_what_is_used(void) {
    bool net_admin = capng_have_capability(CAPNG_PERMITTED, CAP_NET_ADMIN) != 0;
    capng_clear(CAPNG_SELECT_ALL);
    return net_admin ? capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_NET_ADMIN) : 0;
}

static int become(const char *name, bool set_pcap) {
    errno = 0;
    const struct passwd *user = getpwnam(name);
    if (!user) {
        log_error("user %s does not exist: create it (systemd-sysusers does, with weir's sysusers.d file) or "
                  "name another in the configuration",
                name);
        return errno ? -errno : -ENOENT;
    }
    // The bounding set can be emptied with CAP_SETPCAP alone; no_new_privs does the same for us without it.
    unsigned flags = CAPNG_INIT_SUPP_GRP | CAPNG_CLEAR_AMBIENT | (set_pcap ? CAPNG_CLEAR_BOUNDING : 0u);
    int result = capng_change_id((int)user->pw_uid, (int)user->pw_gid, (capng_flags_t)flags);
    if (result == 0)
        return 0;
    log_error("cannot become user %s (step %d of libcap-ng: %s)", name, -result, strerror(errno));
    return -EPERM;
}

static int stay(void) {
    if (capng_apply(CAPNG_SELECT_CAPS) == 0 && capng_apply(CAPNG_SELECT_AMBIENT) == 0)
        return 0;
    log_error("cannot give up capabilities: %s", strerror(errno));
    return -EPERM;
}

int privilege_give_up(const struct config *config) {
    capng_get_caps_process();
    bool set_pcap = has(CAP_SETPCAP);
    if (keep_what_is_used() != 0)
        return -EPERM;
    int result = geteuid() == 0 && is_user(config->user) ? become(config->user, set_pcap) : stay();
    if (result == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
        result = -errno;
        log_error("cannot set no_new_privs: %s", strerror(errno));
    }
    return result;
}

uint64_t privilege_raise_descriptors(void) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return 0;
    struct rlimit raised = {.rlim_cur = files.rlim_max, .rlim_max = files.rlim_max};
    if (files.rlim_cur < files.rlim_max && setrlimit(RLIMIT_NOFILE, &raised) == 0)
        return raised.rlim_cur;
    return files.rlim_cur;
}
