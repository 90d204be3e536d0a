// Making the directories of the volumes, as root.
#include "admin/cache_dir.h"
#include "admin/log.h"
#include "admin/value.h"
#include "intercept/store_volumes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VOLUME_MODE 0750
#define PARENT_MODE 0755

// The folders above it, as `mkdir -p` makes them; the user passes through them, whatever the umask.
static int make_parents(const char *path) {
    char folder[CACHE_DIR_PATH_BYTES + 1];
    for (const char *slash = strchr(path + 1, '/'); slash && slash[1]; slash = strchr(slash + 1, '/')) {
        memcpy(folder, path, (size_t)(slash - path));
        folder[slash - path] = '\0';
        if (mkdir(folder, PARENT_MODE) == 0 ? chmod(folder, PARENT_MODE) < 0 : errno != EEXIST)
            return -errno;
    }
    return 0;
}

static bool is_empty(int fd) {
    DIR *folder = fdopendir(dup(fd));
    unsigned count = 0;
    while (folder && count < 3 && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return folder && count <= 2;
}

// An empty directory of root's, made now or by the admin: nobody else can use it.
static int give(int fd, const struct passwd *user) {
    struct stat status;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (status.st_uid == user->pw_uid || status.st_uid != 0 || !is_empty(fd))
        return 0;
    if (fchown(fd, user->pw_uid, user->pw_gid) < 0 || fchmod(fd, VOLUME_MODE) < 0)
        return -errno;
    return 1;
}

static void tell(const char *path, int error, const struct passwd *user) {
    if (error == ENOTDIR)
        log_warning("cache_dir %s: a file lies there; remove it, or name another path", path);
    else if (error == EROFS)
        log_warning(
                "cache_dir %s: cannot be made: %s; mount its file system read-write", path, strerror(error));
    else
        log_warning("cache_dir %s: cannot be made: %s; make it, and give it to user %s", path,
                strerror(error), user->pw_name);
}

// A link of root's leads to another disk, as a rule. What a user's own leads to is not to be given away.
static bool is_users_link(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0 && S_ISLNK(status.st_mode) && status.st_uid != 0;
}

static void make_one(const char *path, const struct passwd *user) {
    if (is_users_link(path))
        return; // the volume says what is wrong with it, if anything
    int error = make_parents(path);
    bool is_new = error == 0 && mkdir(path, VOLUME_MODE) == 0;
    if (error == 0 && !is_new && errno != EEXIST)
        error = -errno;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        tell(path, error ? -error : errno, user);
        return;
    }
    int given = give(fd, user);
    close(fd);
    if (given < 0)
        log_warning("cache_dir %s: cannot be given to user %s: %s", path, user->pw_name, strerror(-given));
    else if (is_new || given)
        log_info("cache_dir %s: %s user %s", path, is_new ? "made, for" : "given to", user->pw_name);
}

bool store_directory_make(const char *path, const char *user_name) {
    const struct passwd *user = getpwnam(user_name);
    if (user)
        make_one(path, user);
    return user != NULL;
}

static void warn_of_room(const struct cache_dir *dir) {
    char size[VALUE_TEXT_BYTES];
    int64_t room = cache_dir_room(dir);
    if (room)
        log_warning("cache_dir %s: %s, but its file system has %" PRId64 "M: it keeps to what there is",
                dir->path, value_print_size(dir->bytes, size), room >> 20);
}

void store_volumes_make(const struct config *config) {
    struct config_errors none = {0}; // were told when the file was read
    struct cache_dirs dirs;
    const struct passwd *user = geteuid() == 0 ? getpwnam(config->user) : NULL;
    cache_dirs_read(config, &dirs, &none);
    config_errors_fini(&none);
    for (unsigned i = 0; i < dirs.count; i++) {
        if (user) // else volumes make their own; an unknown user is told of when it is to be become
            make_one(dirs.dirs[i].path, user);
        warn_of_room(&dirs.dirs[i]);
    }
}
