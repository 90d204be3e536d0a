#include "iptables/lock.h"

#include "admin/check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

void lock_path(const char *kind, char path[static LOCK_PATH_BYTES]) {
    struct stat namespace = {0};
    CHECK(stat("/proc/self/ns/net", &namespace) == 0);
    snprintf(path, LOCK_PATH_BYTES, "/run/weir-rules-%llu.%s", (unsigned long long)namespace.st_ino, kind);
}

static void on_alarm(int signal) {
    (void)signal; // only interrupts flock
}

int lock_take(struct problem *problem) {
    char path[LOCK_PATH_BYTES];
    lock_path("lock", path);
    int lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600); // inherited on purpose
    if (lock < 0)
        return problem_say(problem, errno, "cannot open %s: %s", path, strerror(errno));
    struct sigaction before, wake = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &wake, &before);
    alarm(LOCK_WAIT_SECONDS);
    int result = flock(lock, LOCK_EX) < 0 ? -errno : 0;
    alarm(0);
    sigaction(SIGALRM, &before, NULL);
    if (result == 0)
        return lock;
    close(lock);
    return problem_say(problem, -result, "another weir has been changing the rules for %d s (%s is locked)",
            LOCK_WAIT_SECONDS, path);
}

void lock_drop(int lock) {
    close(lock);
}
