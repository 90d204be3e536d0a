// The volumes that the configuration names: its cache_dir lines, and cache_swap_size.
#pragma once

#include "admin/config.h"

#define CACHE_DIRS_MAX 64
#define CACHE_DIR_BYTES_MINIMUM (INT64_C(4) << 20)
#define CACHE_MEM_BYTES_ADVISED (INT64_C(8) << 20) // with a volume, at least
#define CACHE_DIR_PATH_BYTES 200 // of a path, so that those of the files in it are no trouble

struct cache_dir {
    const char *path; // the configuration's; absolute, without . and ..
    int64_t bytes;
    const struct directive *directive;
};

struct cache_dirs {
    unsigned count;
    struct cache_dir dirs[CACHE_DIRS_MAX];
    int64_t bytes;    // of all
    int64_t smallest; // 0 with none
};

// False with errors added, every one of them; `dirs` then holds the good lines.
bool cache_dirs_read(const struct config *config, struct cache_dirs *dirs, struct config_errors *errors);
// What stands there and does nothing, or little, for config->notes.
void cache_dirs_note(const struct config *config, struct config_errors *notes);
// What its file system holds, if that is less than the volume may: it keeps to that. 0: it is not, or not
// known.
int64_t cache_dir_room(const struct cache_dir *dir);
// The same for config->notes, of all.
void cache_dirs_note_rooms(const struct config *config, struct config_errors *notes);
