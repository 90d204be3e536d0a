#include "iptables/prompt.h"

#include "admin/clock.h"
#include "admin/command.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static int say_end(enum guard_end end) {
    switch (end) {
    case GUARD_CONFIRMED:
        puts("confirmed: the rules stay");
        return COMMAND_DONE;
    case GUARD_ROLLED_BACK:
        puts("not confirmed: rolled back");
        return COMMAND_PROBLEM;
    case GUARD_FAILED:
        break;
    }
    fputs("weir rules: rolling back failed, see the system log and `weir rules status`\n", stderr);
    return COMMAND_PROBLEM;
}

// True for Enter, y and yes; false for anything else, for the end of the input, and when the time is over.
static bool answer_is_yes(unsigned seconds) {
    char answer[64];
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&input, 1, (int)(seconds * 1000)) != 1)
        return false;
    ssize_t length = read(STDIN_FILENO, answer, sizeof answer - 1);
    if (length <= 0)
        return false;
    answer[length] = 0;
    answer[strcspn(answer, "\r\n")] = 0;
    return !*answer || strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}

int prompt_confirm(struct guard *guard, unsigned seconds) {
    if (!isatty(STDIN_FILENO)) {
        printf("rolled back in %u s, unless you say: weir rules confirm\n", seconds);
        return COMMAND_DONE;
    }
    printf("Do the rules work? Enter within %u s keeps them (from elsewhere: weir rules confirm): ", seconds);
    fflush(stdout);
    int64_t end_at = clock_monotonic_ms() + (int64_t)seconds * 1000;
    if (answer_is_yes(seconds))
        guard_accept(guard);
    else if (clock_monotonic_ms() < end_at)
        guard_refuse(guard);
    return say_end(guard_wait(guard));
}
