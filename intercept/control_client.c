// `weir stats`, `purge`, `reload`, `drain` and `stop`: what they ask the running daemon, and how they say
// what it answered.
#include "admin/check.h"
#include "admin/clock.h"
#include "admin/command.h"
#include "admin/config.h"
#include "intercept/control.h"
#include "intercept/purge.h"
#include "intercept/store_status.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_MS 30000
#define RELOAD_MS 120000 // large lists take their time
#define STOP_MARGIN_MS 15000
#define ANSWER_BYTES_MAXIMUM (16 << 20)

// ---- the connection ----

static int connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    int error = errno;
    close(fd);
    return -error;
}

static int wait_readable(int fd, int64_t until_ms) {
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    int64_t left_ms = until_ms - clock_monotonic_ms();
    int ready = left_ms > 0 ? poll(&wanted, 1, (int)left_ms) : 0;
    if (ready < 0 && errno == EINTR)
        return 0;
    return ready > 0 ? 0 : ready == 0 ? -ETIMEDOUT : -errno;
}

static int read_all(int fd, int64_t until_ms, FILE *answer) {
    char bytes[16384];
    for (size_t total = 0; total < ANSWER_BYTES_MAXIMUM;) {
        int result = wait_readable(fd, until_ms);
        if (result < 0)
            return result;
        ssize_t count = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (count == 0 || (count < 0 && errno == ECONNRESET)) // closed without reading all of the request
            return 0;
        if (count < 0 && errno != EAGAIN && errno != EINTR)
            return -errno;
        if (count > 0)
            total += fwrite(bytes, 1, (size_t)count, answer);
    }
    return -EMSGSIZE;
}

// The stream ends a moment before the process does: wait for that too, where the kernel lets us.
static void wait_for_end(int fd, int64_t until_ms) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || peer.pid <= 0)
        return;
    int process = (int)syscall(SYS_pidfd_open, peer.pid, 0);
    if (process < 0)
        return;
    while (wait_readable(process, until_ms) == 0 && poll(&(struct pollfd){process, POLLIN, 0}, 1, 0) == 0)
        continue;
    close(process);
}

static int take_answer(struct view answer, FILE *out, char *why, size_t size) {
    size_t end = view_find(answer, '\n');
    struct view first = view_take(answer, end), rest = view_skip(answer, end + 1);
    if (!view_equal(first, VIEW("ok")) && !view_starts(first, VIEW("error: ")))
        return -EPROTO;
    bool good = view_equal(first, VIEW("ok"));
    if (!good)
        snprintf(why, size, VIEW_FORMAT, VIEW_ARGUMENT(view_skip(first, 7)));
    fwrite(rest.data, 1, rest.length, out);
    return !good;
}

static int exchange(int fd, const char *request, int64_t until_ms, FILE *out, char *why, size_t size) {
    char *text = NULL, line[CONTROL_REQUEST_BYTES];
    size_t length = (size_t)snprintf(line, sizeof line, "%s\n", request), text_length = 0;
    if (length >= sizeof line)
        return -EMSGSIZE;
    // A daemon that is busy has answered already, and closed.
    if (send(fd, line, length, MSG_NOSIGNAL) != (ssize_t)length && errno != EPIPE)
        return -errno;
    FILE *answer = open_memstream(&text, &text_length);
    if (!answer)
        return -ENOMEM;
    int result = read_all(fd, until_ms, answer);
    if (fclose(answer) != 0 && result == 0)
        result = -ENOMEM;
    if (result == 0)
        result = take_answer((struct view){text, text_length}, out, why, size);
    free(text);
    return result;
}

static int ask(const char *path, const char *request, int64_t timeout_ms, bool until_gone, FILE *out,
        char *why, size_t size) {
    int64_t until_ms = clock_monotonic_ms() + timeout_ms;
    int fd = connect_to(path);
    if (fd < 0)
        return fd;
    int result = exchange(fd, request, until_ms, out, why, size);
    if (result == 0 && until_gone)
        wait_for_end(fd, until_ms);
    close(fd);
    return result;
}

int control_ask(
        const char *path, const char *request, int64_t timeout_ms, FILE *out, char *why, size_t size) {
    return ask(path, request, timeout_ms, false, out, why, size);
}

// ---- the commands ----

static int explain(const char *path, int result, const char *why) {
    if (result > 0)
        fprintf(stderr, "weir: %s\n", why);
    else if (result == -ENOENT || result == -ECONNREFUSED)
        fprintf(stderr,
                "weir: no daemon answers at %s; start it (systemctl start weir, or weir run), or name its "
                "configuration with -c\n",
                path);
    else if (result == -EACCES || result == -EPERM)
        fprintf(stderr, "weir: %s: %s; run this as root\n", path, strerror(-result));
    else if (result == -ETIMEDOUT)
        fprintf(stderr, "weir: the daemon at %s does not answer in time\n", path);
    else
        fprintf(stderr, "weir: %s: %s\n", path, strerror(-result));
    return COMMAND_PROBLEM;
}

// A configuration that was broken since the daemon read it must not keep anybody from talking to it.
static struct config *load(const struct command_call *call) {
    struct config_errors errors = {0};
    struct config *config = config_read(call->config_file, &errors);
    if (config && errors.count && call->has_config_file)
        fprintf(stderr, "weir: %s has errors (weir check lists them); asking at %s\n", call->config_file,
                config->control);
    CHECK(config != NULL || errors.count > 0);
    config_errors_fini(&errors);
    return config;
}

