// Always-on checks: a bug ends the process, in release builds too. The supervisor restarts the daemon and the
// gate lets traffic pass meanwhile. Never use these for input or for a failure of the world.
#pragma once

// Prints what was violated and where, then aborts. Does not return, allocates nothing.
_Noreturn void check_failed(const char *file, int line, const char *what);

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (__builtin_expect(!(condition), 0))                                                               \
            check_failed(__FILE__, __LINE__, #condition);                                                    \
    } while (0)

#define UNREACHABLE(why) check_failed(__FILE__, __LINE__, "unreachable: " why)
