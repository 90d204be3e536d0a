// What is told of the store's volumes: `weir store status`, and rows of `weir stats`.
#pragma once

#include "admin/command.h"
#include "cache/cache.h"
#include "cache/disk.h"

#include <stdio.h>

// "ok", then a block of lines a volume, or one JSON object {"volumes": [...]}.
void store_status_answer(struct cache *cache, bool json, FILE *out);
void store_status_print(const struct disk_volume_stats *volumes, unsigned count, FILE *out);
// The array alone.
void store_status_print_json(const struct disk_volume_stats *volumes, unsigned count, FILE *out);

// All volumes together.
struct store_sums {
    uint64_t volumes, unused; // `unused`: offline or slow
    uint64_t objects, bytes, limit_bytes, index_bytes, bytes_put, bytes_written, broken_records, errors;
    uint64_t reads, writes, gave_up, queued;
};
void store_status_sum(struct cache *cache, struct store_sums *sums);

// `weir store status [--json]`, without the word status: for the dispatcher of `weir store`.
command_function store_status_command;
