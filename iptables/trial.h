// A plan tried in a scratch namespace before the real one is touched.
#pragma once

#include "iptables/plan.h"
#include "iptables/ruleset.h"

#include <stdbool.h>

// Makes the plan's ruleset, installs it in a scratch namespace, and reads it back: `ruleset` is then what the
// kernel would list, and *exact is true. Where there is no right to make a namespace, `ruleset` is the
// templates' text, and *exact false. A kernel that refuses the rules is -EOPNOTSUPP with the missing feature
// named.
int trial_run(const struct plan *plan, enum backend backend, struct ruleset *ruleset, bool *exact,
        struct problem *problem);
