// What the service manager hears: a daemon with one worker that has nothing but a heartbeat.
#include "intercept/supervisor.h"

#include "admin/clock.h"
#include "intercept/worker.h"
#include "tests/unit/intercept/netns.h"
#include "tests/unit/unit.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char folder[64];
static int manager = -1;

static int open_manager(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(folder, "/tmp/weir-unit-XXXXXX");
    REQUIRE(mkdtemp(folder) != NULL);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/notify", folder);
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    REQUIRE(bind(manager, (struct sockaddr *)&address, sizeof address) == 0);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    setenv("WATCHDOG_USEC", "100000", 1);
    unsetenv("WATCHDOG_PID");
    return 0;
}

static int close_manager(void) {
    char command[96];
    close(manager);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

// Reads all that was said; whether `needle` was in it.
static bool heard(const char *needle) {
    char text[512];
    bool found = false;
    for (ssize_t length; (length = recv(manager, text, sizeof text - 1, MSG_DONTWAIT)) >= 0;) {
        text[length] = '\0';
        found = found || strstr(text, needle) != NULL;
    }
    return found;
}

static void end_round(struct deadline *deadline) {
    loop_stop(deadline->loop);
}

static void run_for(struct supervisor *supervisor, int64_t time_ms) {
    struct deadline end;
    deadline_init(&end, supervisor->loop, end_round);
    deadline_set(&end, clock_monotonic_ms() + time_ms);
    supervisor_run(supervisor);
}

static int watchdog(void) {
    char path[96];
    int error = 0;
    static struct worker worker;
    struct worker *workers[1] = {&worker};
    struct daemon daemon = {.worker_count = 1, .workers = workers, .uplink = uplink_watch_new()};
    struct supervisor supervisor;
    struct config_errors errors = {0};
    REQUIRE(open_manager() == 0);
    snprintf(path, sizeof path, "%s/control", folder);
    struct control *control = control_open(path, &error);
    struct settings *settings = settings_build(config_load_text("t", VIEW(""), &errors), &errors);
    REQUIRE(control && settings);
    REQUIRE(supervisor_init(&supervisor, &daemon, settings, "t", control) == 0);
    REQUIRE(supervisor.watchdog_ms == 100);
    atomic_store(&worker.heartbeat_ms, clock_monotonic_ms() - 60000); // hangs
    run_for(&supervisor, 300);
    REQUIRE(!heard("WATCHDOG=1"));
    atomic_store(&worker.heartbeat_ms, clock_monotonic_ms());
    run_for(&supervisor, 300);
    REQUIRE(heard("WATCHDOG=1"));
    control_close(control);
    supervisor_fini(&supervisor);
    settings_put(settings);
    uplink_watch_free(daemon.uplink);
    return close_manager();
}

static void pats_the_watchdog_while_all_are_well(void) {
    CU_ASSERT_TRUE(netns_passes(watchdog));
}

SUITE(intercept_supervisor, CASE(pats_the_watchdog_while_all_are_well))
