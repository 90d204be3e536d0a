// Between the memory tier and the volumes: what is stored goes to disk by itself, what is looked for comes
// back. No worker waits: what cannot be read at once is read by a volume's threads, and who wants it is
// woken.
//
// An object that lies on disk may be evicted from memory at any time: the entry then no longer counts as
// loaded, and the next look-up reads all heads of the name. A body on disk is loaded in pieces of
// TIER_READ_BYTES, as readers come to them.
#pragma once

#include "cache/body.h"
#include "cache/object.h"

#include <stdbool.h>

struct entry_name;

#define TIER_READ_BYTES (64 << 10)        // a multiple of RECORD_CRC_BYTES
#define TIER_READ_AHEAD_BYTES (256 << 10) // once a reader goes on
#define TIER_DIRTY_PERCENT 25             // of the memory tier, that may wait to be written
#define TIER_DIRTY_LEAST_BYTES (4 << 20)
#define TIER_WRITES_MAX (DISK_QUEUE_MAX / 2) // that may wait: what a queue has no room for is not kept
#define TIER_STOP_MS 20000

// ---- looking up; hold no lock ----

// What was just read, counted: it is not evicted before it has been looked at.
struct tier_pins {
    struct cache_object *objects[INDEX_VARIANTS_MAX];
    unsigned count;
};
void tier_unpin(struct tier_pins *pins); // hold no lock

enum tier_look {
    TIER_KNOWN, // the index has all that is stored under the name
    TIER_WAIT,  // it is being read: `reader` will be woken
};
// Brings what the disk has under the name into the index. With `reader` NULL, or `may_wait` false, nothing is
// begun that would have to be waited for. `pins` are to be put, whatever it returns.
enum tier_look tier_look(struct cache *cache, const struct entry_name *name, const struct moment *now,
        bool may_wait, struct cache_reader *reader, struct tier_pins *pins);
bool tier_may_have(struct cache *cache, const struct entry_name *name); // without I/O
// An unsafe request has made what the disk has under the name invalid. True: what was read of it meanwhile
// may be in memory now.
bool tier_invalidate(struct cache *cache, const struct entry_name *name);
void tier_leave(struct cache_reader *reader); // waits no more

// ---- content ----

// The body has nothing at the reader's offset in memory, but has on disk: brings it, at once or later. False:
// it cannot be had just now.
bool tier_read(struct body *body, struct cache_reader *reader);

// ---- storing; hold no lock ----

// The object has just come into the index. `base`: whose body it has from now on, NULL: it is new.
void tier_stored(struct cache_object *object, struct cache_object *base);
// It is to be confirmed before every use, from now on: its record is to say so.
void tier_contradicted(struct cache_object *object);
// Chunks of the object's body have become full.
void tier_flush(struct cache_object *object);
// What ended without being stored, or was dropped: its body is not to be found on disk any more.
void tier_forget(struct cache_object *object);
// Whether too much waits to be written: `wake` is then called once there is room, as the fill's.
bool tier_is_busy(struct cache_fill *fill, void (*wake)(void *owner), void *owner);
// There is no room in memory: whether something is being written, so that there will be. As above.
bool tier_will_free(struct cache_fill *fill, void (*wake)(void *owner), void *owner);
bool tier_is_writing(struct cache *cache);
void tier_wait_no_more(struct cache_fill *fill);

// Waits until nothing is written or read any more, TIER_STOP_MS at the most. False: something still is.
bool tier_drain(struct cache *cache);
