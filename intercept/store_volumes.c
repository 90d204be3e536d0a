#include "intercept/store_volumes.h"

#include "admin/cache_dir.h"
#include "intercept/daemon.h"
#include "intercept/store_judge.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

// Of the machine's start, by its random name; 0: not known.
static uint32_t boot_number(void) {
    char text[64];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (fd >= 0)
        close(fd);
    uint32_t number = got > 0 ? record_crc(text, (size_t)got) : 0;
    return number;
}

bool store_volumes_apply(struct daemon *daemon, struct settings *settings) {
    struct store_volumes *volumes = malloc(sizeof *volumes);
    if (!daemon->judge)
        daemon->judge = store_judge_new();
    if (!volumes || !daemon->judge) {
        free(volumes);
        return false;
    }
    store_judge_set(daemon->judge, settings);
    store_volumes_fill(volumes, settings, daemon->judge);
    if (daemon->disk) {
        disk_apply(daemon->disk, &volumes->disk);
        cache_leave_volumes(daemon->cache);
    } else if (volumes->disk.count) {
        daemon->disk = disk_new(&volumes->disk);
        cache_use_disk(daemon->cache, daemon->disk, boot_number());
    }
    free(volumes);
    return true;
}

void store_volumes_close(struct daemon *daemon) {
    if (disk_free(daemon->disk))
        store_judge_free(daemon->judge);
}
