// A library to preload: makes calls on files below given paths slow, short, wrong or fail, as rules in a
// shared file say at run time (faults.py writes them). WEIR_FAULTS names that file; without it, and without
// rules, every call goes through untouched. A call is judged by the path its descriptor has at that moment,
// so files that were opened before a rule came, and files that have moved, are met too.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum call {
#define CALL(name) CALL_##name,
#include "tests/faults/call.tbl"
#undef CALL
};

#define RULES 32
#define PATH_BYTES 224

enum effect { // bits
    EFFECT_HANG = 1,
    EFFECT_SHORT = 2, // a part of what was asked to be read or written
    EFFECT_FLIP = 4,  // one bit of what was read
};

struct rule { // faults.py: RULE. All but `hits` and `left` are written while `active` is 0
    _Atomic uint32_t active;
    uint32_t calls; // bits by enum call
    uint32_t effects;
    uint32_t error; // errno; 0: none
    uint32_t delay_ms;
    uint32_t chance;       // of a million
    _Atomic uint32_t hits; // calls it was done to
    _Atomic uint32_t left; // how many more; UINT32_MAX: no end
    char path[PATH_BYTES]; // it and what is below it
};

struct control {
    _Atomic uint32_t count; // of active rules: 0 is the quick way out
    uint32_t seed;
    _Atomic uint64_t dice;
    struct rule rules[RULES];
};

struct outcome {
    int error;
    unsigned effects;
};

static struct control *control;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("WEIR_FAULTS");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *memory = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory != MAP_FAILED)
        control = memory;
}

// ---- rules ----

