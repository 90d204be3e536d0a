// weir-replay FILE: one worker of the daemon over a fake loop, clock and network, stepped by commands on
// standard input. Each answers with what happened (network.h; `log JSON`) and `ok STEADY_MS WALL_MS [WORDS]`
// or `bad WHY`.
//
//     connect PEER DESTINATION     ADDRESS:PORT each, `-` for none; answers `ok ... N`, the connection
//     send N HEX                   on connection N, a client's or an origin's
//     shutdown N, close N, reset N, pause N, resume N
//     refuse ERRNO COUNT           the next COUNT connection attempts fail; COUNT 0: all from now on
//     route up|down                whether there is a default route
//     settle                       until nothing more can happen without time passing
//     advance MS                   time passes
//     wall MS                      the wall clock is set by MS
//     reload FILE                  another configuration
//     purge                        the whole store
//     stats                        answers `ok ... OBJECTS BYTES FILLS SESSIONS UPSTREAMS`
//     end                          closes all connections, lets a day pass, ends
//
// Exit status 1, with what is wrong on standard error, when anything is left then.
#include "admin/check.h"
#include "intercept/accept.h"

#include "intercept/session.h"
#include "intercept/worker.h"
#include "tests/replay/clock.h"
#include "tests/replay/loop.h"
#include "tests/replay/netlink.h"
#include "tests/replay/network.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define WORDS 4
#define DESCRIPTORS 4096
#define UPLINK_TICK_MS 500
#define DAY_MS 86400000
#define COMMAND_SECONDS 120 // real ones: a command that takes so long never ends

static struct replay {
    struct daemon daemon;
    struct settings *settings;
    struct worker *worker;
    struct deadline uplink_tick; // as the supervisor's, while `offline` is auto
    char *line;                  // getline's
    size_t line_size;
    bool failed;
} replay;

// ---- words ----

static bool parse_endpoint(const char *text, struct endpoint *endpoint) {
    struct view all = view_of(text);
    const char *colon = strrchr(text, ':');
    uint64_t port;
    *endpoint = (struct endpoint){0};
    if (strcmp(text, "-") == 0)
        return true;
    if (!colon || !view_number(view_of(colon + 1), &port) || port > 65535)
        return false;
    endpoint->port = (uint16_t)port;
    all.length = (size_t)(colon - text);
    if (all.length > 2 && text[0] == '[')
        all = (struct view){all.data + 1, all.length - 2};
    return address_parse(all, &endpoint->address);
}

static int digit(char hex) {
    return hex >= '0' && hex <= '9' ? hex - '0' : hex >= 'a' && hex <= 'f' ? hex - 'a' + 10 : -1;
}

// In place; the length, or -1.
static ssize_t parse_hex(char *text) {
    ssize_t length = 0;
    for (const char *pair = text; *pair; pair += 2, length++) {
        if (digit(pair[0]) < 0 || digit(pair[1]) < 0)
            return -1;
        text[length] = (char)(digit(pair[0]) << 4 | digit(pair[1]));
    }
    return length;
}

static long long number(const char *text) {
    return text ? strtoll(text, NULL, 10) : 0;
}

// ---- commands: NULL, or what was wrong with them ----

static char answer[128]; // words after `ok`

// The first that takes such connections, or NULL.
static struct listener *find_listener(bool is_intercepted) {
    for (unsigned i = 0; i < replay.worker->listener_count; i++) {
        struct listener *listener = &replay.worker->listeners[i];
        bool takes_intercepted = listener->point->mode != LISTEN_FORWARD;
        if (listener->point->mode == LISTEN_ANY || takes_intercepted == is_intercepted)
            return listener;
    }
    return NULL;
}

static const char *do_connect(char **words) {
    struct endpoint peer, destination, local = {0};
    unsigned id;
    if (!words[1] || !words[2] || !parse_endpoint(words[1], &peer) || !parse_endpoint(words[2], &destination))
        return "connect PEER DESTINATION";
    struct listener *listener = find_listener(destination.port != 0);
    if (!listener)
        return "nothing listens for that";
    local.port = listener->point->address.port;
    CHECK(address_parse(VIEW(REPLAY_ADDRESS), &local.address));
    accept_connection(listener, network_connect(&destination, &id), &peer, &local);
    snprintf(answer, sizeof answer, " %u", id);
    return NULL;
}

