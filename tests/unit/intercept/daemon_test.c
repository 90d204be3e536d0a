// `weir run` as a whole, in a namespace and a process of its own, asked over its control socket.
#include "admin/clock.h"
#include "admin/command.h"
#include "intercept/control.h"
#include "tests/unit/intercept/netns.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct command run_it = {"run", run_command, "", ""};
static char folder[64], config_file[96], socket_file[96], log_file[96];
static pid_t daemon_pid;

static void write_config(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void write_config(const char *format, ...) {
    va_list arguments;
    FILE *file = fopen(config_file, "we");
    fprintf(file, "control %s\nworkers 2\ncache_mem 1M\ntimeout drain 2s\n", socket_file);
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
    fclose(file);
}

static int make_folder(void) {
    strcpy(folder, "/tmp/weir-unit-XXXXXX");
    REQUIRE(mkdtemp(folder) != NULL && chmod(folder, 0777) == 0);
    snprintf(config_file, sizeof config_file, "%s/conf", folder);
    snprintf(socket_file, sizeof socket_file, "%s/socket", folder);
    snprintf(log_file, sizeof log_file, "%s/out", folder);
    return 0;
}

static int remove_folder(void) {
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static int run_daemon(void) {
    struct command_call call = {.config_file = config_file, .has_config_file = true, .command = &run_it};
    int out = open(log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    dup2(out, STDERR_FILENO);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int status = run_command(&call);
    prctl(PR_SET_DUMPABLE, 1); // for the leak check at exit
    return status;
}

static void start(void) {
    daemon_pid = fork();
    if (daemon_pid == 0)
        exit(run_daemon());
}

// Its exit status, or -1 when it does not end within ten seconds.
static int wait_end(void) {
    int status = 0;
    for (int64_t until = clock_monotonic_ms() + 10000; clock_monotonic_ms() < until; poll(NULL, 0, 5))
        if (waitpid(daemon_pid, &status, WNOHANG) == daemon_pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
    kill(daemon_pid, SIGKILL);
    waitpid(daemon_pid, &status, 0);
    return -1;
}

// The answer, in a buffer that the next call uses again; "!WHY" for an error.
static const char *ask(const char *request) {
    static char text[65536];
    char why[256];
    memset(text, 0, sizeof text);
    FILE *out = fmemopen(text, sizeof text - 1, "w");
    int result = control_ask(socket_file, request, 10000, out, why, sizeof why);
    fclose(out);
    if (result > 0) {
        memmove(text + strlen(why) + 1, text, sizeof text - strlen(why) - 2);
        text[0] = '!';
        memcpy(text + 1, why, strlen(why));
    }
    return result < 0 ? "" : text;
}

static bool answers(void) {
    int64_t until = clock_monotonic_ms() + 10000;
    while (!strstr(ask("stats"), "uptime_s"))
        if (clock_monotonic_ms() > until || waitpid(daemon_pid, NULL, WNOHANG | __WNOTHREAD) > 0)
            return false;
        else
            poll(NULL, 0, 5);
    return true;
}

static const char *log_text(void) {
    static char text[65536];
    FILE *file = fopen(log_file, "re");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[length] = '\0';
    if (file)
        fclose(file);
    return text;
}

static bool log_becomes(const char *needle) {
    int64_t until = clock_monotonic_ms() + 10000;
    while (!strstr(log_text(), needle))
        if (clock_monotonic_ms() > until)
            return false;
        else
            poll(NULL, 0, 5);
    return true;
}

static int life(void) {
    REQUIRE(make_folder() == 0);
    write_config("user nobody\nlisten 23129 redirect\nlisten 80 tproxy\naccess_log %s/log json\n", folder);
    start();
    REQUIRE(answers());
    REQUIRE(strstr(log_text(), "listen 23129 redirect, 80 tproxy; 2 workers; at most "));
    REQUIRE(strstr(ask("stats json"), "\"workers\":2,\"draining\":0,\"sessions\":0"));
    REQUIRE(strstr(ask("purge all"), "0 responses dropped"));
    REQUIRE(strstr(ask("purge url http://EXAMPLE.com:80/x"), "0 responses dropped"));
    REQUIRE(strstr(ask("purge host example.com"), "0 responses dropped"));
    REQUIRE(strstr(ask("purge prefix http://example.com/x"), "0 responses dropped"));
    REQUIRE(strstr(ask("purge mask */x/*"), "0 responses dropped"));
    REQUIRE(ask("purge mask http://x/#a")[0] == '!' && ask("purge prefix x y")[0] == '!');
    REQUIRE(ask("purge everything")[0] == '!' && strstr(ask("store status"), "no volumes"));
    REQUIRE(strstr(ask("store status json"), "{\"volumes\":[]}"));
    REQUIRE(ask("purge url ftp://x/")[0] == '!' && ask("purge host [")[0] == '!' && ask("dance")[0] == '!');
    kill(daemon_pid, SIGTERM);
    REQUIRE(wait_end() == 0);
    REQUIRE(strstr(log_text(), "weir: stopped\n"));
    REQUIRE(remove_folder() == 0);
    return 0;
}

static int what_it_is_afterwards(void) {
    char path[64], text[4096] = "";
    REQUIRE(make_folder() == 0);
    write_config("user nobody\nlisten 80 tproxy\n");
    start();
    REQUIRE(answers());
    snprintf(path, sizeof path, "/proc/%d/status", daemon_pid);
    FILE *file = fopen(path, "re");
    REQUIRE(file != NULL);
    REQUIRE(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    REQUIRE(!strstr(text, "\nUid:\t0\t") && !strstr(text, "\nGid:\t0\t"));
    REQUIRE(strstr(text, "\nCapPrm:\t0000000000001000\n") && strstr(text, "\nCapEff:\t0000000000001000\n"));
    REQUIRE(strstr(text, "\nCapInh:\t0000000000000000\n") && strstr(text, "\nCapAmb:\t0000000000000000\n"));
    REQUIRE(strstr(text, "\nNoNewPrivs:\t1\n"));
    REQUIRE(strstr(ask("stop"), "draining: 0 connections") != NULL);
    REQUIRE(wait_end() == 0);
    REQUIRE(remove_folder() == 0);
    return 0;
}

static int reloads(void) {
    REQUIRE(make_folder() == 0);
    write_config("user root\nlisten 23129 redirect\nclient_connections 5\n");
    start();
    REQUIRE(answers());
    write_config("user root\nlisten 23129 redirect\nclient_connections 6\n");
    REQUIRE(strstr(ask("reload"), "/conf is in force\n"));
    REQUIRE(strstr(ask("stats json"), "\"sessions_limit\":6,"));
    write_config("user nobody\nlisten 23130 redirect\nclient_connections 7\nworkers 2\n");
    REQUIRE(strstr(ask("reload"), "!the new configuration has errors; the old one stays in force"));
    REQUIRE(strstr(ask("stats json"), "\"sessions_limit\":6,"));
    write_config("user nobody\nlisten 23130 redirect\nclient_connections 8\n");
    REQUIRE(strstr(
            ask("reload"), "listen changed: that needs a restart\nuser changed: that needs a restart\n"));
    write_config("user root\nlisten 23129 redirect\nclient_connections 9\n");
    kill(daemon_pid, SIGHUP);
    for (int64_t until = clock_monotonic_ms() + 10000; !strstr(ask("stats json"), "\"sessions_limit\":9,");)
        REQUIRE(clock_monotonic_ms() < until);
    kill(daemon_pid, SIGUSR1);
    REQUIRE(log_becomes("access logs opened again"));
    REQUIRE(strstr(ask("drain"), "draining: 0 connections, at most "));
    REQUIRE(strstr(ask("stats json"), "\"draining\":1,"));
    REQUIRE(waitpid(daemon_pid, NULL, WNOHANG) == 0); // drained is not stopped
    kill(daemon_pid, SIGINT);
    REQUIRE(wait_end() == 0);
    REQUIRE(remove_folder() == 0);
    return 0;
}

// The exit status and the log of a start that must fail, within a second.
static int fails(const char *needle) {
    unlink(log_file);
    int64_t before = clock_monotonic_ms();
    start();
    REQUIRE(wait_end() == COMMAND_PROBLEM);
    REQUIRE(clock_monotonic_ms() - before < 1000);
    if (!strstr(log_text(), needle))
        fputs(log_text(), stderr);
    REQUIRE(strstr(log_text(), needle));
    REQUIRE(access(socket_file, F_OK) != 0);
    return 0;
}

static int failing_starts(void) {
    REQUIRE(make_folder() == 0);
    write_config("listen 80 redirect\nbogus\n");
    REQUIRE(fails("conf:6:1: ") == 0);
    write_config("listen 23129 redirect\nuser nosuchuser\n");
    REQUIRE(fails("user nosuchuser does not exist: create it (systemd-sysusers") == 0);
    write_config("user root\nlisten 203.0.113.9:23129 redirect\n");
    REQUIRE(fails("listen 203.0.113.9:23129 redirect: bind: Cannot assign requested address") == 0);
    write_config("user root\nlisten 23129 redirect\nallow 10.0.0.0/99\n");
    REQUIRE(fails("conf:7:7: ") == 0);
    write_config("user nobody\nlisten 23129 redirect\naccess_log /no/such/log\n");
    REQUIRE(fails("cannot write /no/such/log: No such file or directory") == 0);
    REQUIRE(remove_folder() == 0);
    return 0;
}

static int without_capabilities(void) {
    for (int capability = 0; capability <= 63; capability++)
        prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    REQUIRE(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    REQUIRE(make_folder() == 0);
    write_config("listen 80 tproxy\n");
    REQUIRE(fails("CAP_NET_ADMIN is missing: listen 80 tproxy needs it; start weir as root, or give it the "
                  "capability: AmbientCapabilities=CAP_NET_ADMIN") == 0);
    REQUIRE(strstr(log_text(), "CAP_NET_BIND_SERVICE is missing: listen 80 needs it"));
    write_config("listen 23129 redirect\nspoof_client on\n");
    REQUIRE(fails("CAP_NET_ADMIN is missing: spoof_client needs it") == 0);
    write_config("listen 23129 redirect\n"); // good enough
    start();
    REQUIRE(answers());
    REQUIRE(strstr(log_text(), "without CAP_NET_ADMIN packet marks are not carried to the origin"));
    kill(daemon_pid, SIGTERM);
    REQUIRE(wait_end() == 0);
    REQUIRE(remove_folder() == 0);
    return 0;
}

static int second_one(void) {
    char path[96];
    REQUIRE(make_folder() == 0);
    write_config("user root\nlisten 23129 redirect\n");
    start();
    REQUIRE(answers());
    pid_t first = daemon_pid;
    start();
    REQUIRE(wait_end() == COMMAND_PROBLEM);
    REQUIRE(log_becomes("another weir answers at "));
    snprintf(path, sizeof path, "%s", socket_file);
    snprintf(socket_file, sizeof socket_file, "%s/other", folder);
    write_config("user root\nlisten 23129 redirect\n"); // the port alone is taken
    start();
    REQUIRE(wait_end() == COMMAND_PROBLEM);
    REQUIRE(log_becomes("bind: Address already in use: another program has the port"));
    memcpy(socket_file, path, sizeof socket_file);
    write_config("user root\nlisten 23129 redirect\n");
    daemon_pid = first;
    REQUIRE(answers()); // unharmed
    kill(first, SIGKILL);
    REQUIRE(waitpid(first, NULL, 0) == first);
    REQUIRE(access(path, F_OK) == 0); // left over, and replaced
    start();
    REQUIRE(answers());
    kill(daemon_pid, SIGTERM);
    REQUIRE(wait_end() == 0);
    REQUIRE(access(path, F_OK) != 0);
    REQUIRE(remove_folder() == 0);
    return 0;
}

static bool hears(int manager, const char *wanted) {
    char text[512] = "";
    struct pollfd readable = {.fd = manager, .events = POLLIN};
    while (!strstr(text, wanted)) {
        ssize_t length = poll(&readable, 1, 10000) == 1 ? recv(manager, text, sizeof text - 1, 0) : -1;
        if (length < 0)
            return false;
        text[length] = '\0';
    }
    return true;
}

static int notifies(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    REQUIRE(make_folder() == 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/notify", folder);
    int manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    REQUIRE(bind(manager, (struct sockaddr *)&address, sizeof address) == 0);
    REQUIRE(chmod(address.sun_path, 0777) == 0);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    setenv("WATCHDOG_USEC", "400000", 1);
    unsetenv("WATCHDOG_PID");
    write_config("user nobody\nlisten 23129 redirect\n");
    start();
    REQUIRE(hears(manager, "READY=1"));
    REQUIRE(strstr(ask("stats json"), "\"workers\":2")); // ready means ready
    REQUIRE(hears(manager, "WATCHDOG=1"));
    kill(daemon_pid, SIGHUP);
    REQUIRE(hears(manager, "RELOADING=1\nMONOTONIC_USEC=") && hears(manager, "READY=1"));
    kill(daemon_pid, SIGTERM);
    REQUIRE(hears(manager, "STOPPING=1") && hears(manager, "STATUS=Draining: 0 connections"));
    REQUIRE(wait_end() == 0);
    close(manager);
    REQUIRE(remove_folder() == 0);
    return 0;
}

static void tells_the_service_manager(void) {
    CU_ASSERT_TRUE(netns_passes(notifies));
}

static void runs_and_answers(void) {
    CU_ASSERT_TRUE(netns_passes(life));
}

static void becomes_its_user(void) {
    CU_ASSERT_TRUE(netns_passes(what_it_is_afterwards));
}

static void reloads_and_drains(void) {
    CU_ASSERT_TRUE(netns_passes(reloads));
}

static void fails_at_once_and_says_why(void) {
    CU_ASSERT_TRUE(netns_passes(failing_starts));
}

static void names_missing_capabilities(void) {
    CU_ASSERT_TRUE(netns_passes(without_capabilities));
}

static void only_one_a_socket(void) {
    CU_ASSERT_TRUE(netns_passes(second_one));
}

SUITE(intercept_daemon, CASE(runs_and_answers), CASE(becomes_its_user), CASE(reloads_and_drains),
        CASE(fails_at_once_and_says_why), CASE(names_missing_capabilities), CASE(only_one_a_socket),
        CASE(tells_the_service_manager))
