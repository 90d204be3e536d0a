#include "intercept/access_log.h"

#include "admin/clock.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/weir-unit-XXXXXX";

static void path_in_folder(const char *name, char out[static 128]) {
    snprintf(out, 128, "%s/%s", folder, name);
}

static void make_folder(void) {
    strcpy(folder, "/tmp/weir-unit-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
}

static void remove_folder(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CU_ASSERT_EQUAL(system(command), 0);
}

// `text` with %s where the folder goes, at most three times.
static struct access_log *open_log(const char *text, char errors[static 1024]) {
    char config_text[1024];
    struct config_errors found = {0};
    snprintf(config_text, sizeof config_text, text, folder, folder, folder);
    struct config *config = config_load_text("t", view_of(config_text), &found);
    struct access_log *log = config ? access_log_new(config, &found) : NULL;
    CU_ASSERT_EQUAL(log != NULL, found.count == 0);
    snprintf(errors, 1024, "%s", found.text ? found.text : "");
    config_free(config); // the log keeps nothing of it
    config_errors_fini(&found);
    return log;
}

static void write_host(struct access_log *log, const char *host) {
    struct access_entry entry = {
            .method = VIEW("GET"), .host = view_of(host), .target = VIEW("/"), .status = 200};
    struct acl_request request = {.scheme = VIEW("http"), .host = view_of(host), .path = VIEW("/")};
    access_log_write(log, &entry, &request);
}

static unsigned count_lines(const char *name, const char *needle) {
    char path[128], text[512];
    unsigned count = 0;
    path_in_folder(name, path);
    FILE *file = fopen(path, "re");
    while (file && fgets(text, sizeof text, file))
        count += strstr(text, needle) != NULL;
    if (file)
        fclose(file);
    return count;
}

static bool becomes(const char *name, const char *needle, unsigned wanted) {
    int64_t until = clock_monotonic_ms() + 10000;
    while (count_lines(name, needle) != wanted) {
        if (clock_monotonic_ms() > until)
            return false;
        poll(NULL, 0, 2);
    }
    return true;
}

static void masks_and_formats(void) {
    char errors[1024], path[128];
    struct stat status;
    make_folder();
    struct access_log *log = open_log(
            "access_log %s/all json\naccess_log *.example.com* %s/some squid\naccess_log %s/plain\n", errors);
    CU_ASSERT_PTR_NOT_NULL_FATAL(log);
    write_host(log, "www.example.com");
    write_host(log, "other.example.net");
    access_log_free(log); // writes what is queued
    CU_ASSERT_EQUAL(count_lines("all", "\"url\":\"http://www.example.com/\""), 1);
    CU_ASSERT_EQUAL(count_lines("all", "{"), 2);
    CU_ASSERT_EQUAL(count_lines("some", "http://www.example.com/ - HIER_NONE"), 1);
    CU_ASSERT_EQUAL(count_lines("some", ""), 1);
    CU_ASSERT_EQUAL(count_lines("plain", "\"-\" \"-\""), 2); // combined
    path_in_folder("all", path);
    CU_ASSERT_EQUAL(stat(path, &status), 0);
    CU_ASSERT_EQUAL(status.st_mode & 0137, 0);
    remove_folder();
}

static void reopens_after_rotation(void) {
    char errors[1024], from[128], to[128];
    make_folder();
    struct access_log *log = open_log("access_log %s/log common\n", errors);
    CU_ASSERT_PTR_NOT_NULL_FATAL(log);
    write_host(log, "one.example");
    CU_ASSERT_TRUE(becomes("log", "one.example", 1)); // without anybody asking
    path_in_folder("log", from);
    path_in_folder("old", to);
    CU_ASSERT_EQUAL(rename(from, to), 0);
    access_log_reopen(log);
    for (int64_t until = clock_monotonic_ms() + 10000;
            access(from, F_OK) != 0 && clock_monotonic_ms() < until;)
        poll(NULL, 0, 2);
    write_host(log, "two.example");
    access_log_free(log);
    CU_ASSERT_EQUAL(count_lines("log", "two.example"), 1);
    CU_ASSERT_EQUAL(count_lines("old", "one.example"), 1);
    CU_ASSERT_EQUAL(count_lines("old", ""), 1);
    remove_folder();
}

#define WRITERS 4
#define LINES_EACH 5000

static void *write_lines(void *context) {
    for (int i = 0; i < LINES_EACH; i++)
        write_host(context, "many.example");
    return NULL;
}

static void many_threads_lose_nothing(void) {
    char errors[1024];
    pthread_t threads[WRITERS];
    make_folder();
    struct access_log *log = open_log("access_log %s/log common\n", errors);
    CU_ASSERT_PTR_NOT_NULL_FATAL(log);
    for (int i = 0; i < WRITERS; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, write_lines, log), 0);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    access_log_free(log);
    CU_ASSERT_EQUAL(
            count_lines("log", "\"GET http://many.example/ HTTP/1.0\" 200 - HIT:-\n"), WRITERS * LINES_EACH);
    remove_folder();
}

// A reader that reads nothing: the workers never wait, the queue stays bounded, what is lost is not written.
static void slow_reader_costs_lines_not_time(void) {
    char errors[1024], path[128];
    make_folder();
    path_in_folder("pipe", path);
    CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct access_log *log = open_log("access_log %s/pipe common\n", errors);
    CU_ASSERT_PTR_NOT_NULL_FATAL(log);
    int64_t before = clock_monotonic_ms();
    unsigned total = 200000; // about 20 MB
    for (unsigned i = 0; i < total; i++)
        write_host(log, "slow.example");
    CU_ASSERT_TRUE(clock_monotonic_ms() - before < 20000);
    uint64_t lost = access_log_lost(log);
    CU_ASSERT_TRUE(lost > total / 4 && lost < total); // three quarters of it are more than the bound
    close(reader);                                    // EPIPE from now on
    access_log_free(log);
    remove_folder();
}

static void bad_directives(void) {
    static const struct {
        const char *text, *error;
    } rows[] = {
            {"access_log %s/no/such/log\n", "t:1:1: cannot write /tmp/weir-unit-"},
            {"access_log /a jsno\n", "t:1:15: no access log format is called \"jsno\""},
            {"access_log m /a jsno\n", "t:1:17: no access log format is called \"jsno\""},
            {"access_log log json\n", "t:1:12: \"log\" is no path from the root"},
            {"access_log *.x /log xml\n", "t:1:21: "},
    };
    char errors[1024];
    make_folder();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CU_ASSERT_PTR_NULL(open_log(rows[i].text, errors));
        CU_ASSERT_PTR_EQUAL(strstr(errors, rows[i].error), errors);
    }
    struct access_log *none = open_log("", errors);
    CU_ASSERT_PTR_NOT_NULL_FATAL(none);
    write_host(none, "x");
    access_log_reopen(none);
    access_log_free(none);
    remove_folder();
}

SUITE(intercept_access_log, CASE(masks_and_formats), CASE(reopens_after_rotation),
        CASE(many_threads_lose_nothing), CASE(slow_reader_costs_lines_not_time), CASE(bad_directives))
