#include "iptables/ruleset.h"

#include "admin/check.h"
#include "iptables/nft.h"
#include "iptables/policy.h"
#include "iptables/template.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

const char *backend_name(enum backend backend) {
    return backend == BACKEND_NFT ? "nft" : "iptables";
}

static char *iptables_text(const struct plan *plan, enum family family) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    CHECK(out);
    template_write_iptables(out, plan, family);
    fclose(out);
    return text;
}

static char *nft_text(const struct plan *plan) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    CHECK(out);
    template_write_nft(out, plan);
    fclose(out);
    return text;
}

void ruleset_make_empty(struct ruleset *ruleset) {
    *ruleset = (struct ruleset){0};
    for (enum family family = 0; family < FAMILY_COUNT; family++) {
        iptables_parse("", &ruleset->iptables[family]);
        CHECK((ruleset->policy[family] = strdup("")) != NULL);
    }
}

void ruleset_make(struct ruleset *ruleset, const struct plan *plan, enum backend backend) {
    *ruleset = (struct ruleset){0};
    if (backend == BACKEND_NFT)
        ruleset->nft = nft_text(plan);
    for (enum family family = 0; family < FAMILY_COUNT; family++) {
        char *text = backend == BACKEND_IPTABLES ? iptables_text(plan, family) : NULL;
        iptables_parse(text ? text : "", &ruleset->iptables[family]);
        free(text);
        policy_make(plan, family, &ruleset->policy[family]);
    }
}

void ruleset_fini(struct ruleset *ruleset) {
    for (enum family family = 0; family < FAMILY_COUNT; family++) {
        iptables_fini(&ruleset->iptables[family]);
        free(ruleset->policy[family]);
    }
    free(ruleset->nft);
    *ruleset = (struct ruleset){0};
}

int ruleset_capture(struct ruleset *ruleset, struct problem *problem) {
    *ruleset = (struct ruleset){0};
    int result = nft_capture(&ruleset->nft, problem);
    for (enum family family = 0; family < FAMILY_COUNT && result == 0; family++) {
        result = iptables_capture(family, &ruleset->iptables[family], problem);
        if (result == 0)
            result = policy_capture(family, &ruleset->policy[family], problem);
    }
    if (result < 0)
        ruleset_fini(ruleset);
    return result;
}

// Takes the lines out, in place, that begin with `start` behind their blanks.
static void drop_lines(char *text, const char *start) {
    char *out = text;
    for (char *line = text, *next; *line; line = next) {
        size_t length = strcspn(line, "\n");
        next = line + length + (line[length] == '\n');
        if (strncmp(line + strspn(line, " \t"), start, strlen(start)) == 0)
            continue;
        memmove(out, line, (size_t)(next - line));
        out += next - line;
    }
    *out = '\0';
}

#define NFT_SELECTION "iifname "
#define IPTABLES_SELECTION "-A WEIR_SELECT -i "

// The lines that iptables.tmpl and nft.tmpl have for each interface.
void ruleset_release(struct ruleset *ruleset) {
    if (ruleset->nft)
        drop_lines(ruleset->nft, NFT_SELECTION);
    for (enum family family = 0; family < FAMILY_COUNT; family++)
        for (enum iptables_table table = 0; table < IPTABLES_TABLE_COUNT; table++)
            drop_lines(ruleset->iptables[family].text[table], IPTABLES_SELECTION);
}

bool ruleset_equal(const struct ruleset *a, const struct ruleset *b) {
    if (!a->nft != !b->nft || (a->nft && strcmp(a->nft, b->nft) != 0))
        return false;
    for (enum family family = 0; family < FAMILY_COUNT; family++) {
        for (enum iptables_table table = 0; table < IPTABLES_TABLE_COUNT; table++)
            if (strcmp(a->iptables[family].text[table], b->iptables[family].text[table]) != 0)
                return false;
        if (!policy_equal(a->policy[family], b->policy[family]))
            return false;
    }
    return true;
}

