// The daemon's own messages, to standard error, one line each; with a syslog priority prefix `<N>` when
// standard error is the journal (JOURNAL_STREAM is set), plain otherwise. Safe from any thread; one write(2)
// a line of at most 1 KiB (longer ones are cut).
#pragma once

#include <stdatomic.h>
#include <stdint.h>

void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

// At most one line an interval; how many were held back is said with the next one. Static storage, zeroed.
struct log_limit {
    _Atomic int64_t next_at_ms; // monotonic
    _Atomic unsigned held_back;
};

// Like log_warning, unless `limit` spoke within the last `interval_ms`.
void log_limited(struct log_limit *limit, int64_t interval_ms, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