static uint64_t throw_dice(void) {
    uint64_t value = control->seed + atomic_fetch_add(&control->dice, UINT64_C(0x9e3779b97f4a7c15));
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

static bool is_active(void) {
    return control && atomic_load(&control->count) > 0;
}

static bool is_below(const char *path, const char *rule) {
    size_t length = strlen(rule);
    return strncmp(path, rule, length) == 0 && (path[length] == 0 || strchr("/ ", path[length]));
}

static bool takes_one(struct rule *rule) {
    uint32_t left = atomic_load(&rule->left);
    do {
        if (left == 0)
            return false;
    } while (left != UINT32_MAX && !atomic_compare_exchange_weak(&rule->left, &left, left - 1));
    atomic_fetch_add(&rule->hits, 1);
    return true;
}

static void sleep_ms(unsigned ms) {
    struct timespec left = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

// A call that may not wait is told so instead of being made to.
static void obey(struct rule *rule, bool may_wait, struct outcome *outcome) {
    if (!may_wait && (rule->delay_ms > 0 || rule->effects & EFFECT_HANG)) {
        outcome->error = EAGAIN;
        return;
    }
    if (rule->delay_ms > 0)
        sleep_ms(rule->delay_ms);
    while (rule->effects & EFFECT_HANG && atomic_load(&rule->active))
        sleep_ms(5);
    outcome->effects |= rule->effects;
    if (rule->error)
        outcome->error = (int)rule->error;
}

static struct outcome judge_path(enum call call, const char *path, bool may_wait) {
    struct outcome outcome = {0};
    for (struct rule *rule = control->rules; rule < control->rules + RULES && outcome.error == 0; rule++) {
        if (!atomic_load(&rule->active) || !(rule->calls & 1u << call) || !is_below(path, rule->path))
            continue;
        if (throw_dice() % 1000000 < rule->chance && takes_one(rule))
            obey(rule, may_wait, &outcome);
    }
    return outcome;
}

static bool path_of(int fd, char path[static PATH_MAX]) {
    char name[32];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
    return length > 0 && path[0] == '/'; // sockets and pipes have no path
}

// errno stays what it was when nothing is to fail.
static struct outcome judge_fd(enum call call, int fd, bool may_wait) {
    struct outcome outcome = {0};
    int before = errno;
    char path[PATH_MAX];
    if (is_active() && path_of(fd, path))
        outcome = judge_path(call, path, may_wait);
    errno = outcome.error ? outcome.error : before;
    return outcome;
}

static bool fails(enum call call, int fd) {
    return judge_fd(call, fd, true).error != 0;
}

static bool fails_at(enum call call, int directory, const char *name) {
    if (!is_active())
        return false;
    int before = errno;
    char path[2 * PATH_MAX] = "";
    if (name[0] != '/') {
        if (directory == AT_FDCWD ? !getcwd(path, PATH_MAX) : !path_of(directory, path))
            return false;
        strcat(path, "/");
    }
    strncat(path, name, PATH_MAX - 1);
    int error = judge_path(call, path, true).error;
    errno = error ? error : before;
    return error != 0;
}

// ---- bytes ----

static void flip_bit(const struct iovec *parts, int count, ssize_t length) {
    if (length <= 0)
        return;
    uint64_t dice = throw_dice();
    size_t at = (dice >> 3) % (size_t)length;
    for (int i = 0; i < count; at -= parts[i].iov_len, i++)
        if (at < parts[i].iov_len) {
            ((unsigned char *)parts[i].iov_base)[at] ^= (unsigned char)(1u << (dice & 7));
            return;
        }
}

#define NEXT(name)                                                                                           \
    static __typeof__(name) *next;                                                                           \
    if (!next)                                                                                               \
    next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

static ssize_t really(bool is_write, int fd, const struct iovec *parts, int count, off_t at, int flags) {
    if (is_write) {
        NEXT(pwritev2);
        return next(fd, parts, count, at, flags);
    }
    NEXT(preadv2);
    return next(fd, parts, count, at, flags);
}

// All reads and writes come here while there are rules; `at` -1: where the descriptor stands.
static ssize_t move(bool is_write, int fd, const struct iovec *parts, int count, off_t at, int flags) {
    struct outcome outcome = judge_fd(is_write ? CALL_WRITE : CALL_READ, fd, !(flags & RWF_NOWAIT));
    if (outcome.error)
        return -1;
    struct iovec half;
    while (count > 0 && parts->iov_len == 0)
        parts++, count--;
    if (outcome.effects & EFFECT_SHORT && count > 0) {
        half = (struct iovec){parts->iov_base, (parts->iov_len + 1) / 2};
        parts = &half, count = 1;
    }
    ssize_t moved = really(is_write, fd, parts, count, at, flags);
    if (outcome.effects & EFFECT_FLIP && !is_write)
        flip_bit(parts, count, moved);
    return moved;
}

#define PLAIN(name, is_write, buffer)                                                                        \
    ssize_t name(int fd, buffer bytes, size_t length) {                                                      \
        NEXT(name);                                                                                          \
        struct iovec part = {(void *)bytes, length};                                                         \
        return is_active() ? move(is_write, fd, &part, 1, -1, 0) : next(fd, bytes, length);                  \
    }
PLAIN(read, false, void *)
PLAIN(write, true, const void *)

#define PLACED(name, is_write, buffer)                                                                       \
    ssize_t name(int fd, buffer bytes, size_t length, off_t at) {                                            \
        NEXT(name);                                                                                          \
        struct iovec part = {(void *)bytes, length};                                                         \
        return is_active() ? move(is_write, fd, &part, 1, at, 0) : next(fd, bytes, length, at);              \
    }
PLACED(pread, false, void *)
PLACED(pread64, false, void *)
PLACED(pwrite, true, const void *)
PLACED(pwrite64, true, const void *)

#define VECTOR(name, is_write)                                                                               \
    ssize_t name(int fd, const struct iovec *parts, int count) {                                             \
        NEXT(name);                                                                                          \
        return is_active() ? move(is_write, fd, parts, count, -1, 0) : next(fd, parts, count);               \
    }
VECTOR(readv, false)
VECTOR(writev, true)

#define PLACED_VECTOR(name, is_write)                                                                        \
    ssize_t name(int fd, const struct iovec *parts, int count, off_t at) {                                   \
        NEXT(name);                                                                                          \
        return is_active() ? move(is_write, fd, parts, count, at, 0) : next(fd, parts, count, at);           \
    }
PLACED_VECTOR(preadv, false)
PLACED_VECTOR(preadv64, false)
PLACED_VECTOR(pwritev, true)
PLACED_VECTOR(pwritev64, true)

#define FLAGGED_VECTOR(name, is_write)                                                                       \
    ssize_t name(int fd, const struct iovec *parts, int count, off_t at, int flags) {                        \
        NEXT(name);                                                                                          \
        return is_active() ? move(is_write, fd, parts, count, at, flags)                                     \
                           : next(fd, parts, count, at, flags);                                              \
    }
FLAGGED_VECTOR(preadv2, false)
FLAGGED_VECTOR(preadv64v2, false)
FLAGGED_VECTOR(pwritev2, true)
FLAGGED_VECTOR(pwritev64v2, true)

#define SENDFILE(name)                                                                                       \
    ssize_t name(int out, int in, off_t *at, size_t length) {                                                \
        NEXT(name);                                                                                          \
        struct outcome outcome = judge_fd(CALL_READ, in, true);                                              \
        return outcome.error                                                                                 \
                       ? -1                                                                                  \
                       : next(out, in, at, outcome.effects & EFFECT_SHORT ? (length + 1) / 2 : length);      \
    }
SENDFILE(sendfile)
SENDFILE(sendfile64)

// What fortified callers use.
ssize_t __read_chk(int fd, void *bytes, size_t length, size_t room);
ssize_t __pread_chk(int fd, void *bytes, size_t length, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void *bytes, size_t length, off_t at, size_t room);
ssize_t __read_chk(int fd, void *bytes, size_t length, size_t room) {
    return length > room ? (abort(), -1) : read(fd, bytes, length);
}
ssize_t __pread_chk(int fd, void *bytes, size_t length, off_t at, size_t room) {
    return length > room ? (abort(), -1) : pread(fd, bytes, length, at);
}
ssize_t __pread64_chk(int fd, void *bytes, size_t length, off_t at, size_t room) {
    return length > room ? (abort(), -1) : pread(fd, bytes, length, at);
}

// ---- names ----

#define OPENAT(name)                                                                                         \
    int name(int directory, const char *path, int flags, ...) {                                              \
        NEXT(name);                                                                                          \
        va_list more;                                                                                        \
        va_start(more, flags);                                                                               \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0;                            \
        va_end(more);                                                                                        \
        return fails_at(CALL_OPEN, directory, path) ? -1 : next(directory, path, flags, mode);               \
    }
OPENAT(openat)
OPENAT(openat64)

#define OPEN(name)                                                                                           \
    int name(const char *path, int flags, ...) {                                                             \
        NEXT(name);                                                                                          \
        va_list more;                                                                                        \
        va_start(more, flags);                                                                               \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0;                            \
        va_end(more);                                                                                        \
        return fails_at(CALL_OPEN, AT_FDCWD, path) ? -1 : next(path, flags, mode);                           \
    }
OPEN(open)
OPEN(open64)

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int directory, const char *path, int flags);
int __openat64_2(int directory, const char *path, int flags);
int __open_2(const char *path, int flags) {
    return open(path, flags, 0);
}
int __open64_2(const char *path, int flags) {
    return open64(path, flags, 0);
}
int __openat_2(int directory, const char *path, int flags) {
    return openat(directory, path, flags, 0);
}
int __openat64_2(int directory, const char *path, int flags) {
    return openat64(directory, path, flags, 0);
}

#define ON_PATH(call, name, parameters, arguments, path)                                                     \
    int name parameters {                                                                                    \
        NEXT(name);                                                                                          \
        return fails_at(call, AT_FDCWD, path) ? -1 : next arguments;                                         \
    }
#define ON_NAME(call, name, parameters, arguments, directory, path)                                          \
    int name parameters {                                                                                    \
        NEXT(name);                                                                                          \
        return fails_at(call, directory, path) ? -1 : next arguments;                                        \
    }
ON_PATH(CALL_UNLINK, unlink, (const char *path), (path), path)
ON_PATH(CALL_UNLINK, rmdir, (const char *path), (path), path)
ON_NAME(CALL_UNLINK, unlinkat, (int at, const char *path, int flags), (at, path, flags), at, path)
ON_PATH(CALL_MKDIR, mkdir, (const char *path, mode_t mode), (path, mode), path)
ON_NAME(CALL_MKDIR, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode), at, path)
ON_PATH(CALL_RENAME, rename, (const char *from, const char *to), (from, to), from)
ON_NAME(CALL_RENAME, renameat, (int at, const char *from, int to_at, const char *to), (at, from, to_at, to),
        at, from)
