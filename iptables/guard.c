#include "iptables/guard.h"

#include "admin/check.h"
#include "iptables/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#define SIGNAL_CONFIRM SIGUSR2
#define SIGNAL_REFUSE SIGTERM // also what ends the processes of a lost session, or of a host that goes down

static struct flock whole_file(short type) {
    return (struct flock){.l_type = type, .l_whence = SEEK_SET};
}

// The record lock goes with the process that holds it, and the kernel knows which one that is.
static int hold(void) {
    char path[LOCK_PATH_BYTES];
    lock_path("guard", path);
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct flock lock = whole_file(F_WRLCK);
    if (fd < 0 || fcntl(fd, F_SETLK, &lock) < 0)
        return -errno;
    return 0;
}

pid_t guard_find(void) {
    char path[LOCK_PATH_BYTES];
    lock_path("guard", path);
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return 0;
    struct flock lock = whole_file(F_WRLCK);
    int result = fcntl(fd, F_GETLK, &lock);
    close(fd);
    return result == 0 && lock.l_type != F_UNLCK ? lock.l_pid : 0;
}

bool guard_confirm(void) {
    pid_t pid = guard_find();
    return pid > 0 && kill(pid, SIGNAL_CONFIRM) == 0;
}

static void leave_terminal(void) {
    setsid();
    int null = open("/dev/null", O_RDWR);
    CHECK(null >= 0 && chdir("/") == 0);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
    openlog("weir", LOG_PID, LOG_DAEMON);
}

// The signal that came within the time, or 0.
static int wait_signal(const sigset_t *signals, unsigned seconds) {
    struct timespec time = {.tv_sec = seconds};
    int signal;
    do
        signal = sigtimedwait(signals, NULL, &time);
    while (signal < 0 && errno == EINTR);
    return signal < 0 ? 0 : signal;
}

static enum guard_end roll_back(const struct ruleset *before, const sigset_t *confirm) {
    struct problem problem;
    int lock = lock_take(&problem);
    if (lock >= 0 && wait_signal(confirm, 0) == SIGNAL_CONFIRM) // while we waited for the lock
        return GUARD_CONFIRMED;
    int result = lock < 0 ? lock : ruleset_install(before, &problem);
    if (result < 0)
        syslog(LOG_ERR, "rules were not confirmed, and rolling back failed: %s", problem.text);
    else
        syslog(LOG_WARNING, "rules were not confirmed: rolled back");
    return result < 0 ? GUARD_FAILED : GUARD_ROLLED_BACK;
}

_Noreturn static void be_guard(const struct ruleset *before, unsigned seconds, int parent) {
    sigset_t signals, confirm;
    sigemptyset(&confirm);
    sigaddset(&confirm, SIGNAL_CONFIRM);
    signals = confirm;
    sigaddset(&signals, SIGNAL_REFUSE);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    leave_terminal();
    int held = hold();
    char word = 0;
    if (write(parent, &held, sizeof held) != sizeof held || held < 0)
        _exit(GUARD_FAILED);
    ssize_t got = read(parent, &word, 1);
    close(parent);
    if (got == 1 && word == 'c')
        _exit(GUARD_CONFIRMED);
    if (got == 1 && wait_signal(&signals, seconds) == SIGNAL_CONFIRM)
        _exit(GUARD_CONFIRMED);
    _exit(roll_back(before, &confirm));
}

int guard_start(const struct ruleset *before, unsigned seconds, int lock, struct guard *guard,
        struct problem *problem) {
    int ends[2], held = -EIO;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return problem_say(problem, errno, "cannot start the guard: %s", strerror(errno));
    guard->pid = fork();
    if (guard->pid == 0) {
        close(ends[0]);
        close(lock);
        be_guard(before, seconds, ends[1]);
    }
    int error = errno;
    close(ends[1]);
    guard->parent_end = ends[0];
    if (guard->pid < 0) {
        close(ends[0]);
        return problem_say(problem, error, "cannot start the guard: %s", strerror(error));
    }
    if (read(ends[0], &held, sizeof held) == sizeof held && held == 0)
        return 0;
    close(ends[0]);
    waitpid(guard->pid, NULL, 0);
    return problem_say(problem, EIO, "the guard cannot hold its lock in /run: %s", strerror(-held));
}

static void tell(struct guard *guard, char word) {
    // A guard that is gone cannot be told; guard_wait finds out.
    ssize_t ignored = send(guard->parent_end, &word, 1, MSG_NOSIGNAL);
    (void)ignored;
    close(guard->parent_end);
}

void guard_arm(struct guard *guard) {
    tell(guard, 'a');
}

void guard_cancel(struct guard *guard) {
    tell(guard, 'c');
    waitpid(guard->pid, NULL, 0);
}

enum guard_end guard_wait(struct guard *guard) {
    int status;
    while (waitpid(guard->pid, &status, 0) < 0)
        CHECK(errno == EINTR);
    return WIFEXITED(status) && WEXITSTATUS(status) <= GUARD_FAILED ? (enum guard_end)WEXITSTATUS(status)
                                                                    : GUARD_FAILED;
}

void guard_accept(const struct guard *guard) {
    kill(guard->pid, SIGNAL_CONFIRM);
}

void guard_refuse(const struct guard *guard) {
    kill(guard->pid, SIGNAL_REFUSE);
}
