// The command line: `weir COMMAND ...`. admin/command.tbl names each command, the function that runs it and
// its help; the functions live in the folder that does the work and are bound by the linker, so admin/
// includes nothing of theirs.
#pragma once

enum command_exit {
    COMMAND_DONE = 0,
    COMMAND_PROBLEM = 1, // a bad config, a failed check, a daemon that does not answer
    COMMAND_USAGE = 2,
};

// What every command is called with: the words after its name, `-c FILE` taken out.
struct command_call {
    const char *config_file; // CONFIG_DEFAULT_FILE when -c was not given
    int argc;
    char **argv;
};

#define COMMAND(name, function, arguments, meaning) int function(const struct command_call *call);
#include "admin/command.tbl"

// Finds and runs the command; prints usage for none, for an unknown one and for `help`, `-h`, `--help`,
// `--version`. Returns the exit status.
int command_main(int argc, char **argv);

// Prints what is wrong with the call and how it is written; returns COMMAND_USAGE.
int command_usage_error(const struct command_call *call, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
