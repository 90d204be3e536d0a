#include "iptables/iptables.h"

#include "admin/check.h"
#include "iptables/nfnetlink.h"
#include "iptables/tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MADE_PREFIX "WEIR_MADE_"
#define CHAIN_BYTES 64 // iptables allows 28

static const char *const table_names[IPTABLES_TABLE_COUNT] = {"mangle", "nat"};

// Names of the record's bits.
static const char *const made_names[] = {"TABLE", "PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"};
enum { MADE_TABLE, MADE_PREROUTING, MADE_COUNT = sizeof made_names / sizeof *made_names };

static const char *save_tool(enum family family) {
    return family == FAMILY_IPV4 ? "iptables-save" : "ip6tables-save";
}

static const char *restore_tool(enum family family) {
    return family == FAMILY_IPV4 ? "iptables-restore" : "ip6tables-restore";
}

static bool starts(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

static bool is_jump(const char *line) {
    return starts(line, "-A ") && !starts(line, "-A WEIR_") &&
           (strstr(line, " -j WEIR_") || strstr(line, " -g WEIR_"));
}

static bool is_ours(const char *line) {
    return starts(line, ":WEIR_") || starts(line, "-A WEIR_") || is_jump(line);
}

static int table_of(const char *line) {
    for (int table = 0; table < IPTABLES_TABLE_COUNT; table++)
        if (line[0] == '*' && strcmp(line + 1, table_names[table]) == 0)
            return table;
    return -1;
}

static unsigned made_bit(const char *line) {
    const char *name = line + strlen(":" MADE_PREFIX);
    for (unsigned bit = 0; bit < MADE_COUNT; bit++)
        if (starts(name, made_names[bit]) && name[strlen(made_names[bit])] == ' ')
            return 1u << bit;
    return 0;
}

void iptables_parse(const char *text, struct iptables_rules *rules) {
    *rules = (struct iptables_rules){0};
    FILE *out[IPTABLES_TABLE_COUNT];
    size_t sizes[IPTABLES_TABLE_COUNT];
    for (int table = 0; table < IPTABLES_TABLE_COUNT; table++)
        CHECK((out[table] = open_memstream(&rules->text[table], &sizes[table])) != NULL);
    char *copy = strdup(text), *state = NULL;
    CHECK(copy);
    int table = -1;
    for (char *line = strtok_r(copy, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
        if (line[0] == '*')
            table = table_of(line);
        else if (table >= 0 && starts(line, ":" MADE_PREFIX))
            rules->made[table] |= made_bit(line);
        else if (table >= 0 && starts(line, ":WEIR_"))
            fprintf(out[table], "%.*s - [0:0]\n", (int)strcspn(line, " "), line);
        else if (table >= 0 && is_ours(line))
            fprintf(out[table], "%s\n", line);
    }
    free(copy);
    for (table = 0; table < IPTABLES_TABLE_COUNT; table++)
        fclose(out[table]);
}

void iptables_fini(struct iptables_rules *rules) {
    for (int table = 0; table < IPTABLES_TABLE_COUNT; table++)
        free(rules->text[table]);
    *rules = (struct iptables_rules){0};
}

bool iptables_is_empty(const struct iptables_rules *rules) {
    for (int table = 0; table < IPTABLES_TABLE_COUNT; table++)
        if (rules->text[table] && *rules->text[table])
            return false;
    return true;
}

// Without the tools: nothing, unless nf_tables has chains of ours all the same.
static int save_without_tool(enum family family, char **text, struct problem *problem) {
    for (enum iptables_table table = 0; table < IPTABLES_TABLE_COUNT; table++)
        if (nfnetlink_has_chain(family, table_names[table], "WEIR_PREROUTING") == 1)
            return problem_say(problem, ENOENT,
                    "there are rules of weir, and %s is not in PATH: install it (package iptables)",
                    save_tool(family));
    *text = strdup("");
    return *text ? 0 : problem_say(problem, ENOMEM, "out of memory");
}

// The listing of one family, or "" where there can be nothing of ours.
static int save(enum family family, bool counters, char **text, struct problem *problem) {
    struct tool_output output;
    const char *const argv[] = {save_tool(family), counters ? "-c" : NULL, NULL};
    int result = tool_run(argv, NULL, &output, problem);
    if (result == -ENOENT)
        return save_without_tool(family, text, problem);
    if (result < 0)
        return result;
    if (output.status != 0 && !strstr(output.err, "Protocol not supported")) {
        char line[512];
        tool_first_line(output.err, line, sizeof line);
        result = problem_say(problem, EIO, "%s failed (exit status %d): %s", argv[0], output.status, line);
    } else {
        *text = output.out;
        output.out = NULL;
    }
    tool_output_fini(&output);
    return result;
}

int iptables_capture(enum family family, struct iptables_rules *rules, struct problem *problem) {
    char *text = NULL;
    int result = save(family, false, &text, problem);
    if (result == 0) {
        CHECK(text);
        iptables_parse(text, rules);
    }
    free(text);
    return result;
}

static bool declares(const char *text, const char *declaration) {
    size_t length = strcspn(declaration, " ");
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, declaration, length) == 0 && line[length] == ' ')
            return true;
    return false;
}

