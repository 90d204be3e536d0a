// `weir rules status`.
#pragma once

#include "iptables/plan.h"
#include "iptables/ruleset.h"

#include <stdbool.h>
#include <stdio.h>

// Prints a line for each backend and family, what differs, and hints. `wanted` is what the configuration
// would produce now; `exact` as trial_run says. True when the rules are applied and current.
bool status_print(FILE *out, const struct plan *plan, const struct ruleset *live,
        const struct ruleset *wanted, bool exact);
