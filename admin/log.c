#include "admin/log.h"

#include "admin/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 1024

static void write_line(int priority, const char *format, va_list arguments, unsigned held_back) {
    char line[LINE_BYTES];
    size_t used = 0;
    if (getenv("JOURNAL_STREAM"))
        used = (size_t)snprintf(line, sizeof line, "<%d>", priority);
    used += (size_t)snprintf(line + used, sizeof line - used, "weir: ");
    int wrote = vsnprintf(line + used, sizeof line - used - 1, format, arguments);
    used = wrote < 0 ? used : used + (size_t)wrote;
    if (held_back && used < sizeof line - 1)
        used += (size_t)snprintf(
                line + used, sizeof line - used, " (%u more like this held back)", held_back);
    if (used > sizeof line - 1)
        used = sizeof line - 1;
    for (size_t i = 0; i < used; i++) // a line is one line, whatever a peer sent
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = '?';
    line[used++] = '\n';
    ssize_t ignored = write(STDERR_FILENO, line, used);
    (void)ignored;
}

#define WRITE_LINE(priority, held_back)                                                                      \
    do {                                                                                                     \
        va_list arguments;                                                                                   \
        va_start(arguments, format);                                                                         \
        write_line(priority, format, arguments, held_back);                                                  \
        va_end(arguments);                                                                                   \
    } while (0)

void log_error(const char *format, ...) {
    WRITE_LINE(3, 0);
}

void log_warning(const char *format, ...) {
    WRITE_LINE(4, 0);
}

void log_info(const char *format, ...) {
    WRITE_LINE(6, 0);
}

void log_limited(struct log_limit *limit, int64_t interval_ms, const char *format, ...) {
    int64_t now = clock_monotonic_ms();
    int64_t next = atomic_load(&limit->next_at_ms);
    if (now < next || !atomic_compare_exchange_strong(&limit->next_at_ms, &next, now + interval_ms)) {
        atomic_fetch_add(&limit->held_back, 1);
        return;
    }
    WRITE_LINE(4, atomic_exchange(&limit->held_back, 0));
}
