// One change of rules at a time. The lock is per network namespace, as rules are. The programs that are run
// under it inherit it, so that it also outlasts the sudden death of this process by as long as they still
// work.
#pragma once

#include "iptables/problem.h"

#define LOCK_PATH_BYTES 64
#define LOCK_WAIT_SECONDS 60

// "/run/weir-rules-<namespace>.<kind>".
void lock_path(const char *kind, char path[static LOCK_PATH_BYTES]);

// Waits for the lock, LOCK_WAIT_SECONDS at most. Returns a descriptor or -errno.
int lock_take(struct problem *problem);
void lock_drop(int lock);
