#include "admin/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void check_failed(const char *file, int line, const char *what) {
    char text[512];
    int length = snprintf(text, sizeof text, "<2>weir: bug at %s:%d: %s\n", file, line, what);
    if (length > (int)sizeof text - 1)
        length = (int)sizeof text - 1;
    ssize_t ignored = write(STDERR_FILENO, text, (size_t)length);
    (void)ignored;
    abort();
}
