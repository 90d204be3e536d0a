// Which kernel feature a plan needs and does not get.
#pragma once

#include "iptables/plan.h"
#include "iptables/ruleset.h"

// In a scratch namespace: tries one after the other what feature.tbl lists for the backend and the plan's
// mode and families. -EOPNOTSUPP with the feature's name and the cure in `problem`; 0 when all of them work.
int feature_probe(const struct plan *plan, enum backend backend, struct problem *problem);
