#include "iptables/policy.h"

#include "admin/check.h"
#include "iptables/tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *family_option(enum family family) {
    return family == FAMILY_IPV4 ? "-4" : "-6";
}

static FILE *open_text(char **text, size_t *size) {
    FILE *out = open_memstream(text, size);
    CHECK(out);
    return out;
}

void policy_make(const struct plan *plan, enum family family, char **lines) {
    size_t size;
    FILE *out = open_text(lines, &size);
    if (plan->mode == PLAN_TPROXY && plan->target[family].on) {
        char mark[32];
        if (plan->mask == UINT32_MAX) // ip(8) does not show a mask of all bits
            snprintf(mark, sizeof mark, "0x%x", plan->intercept);
        else
            snprintf(mark, sizeof mark, "0x%x/0x%x", plan->intercept, plan->mask);
        fprintf(out, "route local default dev lo table %u\n", plan->table);
        fprintf(out, "rule priority %d nop\n", POLICY_PRIORITY + 2);
        fprintf(out, "rule priority %d fwmark %s iif lo goto %d\n", POLICY_PRIORITY, mark,
                POLICY_PRIORITY + 2);
        fprintf(out, "rule priority %d fwmark %s lookup %u\n", POLICY_PRIORITY + 1, mark, plan->table);
    }
    fclose(out);
}

// "58:\tfrom all fwmark 0x1/0xf lookup 5700 proto 57" to our form; nothing for a rule of somebody else.
static void read_rule(FILE *out, char *line) {
    char *state = NULL;
    unsigned priority = (unsigned)strtoul(line, NULL, 10);
    char *words[32];
    unsigned count = 0;
    bool ours = false;
    line = strchr(line, ':');
    for (char *word = line ? strtok_r(line + 1, " \t", &state) : NULL; word && count < 32;
            word = strtok_r(NULL, " \t", &state))
        words[count++] = word;
    for (unsigned i = 0; i + 1 < count; i++)
        ours = ours || (strcmp(words[i], "proto") == 0 && strtoul(words[i + 1], NULL, 10) == POLICY_PROTOCOL);
    if (!ours || priority < POLICY_PRIORITY || priority > POLICY_PRIORITY + 2)
        return;
    fprintf(out, "rule priority %u", priority);
    for (unsigned i = 0; i < count; i++) {
        bool pair = strcmp(words[i], "proto") == 0 ||
                    (strcmp(words[i], "from") == 0 && i + 1 < count && strcmp(words[i + 1], "all") == 0);
        if (pair)
            i++;
        else if (words[i][0] != '[') // "[unresolved]", "[detached]"
            fprintf(out, " %s", words[i]);
    }
    fputc('\n', out);
}

static void read_route(FILE *out, const char *line) {
    const char *table = strstr(line, " table ");
    if (table && strstr(line, " default dev lo "))
        fprintf(out, "route local default dev lo table %lu\n", strtoul(table + strlen(" table "), NULL, 10));
}

static void read_lines(FILE *out, char *text, bool rules) {
    char *state = NULL;
    for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
        if (rules)
            read_rule(out, line);
        else
            read_route(out, line);
    }
}

// A kernel without policy routing, or without IPv6, has nothing of ours.
static int list(const char *const argv[], char **text, struct problem *problem) {
    int result = tool_demand(argv, NULL, text, problem);
    if (result != -EIO || !strstr(problem->text, "not supported"))
        return result;
    CHECK((*text = strdup("")) != NULL);
    return 0;
}

int policy_capture(enum family family, char **lines, struct problem *problem) {
    char protocol[16], *rules = NULL, *routes = NULL;
    snprintf(protocol, sizeof protocol, "%d", POLICY_PROTOCOL);
    const char *const list_rules[] = {"ip", "-N", family_option(family), "rule", "show", NULL};
    const char *const list_routes[] = {
            "ip", "-N", family_option(family), "route", "show", "table", "all", "proto", protocol, NULL};
    int result = list(list_rules, &rules, problem);
    if (result == 0)
        result = list(list_routes, &routes, problem);
    if (result == 0) {
        size_t size;
        FILE *out = open_text(lines, &size);
        read_lines(out, routes, false);
        read_lines(out, rules, true);
        fclose(out);
    }
    free(rules);
    free(routes);
    return result;
}

static bool has_line(const char *lines, const char *line, size_t length) {
    for (; *lines; lines += strcspn(lines, "\n") + 1)
        if (strcspn(lines, "\n") == length && memcmp(lines, line, length) == 0)
            return true;
    return false;
}

static bool has_all(const char *lines, const char *wanted) {
    for (; *wanted; wanted += strcspn(wanted, "\n") + 1)
        if (!has_line(lines, wanted, strcspn(wanted, "\n")))
            return false;
    return true;
}

bool policy_equal(const char *a, const char *b) {
    return has_all(a, b) && has_all(b, a);
}

static void write_command(FILE *out, const char *verb, const char *line, size_t length) {
    size_t noun = strcspn(line, " ");
    fprintf(out, "%.*s %s%.*s protocol %d\n", (int)noun, line, verb, (int)(length - noun), line + noun,
            POLICY_PROTOCOL);
}

static int run_batch(enum family family, const char *input, struct problem *problem) {
    if (!*input)
        return 0;
    struct problem detail;
    const char *const argv[] = {"ip", family_option(family), "-batch", "-", NULL};
    int result = tool_demand(argv, input, NULL, &detail);
    if (result < 0)
        problem_say(problem, -result, "policy routing for tproxy, %s: %s%s", family_name(family), detail.text,
                strstr(detail.text, "is not up") || strstr(detail.text, "is down")
                        ? " (is lo up? `ip link set lo up`)"
                : strstr(detail.text, "not supported") ? " (the kernel needs CONFIG_IP_MULTIPLE_TABLES and "
                                                         "CONFIG_IPV6_MULTIPLE_TABLES, or use "
                                                         "`listen PORT redirect`)"
                                                       : "");
    return result;
}

int policy_add(enum family family, const char *live, const char *target, struct problem *problem) {
    char *input = NULL;
    size_t size;
    FILE *out = open_text(&input, &size);
    for (const char *line = target; *line; line += strcspn(line, "\n") + 1)
        if (!has_line(live, line, strcspn(line, "\n")))
            write_command(out, "add", line, strcspn(line, "\n"));
    fclose(out);
    int result = run_batch(family, input, problem);
    free(input);
    return result;
}

int policy_delete(enum family family, const char *live, const char *target, struct problem *problem) {
    char *input = NULL;
    size_t size;
    FILE *out = open_text(&input, &size);
    // The look-up goes first: without the goto before it, it would take what this host sends.
    for (int look_ups = 1; look_ups >= 0; look_ups--)
        for (const char *line = live; *line; line += strcspn(line, "\n") + 1) {
            size_t length = strcspn(line, "\n");
            bool look_up = memmem(line, length, " lookup ", strlen(" lookup ")) != NULL;
            if (look_up == (look_ups == 1) && !has_line(target, line, length))
                write_command(out, "del", line, length);
        }
    fclose(out);
    int result = run_batch(family, input, problem);
    free(input);
    return result;
}

void policy_print(FILE *out, enum family family, const char *lines) {
    for (; *lines; lines += strcspn(lines, "\n") + 1) {
        fprintf(out, "ip %s ", family_option(family));
        write_command(out, "add", lines, strcspn(lines, "\n"));
    }
}
