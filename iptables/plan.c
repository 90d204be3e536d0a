#include "iptables/plan.h"

#include "admin/mark.h"
#include "iptables/tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *family_name(enum family family) {
    return family == FAMILY_IPV4 ? "IPv4" : "IPv6";
}

static void set_target(struct plan_target *target, const char *address, uint16_t port) {
    if (target->on) // the first listener of the kind wins
        return;
    target->on = true;
    target->port = port;
    snprintf(target->address, sizeof target->address, "%s", address);
}

// "PORT", "*:PORT", "A.B.C.D:PORT", "[V6]:PORT". False when it is none of them.
static bool add_listener(struct plan *plan, struct view where) {
    size_t colon = where.length;
    while (colon > 0 && where.data[colon - 1] != ':')
        colon--;
    uint64_t port;
    if (!view_number(view_skip(where, colon), &port) || port == 0 || port > UINT16_MAX)
        return false;
    struct view host = view_take(where, colon ? colon - 1 : 0);
    if (host.length >= 2 && host.data[0] == '[' && host.data[host.length - 1] == ']')
        host = view_take(view_skip(host, 1), host.length - 2);
    struct address address;
    if (host.length == 0 || view_equal(host, VIEW("*")) || view_equal(host, VIEW("::"))) {
        set_target(&plan->target[FAMILY_IPV4], "", (uint16_t)port);
        set_target(&plan->target[FAMILY_IPV6], "", (uint16_t)port);
        return true;
    }
    if (!address_parse(host, &address))
        return false;
    char text[ADDRESS_TEXT_BYTES];
    address_print(&address, text);
    bool everywhere = strcmp(text, "0.0.0.0") == 0;
    set_target(&plan->target[address_is_ipv4(&address) ? FAMILY_IPV4 : FAMILY_IPV6], everywhere ? "" : text,
            (uint16_t)port);
    return true;
}

static bool takes(const char *kind, enum plan_mode mode) {
    if (mode == PLAN_TPROXY)
        return strcasecmp(kind, "tproxy") == 0;
    return strcasecmp(kind, "redirect") == 0 || strcasecmp(kind, "any") == 0;
}

// Returns how many listeners of the kind there are, or -EINVAL.
static int add_listeners(
        const struct config *config, enum plan_mode mode, struct plan *plan, struct problem *problem) {
    int count = 0;
    for (size_t i = 0; i < config->directive_count; i++) {
        const struct directive *directive = &config->directives[i];
        if (directive->id != DIRECTIVE_listen || directive->word_count != 2 ||
                !takes(directive->words[1].text, mode))
            continue;
        if (!add_listener(plan, view_of(directive->words[0].text)))
            return problem_say(problem, EINVAL,
                    "%s:%u:%u: listen %s: write PORT, ADDRESS:PORT or [IPV6]:PORT", directive->file,
                    directive->line, directive->words[0].column, directive->words[0].text);
        count++;
    }
    return count;
}

static int plan_listeners(const struct config *config, struct plan *plan, struct problem *problem) {
    plan->mode = PLAN_TPROXY;
    int count = add_listeners(config, PLAN_TPROXY, plan, problem);
    if (count == 0) {
        plan->mode = PLAN_REDIRECT;
        count = add_listeners(config, PLAN_REDIRECT, plan, problem);
    }
    if (count == 0)
        return problem_say(problem, EINVAL,
                "%s: no listener takes intercepted connections: add `listen 3129 redirect` (or any, or "
                "tproxy)",
                config->file);
    return count < 0 ? count : 0;
}

static bool name_is_sound(const char *name) {
    size_t length = strlen(name);
    size_t sound = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:@-");
    return length > 0 && length < IFNAMSIZ &&
           (sound == length || (sound + 1 == length && name[sound] == '+'));
}

static int add_interface(struct plan *plan, const char *name, struct problem *problem) {
    if (!name_is_sound(name))
        return problem_say(problem, EINVAL, "'%s' is no name of an interface that rules can hold", name);
    for (unsigned i = 0; i < plan->interface_count; i++)
        if (strcmp(plan->interfaces[i], name) == 0)
            return 0;
    if (plan->interface_count == PLAN_INTERFACES_MAX)
        return problem_say(problem, EINVAL,
                "more than %d LAN interfaces: name those that count with `lan`, `eth+` stands for every eth",
                PLAN_INTERFACES_MAX);
    snprintf(plan->interfaces[plan->interface_count++], IFNAMSIZ, "%.*s", IFNAMSIZ - 1, name);
    return 0;
}

