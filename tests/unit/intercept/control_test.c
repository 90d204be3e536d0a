#include "intercept/control.h"

#include "admin/clock.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char folder[64], path[96];
static struct loop *loop;
static struct control *control;
static pthread_t thread;
static _Atomic bool holding, released;

// "big" answers more than a socket buffer holds, "hold" is not ended, "bad" is an error with a line after it,
// anything else comes back.
static void answer(void *context, struct view request, struct control_reply *reply) {
    (void)context;
    if (view_equal(request, VIEW("bad"))) {
        fputs("error: no good\nbecause\n", reply->out);
        return;
    }
    reply->hold = view_equal(request, VIEW("hold"));
    if (reply->hold)
        atomic_store(&holding, true);
    fputs("ok\n", reply->out);
    for (int i = 0; view_equal(request, VIEW("big")) && i < 100000; i++)
        fprintf(reply->out, "%09d\n", i);
    fprintf(reply->out, "[" VIEW_FORMAT "]\n", VIEW_ARGUMENT(request));
}

static void *run(void *context) {
    (void)context;
    loop_run(loop, NULL, NULL);
    return NULL;
}

static void begin(void) {
    int error = 0;
    strcpy(folder, "/tmp/weir-unit-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/socket", folder);
    control = control_open(path, &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(control);
}

static void serve(void) {
    loop = loop_new();
    control_serve(control, loop, answer, NULL);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, run, NULL), 0);
}

static void end(void) {
    if (loop) {
        loop_stop(loop);
        pthread_join(thread, NULL);
    }
    control_close(control);
    loop_free(loop);
    loop = NULL;
    CU_ASSERT_EQUAL(access(path, F_OK), -1);
    CU_ASSERT_EQUAL(rmdir(folder), 0);
}

struct asked {
    int result;
    char why[64];
    char *text;
    size_t length;
};

static struct asked ask(const char *request, int64_t timeout_ms) {
    struct asked asked = {0};
    FILE *out = open_memstream(&asked.text, &asked.length);
    asked.result = control_ask(path, request, timeout_ms, out, asked.why, sizeof asked.why);
    fclose(out);
    return asked;
}

static void round_trips(void) {
    begin();
    serve();
    struct asked asked = ask("hello there", 10000);
    CU_ASSERT_EQUAL(asked.result, 0);
    CU_ASSERT_STRING_EQUAL(asked.text, "[hello there]\n");
    free(asked.text);
    asked = ask("bad", 10000);
    CU_ASSERT_EQUAL(asked.result, 1);
    CU_ASSERT_STRING_EQUAL(asked.why, "no good");
    CU_ASSERT_STRING_EQUAL(asked.text, "because\n");
    free(asked.text);
    asked = ask("big", 10000);
    CU_ASSERT_EQUAL(asked.result, 0);
    CU_ASSERT_EQUAL(asked.length, 1000000 + 6);
    CU_ASSERT_TRUE(asked.length > 16 && strcmp(asked.text + asked.length - 16, "000099999\n[big]\n") == 0);
    free(asked.text);
    end();
}

static void nobody_answers(void) {
    snprintf(path, sizeof path, "/tmp/weir-unit-none/socket");
    struct asked asked = ask("x", 1000);
    CU_ASSERT_EQUAL(asked.result, -ENOENT);
    free(asked.text);
    begin(); // listens, and is not served
    asked = ask("x", 50);
    CU_ASSERT_EQUAL(asked.result, -ETIMEDOUT);
    free(asked.text);
    end();
}

static void *hold(void *context) {
    *(struct asked *)context = ask("hold", 10000);
    atomic_store(&released, true);
    return NULL;
}

