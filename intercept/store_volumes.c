#include "intercept/store_volumes.h"

#include "admin/cache_dir.h"
#include "intercept/store_judge.h"

#include <string.h>

// Each volume's share of what all have together.
static uint64_t share_of(int64_t all, const struct cache_dir *dir, const struct cache_dirs *dirs) {
    return (uint64_t)((double)all * ((double)dir->bytes / (double)dirs->bytes));
}

void store_volumes_fill(
        struct store_volumes *out, const struct settings *settings, struct store_judge *judge) {
    struct config_errors none = {0}; // there are none: the settings are in force
    struct cache_dirs dirs;
    const struct memory_plan *plan = &settings->memory;
    cache_dirs_read(settings->config, &dirs, &none);
    config_errors_fini(&none);
    *out = (struct store_volumes){.disk = {.volumes = out->volumes, .count = dirs.count}};
    for (unsigned i = 0; i < dirs.count; i++) {
        const struct cache_dir *dir = &dirs.dirs[i];
        out->volumes[i] = (struct volume_settings){.path = dir->path,
                .bytes = (uint64_t)dir->bytes,
                .objects = share_of(plan->objects, dir, &dirs),
                .small_memory_bytes = share_of(plan->wear_bytes, dir, &dirs),
                .context = judge,
                .matches = store_judge_matches,
                .keep = store_judge_keep,
                .judges_unhit = penalty_lines_have_bonus(settings->penalties)};
    }
}
