#include "intercept/notify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <systemd/sd-daemon.h>
#include <time.h>

void notify_ready(void) {
    sd_notify(0, "READY=1");
}

void notify_reloading(void) {
    struct timespec now; // Type=notify-reload compares it with the time of its signal
    clock_gettime(CLOCK_MONOTONIC, &now);
    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
}

void notify_stopping(void) {
    sd_notify(0, "STOPPING=1");
}

void notify_status(const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    sd_notifyf(0, "STATUS=%s", text);
}

void notify_alive(void) {
    sd_notify(0, "WATCHDOG=1");
}

int64_t notify_watchdog_ms(void) {
    uint64_t interval_us = 0;
    return sd_watchdog_enabled(0, &interval_us) > 0 ? (int64_t)(interval_us / 1000) : 0;
}