static const char *do_send(char **words) {
    if (!words[1] || !words[2])
        return "send N HEX";
    ssize_t length = parse_hex(words[2]);
    if (length < 0)
        return "no hexadecimal digits";
    return network_send((unsigned)number(words[1]), words[2], (size_t)length) ? NULL : "closed";
}

static const char *end_connection(char **words, enum network_end how) {
    return network_end((unsigned)number(words[1]), how) ? NULL : "closed";
}

static const char *do_shutdown(char **words) {
    return end_connection(words, NETWORK_SHUTDOWN);
}

static const char *do_close(char **words) {
    return end_connection(words, NETWORK_CLOSE);
}

static const char *do_reset(char **words) {
    return end_connection(words, NETWORK_RESET);
}

static const char *do_pause(char **words) {
    return network_pause((unsigned)number(words[1]), true) ? NULL : "closed";
}

static const char *do_resume(char **words) {
    return network_pause((unsigned)number(words[1]), false) ? NULL : "closed";
}

static const char *do_refuse(char **words) {
    network_refuse((int)number(words[1]), words[1] ? (unsigned)number(words[2]) : 0);
    return NULL;
}

static const char *do_settle(char **words) {
    (void)words;
    loop_settle(replay.worker->loop);
    return NULL;
}

static const char *do_advance(char **words) {
    if (number(words[1]) < 0)
        return "time does not go back";
    loop_advance(replay.worker->loop, number(words[1]));
    return NULL;
}

static const char *do_wall(char **words) {
    replay_clock_step(number(words[1]));
    return NULL;
}

static void on_uplink_tick(struct deadline *deadline) {
    int64_t now_ms = loop_now_ms(replay.worker->loop);
    uplink_watch_tick(replay.daemon.uplink, replay.worker->loop, replay.daemon.own, replay.settings, now_ms);
    deadline_set(deadline, replay.settings->config->offline == OFFLINE_AUTO ? now_ms + UPLINK_TICK_MS : 0);
}

static const char *do_route(char **words) {
    if (!words[1] || (strcmp(words[1], "up") != 0 && strcmp(words[1], "down") != 0))
        return "route up|down";
    netlink_set_route(strcmp(words[1], "up") == 0);
    return NULL;
}

static struct settings *load(const char *file) {
    struct config_errors errors = {0};
    struct settings *settings = settings_load(file, &errors);
    config_errors_print(&errors, stderr);
    config_errors_fini(&errors);
    return settings;
}

static const char *do_reload(char **words) {
    struct settings *next = words[1] ? load(words[1]) : NULL;
    struct cache_limits limits;
    if (!next)
        return "the configuration has errors";
    settings_cache_limits(next, &limits);
    cache_set_limits(replay.daemon.cache, &limits);
    worker_reload(replay.worker, next);
    settings_put(replay.settings);
    replay.settings = next;
    on_uplink_tick(&replay.uplink_tick);
    return NULL;
}

static const char *do_purge(char **words) {
    (void)words;
    cache_purge_all(replay.daemon.cache);
    return NULL;
}

static const char *do_stats(char **words) {
    struct cache_stats stats;
    (void)words;
    cache_stats(replay.daemon.cache, &stats);
    snprintf(answer, sizeof answer, " %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u", stats.objects, stats.bytes,
            stats.fills, replay.worker->session_count, replay.daemon.upstreams);
    return NULL;
}

static void expect_none(unsigned long long count, const char *what) {
    if (count == 0)
        return;
    fprintf(stderr, "left at the end: %llu %s\n", count, what);
    replay.failed = true;
}