ON_NAME(CALL_RENAME, renameat2, (int at, const char *from, int to_at, const char *to, unsigned flags),
        (at, from, to_at, to, flags), at, from)
ON_PATH(CALL_STATUS, stat, (const char *restrict path, struct stat *restrict out), (path, out), path)
ON_PATH(CALL_STATUS, lstat, (const char *restrict path, struct stat *restrict out), (path, out), path)
ON_NAME(CALL_STATUS, fstatat, (int at, const char *restrict path, struct stat *restrict out, int flags),
        (at, path, out, flags), at, path)
ON_NAME(CALL_STATUS, fstatat64, (int at, const char *restrict path, struct stat64 *restrict out, int flags),
        (at, path, out, flags), at, path)
ON_PATH(CALL_ROOM, statvfs, (const char *restrict path, struct statvfs *restrict out), (path, out), path)

// ---- descriptors ----

#define ON_FD(call, name, parameters, arguments)                                                             \
    int name parameters {                                                                                    \
        NEXT(name);                                                                                          \
        return fails(call, fd) ? -1 : next arguments;                                                        \
    }
ON_FD(CALL_SYNC, fsync, (int fd), (fd))
ON_FD(CALL_SYNC, fdatasync, (int fd), (fd))
ON_FD(CALL_SYNC, syncfs, (int fd), (fd))
ON_FD(CALL_SYNC, sync_file_range, (int fd, off64_t at, off64_t length, unsigned flags),
        (fd, at, length, flags))
