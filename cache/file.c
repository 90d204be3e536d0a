#include "cache/file.h"

#include "admin/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

static int open_real(int directory, const char *name, int flags, mode_t mode) {
    return openat(directory, name, flags, mode);
}

const struct file_calls file_system = {
        .openat = open_real,
        .preadv2 = preadv2,
        .pwritev = pwritev,
        .fdatasync = fdatasync,
        .fsync = fsync,
        .fallocate = fallocate,
        .ftruncate = ftruncate,
        .fstat = fstat,
        .fstatat = fstatat,
        .fstatvfs = fstatvfs,
        .unlinkat = unlinkat,
        .mkdirat = mkdirat,
        .renameat = renameat,
        .flock = flock,
};

static _Atomic(const struct file_calls *) in_use = &file_system;

void file_use(const struct file_calls *calls) {
    atomic_store(&in_use, calls ? calls : &file_system);
}

static const struct file_calls *calls(void) {
    return atomic_load_explicit(&in_use, memory_order_relaxed);
}

static int outcome(int result) {
    return result < 0 ? -errno : 0;
}

// ---- names ----

int file_open(int directory, const char *name, int flags, int *fd) {
    do
        *fd = calls()->openat(directory, name, flags | O_CLOEXEC, 0640);
    while (*fd < 0 && errno == EINTR);
    return outcome(*fd);
}

int file_open_memory(int *fd) {
    *fd = memfd_create("weir", MFD_CLOEXEC);
    return outcome(*fd);
}

void file_close(int fd) {
    if (fd >= 0)
        close(fd);
}

int file_open_directory(int directory, const char *name, int *fd) {
    *fd = -1;
    if (calls()->mkdirat(directory, name, 0750) < 0 && errno != EEXIST)
        return -errno;
    return file_open(directory, name, O_RDONLY | O_DIRECTORY, fd);
}

int file_status(int directory, const char *name, struct stat *stat) {
    return outcome(calls()->fstatat(directory, name, stat, AT_SYMLINK_NOFOLLOW));
}

int file_unlink(int directory, const char *name) {
    return outcome(calls()->unlinkat(directory, name, 0));
}

int file_remove_directory(int directory, const char *name) {
    return outcome(calls()->unlinkat(directory, name, AT_REMOVEDIR));
}

int file_rename(int from, const char *name, int to, const char *new_name) {
    return outcome(calls()->renameat(from, name, to, new_name));
}

int file_lock(int fd) {
    return outcome(calls()->flock(fd, LOCK_EX | LOCK_NB));
}

int file_list(int directory, file_visit *visit, void *context) {
    int fd, result = file_open(directory, ".", O_RDONLY | O_DIRECTORY, &fd);
    if (result < 0)
        return result;
    DIR *stream = fdopendir(fd);
    if (!stream) {
        result = -errno;
        close(fd);
        return result;
    }
    while (result == 0) {
        errno = 0;
        const struct dirent *entry = readdir(stream);
        if (!entry) {
            result = -errno;
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            result = visit(context, entry->d_name);
    }
    closedir(stream);
    return result;
}

// ---- content ----

int file_read(int fd, uint64_t at, void *out, size_t length) {
    unsigned char *to = out;
    while (length > 0) {
        struct iovec part = {to, length};
        ssize_t got = calls()->preadv2(fd, &part, 1, (off_t)at, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -EIO;
        to += got, at += (uint64_t)got, length -= (size_t)got;
    }
    return 0;
}

int file_try_read(int fd, uint64_t at, void *out, size_t length) {
    struct iovec part = {out, length};
    ssize_t got = calls()->preadv2(fd, &part, 1, (off_t)at, RWF_NOWAIT);
    if (got == (ssize_t)length)
        return 0;
    return got >= 0 || errno == EOPNOTSUPP || errno == EINTR ? -EAGAIN : -errno;
}

static int skip(struct iovec **parts, int count, size_t length) {
    while (count > 0 && length >= (*parts)->iov_len) {
        length -= (*parts)->iov_len;
        ++*parts, --count;
    }
    if (count > 0) {
        (*parts)->iov_base = (unsigned char *)(*parts)->iov_base + length;
        (*parts)->iov_len -= length;
    }
    return count;
}

int file_write(int fd, uint64_t at, struct iovec *parts, int count) {
    count = skip(&parts, count, 0);
    while (count > 0) {
        ssize_t put = calls()->pwritev(fd, parts, count, (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return put < 0 ? -errno : -EIO;
        at += (uint64_t)put;
        count = skip(&parts, count, (size_t)put);
    }
    return 0;
}

int file_write_bytes(int fd, uint64_t at, const void *data, size_t length) {
    struct iovec part = {(void *)data, length};
    return file_write(fd, at, &part, 1);
}

int file_sync_data(int fd) {
    return outcome(calls()->fdatasync(fd));
}

void file_forget(int fd) {
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

int file_sync(int fd) {
    return outcome(calls()->fsync(fd));
}

int file_allocate(int fd, uint64_t bytes) {
    int result;
    do
        result = outcome(calls()->fallocate(fd, 0, 0, (off_t)bytes));
    while (result == -EINTR);
    return result == -EOPNOTSUPP || result == -ENOSYS ? 0 : result;
}

int file_truncate(int fd, uint64_t bytes) {
    return outcome(calls()->ftruncate(fd, (off_t)bytes));
}

int file_size(int fd, uint64_t *bytes) {
    struct stat stat;
    int result = outcome(calls()->fstat(fd, &stat));
    *bytes = result == 0 ? (uint64_t)stat.st_size : 0;
    return result;
}

int file_blocks(int fd, uint64_t *bytes) {
    struct stat stat;
    int result = outcome(calls()->fstat(fd, &stat));
    *bytes = result == 0 ? (uint64_t)stat.st_blocks * 512 : 0;
    return result;
}

bool file_is_deleted(int fd) {
    struct stat stat;
    return calls()->fstat(fd, &stat) == 0 && stat.st_nlink == 0;
}

int file_room(int fd, uint64_t *bytes) {
    struct statvfs stat;
    int result = outcome(calls()->fstatvfs(fd, &stat));
    *bytes = result == 0 ? (uint64_t)stat.f_bavail * stat.f_frsize : 0;
    return result;
}

int64_t file_now_ms(void) {
    return clock_monotonic_ms();
}
