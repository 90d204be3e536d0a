// Runs a program (nft, iptables-restore, ip, ...) without a shell and keeps what it says.
#pragma once

#include "iptables/problem.h"

#include <stddef.h>

#define TOOL_OUTPUT_BYTES (32u << 20) // a ruleset listing longer than this is refused
#define TOOL_SECONDS 60               // a program that takes longer is killed

struct tool_output {
    int status; // exit status; 128 + signal when a signal ended it
    char *out;  // NUL-terminated, never NULL after success
    char *err;
};

// `argv` ends with NULL; argv[0] is looked up in PATH. `input` (or NULL for none) becomes its standard input,
// as a whole: it lies in memory of its own before the program starts, so that the death of this process
// cannot cut it short. Returns 0 when the program ran, whatever its exit status; -ENOENT when it is not
// installed; else -errno. With 0, and only then, the caller owns `output`.
int tool_run(
        const char *const argv[], const char *input, struct tool_output *output, struct problem *problem);
void tool_output_fini(struct tool_output *output);

// The same where only success will do: an exit status other than 0 is -EIO with the program's first line of
// complaint in `problem`. `out` (may be NULL) gets the standard output, owned by the caller.
int tool_demand(const char *const argv[], const char *input, char **out, struct problem *problem);

// The first line that is not blank, cut to fit `line`.
void tool_first_line(const char *text, char *line, size_t size);