ON_FD(CALL_ALLOCATE, fallocate, (int fd, int mode, off_t at, off_t length), (fd, mode, at, length))
ON_FD(CALL_ALLOCATE, fallocate64, (int fd, int mode, off64_t at, off64_t length), (fd, mode, at, length))
ON_FD(CALL_TRUNCATE, ftruncate, (int fd, off_t length), (fd, length))
ON_FD(CALL_TRUNCATE, ftruncate64, (int fd, off64_t length), (fd, length))
ON_FD(CALL_STATUS, fstat, (int fd, struct stat *out), (fd, out))
ON_FD(CALL_STATUS, fstat64, (int fd, struct stat64 *out), (fd, out))
ON_FD(CALL_ROOM, fstatvfs, (int fd, struct statvfs *out), (fd, out))
ON_FD(CALL_ROOM, fstatvfs64, (int fd, struct statvfs64 *out), (fd, out))
ON_FD(CALL_LOCK, flock, (int fd, int operation), (fd, operation))

int posix_fallocate(int fd, off_t at, off_t length) { // tells by its result
    NEXT(posix_fallocate);
    struct outcome outcome = judge_fd(CALL_ALLOCATE, fd, true);
    return outcome.error ? outcome.error : next(fd, at, length);
}

#define READDIR(name, type)                                                                                  \
    struct type *name(DIR *stream) {                                                                         \
        NEXT(name);                                                                                          \
        return fails(CALL_LIST, dirfd(stream)) ? NULL : next(stream);                                        \
    }
READDIR(readdir, dirent)
READDIR(readdir64, dirent64)
