// A volume of the store: one directory on one disk, independent of the others. Segment files in a pool that
// S3-FIFO shares between a small and a main queue; an index in memory; a journal of purges. One failure
// domain: a volume that fails costs its own share of hits.
//
// Threads: volume_find and volume_hit from any thread, without a lock. All that waits for the disk is done by
// the volume's own threads or by the caller's, as each function says.
#pragma once

#include "cache/segment.h"
#include "cache/table.h"

#include <stdbool.h>
#include <stdint.h>

struct volume;

#define VOLUME_BYTES_MINIMUM (UINT64_C(4) << 20)

struct volume_settings {
    const char *path;
    uint64_t bytes; // a hard limit on what the directory holds, all overhead included
    // 0: bytes / 2048 within 4 MiB ... 1 GiB, and at least 64 segments: fewer cost hits. A record that is
    // longer gets a segment of its own.
    uint64_t segment_bytes;
    uint64_t objects;       // that the index has room for; 0: bytes / 32 KiB
    unsigned small_percent; // of the pool for the small queue; 0: 20
    unsigned probe_ms;      // how often a broken or full disk is tried again; 0: 5000
};

enum volume_state {
    VOLUME_LOADING, // serves what is loaded so far
    VOLUME_READY,
    VOLUME_FULL,   // nothing more can be written now; reads go on
    VOLUME_BROKEN, // out of use; a probe brings it back
};

// Opens or makes the directory: locks it, reads the super block, sets aside what it does not understand, and
// begins to load the index, or to recover it from the segments, in the volume's own thread. NULL with a
// sentence in `error` (what, where, what to do).
struct volume *volume_open(const struct volume_settings *settings, char *error, size_t error_bytes);
// Seals, saves the index, unlocks. Nobody uses the volume or a segment of it any more.
void volume_close(struct volume *volume);
// What keys are to be made with, so that they are found after a restart.
uint64_t volume_seed(const struct volume *volume);

// Where the candidates for a key lie: records of this key, or of another one, or none at all. Whoever reads
// one compares. *segment of each is counted: segment_put it. None while the volume is broken.
struct volume_place {
    struct segment *segment;
    uint64_t offset;   // bytes
    uint64_t location; // for volume_hit
};
unsigned volume_find(
        struct volume *volume, struct cache_key key, struct volume_place places[static TABLE_CANDIDATES_MAX]);
void volume_hit(struct volume *volume, struct cache_key key, uint64_t location);

// Appends a record (sequence is set here) and enters it into the index under record->key, which for a chunk
// is the chunk's own; `payload` as segment_append has it. Seldom waits for room, for two seconds at most, and
// for the disk. 0; -EAGAIN: still loading; -EFBIG: more than a quarter of the volume; -ENOSPC: no room just
// now; -EIO ...: nothing is stored then.
int volume_put(struct volume *volume, struct record *record, const struct iovec *payload, int count);
void volume_drop(struct volume *volume, struct cache_key key, uint64_t location);

// Whoever meets an error in a segment (-errno), or a record that is not what was written (-EBADMSG), drops
// the entry and says so: it is counted, and too many errors break the volume.
void volume_complain(struct volume *volume, int error);

struct volume_stats {
    enum volume_state state;
    uint64_t bytes, limit_bytes, segments, objects, index_bytes;
    uint64_t bytes_put, bytes_written; // asked for, and with what was carried over
    uint64_t reclaimed, carried, broken_records, errors;
};
// `bytes` is what the directory takes, `limit_bytes` what it may take now: less while the disk is full.
void volume_stats(struct volume *volume, struct volume_stats *stats);
