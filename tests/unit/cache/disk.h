// What tests of a volume share: a temporary directory, records whose bytes follow from their key, and a check
// of what is found.
#pragma once

#include "cache/volume.h"

#include <stdbool.h>
#include <stdint.h>

char *scratch_new(void); // a fresh directory; freed, and the directory deleted, by scratch_free
void scratch_free(char *path);
uint64_t disk_usage(const char *path); // as du has it

struct cache_key disk_key(uint64_t id);
uint64_t disk_random(uint64_t *state);

// Waits until it has left `state`; false after ten seconds.
bool disk_leave(struct volume *volume, enum volume_state state);
struct volume *disk_open(const struct volume_settings *settings); // and loaded; fails the test otherwise

// Puts the record of `id` with so many bytes of content and a head of `id % 200` bytes. As volume_put.
int disk_put(struct volume *volume, uint64_t id, uint32_t body_bytes);
// The same, tried again while there is no room: the disk may be busy with others. False after a minute.
bool disk_put_surely(struct volume *volume, uint64_t id, uint32_t body_bytes);

enum disk_found {
    DISK_MISS,
    DISK_RIGHT,
    DISK_WRONG, // a record of this key that checks out and is not what was put
};
// Reads the candidates, drops what is broken as whoever reads has to; counts a hit. `*bytes` of content.
enum disk_found disk_find(struct volume *volume, uint64_t id, uint32_t *bytes);
enum disk_found disk_peek(struct volume *volume, uint64_t id, uint32_t *bytes); // counts none
// Whether this record, checksums verified, has the content that belongs to its key.
bool disk_is_right(const struct record *record, const unsigned char *bytes);