static const char *do_end(char **words) {
    struct cache_stats stats;
    (void)words;
    deadline_set(&replay.uplink_tick, 0);
    uplink_watch_stop(replay.daemon.uplink);
    network_end_all();
    loop_advance(replay.worker->loop, DAY_MS);
    cache_stats(replay.daemon.cache, &stats);
    expect_none(replay.worker->session_count, "sessions");
    expect_none(replay.daemon.sessions, "clients counted");
    expect_none(replay.daemon.upstreams, "upstream connections");
    expect_none(replay.worker->fetches != NULL, "list of fetches");
    expect_none(stats.fills, "fills");
    expect_none(stats.stream_bytes, "bytes of streams");
    expect_none(network_open(), "sockets");
    loop_stop(replay.worker->loop);
    return NULL;
}

static const struct verb {
    const char *name;
    const char *(*run)(char **words);
} verbs[] = {{"connect", do_connect}, {"send", do_send}, {"shutdown", do_shutdown}, {"close", do_close},
        {"reset", do_reset}, {"pause", do_pause}, {"resume", do_resume}, {"refuse", do_refuse},
        {"route", do_route}, {"settle", do_settle}, {"advance", do_advance}, {"wall", do_wall},
        {"reload", do_reload}, {"purge", do_purge}, {"stats", do_stats}, {"end", do_end}};

static const char *run_line(char *line) {
    char *words[WORDS] = {0}, *rest;
    words[0] = strtok_r(line, " \n", &rest);
    for (int i = 1; i < WORDS && words[i - 1]; i++)
        words[i] = strtok_r(NULL, " \n", &rest);
    for (size_t i = 0; words[0] && i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verbs[i].name, words[0]) == 0)
            return verbs[i].run(words);
    return "no such command";
}

void replay_next(void *context) {
    (void)context;
    if (getline(&replay.line, &replay.line_size, stdin) < 0) { // the driver is gone
        strcpy(answer, "");
        do_end(NULL);
        return;
    }
    answer[0] = '\0';
    alarm(COMMAND_SECONDS);
    const char *wrong = run_line(replay.line);
    if (wrong)
        printf("bad %s\n", wrong);
    else
        printf("ok %" PRId64 " %" PRId64 "%s\n", clock_monotonic_ms(), clock_wall_ms(), answer);
    fflush(stdout);
}

// ---- life ----

static unsigned count_descriptors(void) {
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static bool begin(const char *file) {
    struct config_errors errors = {0};
    struct cache_limits limits;
    int error, sockets[LISTEN_MAXIMUM];
    memset(sockets, -1, sizeof sockets);
    replay.settings = load(file);
    if (!replay.settings || !listen_parse(replay.settings->config, &replay.daemon.listen, &errors))
        return false;
    settings_cache_limits(replay.settings, &limits);
    replay.daemon.cache = cache_new(&limits);
    replay.daemon.own = own_addresses_new(&error);
    replay.daemon.uplink = uplink_watch_new();
    CHECK(replay.daemon.cache && replay.daemon.own && replay.daemon.uplink);
    replay.worker = worker_new(&replay.daemon, 0, replay.settings, sockets);
    CHECK(replay.worker);
    replay.daemon.workers = &replay.worker;
    replay.daemon.worker_count = 1;
    loop_ignore(replay.worker->loop, &replay.worker->tick);
    deadline_init(&replay.uplink_tick, replay.worker->loop, on_uplink_tick);
    on_uplink_tick(&replay.uplink_tick);
    return true;
}

static void end(void) {
    worker_free(replay.worker);
    cache_free(replay.daemon.cache);
    uplink_watch_free(replay.daemon.uplink);
    own_addresses_free(replay.daemon.own);
    settings_put(replay.settings);
    network_free();
    free(replay.line);
    replay = (struct replay){.failed = replay.failed}; // what was forgotten is a leak then
}

int main(int argc, char **argv) {
    struct rlimit files = {.rlim_cur = DESCRIPTORS, .rlim_max = DESCRIPTORS}; // what limits are computed from
    if (argc != 2 || setrlimit(RLIMIT_NOFILE, &files) < 0) {
        fputs("usage: weir-replay FILE < COMMANDS\n", stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    unsigned before = count_descriptors();
    if (!begin(argv[1]))
        return 1;
    worker_run(replay.worker);
    end();
    expect_none(count_descriptors() - before, "descriptors");
    return replay.failed;
}
