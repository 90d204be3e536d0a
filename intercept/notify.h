// What the service manager is told (sd_notify(3)). The only door to libsystemd. Every call does nothing when
// nobody asked (NOTIFY_SOCKET, WATCHDOG_USEC).
#pragma once

#include <stdint.h>

void notify_ready(void);
void notify_reloading(void); // notify_ready ends it
void notify_stopping(void);
void notify_status(const char *format, ...) __attribute__((format(printf, 1, 2)));

void notify_alive(void);
// Within how many milliseconds notify_alive must come again and again; 0: nobody waits for it.
int64_t notify_watchdog_ms(void);
