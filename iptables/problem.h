// What went wrong, as a sentence for the admin: what, and the cure. Functions of this folder that meet the
// world return 0 or -errno and leave the sentence here; the command prints it once.
#pragma once

#define PROBLEM_BYTES 2048 // longer sentences are cut

struct problem {
    char text[PROBLEM_BYTES];
};

// Replaces the text and returns -error, so that `return problem_say(...)` reads well.
int problem_say(struct problem *problem, int error, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
