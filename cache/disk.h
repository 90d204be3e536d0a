// The volumes of the store as one, and the threads that wait for their disks so that no worker does. One that
// fails or is slow costs its own share of hits: its keys are looked for elsewhere, then at the origin, until
// a probe brings it back.
//
// An object lies in one volume: the usable one of the highest rank for its name (rendezvous hashing by each
// volume's own seed, which its super block keeps beside the UUID, weighted by size), so that a volume that
// comes, goes or changes its size moves only its own share. What lies in another one since then is found
// there, too, and moves when it is next written.
//
// Threads: everything from any thread. What may wait for a disk says so: a worker calls it with `may_wait`
// false, or through a job.
#pragma once

#include "cache/head_record.h"
#include "cache/volume.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#define DISK_VOLUMES_MAX 64
#define DISK_QUEUE_MAX 256 // jobs of one volume and kind that wait; one more is refused

#define DISK_STOP_MS 20000
#define DISK_LOCATION_NONE UINT64_MAX

struct disk;
struct disk_volume; // stays valid, if not in use, until disk_free

struct disk_settings {
    const struct volume_settings *volumes;
    unsigned count;
    unsigned slow_ms; // a job that takes longer, waiting included, takes the volume out; 0: 500
    // Once a volume is recovered, or comes back: what was not found may be there now.
    void (*changed)(void *owner);
    void *owner;
};

// A directory that cannot be used is logged, counted and tried again; the others serve meanwhile. NULL only
// with a count of 0.
struct disk *disk_new(const struct disk_settings *settings);
// Adds, removes and resizes volumes to what `settings` say, while everything runs. A removed one is closed
// once nothing refers to it.
void disk_apply(struct disk *disk, const struct disk_settings *settings);
// No place may be left, and nobody submits any more; waiting jobs are given up and run. Seals and saves.
// Returns within DISK_STOP_MS even when a disk hangs: its threads, and what they hold, are left behind then,
// and go on using what the settings name: false. NULL is allowed.
bool disk_free(struct disk *disk);

// Whose response it is. Views borrowed.
struct disk_name {
    const struct endpoint *destination;
    struct view authority, path;
};

// Where a representation lies: its chunks are found with it. Counted: disk_place_put.
struct disk_place {
    struct disk_volume *volume;
    struct cache_key key; // of the name, in this volume
    uint64_t generation;
};
struct disk_place disk_place_get(const struct disk_place *place); // one more of it
void disk_place_put(struct disk_place *place);                    // idempotent; `volume` NULL is allowed
const char *disk_place_path(const struct disk_place *place);      // of its volume, for as long as it is held
bool disk_place_is_leaving(const struct disk_place *place);       // the volume is closed once nobody has it

// ---- finding ----

// Whether something may be stored under the name: no I/O, no lock. Always false for what no volume in use
// has.
bool disk_may_have(struct disk *disk, const struct disk_name *name);

// A response as it lies on disk.
struct disk_head {
    struct disk_head *next;
    struct stored_head *head; // owned; take it by setting NULL
    struct disk_place place;  // owned; take it by setting volume to NULL
    uint64_t location;        // of the head's record, for disk_hit and disk_drop
    uint64_t sequence;        // of its write
    int64_t body_length;      // of the representation; -1: not known
    bool gives_ranges, is_contradicted;
    bool has_content; // the whole content lies with the head:
    uint32_t content_bytes;
    unsigned char *content; // within `memory`, at its end; NULL when !has_content or empty
    unsigned char *memory;  // owned, malloc; take it by setting NULL
};

// All responses stored under the name, checked and compared in full: of each variant and generation the
// newest, without what was purged; what arrived last comes first. Of one variant in several volumes the one
// that arrived last. Broken records are dropped and counted. 0 and a list (NULL: nothing); -EAGAIN when it
// would wait and may not; -ENOMEM.
int disk_read_heads(struct disk *disk, const struct disk_name *name, const struct head_record_now *now,
        bool may_wait, struct disk_head **heads);
void disk_heads_free(struct disk_head *heads); // NULL is allowed

// ---- content of a large representation, in chunks of RECORD_CHUNK_BYTES ----

bool disk_may_have_chunk(const struct disk_place *place, uint32_t number); // no I/O

// The chunk's content from `offset` within it (a multiple of RECORD_CRC_BYTES) on, at most `room` bytes (a
// multiple, too), checked. *length: how many there are, 0 at or behind its end. *end: where the chunk's
// content ends: RECORD_CHUNK_BYTES but for a representation's last one and one that broke off. 0; -EAGAIN;
// -ENODATA: it is not there (any more): fetch it again.
int disk_read_chunk(const struct disk_place *place, uint32_t number, uint32_t offset, void *out,
        uint32_t room, bool may_wait, uint32_t *length, uint32_t *end);

