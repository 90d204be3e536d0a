// The system calls of what lies on disk, through one table, so that a test can make any of them fail, fall
// short or take long. Only cache/file.c makes these calls. All but the NOWAIT read may wait for the disk.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>

struct file_calls { // as in the C library: -1 and errno
    int (*openat)(int directory, const char *name, int flags, mode_t mode);
    ssize_t (*preadv2)(int fd, const struct iovec *parts, int count, off_t at, int flags);
    ssize_t (*pwritev)(int fd, const struct iovec *parts, int count, off_t at);
    int (*fdatasync)(int fd);
    int (*fsync)(int fd);
    int (*fallocate)(int fd, int mode, off_t at, off_t bytes);
    int (*ftruncate)(int fd, off_t bytes);
    int (*fstat)(int fd, struct stat *stat);
    int (*fstatat)(int directory, const char *name, struct stat *stat, int flags);
    int (*fstatvfs)(int fd, struct statvfs *stat);
    int (*unlinkat)(int directory, const char *name, int flags);
    int (*mkdirat)(int directory, const char *name, mode_t mode);
    int (*renameat)(int from, const char *name, int to, const char *new_name);
    int (*flock)(int fd, int operation);
};

extern const struct file_calls file_system;    // the real ones
void file_use(const struct file_calls *calls); // for tests; NULL: the real ones again

// All: 0 or -errno. `directory` may be AT_FDCWD.
int file_open(int directory, const char *name, int flags, int *fd);  // close-on-exec; mode 0640
int file_open_memory(int *fd);                                       // a file that lies on no disk
void file_close(int fd);                                             // negative: nothing
int file_open_directory(int directory, const char *name, int *fd);   // made when it is not there
int file_read(int fd, uint64_t at, void *out, size_t length);        // all of it; less is -EIO
int file_try_read(int fd, uint64_t at, void *out, size_t length);    // without waiting; -EAGAIN when it would
int file_write(int fd, uint64_t at, struct iovec *parts, int count); // all of it; uses `parts` up
int file_write_bytes(int fd, uint64_t at, const void *data, size_t length);
int file_sync_data(int fd);
void file_forget(int fd); // the next read is the disk's own, as far as the kernel goes along
int file_sync(int fd);
int file_allocate(int fd, uint64_t bytes); // blocks for so many; 0 too where the file system cannot
int file_truncate(int fd, uint64_t bytes);
int file_size(int fd, uint64_t *bytes);
int file_blocks(int fd, uint64_t *bytes); // what it takes on the disk
bool file_is_deleted(int fd);             // it has no name any more
int file_status(int directory, const char *name, struct stat *stat);
int file_room(int fd, uint64_t *bytes); // left on the file system for this user
int file_unlink(int directory, const char *name);
int file_remove_directory(int directory, const char *name);
int file_rename(int from, const char *name, int to, const char *new_name);
int file_lock(int fd); // -EWOULDBLOCK: another process has it

// The names in a directory but "." and ".."; `visit` returns 0 to go on, anything else to end with it.
typedef int file_visit(void *context, const char *name);
int file_list(int directory, file_visit *visit, void *context);

int64_t file_now_ms(void); // monotonic: for the threads here that wait
