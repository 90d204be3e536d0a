// What the files of the tier share.
#pragma once

#include "cache/disk.h"
#include "cache/index.h"
#include "cache/tier.h"

struct tier_name { // a copy that outlives its entry
    struct entry_name entry;
    struct endpoint destination;
    char text[];
};
struct tier_name *tier_name_new(const struct entry_name *name); // free()
struct disk_name tier_disk_name(const struct entry_name *name);

void tier_job_begins(struct cache *cache, uint64_t dirty_bytes);
void tier_dirty_ends(struct cache *cache, uint64_t dirty_bytes); // before the job does
void tier_job_ends(struct cache *cache, uint64_t dirty_bytes);
