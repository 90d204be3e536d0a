#include "admin/command.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// What the last run of the fake command was called with.
static struct {
    int runs, argc;
    char file[256], words[256];
} seen;

static int note_call(const struct command_call *call) {
    seen.runs++;
    seen.argc = call->argc;
    strcpy(seen.file, call->has_config_file ? call->config_file : "-");
    seen.words[0] = '\0';
    for (int i = 0; i < call->argc; i++) {
        strcat(seen.words, call->argv[i]);
        strcat(seen.words, " ");
    }
    CU_ASSERT_PTR_NULL(call->argv[call->argc]);
    return COMMAND_PROBLEM;
}

static int refuse_call(const struct command_call *call) {
    return command_usage_error(call, "%d words", call->argc);
}

static const struct command table[] = {
        {"look", note_call, "[-c FILE] [WORD]...", "looks"},
        {"refuse", refuse_call, "", "refuses"},
        {"check", check_command, "", ""},
        {"config", config_command, "", ""},
};

// Standard output and standard error of one run, as text.
struct capture {
    int saved[3], file[3];
    char text[3][32768];
};

static struct capture capture;

static void capture_begin(void) {
    for (int fd = 1; fd <= 2; fd++) {
        fflush(fd == 1 ? stdout : stderr);
        capture.saved[fd] = dup(fd);
        capture.file[fd] = memfd_create("capture", MFD_CLOEXEC);
        dup2(capture.file[fd], fd);
    }
}

static void capture_end(void) {
    for (int fd = 1; fd <= 2; fd++) {
        fflush(fd == 1 ? stdout : stderr);
        dup2(capture.saved[fd], fd);
        close(capture.saved[fd]);
        ssize_t length = pread(capture.file[fd], capture.text[fd], sizeof capture.text[fd] - 1, 0);
        capture.text[fd][length > 0 ? length : 0] = '\0';
        close(capture.file[fd]);
    }
}

// Runs a command line of words with single blanks between them.
static int run(const char *line) {
    char copy[512], *argv[16];
    int argc = 0;
    strcpy(copy, line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    capture_begin();
    int status = command_main(table, sizeof table / sizeof table[0], argc, argv);
    capture_end();
    return status;
}

// The line, its status, and how standard output and standard error begin.
static const struct {
    const char *line;
    int status;
    const char *out, *error;
} cases[] = {
        {"weir", 2, "", "usage: weir COMMAND [ARGUMENT]...\n"},
        {"weir help", 0, "usage: weir COMMAND [ARGUMENT]...\n", ""},
        {"weir --help", 0, "usage: weir COMMAND [ARGUMENT]...\n", ""},
        {"weir -h", 0, "usage: weir COMMAND [ARGUMENT]...\n", ""},
        {"weir --version", 0, "weir " WEIR_VERSION "\n", ""},
        {"weir help look", 0, "usage: weir look [-c FILE] [WORD]...\nlooks\n", ""},
        {"weir look --help", 0, "usage: weir look [-c FILE] [WORD]...\nlooks\n", ""},
        {"weir help lok", 2, "", "weir: no command is called \"lok\" (did you mean look?)"},
        {"weir confgi", 2, "", "weir: no command is called \"confgi\" (did you mean config?)"},
        {"weir zzz", 2, "", "weir: no command is called \"zzz\"; weir help lists them\n"},
        {"weir -c f look", 2, "", "weir: the command comes first: weir COMMAND -c ..."},
        {"weir refuse a b", 2, "", "weir refuse: 2 words\nusage: weir refuse\n"},
        {"weir look -c", 2, "", "weir look: -c needs the name of a file behind it\nusage: weir look [-c"},
        {"weir look -c a -c b", 2, "", "weir look: -c stands twice, name one file\n"},
        {"weir check x", 2, "", "weir check: \"x\" is one word too many\n"},
        {"weir config --jsn", 2, "", "weir config: \"--jsn\" is one word too many\n"},
        {"weir config --json x", 2, "", "weir config: \"x\" is one word too many\n"},
        {"weir check -c /nonexistent/f", 1, "",
                "/nonexistent/f:1:1: /nonexistent/f cannot be read (No such file or directory), create it "
                "or correct its name and permissions\n/nonexistent/f: 1 error\n"},
        {"weir config -c /nonexistent/f", 1, "", "/nonexistent/f:1:1: /nonexistent/f cannot be read"},
};

static void starts_with(const char *text, const char *start, const char *line) {
    bool good = *start ? strncmp(text, start, strlen(start)) == 0 : *text == '\0';
    if (!good)
        fprintf(stderr, "%s prints %s instead of %s\n", line, text, start);
    CU_ASSERT_TRUE(good);
}

static void statuses_and_texts(void) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CU_ASSERT_EQUAL(run(cases[i].line), cases[i].status);
        starts_with(capture.text[1], cases[i].out, cases[i].line);
        starts_with(capture.text[2], cases[i].error, cases[i].line);
    }
    CU_ASSERT_EQUAL(seen.runs, 0);
}

