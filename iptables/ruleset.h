// Everything of ours in the kernel: iptables chains, the nft table, policy routing, of both families. There
// is one way to change it, ruleset_install, from whatever is there to what is wanted: apply, remove and
// rolling back are the same step with other targets.
#pragma once

#include "iptables/iptables.h"
#include "iptables/plan.h"
#include "iptables/problem.h"

#include <stdbool.h>
#include <stdio.h>

enum backend { BACKEND_IPTABLES, BACKEND_NFT };

struct ruleset {
    struct iptables_rules iptables[FAMILY_COUNT];
    char *nft;                  // NULL: no table
    char *policy[FAMILY_COUNT]; // policy.h
};

const char *backend_name(enum backend backend);

// What the plan wants, and what is in the kernel. The caller owns `ruleset` after 0; after an error it is
// empty.
void ruleset_make(struct ruleset *ruleset, const struct plan *plan, enum backend backend);
int ruleset_capture(struct ruleset *ruleset, struct problem *problem);
void ruleset_fini(struct ruleset *ruleset);

// Nothing at all is a ruleset too: the target of `remove`.
void ruleset_make_empty(struct ruleset *ruleset);

// Takes out of a captured ruleset what selects new connections, and nothing else: whatever mode and file it
// came from, the connections that run keep their NAT chain or divert rule.
void ruleset_release(struct ruleset *ruleset);

// Rules alone, not the record of what was made for us.
bool ruleset_equal(const struct ruleset *a, const struct ruleset *b);
// Whether `live` is what ruleset_release() makes of `wanted`, and there was something to release.
bool ruleset_is_released(const struct ruleset *live, const struct ruleset *wanted);
bool ruleset_has(const struct ruleset *ruleset, enum backend backend);

// Under the lock. After an error the kernel has what it had before, or `problem` says what remained.
int ruleset_install(const struct ruleset *target, struct problem *problem);

// The text that apply would load, with comments.
void ruleset_print(FILE *out, const struct plan *plan, enum backend backend);
