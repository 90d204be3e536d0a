// A body of checks in a network namespace of its own, in a process of its own.
#pragma once

#include <stdio.h>

// In a body: leaves it with the line that failed.
#define REQUIRE(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                  \
            return __LINE__;                                                                                 \
        }                                                                                                    \
    } while (0)

// True when `body` returned 0 in a namespace whose loopback is up. Needs root or user namespaces.
int netns_passes(int (*body)(void));
// Runs a shell command there; true when it succeeded.
int netns_command(const char *command);
