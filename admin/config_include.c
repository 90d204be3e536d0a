#include "admin/config_loader.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct buffer {
    char *data;
    size_t length, room;
};

static int buffer_grow(struct buffer *buffer) {
    size_t room = buffer->room ? buffer->room * 2 : 16384;
    char *grown = realloc(buffer->data, room);
    if (!grown)
        return -ENOMEM;
    buffer->data = grown;
    buffer->room = room;
    return 0;
}

// Everything up to the end, at most `most` bytes: -EFBIG when there is more.
static int read_whole(int fd, struct buffer *buffer, size_t most) {
    for (;;) {
        if (buffer->length == buffer->room && buffer_grow(buffer) != 0)
            return -ENOMEM;
        ssize_t got = read(fd, buffer->data + buffer->length, buffer->room - buffer->length);
        if (got < 0 && errno != EINTR)
            return -errno;
        if (got == 0)
            return 0;
        buffer->length += got > 0 ? (size_t)got : 0;
        if (buffer->length > most)
            return -EFBIG;
    }
}

// Why this file must not be read, or NULL. An included file must be a regular one: reading a pipe or a device
// that some wildcard caught could take for ever.
static const char *refusal(
        const struct loader *loader, const struct source *source, mode_t mode, bool is_included) {
    unsigned depth = 0;
    for (const struct source *above = source->includer; above; above = above->includer, depth++)
        if (above->device == source->device && above->inode == source->inode)
            return "includes itself, take one include out";
    if (is_included && !S_ISREG(mode))
        return "is no regular file, name files alone";
    if (depth >= CONFIG_DEPTH_MAXIMUM)
        return "is the 17th file within one another, include it from higher up";
    if (loader->file_count >= CONFIG_FILES_MAXIMUM)
        return "is the 257th file, put some of them together";
    return NULL;
}

static int read_source(struct loader *loader, struct source *source, const struct directive *place,
        struct buffer *buffer, const char **refused) {
    struct stat status;
    int fd = open(source->name, O_RDONLY | O_CLOEXEC | (place ? O_NONBLOCK : 0));
    if (fd < 0)
        return -errno;
    int result = fstat(fd, &status) == 0 ? 0 : -errno;
    if (result == 0) {
        source->device = status.st_dev;
        source->inode = status.st_ino;
        *refused = refusal(loader, source, status.st_mode, place != NULL);
    }
    if (result == 0 && !*refused)
        result = read_whole(fd, buffer, CONFIG_BYTES_MAXIMUM - loader->bytes);
    close(fd);
    return result;
}

void loader_read_file(struct loader *loader, const char *name, const struct directive *place) {
    struct source source = {.includer = loader->source};
    struct buffer buffer = {0};
    const char *refused = NULL;
    source.name = config_arena_text(loader->config->arena, view_of(name));
    if (!source.name) {
        loader_no_memory(loader, place);
        return;
    }
    struct directive start = {.file = source.name, .line = 1, .column = 1};
    int result = read_source(loader, &source, place, &buffer, &refused);
    loader->file_count++;
    loader->bytes += buffer.length;
    if (refused)
        config_error(loader->errors, place ? place : &start, 0, "%s %s", name, refused);
    else if (result == -EFBIG)
        config_error(loader->errors, place ? place : &start, 0,
                "%s makes the configuration larger than 32M, make it smaller", name);
    else if (result < 0)
        config_error(loader->errors, place ? place : &start, 0,
                "%s cannot be read (%s), create it or correct its name and permissions", name,
                strerror(-result));
    else
        loader_read_lines(loader, &source, (struct view){buffer.data, buffer.length});
    free(buffer.data);
}

// The word as a path from the folder of the file it stands in; with `escape`, wildcards of that folder's own
// name are made plain. NULL: no memory.
static char *resolve(const char *includer, const char *word, bool escape) {
    const char *slash = strrchr(includer, '/');
    size_t folder = *word == '/' || !slash ? 0 : (size_t)(slash - includer) + 1;
    char *path = malloc(2 * folder + strlen(word) + 1), *to = path;
    if (!path)
        return NULL;
    for (size_t i = 0; i < folder; i++) {
        if (escape && strchr("*?[]\\", includer[i]))
            *to++ = '\\';
        *to++ = includer[i];
    }
    memcpy(to, word, strlen(word) + 1);
    return path;
}

static int on_glob_error(const char *path, int error) {
    (void)path;
    return error != ENOENT; // anything else could hide files that are meant
}

static void include_matches(struct loader *loader, const struct directive *include, const char *pattern) {
    glob_t matches;
    int result = glob(pattern, 0, on_glob_error, &matches);
    if (result == GLOB_NOSPACE)
        loader_no_memory(loader, include);
    else if (result == GLOB_ABORTED)
        config_error(loader->errors, include, 0, "a folder of %s cannot be read, correct its permissions",
                pattern);
    for (size_t i = 0; result == 0 && i < matches.gl_pathc && loader_goes_on(loader); i++)
        loader_read_file(loader, matches.gl_pathv[i], include);
    globfree(&matches);
}

void loader_include(struct loader *loader, const struct directive *include) {
    const char *word = include->words[0].text;
    if (loader->is_text) {
        config_error(loader->errors, include, -1, "include works in files only, take it out");
        return;
    }
    bool is_pattern = strpbrk(word, "*?[") != NULL;
    char *path = resolve(include->file, word, is_pattern);
    if (!path)
        loader_no_memory(loader, include);
    else if (is_pattern)
        include_matches(loader, include, path);
    else
        loader_read_file(loader, path, include);
    free(path);
}
