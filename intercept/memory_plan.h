// What `memory` is spent on. The whole process keeps to
//
//     the program   : 6 MiB, and 1 MiB a worker
//     cache_mem     : the memory tier, all overhead counted
//     the index     : 18 bytes an object of store_objects (16 of the table, 2 of the ghosts), 64 KiB a volume
//     the disks     : buffers and threads, 4 MiB a volume
//     wear          : with `wear on`, what waits to be asked for a second time: a quarter of cache_mem, at
//     least
//                     2 MiB a volume
//     connections   : 40 KiB for each of client_connections, the share of one to an origin included
//
// and what is not set follows from it: store_objects (auto) as far as it fits into a quarter,
// client_connections (0) into a quarter, cache_mem is the rest. Without `memory` nothing is bounded but by
// what each says itself; store_objects (auto) then keeps to a quarter of the machine's memory. Page cache is
// not counted: the kernel takes it back whenever somebody needs it. Pure.
#pragma once

#include "admin/config.h"

struct memory_plan {
    int64_t memory_bytes; // 0: no budget
    int64_t program_bytes;
    int64_t cache_bytes; // cache_mem in force
    int64_t objects;     // store_objects in force, of all volumes
    int64_t index_bytes;
    int64_t disk_bytes;
    int64_t wear_bytes;
    int64_t client_connections; // in force
    int64_t connection_bytes;
};

struct memory_facts {
    int64_t machine_bytes;      // of memory; 0: not known
    unsigned workers;           // in force
    int64_t client_connections; // in force without a budget: configured, or from the descriptor limit
};

#define MEMORY_PLAN_CACHE_MINIMUM (INT64_C(4) << 20) // less is no default

// False with an error that spells out the sum; `plan` is filled all the same.
bool memory_plan_make(struct memory_plan *plan, const struct config *config, const struct memory_facts *facts,
        struct config_errors *errors);

int64_t memory_plan_sum(const struct memory_plan *plan); // of all it has; saturating

// "64M: 8M program + 32M cache_mem + ... = 63M": the budget, if there is one, and what the plan says.
#define MEMORY_PLAN_TEXT_BYTES 320
const char *memory_plan_print(const struct memory_plan *plan, char out[static MEMORY_PLAN_TEXT_BYTES]);
