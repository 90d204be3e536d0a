// The index that a volume saved at a clean stop (see cache/recovery.c), read by itself.
#pragma once

#include "cache/key.h"

#include <stdbool.h>
#include <stdint.h>

struct saved_index;

// NULL, and *error: -ENOENT: none was saved; -EBADMSG: it is not what was saved; another -errno. Takes the
// memory of the volume's own index, however few objects there are.
struct saved_index *saved_index_read(int directory, uint64_t volume, int *error);
void saved_index_free(struct saved_index *index); // NULL is allowed

// How often the record at `offset` of a segment was hit; -1: it is not known.
int saved_index_hits(
        const struct saved_index *index, struct cache_key key, uint64_t segment, uint64_t offset);
// A segment that it lists; false: there is no `n`th.
bool saved_index_segment(const struct saved_index *index, uint32_t n, uint64_t *segment);
