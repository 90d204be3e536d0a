#include "iptables/feature.h"

#include "admin/check.h"
#include "iptables/tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum mode { MODE_REDIRECT = PLAN_REDIRECT, MODE_TPROXY = PLAN_TPROXY, MODE_BOTH };

struct feature {
    enum backend backend;
    enum mode mode;
    const char *module;
    const char *options;
    const char *probe;
};

static const struct feature features[] = {
#define FEATURE(backend, mode, module, options, probe)                                                       \
    {BACKEND_##backend, MODE_##mode, module, options, probe},
#include "iptables/feature.tbl"
};

static char *fill(const char *probe, const struct plan *plan, enum family family) {
    static const char *const names[] = {"$table", "$ip", "$nfproto"};
    const char *const values[] = {plan->mode == PLAN_TPROXY ? "mangle" : "nat",
            family == FAMILY_IPV4 ? "ip" : "ip6", family == FAMILY_IPV4 ? "ipv4" : "ipv6"};
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    CHECK(out);
    while (*probe) {
        size_t plain = strcspn(probe, "$");
        fwrite(probe, 1, plain, out);
        probe += plain;
        for (int i = 0; i < 3 && *probe; i++)
            if (strncmp(probe, names[i], strlen(names[i])) == 0) {
                fputs(values[i], out);
                probe += strlen(names[i]);
                break;
            }
    }
    fclose(out);
    return text;
}

static int probe(
        const struct feature *feature, const struct plan *plan, enum family family, struct problem *problem) {
    const char *restore = family == FAMILY_IPV4 ? "iptables-restore" : "ip6tables-restore";
    const char *const iptables[] = {restore, "-w", "10", NULL};
    const char *const nft[] = {"nft", "-f", "-", NULL};
    const char *const flush[] = {"nft", "flush", "ruleset", NULL};
    char *input = fill(feature->probe, plan, family);
    struct problem ignored;
    int result = tool_demand(feature->backend == BACKEND_NFT ? nft : iptables, input, NULL, problem);
    free(input);
    if (feature->backend == BACKEND_NFT)
        tool_demand(flush, NULL, NULL, &ignored);
    return result;
}

static const char *other_way(const struct plan *plan, enum backend backend) {
    if (plan->mode == PLAN_TPROXY)
        return "use `listen PORT redirect`";
    return backend == BACKEND_NFT ? "use `--backend iptables`" : "use `--backend nft`";
}

static int say_missing(const struct feature *feature, const struct plan *plan, enum family family,
        const struct problem *detail, struct problem *problem) {
    const char *tool = feature->backend == BACKEND_NFT ? "nft" : "iptables";
    bool extension = strstr(detail->text, "Couldn't load") != NULL;
    if (extension)
        return problem_say(problem, EOPNOTSUPP,
                "%s has no extension for %s, %s: install the package that brings it (on OpenWrt "
                "iptables-mod-*), or "
                "%s. %.900s",
                tool, feature->module, family_name(family), other_way(plan, feature->backend), detail->text);
    return problem_say(problem, EOPNOTSUPP,
            "this kernel has no %s for %s, %s: load it (modprobe %s), install the package of kernel modules "
            "that "
            "has it, or build the kernel with %s; or %s. %.900s",
            feature->module, tool, family_name(family), feature->module, feature->options,
            other_way(plan, feature->backend), detail->text);
}

int feature_probe(const struct plan *plan, enum backend backend, struct problem *problem) {
    for (enum family family = 0; family < FAMILY_COUNT; family++)
        for (size_t i = 0; i < sizeof features / sizeof *features && plan->target[family].on; i++) {
            const struct feature *feature = &features[i];
            struct problem detail;
            if (feature->backend != backend ||
                    (feature->mode != MODE_BOTH && feature->mode != (enum mode)plan->mode))
                continue;
            int result = probe(feature, plan, family, &detail);
            if (result == -EIO)
                return say_missing(feature, plan, family, &detail, problem);
            if (result < 0) {
                *problem = detail;
                return result;
            }
        }
    return 0;
}
