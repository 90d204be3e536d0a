#include "iptables/hint.h"

#include "iptables/nft.h"
#include "iptables/tool.h"

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

static long sysctl_value(const char *path) {
    long value = -1;
    FILE *file = fopen(path, "re");
    if (file) {
        if (fscanf(file, "%ld", &value) != 1)
            value = -1;
        fclose(file);
    }
    return value;
}

#define TCP_LISTEN 0x0a // a state of /proc/net/tcp

static bool has_listener(const char *path, uint16_t port) {
    char line[512];
    FILE *file = fopen(path, "re");
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        unsigned local, state;
        if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &local, &state) == 2)
            found = local == port && state == TCP_LISTEN;
    }
    if (file)
        fclose(file);
    return found;
}

unsigned hint_listener(FILE *out, const struct plan *plan) {
    unsigned hints = 0;
    for (enum family family = 0; family < FAMILY_COUNT; family++) {
        uint16_t port = plan->target[family].port;
        bool known = family == FAMILY_IPV6 && plan->target[FAMILY_IPV4].on &&
                     plan->target[FAMILY_IPV4].port == port;
        // A dual-stack socket stands among the IPv6 ones alone.
        if (!plan->target[family].on || known || has_listener("/proc/net/tcp6", port) ||
                (family == FAMILY_IPV4 && has_listener("/proc/net/tcp", port)))
            continue;
        fprintf(out,
                "hint: nobody listens on TCP port %u: until weir runs, what the rules take from the LAN "
                "fails\n",
                port);
        hints++;
    }
    return hints;
}

static unsigned hint_interfaces(FILE *out, const struct plan *plan) {
    unsigned hints = 0;
    for (unsigned i = 0; i < plan->interface_count; i++) {
        const char *name = plan->interfaces[i];
        if (name[strlen(name) - 1] == '+' || if_nametoindex(name))
            continue;
        fprintf(out, "hint: the LAN interface %s does not exist (yet): nothing arrives there\n", name);
        hints++;
    }
    return hints;
}

static unsigned hint_forwarding(FILE *out, const struct plan *plan) {
    static const char *const names[FAMILY_COUNT] = {"net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"};
    static const char *const paths[FAMILY_COUNT] = {
            "/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"};
    unsigned hints = 0;
    for (enum family family = 0; family < FAMILY_COUNT; family++) {
        if (!plan->target[family].on || sysctl_value(paths[family]) != 0)
            continue;
        fprintf(out, "hint: this host does not forward %s, so it is no gateway: sysctl -w %s=1\n",
                family_name(family), names[family]);
        hints++;
    }
    return hints;
}

static unsigned hint_accept(FILE *out, const struct plan *plan, enum family family, const char *where) {
    if (plan->mode == PLAN_TPROXY)
        fprintf(out,
                "hint: %s drops what it does not know: let it accept packets with mark 0x%x/0x%x, or "
                "tproxied "
                "connections do not reach weir\n",
                where, plan->intercept, plan->mask);
    else
        fprintf(out,
                "hint: %s drops what it does not know: let it accept TCP port %u from the LAN, or redirected "
                "connections do not reach weir\n",
                where, plan->target[family].port);
    return 1;
}

// iptables-nft's chains show in nft's list, too; iptables is asked where there is no nft.
static unsigned hint_firewall(FILE *out, const struct plan *plan) {
    struct problem ignored;
    char *text = NULL, *state = NULL;
    unsigned hints = 0;
    const char *const nft[] = {"nft", "list", "chains", NULL};
    if (tool_demand(nft, NULL, &text, &ignored) == 0) {
        for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state))
            if (strstr(line, "hook input ") && strstr(line, "policy drop"))
                hints += hint_accept(out, plan, plan->target[FAMILY_IPV4].on ? FAMILY_IPV4 : FAMILY_IPV6,
                        "a chain of the input hook");
        free(text);
        return hints;
    }
    for (enum family family = 0; family < FAMILY_COUNT; family++) {
        const char *tool = family == FAMILY_IPV4 ? "iptables" : "ip6tables";
        const char *const list[] = {tool, "-S", "INPUT", NULL};
        if (!plan->target[family].on || tool_demand(list, NULL, &text, &ignored) < 0)
            continue;
        if (strstr(text, "-P INPUT DROP"))
            hints += hint_accept(
                    out, plan, family, family == FAMILY_IPV4 ? "iptables INPUT" : "ip6tables INPUT");
        free(text);
        text = NULL;
    }
    return hints;
}

// `ip rule` lines of others whose fwmark meets bits of ours.
static unsigned hint_rule(FILE *out, const struct plan *plan, enum family family, const char *line) {
    const char *word = strstr(line, "fwmark ");
    if (!word || strstr(line, " proto 57"))
        return 0;
    char *end;
    strtoul(word + strlen("fwmark "), &end, 0);
    unsigned long mask = *end == '/' ? strtoul(end + 1, NULL, 0) : UINT32_MAX;
    if (!(mask & plan->mask))
        return 0;
    fprintf(out,
            "hint: %s rule `%s` compares bits of the mark that are weir's (0x%x): it misses weir's packets. "
            "Give its fwmark a mask, or change rule_mask\n",
            family_name(family), line, plan->mask);
    return 1;
}

static unsigned hint_marks(FILE *out, const struct plan *plan) {
    unsigned hints = 0;
    for (enum family family = 0; family < FAMILY_COUNT; family++) {
        struct problem ignored;
        char *text = NULL, *state = NULL;
        const char *const list[] = {"ip", family == FAMILY_IPV4 ? "-4" : "-6", "rule", "show", NULL};
        if (!plan->target[family].on || tool_demand(list, NULL, &text, &ignored) < 0)
            continue;
        for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
            for (char *at = line; (at = strchr(at, '\t'));)
                *at = ' ';
            hints += hint_rule(out, plan, family, line);
        }
        free(text);
    }
    return hints;
}

unsigned hint_print(FILE *out, const struct plan *plan) {
    return hint_listener(out, plan) + hint_interfaces(out, plan) + hint_forwarding(out, plan) +
           hint_firewall(out, plan) + hint_marks(out, plan);
}
