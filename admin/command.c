#include "admin/command.h"

#include "admin/nearest.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct command_list {
    const struct command *table;
    size_t count;
};

static bool is_any(const char *word, const char *a, const char *b) {
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

static void print_usage_line(const struct command *command, FILE *out) {
    fprintf(out, "usage: weir %s%s%s\n", command->name, *command->arguments ? " " : "", command->arguments);
}

static void print_usage(struct command_list list, FILE *out) {
    fputs("usage: weir COMMAND [ARGUMENT]...\n\n", out);
    for (size_t i = 0; i < list.count; i++)
        fprintf(out, "  %-8s %s\n", list.table[i].name, list.table[i].meaning);
    fputs("\nEvery command takes -c FILE, the configuration (" CONFIG_DEFAULT_FILE ").\n"
          "weir help COMMAND shows a command's arguments; weir --version the version. See weir(8).\n",
            out);
}

static const struct command *find(struct command_list list, const char *name) {
    for (size_t i = 0; i < list.count; i++)
        if (strcmp(list.table[i].name, name) == 0)
            return &list.table[i];
    return NULL;
}

static int unknown_command(struct command_list list, const char *name) {
    char hint[NEAREST_HINT_BYTES];
    struct nearest nearest = nearest_to(name);
    for (size_t i = 0; i < list.count; i++)
        nearest_offer(&nearest, list.table[i].name);
    if (*name == '-')
        fprintf(stderr, "weir: the command comes first: weir COMMAND %s ...; weir help lists them\n", name);
    else
        fprintf(stderr, "weir: no command is called \"%s\"%s; weir help lists them\n", name,
                nearest_hint(&nearest, hint));
    return COMMAND_USAGE;
}

static int help(struct command_list list, const char *name) {
    const struct command *command = name ? find(list, name) : NULL;
    if (name && !command)
        return unknown_command(list, name);
    if (!command) {
        print_usage(list, stdout);
        return COMMAND_DONE;
    }
    print_usage_line(command, stdout);
    printf("%s\n", command->meaning);
    return COMMAND_DONE;
}

int command_usage_error(const struct command_call *call, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "weir %s: ", call->command->name);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    print_usage_line(call->command, stderr);
    return COMMAND_USAGE;
}

struct config *command_load_config(const struct command_call *call) {
    struct config_errors errors = {0};
    struct config *config = config_load(call->config_file, &errors);
    config_errors_print(&errors, stderr);
    config_errors_fini(&errors);
    return config;
}

// Moves -c FILE into `call` and the other words into call->argv, which has room for all. The exit status, or
// -1 to go on.
static int sort_words(struct command_call *call, int argc, char **argv) {
    for (int i = 0; i < argc; i++) {
        if (is_any(argv[i], "-h", "--help")) {
            print_usage_line(call->command, stdout);
            printf("%s\n", call->command->meaning);
            return COMMAND_DONE;
        }
        if (strcmp(argv[i], "-c") != 0) {
            call->argv[call->argc++] = argv[i];
            continue;
        }
        if (call->has_config_file)
            return command_usage_error(call, "-c stands twice, name one file");
        if (i + 1 == argc || !*argv[i + 1])
            return command_usage_error(call, "-c needs the name of a file behind it");
        call->has_config_file = true;
        call->config_file = argv[++i];
    }
    return -1;
}

static int run(const struct command *command, int argc, char **argv) {
    struct command_call call = {.config_file = CONFIG_DEFAULT_FILE, .command = command};
    call.argv = calloc((size_t)argc + 1, sizeof *call.argv);
    if (!call.argv) {
        fputs("weir: no memory\n", stderr);
        return COMMAND_PROBLEM;
    }
    char **words = call.argv;
    int status = sort_words(&call, argc, argv);
    if (status < 0)
        status = command->run(&call);
    free(words);
    return status;
}

int command_main(const struct command *table, size_t count, int argc, char **argv) {
    struct command_list list = {table, count};
    if (argc < 2) {
        print_usage(list, stderr);
        return COMMAND_USAGE;
    }
    if (is_any(argv[1], "-h", "--help") || strcmp(argv[1], "help") == 0)
        return help(list, argv[2]);
    if (is_any(argv[1], "--version", "-V") || strcmp(argv[1], "version") == 0) {
        puts("weir " WEIR_VERSION);
        return COMMAND_DONE;
    }
    const struct command *command = find(list, argv[1]);
    return command ? run(command, argc - 2, argv + 2) : unknown_command(list, argv[1]);
}