// The interfaces of every default route of both families and all routing tables, as " eth0 ppp0 ".
static int default_interfaces(char **names, struct problem *problem) {
    size_t size;
    FILE *out = open_memstream(names, &size);
    if (!out)
        return problem_say(problem, ENOMEM, "out of memory");
    int result = 0;
    fputc(' ', out);
    for (enum family family = 0; family < FAMILY_COUNT && result == 0; family++) {
        char *routes = NULL;
        const char *const argv[] = {"ip", "-N", family == FAMILY_IPV4 ? "-4" : "-6", "route", "show", "table",
                "all", "default", NULL};
        result = tool_demand(argv, NULL, &routes, problem);
        char *state = NULL;
        for (char *word = routes ? strtok_r(routes, " \n", &state) : NULL; word;
                word = strtok_r(NULL, " \n", &state))
            if (strcmp(word, "dev") == 0 && (word = strtok_r(NULL, " \n", &state)) && strcmp(word, "lo") != 0)
                fprintf(out, "%s ", word);
            else if (!word)
                break;
        free(routes);
    }
    fclose(out);
    return result;
}

static bool has_word(const char *words, const char *word) {
    char padded[IFNAMSIZ + 2];
    snprintf(padded, sizeof padded, " %s ", word);
    return strstr(words, padded) != NULL;
}

static int add_other_interfaces(struct plan *plan, const char *uplinks, struct problem *problem) {
    struct if_nameindex *all = if_nameindex();
    if (!all)
        return problem_say(problem, errno, "cannot list the interfaces: %s", strerror(errno));
    int result = 0;
    for (struct if_nameindex *one = all; one->if_name && result == 0; one++)
        if (strcmp(one->if_name, "lo") != 0 && !has_word(uplinks, one->if_name))
            result = add_interface(plan, one->if_name, problem);
    if_freenameindex(all);
    if (result == 0 && plan->interface_count == 0)
        result = problem_say(problem, EINVAL,
                "every interface has a default route, so none is the LAN: name it with `lan INTERFACE`");
    return result;
}

static int plan_interfaces(const struct config *config, struct plan *plan, struct problem *problem) {
    int result = 0;
    for (size_t i = 0; i < config->directive_count && result == 0; i++)
        if (config->directives[i].id == DIRECTIVE_lan)
            for (unsigned word = 0; word < config->directives[i].word_count && result == 0; word++)
                result = add_interface(plan, config->directives[i].words[word].text, problem);
    if (result < 0 || plan->interface_count > 0)
        return result;
    char *uplinks = NULL;
    result = default_interfaces(&uplinks, problem);
    if (result == 0 && strcmp(uplinks, " ") == 0)
        result = problem_say(problem, EINVAL,
                "there is no default route now, so LAN and uplink cannot be told apart: name the LAN with "
                "`lan INTERFACE`");
    if (result == 0)
        result = add_other_interfaces(plan, uplinks, problem);
    free(uplinks);
    return result;
}

static bool kernel_has_ipv6(void) {
    char disabled = '1';
    FILE *file = fopen("/proc/sys/net/ipv6/conf/all/disable_ipv6", "re");
    if (file) {
        disabled = (char)fgetc(file);
        fclose(file);
    }
    return disabled == '0';
}

int plan_make(const struct config *config, struct plan *plan, struct problem *problem) {
    *plan = (struct plan){.pass_when_gone = config->on_failure == ON_FAILURE_OPEN};
    const char *mark = mark_problem(config);
    if (mark)
        return problem_say(problem, EINVAL, "%s: %s", config->file, mark);
    plan->intercept = mark_intercept(config);
    plan->upstream = mark_upstream(config);
    plan->mask = (uint32_t)config->rule_mask;
    plan->table = (uint32_t)config->rule_table;
    int result = plan_listeners(config, plan, problem);
    if (result == 0)
        result = plan_interfaces(config, plan, problem);
    plan->target[FAMILY_IPV6].on = plan->target[FAMILY_IPV6].on && kernel_has_ipv6();
    if (result == 0 && !plan->target[FAMILY_IPV4].on && !plan->target[FAMILY_IPV6].on)
        result = problem_say(problem, EINVAL, "%s: the listener is IPv6 alone, and this kernel has IPv6 off",
                config->file);
    return result;
}