static bool is_without(const char *live, const char *wanted, const char *start) {
    if (!live || !wanted)
        return live == wanted;
    char *released = strdup(wanted);
    CHECK(released);
    drop_lines(released, start);
    bool same = strcmp(live, released) == 0;
    free(released);
    return same;
}

bool ruleset_is_released(const struct ruleset *live, const struct ruleset *wanted) {
    bool same = is_without(live->nft, wanted->nft, NFT_SELECTION);
    for (enum family family = 0; family < FAMILY_COUNT && same; family++) {
        for (enum iptables_table table = 0; table < IPTABLES_TABLE_COUNT && same; table++)
            same = is_without(live->iptables[family].text[table], wanted->iptables[family].text[table],
                    IPTABLES_SELECTION);
        same = same && policy_equal(live->policy[family], wanted->policy[family]);
    }
    return same && !ruleset_equal(live, wanted);
}

bool ruleset_has(const struct ruleset *ruleset, enum backend backend) {
    if (backend == BACKEND_NFT)
        return ruleset->nft != NULL;
    return !iptables_is_empty(&ruleset->iptables[FAMILY_IPV4]) ||
           !iptables_is_empty(&ruleset->iptables[FAMILY_IPV6]);
}

// Routing stands before the first packet is marked, and goes after the last.
static int go(const struct ruleset *live, const struct ruleset *target, struct problem *problem) {
    int result = 0;
    for (enum family family = 0; family < FAMILY_COUNT && result == 0; family++)
        result = policy_add(family, live->policy[family], target->policy[family], problem);
    // The backend that gets rules comes first, so that a change of backends leaves no gap.
    if (result == 0 && target->nft)
        result = nft_install(live->nft, target->nft, problem);
    for (enum family family = 0; family < FAMILY_COUNT && result == 0; family++)
        result = iptables_install(family, &live->iptables[family], &target->iptables[family], problem);
    if (result == 0 && !target->nft)
        result = nft_install(live->nft, target->nft, problem);
    for (enum family family = 0; family < FAMILY_COUNT && result == 0; family++)
        result = policy_delete(family, live->policy[family], target->policy[family], problem);
    return result;
}

static void go_back(const struct ruleset *before, struct problem *problem) {
    struct ruleset now;
    struct problem second, first = *problem;
    int result = ruleset_capture(&now, &second);
    if (result == 0) {
        result = go(&now, before, &second);
        ruleset_fini(&now);
    }
    if (result < 0)
        problem_say(problem, EIO, "%.900s; and going back to the rules before failed too: %.900s", first.text,
                second.text);
}

int ruleset_install(const struct ruleset *target, struct problem *problem) {
    sigset_t interrupts, before_mask;
    sigemptyset(&interrupts);
    sigaddset(&interrupts, SIGINT);
    sigaddset(&interrupts, SIGTERM);
    sigaddset(&interrupts, SIGHUP);
    sigaddset(&interrupts, SIGQUIT);
    struct ruleset live;
    int result = ruleset_capture(&live, problem);
    if (result < 0)
        return result;
    sigprocmask(SIG_BLOCK, &interrupts, &before_mask); // all or nothing; they are delivered afterwards
    result = go(&live, target, problem);
    if (result < 0)
        go_back(&live, problem);
    sigprocmask(SIG_SETMASK, &before_mask, NULL);
    ruleset_fini(&live);
    return result;
}

void ruleset_print(FILE *out, const struct plan *plan, enum backend backend) {
    if (backend == BACKEND_NFT) {
        fputs("# nft -f -\n", out);
        template_write_nft(out, plan);
    }
    for (enum family family = 0; family < FAMILY_COUNT; family++) {
        if (backend == BACKEND_IPTABLES && plan->target[family].on) {
            fprintf(out, "# %s --noflush\n",
                    family == FAMILY_IPV4 ? "iptables-restore" : "ip6tables-restore");
            template_write_iptables(out, plan, family);
        }
        char *policy;
        policy_make(plan, family, &policy);
        policy_print(out, family, policy);
        free(policy);
    }
}