static int run_request(const struct command_call *call, const char *request, int64_t timeout_ms, bool stop) {
    char why[1024] = "", *text = NULL;
    size_t length = 0;
    struct config *config = load(call);
    FILE *answer = open_memstream(&text, &length);
    if (!config || !answer) {
        fputs("weir: no memory\n", stderr);
        exit(COMMAND_PROBLEM);
    }
    if (stop)
        timeout_ms = config->timeout_ms[TIMEOUT_drain] + STOP_MARGIN_MS;
    int result = ask(config->control, request, timeout_ms, stop, answer, why, sizeof why);
    int status = result == 0 ? COMMAND_DONE : explain(config->control, result, why);
    if (fclose(answer) == 0)
        fwrite(text, 1, length, status == COMMAND_DONE ? stdout : stderr);
    free(text);
    config_free(config);
    return status;
}

int control_run(const struct command_call *call, const char *request) {
    return run_request(call, request, ANSWER_MS, false);
}

static int run_plain(const struct command_call *call, const char *request, int64_t timeout_ms, bool stop) {
    if (call->argc > 0)
        return command_usage_error(call, "\"%s\" is one word too many", call->argv[0]);
    return run_request(call, request, timeout_ms, stop);
}

int stats_command(const struct command_call *call) {
    bool json = call->argc > 0 && strcmp(call->argv[0], "--json") == 0;
    if (call->argc > json)
        return command_usage_error(call, "\"%s\" is one word too many", call->argv[json]);
    return run_request(call, json ? "stats json" : "stats", ANSWER_MS, false);
}

int reload_command(const struct command_call *call) {
    return run_plain(call, "reload", RELOAD_MS, false);
}

static void run_rules(const struct command_call *call, char *verb, char *option) {
    char *words[] = {verb, option, NULL};
    struct command_call rules = *call;
    rules.argc = option ? 2 : 1;
    rules.argv = words;
    rules_command(&rules);
}

// Rules that lead to a daemon which takes no more would cut the LAN off, and `on_failure open` means that
// traffic flows.
static void let_traffic_pass(const struct command_call *call) {
    char release[] = "release";
    if (call->argc == 0)
        run_rules(call, release, NULL);
}

int drain_command(const struct command_call *call) {
    let_traffic_pass(call);
    return run_plain(call, "drain", ANSWER_MS, false);
}

int stop_command(const struct command_call *call) {
    char remove[] = "remove", on_stop[] = "--on-stop";
    let_traffic_pass(call);
    int status = run_plain(call, "stop", 0, true);
    if (status == COMMAND_DONE)
        run_rules(call, remove, on_stop);
    return status;
}

// "--prefix" and its kin, as the daemon is asked; NULL: no option of purge.
static const char *purge_kind(const char *word) {
    static const char *const kinds[] = {"prefix", "host", "mask"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(word, "--", 2) == 0 && strcmp(word + 2, kinds[i]) == 0)
            return kinds[i];
    return NULL;
}

// Says what is wrong with them.
static bool takes_words(const struct command_call *call, const char *kind) {
    const char *first = call->argc > 0 ? call->argv[0] : NULL;
    int most = kind ? 2 : 1;
    if (!first)
        command_usage_error(call, "name what to drop");
    else if (!kind && first[0] == '-' && strcmp(first, "--all") != 0)
        command_usage_error(call, "it has no option %.80s", first);
    else if (call->argc > most)
        command_usage_error(call, "\"%.80s\" is one word too many", call->argv[most]);
    else if (call->argc < most)
        command_usage_error(call, "%s needs a %s", first,
                strcmp(kind, "host") == 0   ? "name"
                : strcmp(kind, "mask") == 0 ? "mask"
                                            : "URL");
    else
        return true;
    return false;
}

int purge_command(const struct command_call *call) {
    char request[CONTROL_REQUEST_BYTES];
    if (call->argc == 1 && strcmp(call->argv[0], "--all") == 0)
        return run_request(call, "purge all", ANSWER_MS, false);
    const char *kind = call->argc > 0 ? purge_kind(call->argv[0]) : NULL;
    if (!takes_words(call, kind))
        return COMMAND_USAGE;
    const char *name = kind ? call->argv[0] : "URL", *what = call->argv[kind != NULL];
    int length = snprintf(request, sizeof request, "purge %s %s", kind ? kind : "url", what);
    const char *why = length >= (int)sizeof request - 1 ? "that is too long" : NULL;
    if (!why)
        why = strchr(what, '\n') ? "a line end in it" : purge_problem(view_of(request + strlen("purge ")));
    if (why)
        return command_usage_error(call, "%s \"%.80s\": %s", name, what, why);
    return run_request(call, request, ANSWER_MS, false);
}

int store_status_command(const struct command_call *call) {
    bool json = call->argc > 0 && strcmp(call->argv[0], "--json") == 0;
    if (call->argc > json)
        return command_usage_error(call, "\"%s\" is one word too many", call->argv[json]);
    return run_request(call, json ? "store status json" : "store status", ANSWER_MS, false);
}
