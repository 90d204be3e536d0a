#include "iptables/status.h"

#include "iptables/guard.h"
#include "iptables/hint.h"
#include "iptables/nft.h"
#include "iptables/policy.h"

#include <string.h>

static void print_row(FILE *out, const char *part, const char *family, const char *state) {
    fprintf(out, "%-9s %-5s %s", part, family, state);
}

static const char *state_of(bool there, bool wanted, bool same, bool comparable) {
    if (!there)
        return wanted ? "MISSING" : "none";
    if (!wanted)
        return "LEFT OVER: the configuration does not ask for it";
    if (!comparable)
        return "applied, not compared (that takes CAP_SYS_ADMIN)";
    return same ? "applied, current" : "applied, DIFFERS from the configuration";
}

static const char *state_of_rules(bool there, bool wanted, bool same, bool comparable, bool is_released) {
    return there && wanted && is_released ? "RELEASED" : state_of(there, wanted, same, comparable);
}

static void print_packets(FILE *out, bool there, int result, unsigned long long packets) {
    if (there && result == 0)
        fprintf(out, "; %llu connections handed over", packets);
    fputc('\n', out);
}

static bool contains_line(const char *text, const char *line, size_t length) {
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
        if (strcspn(text, "\n") == length && memcmp(text, line, length) == 0)
            return true;
    return false;
}

// Lines of `text` that `other` does not have.
static void print_surplus(FILE *out, const char *what, const char *text, const char *other) {
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        size_t length = strcspn(text, "\n");
        if (length && !contains_line(other, text, length))
            fprintf(out, "    %s: %.*s\n", what, (int)length, text);
    }
}

static void print_difference(FILE *out, const char *live, const char *wanted) {
    print_surplus(out, "missing", wanted, live);
    print_surplus(out, "not in the configuration", live, wanted);
}

static void print_iptables(FILE *out, enum family family, const struct ruleset *live,
        const struct ruleset *wanted, bool is_released) {
    const struct iptables_rules *here = &live->iptables[family], *there = &wanted->iptables[family];
    bool same = true;
    for (enum iptables_table table = 0; table < IPTABLES_TABLE_COUNT; table++)
        same = same && strcmp(here->text[table], there->text[table]) == 0;
    bool applied = !iptables_is_empty(here);
    unsigned long long packets;
    struct problem ignored;
    int counted = iptables_count(family, &packets, &ignored);
    print_row(out, "iptables", family_name(family),
            state_of_rules(applied, !iptables_is_empty(there), same, true, is_released));
    print_packets(out, applied, counted, packets);
    if (applied && !iptables_is_empty(there) && !is_released)
        for (enum iptables_table table = 0; table < IPTABLES_TABLE_COUNT; table++)
            print_difference(out, here->text[table], there->text[table]);
}

static void print_nft(FILE *out, const struct plan *plan, const struct ruleset *live,
        const struct ruleset *wanted, bool exact, bool is_released) {
    bool same = live->nft && wanted->nft && strcmp(live->nft, wanted->nft) == 0;
    for (enum family family = 0; family < FAMILY_COUNT; family++) {
        unsigned long long packets;
        struct problem ignored;
        int counted = nft_count(family, &packets, &ignored);
        print_row(out, "nft", family_name(family),
                state_of_rules(
                        live->nft != NULL, wanted->nft && plan->target[family].on, same, exact, is_released));
        print_packets(out, live->nft != NULL, counted, packets);
    }
    if (live->nft && wanted->nft && exact && !is_released)
        print_difference(out, live->nft, wanted->nft);
}

static void print_policy(FILE *out, enum family family, const char *live, const char *wanted) {
    print_row(
            out, "routing", family_name(family), state_of(*live, *wanted, policy_equal(live, wanted), true));
    fputc('\n', out);
    if (*live && *wanted)
        print_difference(out, live, wanted);
}

bool status_print(FILE *out, const struct plan *plan, const struct ruleset *live,
        const struct ruleset *wanted, bool exact) {
    bool is_released = ruleset_is_released(live, wanted);
    for (enum family family = 0; family < FAMILY_COUNT; family++)
        print_iptables(out, family, live, wanted, is_released);
    print_nft(out, plan, live, wanted, exact, is_released);
    for (enum family family = 0; family < FAMILY_COUNT; family++)
        print_policy(out, family, live->policy[family], wanted->policy[family]);
    pid_t guard = guard_find();
    if (guard > 0)
        fprintf(out,
                "not confirmed yet: process %d rolls back at the end of its time, unless `weir rules "
                "confirm`\n",
                (int)guard);
    if (is_released)
        fputs("released, as weir drain and weir rules release leave them: new connections pass weir by and "
              "running ones go on, until weir rules apply; a daemon that drains takes no more, start weir "
              "first\n",
                out);
    hint_print(out, plan);
    return ruleset_equal(live, wanted);
}