// ---- writing: all may wait ----

// Where a put of this name would go: submit it there. NULL: nowhere just now.
struct disk_volume *disk_volume_for(struct disk *disk, const struct disk_name *name);

// What a new response is written as. `head` and `record` as head_record_encode has them (record->generation
// is set here when it is 0: a later one is higher; record->body_length when there is content). `content`: the
// whole of at most RECORD_SMALL_BYTES, or count 0 and has_content false for what comes in chunks. Its place,
// counted, becomes *place. 0 or -errno: nothing is stored. -EINVAL: a link-local destination, or what a
// record cannot say; -EFBIG, -ENOSPC, -EIO, -EAGAIN: no volume takes it. *location: DISK_LOCATION_NONE when
// it was pushed out at once.
int disk_put_head(struct disk *disk, struct head_record *record, const struct stored_head *head,
        bool has_content, const struct iovec *content, int count, struct disk_place *place,
        uint64_t *location);
// Another head for the same representation: a 304, or a longer known extent. The one at `location` goes, and
// earlier ones of the same variant (DISK_LOCATION_NONE: those alone). Content that lies with the head is
// kept. -ENODATA: it was purged meanwhile.
int disk_put_update(const struct disk_place *place, const struct head_record *record,
        const struct stored_head *head, uint64_t *location);
// From the chunk's beginning on; an earlier one with less is replaced.
int disk_put_chunk(const struct disk_place *place, uint32_t number, const struct iovec *content, int count);

void disk_hit(const struct disk_place *place, uint64_t location); // of a head: no I/O
void disk_hit_chunk(const struct disk_place *place, uint32_t number);
// The head is not to be found any more, its chunks with it. Durable, too, when `is_lasting` (it has no
// successor whose record would win): waits then, and earlier ones of its variant go as well. Other variants
// stay, but lie elsewhere afterwards.
void disk_drop(const struct disk_place *place, uint64_t location, bool is_lasting);
// The same, durable, for all heads of the name that lie there, up to a write sequence. Waits.
void disk_drop_until(const struct disk_place *place, uint64_t sequence);
// What is stored under the name, in whichever volumes, is found no more from now on. Durable soon: does not
// wait.
void disk_invalidate(struct disk *disk, const struct disk_name *name);
uint64_t disk_sequence(const struct disk_place *place); // of the latest write there

// ---- purging: waits; durable when it returns ----

enum disk_purge { DISK_PURGE_URL, DISK_PURGE_HOST, DISK_PURGE_PREFIX, DISK_PURGE_MASK, DISK_PURGE_ALL };
// URL: authority and path (every destination). HOST: authority. PREFIX: authority and a beginning of the
// path. MASK: an acl mask on "authority/path", in `path`; `matches` judges. What was written up to now and
// matches is gone: it is found no more, and not carried over. 0, or -errno: of a volume out of use, which
// applies it before it serves again.
int disk_purge(struct disk *disk, enum disk_purge kind, struct view authority, struct view path);
// 0, or -errno of the last purge in the first volume that has not got it durably; its path then, cut to
// `size`.
int disk_purge_missed(struct disk *disk, char *path, size_t size);

// ---- jobs ----

enum disk_kind { DISK_READ, DISK_WRITE };

struct disk_job { // in place in its owner, who keeps it until `done` is called or submitting failed
    void (*run)(struct disk_job *job); // on one of the volume's threads. The job must outlive it
    // The volume is slow: whoever waits goes without. At most once, from another thread, before or while
    // `run` runs, which comes all the same. Must not wait.
    void (*give_up)(struct disk_job *job);
    void (*done)(struct disk_job *job); // after `run`; nothing else is called any more: the owner may go
    // private
    struct disk_job *next;
    int64_t since_ms;
    unsigned char state;
};
// False: the queue is full, or the volume out of use; nothing will be called.
bool disk_submit(struct disk_volume *volume, enum disk_kind kind, struct disk_job *job);
// For disk_read_heads: where to submit it: the volume of the name's highest rank that may have it; NULL:
// none.
struct disk_volume *disk_volume_of(struct disk *disk, const struct disk_name *name);

// ---- the whole ----

#define DISK_TROUBLE_BYTES 512
enum disk_state { DISK_LOADING, DISK_READY, DISK_FULL, DISK_SLOW, DISK_OFFLINE };
struct disk_volume_stats {
    char path[256];
    enum disk_state state;
    char trouble[DISK_TROUBLE_BYTES]; // the last one, empty: none
    struct volume_stats volume;
    uint64_t reads, writes, gave_up; // jobs
    unsigned queued;
};
unsigned disk_stats(struct disk *disk, struct disk_volume_stats out[static DISK_VOLUMES_MAX]);
