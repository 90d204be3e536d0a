// A volume of the store: one directory on one disk, independent of the others. Segment files in a pool that
// S3-FIFO shares between a small and a main queue; an index in memory; a journal of purges. One failure
// domain: a volume that fails costs its own share of hits.
//
// Threads: everything from any thread. volume_find, volume_hit, volume_is_purged and volume_sequence wait for
// no disk, whatever hangs elsewhere. All that waits for the disk is done by the volume's own thread or by the
// caller's, as each function says.
#pragma once

#include "admin/view.h"
#include "cache/segment.h"
#include "cache/table.h"

#include <stdbool.h>
#include <stdint.h>

struct volume;

#define VOLUME_BYTES_MINIMUM (UINT64_C(4) << 20)
#define VOLUME_PUT_WAIT_MS 250

// What becomes of a head's record when its segment is reclaimed.
enum volume_verdict {
    VOLUME_BY_HITS, // carried over if it was hit
    VOLUME_DROP,    // not carried over, hit or not
    VOLUME_KEEP,    // carried over as if it had been hit
};
struct volume_judged {
    const struct record *record; // a RECORD_HEAD or RECORD_UPDATE, its checksums verified
    struct view head;            // its head_bytes, for head_record_read or head_record_decode
    uint8_t hits;                // since it came into its queue, at most TABLE_HITS_MAXIMUM
    bool is_main;                // it has been carried over before
};

struct volume_settings {
    const char *path;
    uint64_t bytes; // a hard limit on what the directory holds, all overhead included
    // 0: bytes / 2048 within 4 MiB ... 1 GiB, and at least 64 segments: fewer cost hits. A record that is
    // longer gets a segment of its own.
    uint64_t segment_bytes;
    // That the index has room for: 13.4 bytes each, and 2 of ghosts. 0: bytes / 8 KiB, at most 128 Mi (2 GiB
    // of index). More than there are only lets the least hit go.
    uint64_t objects;
    unsigned small_percent; // of the pool for the small queue; 0: 20
    unsigned probe_ms;      // how often a broken or full disk is tried again; 0: 5000
    // wear: what is new stays in so many bytes of memory (its small queue), and is written only once it was
    // hit, or came before; a record of more than a quarter of them at once. What was not hit by then is lost
    // at a stop. At least 1 MiB, taken little by little, and counted as the kernel's, not as resident. 0: the
    // small queue lies on the disk.
    uint64_t small_memory_bytes;

    // All below NULL: not asked. Called from any thread, `matches` from whoever reads a head, `keep` from the
    // volume's own.
    void *context;
    // Whether an ACL mask matches "authority/path". Without it a purge by mask is refused.
    bool (*matches)(void *context, struct view mask, struct view authority, struct view path);
    // Heads are judged when their segment is reclaimed; chunks follow their own hits. Without
    // `judges_unhit` only those that were hit are asked for: the others need not be read then.
    enum volume_verdict (*keep)(void *context, const struct volume_judged *judged);
    bool judges_unhit;
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
// Which volume it is, wherever its directory lies: for rendezvous hashing.
uint64_t volume_uuid(const struct volume *volume);
// The write sequence of the latest record.
uint64_t volume_sequence(const struct volume *volume);

// The limit becomes `bytes`, at once: what is above it is reclaimed in the background, puts go on meanwhile
// as there is room. Segment size, index and ghosts stay as they are until the next start: a volume that grew
// has room in its index for as many objects as before, and the least hit go. 0, or -EINVAL: below
// VOLUME_BYTES_MINIMUM, or more than 8 times what it was opened with.
int volume_resize(struct volume *volume, uint64_t bytes);

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
// is the chunk's own; `payload` as segment_append has it. Waits for a write, seldom for room, for
// VOLUME_PUT_WAIT_MS at most; never for an fsync. A record that was put is safe from a power cut once its
// segment is sealed. 0; -EAGAIN: still loading; -EFBIG: more than a quarter of the volume; -ENOSPC: no room
// just now; -EIO ...: nothing is stored then.
int volume_put(struct volume *volume, struct record *record, const struct iovec *payload, int count);
void volume_drop(struct volume *volume, struct cache_key key, uint64_t location);

// Whoever meets an error in a segment (-errno), or a record that is not what was written (-EBADMSG), drops
// the entry and says so: it is counted, and too many errors break the volume.
void volume_complain(struct volume *volume, int error);

// ---- purging ----
//
// A purge is a rule with the write sequence of its moment: every record of that sequence or an earlier one
// that it matches is gone. A carried record keeps its sequence. Rules are kept in memory and in `purge.log`
// and retired once no segment is older than they are. Their number is bounded by what the log may take (a
// 64th of the volume, 64 KiB ... 1 MiB): beyond it the oldest become coarser: a URL or a prefix its host, all
// others everything up to that sequence.

enum volume_purge {
    VOLUME_PURGE_URL = 1, // authority and path, to whatever destination
    VOLUME_PURGE_HOST,    // authority
    VOLUME_PURGE_PREFIX,  // authority and a beginning of the path
    VOLUME_PURGE_MASK,    // a mask, in `path`: see volume_settings.matches
    VOLUME_PURGE_ALL,
    VOLUME_PURGE_KEY, // volume_purge_key alone
};
// Found no more from now on, durable on return: appends to the log and waits for its fsync; the time it takes
// does not depend on what is stored. 0; -EINVAL: no mask can be judged here, or one longer than 4 KiB;
// another -errno: it holds, but is not written yet: it is tried again, and before a volume that is out of use
// serves again.
int volume_purge(struct volume *volume, enum volume_purge kind, struct view authority, struct view path);
// A tombstone: the records of this key up to `sequence`, heads of all variants.
int volume_purge_key(struct volume *volume, struct cache_key key, uint64_t sequence);
// Whether what a head's record of this key, URL and sequence says is gone. Whoever reads a head asks. In O(1)
// but for at most 128 prefixes and masks; cheap when there was no purge since the record.
bool volume_is_purged(struct volume *volume, struct cache_key key, struct view authority, struct view path,
        uint64_t sequence);

struct volume_stats {
    enum volume_state state;
    uint64_t bytes, limit_bytes, segments, objects, index_bytes;
    uint64_t memory_bytes;             // of small_memory_bytes
    uint64_t rules;                    // purges that still count
    uint64_t bytes_put, bytes_written; // asked for, and with what was carried over
    uint64_t reclaimed, carried, broken_records, errors;
};
// `bytes` is what the directory takes, `limit_bytes` what it may take now: less while the disk is full.
void volume_stats(struct volume *volume, struct volume_stats *stats);