// Jumps first, then every chain emptied, then those dropped that the target does not have.
static void write_leaving(FILE *out, const char *live, const char *target) {
    for (int pass = 0; pass < 3; pass++) {
        char *copy = strdup(live), *state = NULL;
        CHECK(copy);
        for (char *line = strtok_r(copy, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
            if (pass == 0 && is_jump(line))
                fprintf(out, "-D%s\n", line + 2);
            else if (pass == 1 && line[0] == ':')
                fprintf(out, "-F %.*s\n", (int)strcspn(line + 1, " "), line + 1);
            else if (pass == 2 && line[0] == ':' && !declares(target, line))
                fprintf(out, "-X %.*s\n", (int)strcspn(line + 1, " "), line + 1);
        }
        free(copy);
    }
}

// What iptables-nft is about to make for us in this table.
static int missing_now(enum family family, const char *table, unsigned *missing) {
    int has = nfnetlink_has_table(family, table);
    *missing = 0;
    if (has < 0)
        return has;
    if (!has) {
        *missing = (1u << MADE_COUNT) - 1;
        return 0;
    }
    has = nfnetlink_has_chain(family, table, made_names[MADE_PREROUTING]);
    if (has == 0)
        *missing = 1u << MADE_PREROUTING;
    return has < 0 ? has : 0;
}

static void write_made(FILE *out, unsigned made) {
    for (unsigned bit = 0; bit < MADE_COUNT; bit++)
        if (made & 1u << bit)
            fprintf(out, ":" MADE_PREFIX "%s - [0:0]\n", made_names[bit]);
}

// Drops what is on record as made for us, and the record with it. What others use by now is theirs.
static void drop_made(enum family family, const char *table, unsigned made) {
    for (unsigned bit = MADE_PREROUTING; bit < MADE_COUNT; bit++) {
        char marker[CHAIN_BYTES];
        snprintf(marker, sizeof marker, MADE_PREFIX "%s", made_names[bit]);
        if (!(made & 1u << bit))
            continue;
        if (!nfnetlink_chain_accepts(family, table, made_names[bit]) ||
                nfnetlink_delete(family, table, marker, made_names[bit], false) < 0)
            nfnetlink_delete(family, table, marker, NULL, false);
    }
    if (made & 1u << MADE_TABLE && nfnetlink_delete(family, table, MADE_PREFIX "TABLE", NULL, true) < 0)
        nfnetlink_delete(family, table, MADE_PREFIX "TABLE", NULL, false);
}

// 1 for iptables-nft, 0 for iptables-legacy.
static int speaks_nft(enum family family, struct problem *problem) {
    char *version = NULL;
    const char *const argv[] = {restore_tool(family), "--version", NULL};
    int result = tool_demand(argv, NULL, &version, problem);
    if (result == 0)
        result = strstr(version, "nf_tables") != NULL;
    free(version);
    return result;
}

static int write_table(FILE *out, enum family family, enum iptables_table table, bool nft, const char *live,
        const char *target, struct problem *problem) {
    if (!*live && !*target)
        return 0;
    unsigned missing = 0;
    int result = nft && *target ? missing_now(family, table_names[table], &missing) : 0;
    if (result < 0)
        return problem_say(problem, -result, "cannot ask the kernel for table %s: %s", table_names[table],
                strerror(-result));
    fprintf(out, "*%s\n", table_names[table]);
    write_made(out, missing);
    write_leaving(out, live, target);
    fprintf(out, "%sCOMMIT\n", target);
    return 0;
}

static int restore(enum family family, const char *input, struct problem *problem) {
    const char *const argv[] = {restore_tool(family), "--noflush", "-w", "10", NULL};
    struct problem detail;
    int result = tool_demand(argv, input, NULL, &detail);
    if (result == -EIO && strstr(detail.text, "incompatible"))
        return problem_say(problem, EIO,
                "%s: a table holds rules that only nft can express; use `--backend nft`", detail.text);
    if (result < 0)
        *problem = detail;
    return result;
}

int iptables_install(enum family family, const struct iptables_rules *live,
        const struct iptables_rules *target, struct problem *problem) {
    unsigned made = live->made[IPTABLES_MANGLE] | live->made[IPTABLES_NAT];
    if (iptables_is_empty(live) && iptables_is_empty(target) && !made)
        return 0;
    int nft = speaks_nft(family, problem);
    if (nft < 0)
        return nft;
    char *input = NULL;
    size_t size;
    FILE *out = open_memstream(&input, &size);
    CHECK(out);
    int result = 0;
    for (enum iptables_table table = 0; table < IPTABLES_TABLE_COUNT && result == 0; table++)
        result = write_table(out, family, table, nft, live->text[table], target->text[table], problem);
    fclose(out);
    if (result == 0 && *input)
        result = restore(family, input, problem);
    free(input);
    if (result < 0)
        return result;
    for (enum iptables_table table = 0; table < IPTABLES_TABLE_COUNT; table++)
        if (!*target->text[table])
            drop_made(family, table_names[table], live->made[table]);
    return 0;
}

int iptables_count(enum family family, unsigned long long *packets, struct problem *problem) {
    char *text = NULL, *state = NULL;
    int result = save(family, true, &text, problem);
    *packets = 0;
    for (char *line = text ? strtok_r(text, "\n", &state) : NULL; line; line = strtok_r(NULL, "\n", &state)) {
        unsigned long long count;
        if (strstr(line, "] -A WEIR_INTERCEPT ") && sscanf(line, "[%llu:", &count) == 1)
            *packets += count;
    }
    free(text);
    return result;
}
