// A volume's directory while no weir has it: what lies there, read without a change and trusted in nothing,
// and mended. Everything waits for the disk.
//
// Memory: a window of 4 MiB, a segment's table of contents (32 bytes a record, 40 more while it is written
// anew), and 8 bytes a segment file.
#pragma once

#include "cache/record.h"
#include "cache/super.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct offline;

// Takes the volume's lock. NULL with a sentence in `error` (what, where, what to do): it is no volume,
// another process has it, its format is not known, or both copies of the super block are broken, so that no
// key means anything.
struct offline *offline_open(const char *path, char *error, size_t error_bytes);
// Whether it is not there, or a directory in which no store lies yet.
bool offline_is_empty(const char *path);
void offline_close(struct offline *offline);
const struct super *offline_super(const struct offline *offline);
int offline_directory(const struct offline *offline); // a descriptor

struct offline_record {
    struct record record;
    const unsigned char *bytes; // all of it, header first: record_bytes(); checked, until the visit returns
    uint64_t segment, offset;   // where it lies
};

struct offline_watch { // either function may be NULL
    // Something is wrong: in `file` (below the directory), at `offset`.
    void (*tell)(void *context, const char *file, uint64_t offset, const char *what);
    // Every good record: its checksums are right and what follows its content is zeros, a head decodes, names
    // the record's generation and has the key that its URL makes. False ends the walk.
    bool (*visit)(void *context, const struct offline_record *record);
    void *context;
};

struct offline_count {
    uint64_t segments, records, bytes; // `bytes` read
    uint64_t problems;
};

// Every segment, the newest first. 0, or -errno: the files could not be listed.
int offline_walk(struct offline *offline, const struct offline_watch *watch, struct offline_count *count);
// The same, and the super block and the saved index.
int offline_check(struct offline *offline, const struct offline_watch *watch, struct offline_count *count);

// A record that was visited, read again and checked again. 0 or -errno.
int offline_read(struct offline *offline, uint64_t segment, uint64_t offset, unsigned char *out,
        struct record *record); // SEGMENT_RECORD_MAXIMUM of room

// What offline_check finds is made good: a segment with something broken in it is written anew from its good
// records beside the old one, and takes its place in one step; one without any is deleted. The saved index
// goes if anything changed: it is made anew at the next start. `watch->tell` hears what was wrong, then
// what was done. 0, or -errno of what could not be done: all that is left is as it was.
int offline_repair(struct offline *offline, const struct offline_watch *watch, struct offline_count *count);
