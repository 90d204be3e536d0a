// What offline (reading) and offline_repair share.
#pragma once

#include "cache/offline.h"

#define OFFLINE_SHELVES 16
#define OFFLINE_NAME_BYTES 40

struct offline {
    int directory;
    struct super super;
    enum super_found copies[SUPER_COPIES];
    unsigned char *window;
    uint64_t *numbers; // of the segment files, the newest first
    uint64_t count, room;
};

struct scan { // of one segment file
    struct offline *offline;
    const struct offline_watch *watch;
    struct offline_count *totals;
    int fd;
    uint64_t number, size;
    char file[OFFLINE_NAME_BYTES];
    uint64_t window_at, window_bytes; // of the file, in offline->window
    uint64_t end;                     // of the records
    bool is_sealed, is_foreign, is_over;
    uint8_t queue;
    uint64_t sequence, last_sequence; // the highest seen, and what the last label says
    unsigned char *contents;          // the table as it lies there; NULL: none that is whole
    uint64_t lines, line, agreed;
    uint64_t records, problems;
};

void offline_name(uint64_t number, char out[static OFFLINE_NAME_BYTES]);
int offline_list(struct offline *offline); // fills numbers
int offline_scan(struct scan *scan);       // all set to 0 but offline, watch, totals and number. 0 or -errno
