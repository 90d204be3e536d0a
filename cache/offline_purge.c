#include "cache/offline_purge.h"

#include "cache/file.h"
#include "cache/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define NEW_NAME "purge.new"
#define MOST_BYTES (UINT64_C(1) << 20)

// NULL: none, or it cannot be read (*error).
static unsigned char *read_journal(const struct offline *offline, uint64_t *bytes, int *error) {
    int fd;
    *error = file_open(offline_directory(offline), OFFLINE_PURGES, O_RDONLY, &fd);
    if (*error < 0)
        return NULL;
    *error = file_size(fd, bytes);
    *bytes = *error < 0 ? 0 : *bytes > MOST_BYTES ? MOST_BYTES : *bytes;
    unsigned char *journal = memory_new(*bytes + 1);
    if (*error == 0)
        *error = file_read(fd, 0, journal, *bytes);
    file_close(fd);
    if (*error == 0)
        return journal;
    free(journal);
    return NULL;
}

struct purge *offline_purges(const struct offline *offline, bool *is_good) {
    uint64_t bytes, end;
    int error;
    const struct super *super = offline_super(offline);
    struct purge *purge = purge_new(super->seed, MOST_BYTES);
    unsigned char *journal = read_journal(offline, &bytes, &error);
    *is_good = journal ? purge_read(purge, super->uuid[0], (struct view){(char *)journal, bytes}, &end)
                       : error == -ENOENT;
    free(journal);
    return purge;
}

int offline_write_purges(const struct offline *offline, const struct purge *purge) {
    int directory = offline_directory(offline), fd;
    uint64_t bytes = purge_bytes(purge);
    int error = file_open(directory, NEW_NAME, O_RDWR | O_CREAT | O_TRUNC, &fd);
    if (error < 0)
        return error;
    unsigned char *journal = memory_new(bytes);
    purge_encode(purge, offline_super(offline)->uuid[0], journal);
    error = file_write_bytes(fd, 0, journal, bytes);
    free(journal);
    if (error == 0 && (error = file_sync(fd)) == 0)
        error = file_rename(directory, NEW_NAME, directory, OFFLINE_PURGES);
    file_close(fd);
    if (error < 0)
        file_unlink(directory, NEW_NAME);
    return error == 0 ? file_sync(directory) : error;
}
