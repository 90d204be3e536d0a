#include "cache/aside.h"

#include "cache/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define PREFIX "aside."
#define NAME_BYTES 32
#define PLACES_MAX 10000
#define DEPTH_MAX 8
#define ENOUGH 1 // ends a file_list

static const char *const names[] = {"super", "seg", "index", "purge.log"};

bool aside_is_needed(int directory) {
    struct stat stat;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (file_status(directory, names[i], &stat) == 0)
            return true;
    return false;
}

static int new_place(int directory, int *fd) {
    char name[NAME_BYTES];
    struct stat stat;
    for (unsigned i = 0; i < PLACES_MAX; i++) {
        snprintf(name, sizeof name, PREFIX "%u", i);
        if (file_status(directory, name, &stat) == -ENOENT)
            return file_open_directory(directory, name, fd);
    }
    return -EEXIST;
}

int aside_take(int directory) {
    int place, error = new_place(directory, &place);
    if (error < 0)
        return error;
    for (unsigned i = 0; i < sizeof names / sizeof *names && error == 0; i++) {
        error = file_rename(directory, names[i], place, names[i]);
        error = error == -ENOENT ? 0 : error;
    }
    file_close(place);
    return error;
}

// ---- going through a tree ----

struct visit {
    int directory;
    unsigned depth, files; // files that may still be deleted
    bool deletes;
    uint64_t *bytes;
};

static int visit_name(void *context, const char *name);

static int visit_directory(struct visit *above, const char *name) {
    struct visit visit = *above;
    if (++visit.depth > DEPTH_MAX)
        return 0;
    int result = file_open(above->directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, &visit.directory);
    if (result < 0)
        return result;
    result = file_list(visit.directory, visit_name, &visit);
    file_close(visit.directory);
    above->files = visit.files;
    if (result == 0 && above->deletes)
        result = file_remove_directory(above->directory, name);
    return result;
}

static int visit_name(void *context, const char *name) {
    struct visit *visit = context;
    struct stat stat;
    if (visit->depth == 0 && strncmp(name, PREFIX, strlen(PREFIX)) != 0)
        return 0;
    int result = file_status(visit->directory, name, &stat);
    if (result < 0)
        return result == -ENOENT ? 0 : result;
    if (S_ISDIR(stat.st_mode)) {
        if ((result = visit_directory(visit, name)) == 0)
            *visit->bytes += (uint64_t)stat.st_blocks * 512;
        return result;
    }
    if (visit->deletes) {
        if (visit->files == 0)
            return ENOUGH;
        visit->files--;
        result = file_unlink(visit->directory, name);
    }
    if (result == 0)
        *visit->bytes += (uint64_t)stat.st_blocks * 512;
    return result;
}

uint64_t aside_bytes(int directory) {
    uint64_t bytes = 0;
    struct visit visit = {.directory = directory, .bytes = &bytes};
    file_list(directory, visit_name, &visit);
    return bytes;
}

int aside_delete(int directory, unsigned files, uint64_t *freed) {
    struct visit visit = {.directory = directory, .files = files, .deletes = true, .bytes = freed};
    return file_list(directory, visit_name, &visit);
}
