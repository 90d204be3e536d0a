#include "iptables/trial.h"

#include "iptables/feature.h"
#include "iptables/scratch.h"

#include <errno.h>

// A failure with a better name for it, if there is one.
static int name_failure(const struct plan *plan, enum backend backend, int result, struct problem *problem) {
    struct problem named;
    int probe = feature_probe(plan, backend, &named);
    if (probe == 0)
        return result;
    *problem = named;
    return probe;
}

int trial_run(const struct plan *plan, enum backend backend, struct ruleset *ruleset, bool *exact,
        struct problem *problem) {
    struct ruleset wanted;
    struct scratch scratch;
    ruleset_make(&wanted, plan, backend);
    *exact = scratch_enter(&scratch) == 0;
    if (!*exact) {
        *ruleset = wanted;
        return 0;
    }
    int result = ruleset_install(&wanted, problem);
    if (result == 0)
        result = ruleset_capture(ruleset, problem);
    else if (result == -EIO)
        result = name_failure(plan, backend, result, problem);
    scratch_leave(&scratch);
    ruleset_fini(&wanted);
    return result;
}
