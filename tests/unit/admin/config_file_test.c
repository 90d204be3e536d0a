// Files that include files, in a folder of the test's own.
#include "admin/config.h"
#include "tests/unit/unit.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static char *made[512]; // paths to take away again, newest last
static size_t made_count;

static const char *path_of(const char *name) {
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        abort();
    made[made_count++] = path;
    return path;
}

static void make_folder(const char *name) {
    CU_ASSERT_EQUAL_FATAL(mkdir(path_of(name), 0700), 0);
}

static const char *make_file(const char *name, const char *text) {
    const char *path = path_of(name);
    FILE *out = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    fputs(text, out);
    CU_ASSERT_EQUAL(fclose(out), 0);
    return path;
}

static void begin(void) {
    strcpy(folder, "/tmp/weir-config-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
}

static void end(void) {
    while (made_count) {
        char *path = made[--made_count];
        CU_ASSERT_EQUAL(remove(path), 0);
        free(path);
    }
    CU_ASSERT_EQUAL(rmdir(folder), 0);
}

static struct config *accepted(const char *file) {
    struct config_errors errors = {0};
    struct config *config = config_load(file, &errors);
    if (!config)
        fprintf(stderr, "%s\n", errors.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(config);
    CU_ASSERT_EQUAL(errors.count, 0);
    return config;
}

// Refused with one error, which is `expected` with every % put as the test's folder.
static void refused(const char *file, const char *expected) {
    struct config_errors errors = {0};
    char text[2048] = "";
    CU_ASSERT_PTR_NULL(config_load(file, &errors));
    for (; *expected; expected++)
        if (*expected == '%')
            strcat(text, folder);
        else
            strncat(text, expected, 1);
    bool same = errors.text && strcmp(errors.text, text) == 0;
    if (!same)
        fprintf(stderr, "%s instead of %s", errors.text, text);
    CU_ASSERT_TRUE(same);
    config_errors_fini(&errors);
}

static void relative_in_name_order(void) {
    begin();
    make_folder("etc");
    make_folder("etc/a[b]*d"); // the including file's own folder is no pattern
    make_folder("etc/a[b]*d/more");
    make_file("etc/a[b]*d/more/2.conf", "block two\n");
    make_file("etc/a[b]*d/more/1.conf", "block one\ninclude deep\n");
    make_file("etc/a[b]*d/more/deep", "block deep # no newline at the end");
    make_file("etc/a[b]*d/more/3.txt", "nonsense\n");
    const char *top = make_file("etc/a[b]*d/top", "block before\ninclude more/?.conf\nblock after\n"
                                                  "include none/*.conf\n");
    struct config *config = accepted(top);
    const char *expected[] = {"before", "one", "deep", "two", "after"};
    CU_ASSERT_TRUE_FATAL(config->directive_count >= 5);
    for (size_t i = 0; i < 5; i++)
        CU_ASSERT_STRING_EQUAL(config->directives[i].words[0].text, expected[i]);
    CU_ASSERT_STRING_EQUAL(strrchr(config->directives[2].file, '/'), "/deep");
    CU_ASSERT_STRING_EQUAL(config->file, top);
    config_free(config);
    end();
}

static void errors_name_the_file(void) {
    begin();
    make_file("part", "# one\nworkers 1\nnonsense\n");
    refused(make_file("top", "include part\n"),
            "%/part:3:1: no directive is called \"nonsense\", correct it or take the line out\n");
    refused(make_file("twice", "\n  workers 2\ninclude ./twice2\n"),
            "%/twice:3:9: %/./twice2 cannot be read (No such file or directory), create it or correct its "
            "name and permissions\n");
    make_file("once", "workers 1\n");
    refused(make_file("both", "  workers 2\ninclude once\n"),
            "%/once:1:1: workers is set already at %/both:1:3, take one of the two out\n");
    end();
}

static void unreadable(void) {
    begin();
    make_folder("sub");
    refused(path_of("sub"),
            "%/sub:1:1: %/sub cannot be read (Is a directory), create it or correct its name and "
            "permissions\n");
    free(made[--made_count]); // named twice
    refused(make_file("top", "include sub\n"), "%/top:1:9: %/sub is no regular file, name files alone\n");
    const char *pipe = path_of("pipe");
    CU_ASSERT_EQUAL(mkfifo(pipe, 0600), 0);
    refused(make_file("piped", "include pipe\n"),
            "%/piped:1:9: %/pipe is no regular file, name files alone\n");
    end();
}

static void cycles(void) {
    begin();
    make_file("self", "include self\n");
    refused(made[0], "%/self:1:9: %/self includes itself, take one include out\n");
    make_file("a", "include b\n");
    make_file("b", "include ../x/./c\n");
    make_folder("x");
    make_file("x/c", "include ../a\n");
    make_file("bb", "include x/c\n");
    make_file("aa", "include x/../bb\n");
    refused(made[1], "%/b:1:9: %/../x/./c cannot be read (No such file or directory), create it or correct "
                     "its name and permissions\n");
    make_file("start", "include x/d\n");
    make_file("x/d", "include ../mid\n");
    make_file("mid", "include [s]tart\n");
    refused(made[made_count - 3], "%/x/../mid:1:9: %/x/../start includes itself, take one include out\n");
    end();
}

static void too_deep(void) {
    char name[16], text[32];
    begin();
    for (int i = 0; i < 18; i++) {
        snprintf(name, sizeof name, "f%d", i);
        snprintf(text, sizeof text, "include f%d\n", i + 1);
        make_file(name, text);
    }
    make_file("f18", "");
    struct config *config = accepted(made[3]); // f3 to f18: 16 files
    config_free(config);
    refused(made[2], "%/f17:1:9: %/f18 is the 17th file within one another, include it from higher up\n");
    end();
}

static void too_many(void) {
    char name[16];
    begin();
    for (int i = 0; i < 256; i++) {
        snprintf(name, sizeof name, "part%03d", i);
        make_file(name, "");
    }
    refused(make_file("top", "include part*\n"),
            "%/top:1:9: %/part255 is the 257th file, put some of them together\n");
    make_file("fits", "include part0*\ninclude part1*\n");
    config_free(accepted(made[made_count - 1]));
    end();
}

static void too_large(void) {
    begin();
    const char *top = make_file("top", "include large\n");
    const char *large = make_file("large", "");
    CU_ASSERT_EQUAL(truncate(large, CONFIG_BYTES_MAXIMUM), 0);
    refused(top, "%/top:1:9: %/large makes the configuration larger than 32M, make it smaller\n");
    end();
}

// The example that is installed: as it is, and with every "#directive" line in force.
static void example(void) {
    char text[16384] = "";
    size_t used = 0;
    bool after_newline = true;
    begin();
    config_free(accepted("docs/weir.conf.example"));
    FILE *in = fopen("docs/weir.conf.example", "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(in);
    for (int byte = fgetc(in); byte != EOF && used < sizeof text - 1; byte = fgetc(in)) {
        int next = fgetc(in);
        ungetc(next, in);
        if (!(byte == '#' && after_newline && next >= 'a' && next <= 'z'))
            text[used++] = (char)byte;
        after_newline = byte == '\n';
    }
    CU_ASSERT_TRUE(used < sizeof text - 1);
    fclose(in);
    struct config *config = accepted(make_file("example", text));
    for (int id = 0; id < DIRECTIVE_COUNT; id++) { // nothing is left out of it
        bool is_there = config->set_by[id] || id == DIRECTIVE_include || id == DIRECTIVE_timeout;
        for (size_t i = 0; i < config->directive_count; i++)
            is_there = is_there || (int)config->directives[i].id == id;
        CU_ASSERT_TRUE(is_there);
    }
    CU_ASSERT_PTR_NOT_NULL(config->timeout_set_by[TIMEOUT_drain]);
    config_free(config);
    end();
}

SUITE(admin_config_file, CASE(example), CASE(relative_in_name_order), CASE(errors_name_the_file),
        CASE(unreadable), CASE(cycles), CASE(too_deep), CASE(too_many), CASE(too_large))
