// From the configuration to the volumes of the store: what they are opened with, and who answers their
// questions while configurations come and go.
#pragma once

#include "cache/disk.h"
#include "intercept/settings.h"

// Answers what volumes ask: whether a mask of an old purge matches, and what is carried over when a place is
// reclaimed. Lives as long as the store; a reload gives it new settings. Its questions come from any thread.
struct store_judge;
struct store_judge *store_judge_new(void); // NULL: no memory
// Takes its own reference. Before the first volume is opened, and at every reload.
void store_judge_set(struct store_judge *judge, struct settings *settings);
void store_judge_free(struct store_judge *judge); // after the store; NULL is allowed

struct store_volumes {
    struct disk_settings
            disk; // `volumes` points to what follows; `changed` and `owner` are the caller's to set
    struct volume_settings volumes[DISK_VOLUMES_MAX];
};
// What the settings say; paths are theirs. For disk_new() and disk_apply().
void store_volumes_fill(
        struct store_volumes *out, const struct settings *settings, struct store_judge *judge);

// Makes the directories that are not there, for the user that the process becomes (mode 0750), and gives it
// those that are empty and ours; while the process is still root, before it changes. Says in the log what it
// did and what it could not: a volume that cannot be used keeps nothing else from starting.
void store_volumes_make(const struct config *config);
// The same for one, by root. False: no such user.
bool store_directory_make(const char *path, const char *user_name);

struct daemon;
// Opens, adds, removes and resizes the daemon's volumes to what the settings say. At the start and at every
// reload, on the main thread. False without memory.
bool store_volumes_apply(struct daemon *daemon, struct settings *settings);
void store_volumes_close(struct daemon *daemon); // after the store