static void held_until_the_end(void) {
    struct asked asked = {0};
    pthread_t asker;
    begin();
    serve();
    atomic_store(&holding, false);
    atomic_store(&released, false);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&asker, NULL, hold, &asked), 0);
    struct asked other = ask("between", 10000); // the held one is in nobody's way
    CU_ASSERT_EQUAL(other.result, 0);
    free(other.text);
    for (int64_t until = clock_monotonic_ms() + 10000;
            !atomic_load(&holding) && clock_monotonic_ms() < until;)
        sched_yield();
    CU_ASSERT_TRUE(atomic_load(&holding));
    CU_ASSERT_FALSE(atomic_load(&released));
    end();
    pthread_join(asker, NULL);
    CU_ASSERT_TRUE(atomic_load(&released));
    CU_ASSERT_TRUE(asked.result == 0);
    free(asked.text);
}

static int connect_raw(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_EQUAL(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void long_and_split_requests(void) {
    static char flood[CONTROL_REQUEST_BYTES];
    char bytes[64] = "";
    begin();
    serve();
    int fd = connect_raw();
    memset(flood, 'a', sizeof flood);
    CU_ASSERT_EQUAL(send(fd, flood, sizeof flood, MSG_NOSIGNAL), sizeof flood);
    CU_ASSERT_TRUE(recv(fd, bytes, sizeof bytes - 1, MSG_WAITALL) > 0);
    CU_ASSERT_STRING_EQUAL(bytes, "error: the request is too long\n");
    close(fd);
    fd = connect_raw();
    CU_ASSERT_EQUAL(send(fd, "he", 2, MSG_NOSIGNAL), 2);
    CU_ASSERT_EQUAL(send(fd, "y\n", 2, MSG_NOSIGNAL), 2);
    memset(bytes, 0, sizeof bytes);
    CU_ASSERT_EQUAL(recv(fd, bytes, sizeof bytes - 1, MSG_WAITALL), 9);
    CU_ASSERT_STRING_EQUAL(bytes, "ok\n[hey]\n");
    close(fd);
    end();
}

static void bounded_peers(void) {
    int idle[16];
    begin();
    serve();
    for (int i = 0; i < 16; i++)
        idle[i] = connect_raw();
    struct asked asked = ask("x", 10000);
    CU_ASSERT_EQUAL(asked.result, 1);
    CU_ASSERT_STRING_EQUAL(asked.why, "too many commands at once; try again");
    free(asked.text);
    for (int i = 0; i < 16; i++)
        close(idle[i]);
    int64_t until = clock_monotonic_ms() + 10000;
    do {
        asked = ask("x", 10000);
        free(asked.text);
    } while (asked.result != 0 && clock_monotonic_ms() < until);
    CU_ASSERT_EQUAL(asked.result, 0);
    end();
}

static void socket_file(void) {
    int error = 0;
    struct stat status;
    begin();
    CU_ASSERT_EQUAL(stat(path, &status), 0);
    CU_ASSERT_EQUAL(status.st_mode & 0777, 0600);
    CU_ASSERT_PTR_NULL(control_open(path, &error)); // somebody listens
    CU_ASSERT_EQUAL(error, EADDRINUSE);
    end();
    begin();
    int stale = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/stale", folder);
    CU_ASSERT_EQUAL(bind(stale, (struct sockaddr *)&address, sizeof address), 0);
    close(stale); // the file stays, nobody listens
    struct control *second = control_open(address.sun_path, &error);
    CU_ASSERT_PTR_NOT_NULL(second);
    control_close(second);
    CU_ASSERT_EQUAL(access(address.sun_path, F_OK), -1);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/file", folder);
    fclose(fopen(address.sun_path, "we"));
    CU_ASSERT_PTR_NULL(control_open(address.sun_path, &error));
    CU_ASSERT_EQUAL(error, EEXIST); // and it is still there
    CU_ASSERT_EQUAL(unlink(address.sun_path), 0);
    CU_ASSERT_PTR_NULL(control_open("/no/such/folder/socket", &error));
    CU_ASSERT_EQUAL(error, ENOENT);
    end();
}

SUITE(intercept_control, CASE(round_trips), CASE(nobody_answers), CASE(held_until_the_end),
        CASE(long_and_split_requests), CASE(bounded_peers), CASE(socket_file))