static void words_and_file(void) {
    static const struct {
        const char *line, *file, *words;
    } calls[] = {
            {"weir look", "-", ""},
            {"weir look a --b c", "-", "a --b c "},
            {"weir look -c f a", "f", "a "},
            {"weir look a -c f b", "f", "a b "},
            {"weir look a b -c f", "f", "a b "},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        seen.runs = 0;
        CU_ASSERT_EQUAL(run(calls[i].line), COMMAND_PROBLEM);
        CU_ASSERT_EQUAL(seen.runs, 1);
        CU_ASSERT_STRING_EQUAL(seen.file, calls[i].file);
        CU_ASSERT_STRING_EQUAL(seen.words, calls[i].words);
    }
    seen.runs = 0;
}

static char file[] = "/tmp/weir-command-XXXXXX";

static void write_file(const char *text) {
    strcpy(file + sizeof file - 7, "XXXXXX");
    int fd = mkstemp(file);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static int run_with_file(const char *command, const char *text) {
    char line[256];
    write_file(text);
    snprintf(line, sizeof line, "weir %s -c %s", command, file);
    int status = run(line);
    unlink(file);
    return status;
}

static void checking(void) {
    CU_ASSERT_EQUAL(run_with_file("check", "workers 2\ngcarraysize 3\n"), COMMAND_DONE);
    CU_ASSERT_PTR_NOT_NULL(strstr(capture.text[1], ":2:1: gcarraysize does nothing here: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(capture.text[1], ": good\n"));
    CU_ASSERT_STRING_EQUAL(capture.text[2], "");
    CU_ASSERT_EQUAL(run_with_file("check", "workers x\nwat\n"), COMMAND_PROBLEM);
    CU_ASSERT_PTR_NOT_NULL(strstr(capture.text[2], ":1:9: workers \"x\" is no number"));
    CU_ASSERT_PTR_NOT_NULL(strstr(capture.text[2], ":2:1: no directive is called \"wat\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(capture.text[2], ": 2 errors\n"));
    CU_ASSERT_STRING_EQUAL(capture.text[1], "");
}

// The line of the table that begins with the name, up to its end; "" when there is none.
static const char *line_of(const char *name) {
    static char line[512];
    const char *at = capture.text[1];
    size_t length = strlen(name);
    line[0] = '\0';
    for (; at && *at; at = strchr(at, '\n'), at += at != NULL)
        if (strncmp(at, name, length) == 0 && at[length] == ' ') {
            snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
            break;
        }
    for (char *from = line, *to = line;; from++) { // runs of blanks are alignment
        if (*from != ' ' || from[1] != ' ')
            *to++ = *from;
        if (!*from)
            break;
    }
    return line;
}

static void printing_options(void) {
    CU_ASSERT_EQUAL(run_with_file("config",
                            "cache_mem 1536K\ntimeout connect 90s\nblock a \"b c\"\nblock \"d\\\"#\"\n"
                            "on_failure closed\n"),
            COMMAND_DONE);
    CU_ASSERT_STRING_EQUAL(capture.text[2], "");
    starts_with(line_of("cache_mem"), "cache_mem 1536K 64M bytes the memory tier", "cache_mem");
    starts_with(line_of("timeout connect"), "timeout connect 90s 10s time the origin", "connect");
    starts_with(line_of("timeout total"), "timeout total 1d 1d time one request", "total");
    starts_with(line_of("workers"), "workers auto auto threads event loops", "workers");
    starts_with(line_of("on_failure"), "on_failure closed open", "on_failure");
    starts_with(line_of("spoof_client"), "spoof_client off off", "spoof_client");
    starts_with(line_of("via_name"), "via_name - - token", "via_name");
    starts_with(line_of("rule_mark"), "rule_mark 0x57000000 0x57000000 mark", "rule_mark");
    starts_with(line_of("listen"), "listen 3129 redirect 3129 redirect where", "listen");
    starts_with(line_of("block"), "block a \"b c\" - URLs", "block");
    CU_ASSERT_PTR_NOT_NULL(strstr(capture.text[1], " \"d\\\"#\" "));
}

static void printing_json(void) {
    CU_ASSERT_EQUAL(run_with_file("config --json", "workers 2\nblock \"a \\\"b\"\n"), COMMAND_DONE);
    CU_ASSERT_PTR_NOT_NULL(strstr(capture.text[1],
            "{\"name\": \"workers\", \"value\": 2, \"default\": \"auto\", \"unit\": \"threads\", "));
    CU_ASSERT_PTR_NOT_NULL(
            strstr(capture.text[1], "{\"name\": \"block\", \"words\": [\"a \\\"b\"], \"set_at\": \"/tmp/"));
    CU_ASSERT_PTR_NOT_NULL(strstr(capture.text[1],
            "{\"name\": \"connect\", \"value\": 10000, \"default\": 10000, \"unit\": \"ms\", "));
    CU_ASSERT_EQUAL(capture.text[1][0], '{');
    CU_ASSERT_STRING_EQUAL(capture.text[1] + strlen(capture.text[1]) - 3, "]}\n");
}

SUITE(admin_command, CASE(statuses_and_texts), CASE(words_and_file), CASE(checking), CASE(printing_options),
        CASE(printing_json))
