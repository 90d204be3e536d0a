#include "iptables/problem.h"

#include <stdarg.h>
#include <stdio.h>

int problem_say(struct problem *problem, int error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem->text, sizeof problem->text, format, arguments);
    va_end(arguments);
    return -error;
}
