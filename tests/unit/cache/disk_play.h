// What tests of the volumes as one share: names, responses whose bytes follow from a number, and a check of
// what is read.
#pragma once

#include "cache/disk.h"
#include "tests/unit/cache/disk.h"
#include "tests/unit/unit.h"

#include <stdbool.h>

#define PLAY_VOLUMES 3
#define PLAY_SLOW_MS 200
#define PLAY_PROBE_MS 50
#define PLAY_NOW 1700000000

struct play_disk {
    char *paths[PLAY_VOLUMES];
    struct volume_settings volumes[PLAY_VOLUMES];
    struct disk_settings settings;
    struct disk *disk;
    _Atomic unsigned changed;
};

void play_start(struct play_disk *play, unsigned count); // fresh directories, opened and loaded
void play_open(struct play_disk *play);
void play_close(struct play_disk *play);
void play_end(struct play_disk *play); // closed, and deleted
// Waits until the volume of this index is in `state`; false after ten seconds.
bool play_wait(struct play_disk *play, unsigned index, enum disk_state state);

// The name of a number: http://N.example/N from 192.0.2.1:80. Views into `text`.
struct play_name {
    char authority[32], path[64];
    struct endpoint destination;
    struct disk_name name;
};
void play_name(struct play_name *name, unsigned number);

// A head that says what it is: of a number, a variant, and an edition.
struct stored_head *play_head(unsigned number, const char *variant, unsigned edition);
// What play_head was given as edition; -1: it is another number's or variant's head.
int play_edition(const struct stored_head *head, unsigned number, const char *variant);
void play_fill(unsigned char *out, size_t length, uint64_t salt);

// With `bytes` of content whose salt is the edition; -1: none with the head.
int play_put(struct play_disk *play, unsigned number, const char *variant, unsigned edition, int64_t bytes,
        struct disk_place *place, uint64_t *location);
int play_read(struct play_disk *play, unsigned number, bool may_wait, struct disk_head **heads);
// Whether there is this one response alone, with its content: its edition, else -1.
int play_only(struct play_disk *play, unsigned number, const char *variant);
