// What a volume's directory held in a format that is not understood: moved into `aside.N` beside the new
// content, and deleted little by little. Files that are nobody's of ours are left alone.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Moves the volume's own names (super, seg, index, purge.log) into a new aside.N. 0 or -errno.
int aside_take(int directory);
// Whether there is something of a volume in the directory.
bool aside_is_needed(int directory);
// What all aside.N take on the disk.
uint64_t aside_bytes(int directory);
// Deletes at most `files` of them, and adds to *freed what they took. 0: all are gone; 1: more is left;
// -errno.
int aside_delete(int directory, unsigned files, uint64_t *freed);
