// The command line: `weir COMMAND ...`. admin/command.tbl names each command, the function that runs it and
// its help; the functions live in the folder that does the work and are bound by the linker (in
// admin/main.c), so admin/ includes nothing of theirs.
#pragma once

#include "admin/config.h"

#include <stdbool.h>
#include <stddef.h>

enum command_exit {
    COMMAND_DONE = 0,
    COMMAND_PROBLEM = 1, // a bad config, a failed check, a daemon that does not answer
    COMMAND_USAGE = 2,
};

struct command_call;
typedef int command_function(const struct command_call *call); // returns enum command_exit

struct command {
    const char *name;
    command_function *run;
    const char *arguments; // as the usage line shows them
    const char *meaning;
};

// What every command is called with: the words after its name, `-c FILE` taken out.
struct command_call {
    const char *config_file; // CONFIG_DEFAULT_FILE when -c was not given
    bool has_config_file;    // -c was given
    int argc;
    char **argv; // argv[argc] is NULL
    const struct command *command;
};

#define COMMAND(name, function, arguments, meaning) command_function function;
#include "admin/command.tbl"

// Finds and runs the command of `table`; prints usage for none, for an unknown one and for `help`, `-h`,
// `--help`, `--version`, and for COMMAND -h or --help. Returns the exit status.
int command_main(const struct command *table, size_t count, int argc, char **argv);

// Prints what is wrong with the call and how it is written; returns COMMAND_USAGE.
int command_usage_error(const struct command_call *call, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

// The configuration the call names. NULL: its errors are on standard error; return COMMAND_PROBLEM.
struct config *command_load_config(const struct command_call *call);
