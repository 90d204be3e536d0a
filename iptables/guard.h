// `--confirm`: a process of its own that puts the rules back unless somebody confirms them. It has no
// terminal and outlives the session it was started from.
//
// Life: guard_start (before the change) -> guard_arm (after it; the clock starts) -> confirmed, or rolled
// back. Should its parent die in between, it rolls back at once. One guard at a time in a network namespace;
// it is found by a lock that it holds, and dies without a trace.
#pragma once

#include "iptables/ruleset.h"

#include <stdbool.h>
#include <sys/types.h>

struct guard {
    pid_t pid;
    int parent_end; // closing it unarmed rolls back
};

enum guard_end { GUARD_CONFIRMED, GUARD_ROLLED_BACK, GUARD_FAILED };

// Under the lock, whose descriptor the guard must not keep.
int guard_start(const struct ruleset *before, unsigned seconds, int lock, struct guard *guard,
        struct problem *problem);
void guard_arm(struct guard *guard);

// No roll-back is needed, nothing was changed: ends the guard.
void guard_cancel(struct guard *guard);

// Waits for the guard's end.
enum guard_end guard_wait(struct guard *guard);

// The guard of this network namespace, or 0.
pid_t guard_find(void);

// Under the lock: the rules stay. True when a guard was waiting.
bool guard_confirm(void);

// From the process that started it: the rules stay.
void guard_accept(const struct guard *guard);

// Rolls back now, instead of at the end of its time.
void guard_refuse(const struct guard *guard);
