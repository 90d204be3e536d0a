#include "iptables/tool.h"

#include "admin/check.h"
#include "admin/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct capture {
    int fd; // -1 at the end of its stream
    char *text;
    size_t length;
    size_t size;
};

static void close_fd(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int open_input(const char *input) {
    if (!input)
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    int fd = memfd_create("weir-input", MFD_CLOEXEC);
    size_t length = strlen(input), done = 0;
    while (fd >= 0 && done < length) {
        ssize_t wrote = write(fd, input + done, length - done);
        if (wrote < 0) {
            close(fd);
            return -1;
        }
        done += (size_t)wrote;
    }
    if (fd >= 0)
        lseek(fd, 0, SEEK_SET);
    return fd;
}

// Returns false when the text is over its bound or memory is short.
static bool capture_read(struct capture *capture) {
    if (capture->size - capture->length < 4096) {
        size_t size = capture->size ? capture->size * 2 : 16384;
        char *text = size <= TOOL_OUTPUT_BYTES ? realloc(capture->text, size) : NULL;
        if (!text)
            return false;
        capture->text = text;
        capture->size = size;
    }
    ssize_t got = read(capture->fd, capture->text + capture->length, capture->size - capture->length - 1);
    if (got <= 0 && !(got < 0 && errno == EINTR))
        close_fd(&capture->fd);
    if (got > 0)
        capture->length += (size_t)got;
    capture->text[capture->length] = 0;
    return true;
}

// Reads both streams to their ends. 0, -EFBIG or -ETIMEDOUT.
static int capture_both(struct capture captures[2]) {
    int64_t deadline_at = clock_monotonic_ms() + TOOL_SECONDS * 1000;
    while (captures[0].fd >= 0 || captures[1].fd >= 0) {
        struct pollfd polls[2] = {{captures[0].fd, POLLIN, 0}, {captures[1].fd, POLLIN, 0}};
        int64_t left_ms = deadline_at - clock_monotonic_ms();
        if (left_ms <= 0)
            return -ETIMEDOUT;
        poll(polls, 2, (int)left_ms);
        for (int i = 0; i < 2; i++)
            if (captures[i].fd >= 0 && polls[i].revents && !capture_read(&captures[i]))
                return -EFBIG;
    }
    return 0;
}

// A process group of its own keeps a Ctrl-C at the terminal from ending a program in the middle of its work.
static int spawn(const char *const argv[], int in, int out, int err, pid_t *pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, ignored;
    sigemptyset(&none);
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    sigaddset(&ignored, SIGHUP);
    sigaddset(&ignored, SIGINT);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &ignored);
    posix_spawnattr_setflags(
            &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawnp(pid, argv[0], &actions, &attributes, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return -error;
}

static int reap(pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) < 0)
        CHECK(errno == EINTR);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run_with(const char *const argv[], int in, struct capture captures[2], int *status) {
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    pid_t pid;
    int result = -EMFILE;
    if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
        goto done;
    result = spawn(argv, in, out[1], err[1], &pid);
    close_fd(&out[1]);
    close_fd(&err[1]);
    if (result < 0)
        goto done;
    captures[0].fd = out[0];
    captures[1].fd = err[0];
    out[0] = err[0] = -1;
    result = capture_both(captures);
    if (result < 0)
        kill(pid, SIGKILL);
    *status = reap(pid);
done:
    for (int i = 0; i < 2; i++) {
        close_fd(&out[i]);
        close_fd(&err[i]);
        close_fd(&captures[i].fd);
    }
    return result;
}

// Returns `error`, which is negative.
static int say_failure(const char *name, int error, struct problem *problem) {
    CHECK(error < 0);
    if (error == -ENOENT)
        return problem_say(problem, ENOENT,
                "%s is not in PATH (%s): install it, or add its directory (mostly /usr/sbin)", name,
                getenv("PATH") ? getenv("PATH") : "unset");
    if (error == -EFBIG)
        return problem_say(problem, EFBIG, "%s says more than %u MiB", name, TOOL_OUTPUT_BYTES >> 20);
    if (error == -ETIMEDOUT)
        return problem_say(
                problem, ETIMEDOUT, "%s did not end within %d s and was killed", name, TOOL_SECONDS);
    return problem_say(problem, -error, "cannot run %s: %s", name, strerror(-error));
}

int tool_run(
        const char *const argv[], const char *input, struct tool_output *output, struct problem *problem) {
    struct capture captures[2] = {{.fd = -1}, {.fd = -1}};
    int in = open_input(input), status = 0;
    int result = in < 0 ? -errno : run_with(argv, in, captures, &status);
    close_fd(&in);
    *output = (struct tool_output){.status = status};
    if (result < 0) {
        free(captures[0].text);
        free(captures[1].text);
        return say_failure(argv[0], result, problem);
    }
    CHECK(captures[0].text && captures[1].text); // read to their ends
    output->out = captures[0].text;
    output->err = captures[1].text;
    return 0;
}

void tool_output_fini(struct tool_output *output) {
    free(output->out);
    free(output->err);
}

void tool_first_line(const char *text, char *line, size_t size) {
    text += strspn(text, " \t\r\n");
    snprintf(line, size, "%.*s", (int)strcspn(text, "\r\n"), text);
}

int tool_demand(const char *const argv[], const char *input, char **out, struct problem *problem) {
    struct tool_output output;
    int result = tool_run(argv, input, &output, problem);
    if (result < 0)
        return result;
    CHECK(output.out && output.err);
    if (output.status != 0) {
        char line[512];
        tool_first_line(*output.err ? output.err : output.out, line, sizeof line);
        result = problem_say(problem, EIO, "%s failed (exit status %d): %s", argv[0], output.status, line);
    } else if (out) {
        *out = output.out;
        output.out = NULL;
    }
    tool_output_fini(&output);
    return result;
}
