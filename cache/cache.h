// The store: one for the whole process, shared by all workers. A response arrives through a *fill* and is
// read through *readers*; any number of readers, on any worker, may read while the fill still runs. A
// response that may not be stored takes the same path through an anonymous fill (a stream), so that delivery
// knows one source only.
//
// Threads: every function here may be called from any thread; one fill or one reader is used by one thread at
// a time. Locks are held for a few instructions, never across I/O. Time comes in as an argument.
#pragma once

#include "admin/address.h"
#include "admin/clock.h"
#include "admin/view.h"
#include "cache/key.h"
#include "cache/rules.h"
#include "http/head.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct cache;
struct disk;
struct cache_object; // a response, whole or arriving; counted by its readers, its fill and the store's index
struct chunk;
struct load;
struct cache_fill; // the one producer of an object

struct cache_limits {
    uint64_t memory_bytes;         // everything stored, overhead included; 0: nothing is stored
    uint64_t minimum_object_bytes; // bodies
    uint64_t maximum_object_bytes; // 0: a quarter of memory_bytes
    bool has_disk;                 // there are volumes: a body may be larger than the memory
    uint32_t window_bytes;         // what a stream holds ahead of its slowest reader; 0: 64 KiB
};

struct cache *cache_new(const struct cache_limits *limits);
void cache_set_limits(struct cache *cache, const struct cache_limits *limits); // evicts down to them
// What is stored goes to the volumes from now on, which outlive the cache. `boot` names the machine's start
// since which the steady clock counts. Once; from any thread.
void cache_leave_volumes(struct cache *cache); // after disk_apply: lets go of those that were taken out
void cache_use_disk(struct cache *cache, struct disk *disk, uint32_t boot);
bool cache_has_disk(struct cache *cache);
void cache_free(struct cache *cache); // no fill and no reader may be left

// A delivery's place in an object. In place, in the session; zero it before the first use. The object's head
// and the bytes between the reader's offset and the last peek stay where they are until advance or detach.
struct cache_reader {
    // Called once after READ_WAIT, from whatever thread made progress, possibly with the object's lock held:
    // it must only record the fact and wake the owner's loop, and call nothing of this header. Set before
    // attaching.
    void (*wake)(struct cache_reader *reader);
    // private
    struct cache_object *object;
    uint64_t offset;
    struct cache_reader *next;
    struct cache_reader **link;
    struct chunk *chunk;                         // where `offset` lies, counted; NULL: not looked up
    uint64_t run_end;                            // of the bytes there that follow one another
    struct cache_reader *wait_next, **wait_link; // among those who wait for content
    bool awaits;                                 // by the body's lock
    bool has_waited;                             // for content
    uint64_t disk_next;                          // where the last piece read from a disk ends
    struct load *load;                           // what it waits for in the look-up, by the shard's lock
    struct cache *load_cache;
    struct cache_key load_key;
    unsigned char role;
    unsigned char source; // enum cache_source, as far as the lookup or what it follows decided
    const char *reason;
    bool has_head; // was given one
    bool linked;   // among the object's readers; one of a whole object is not
    bool waiting;
    bool is_cut;  // it held up others for too long
    bool is_left; // so it did, and goes on at its own pace
};

// What a request asks for. All views are borrowed for the call.
struct cache_query {
    const struct http_head *head;
    struct endpoint destination; // original destination: the scope, unless is_verified
    // The name (authority without its port) has this address by a DNS that is trusted, and the authority's
    // port is the destination's: what is stored is shared by all addresses of the name (name scope). Decided
    // once a request, so that every call with its query means the same scope.
    bool is_verified;
    bool is_plain; // it sends nothing unkeyed that could have changed the response: it may fill name scope
    struct view authority; // normalised Host, http/target.h
    struct view path;      // path and query
    struct moment now;
    const struct cache_rules *rules; // of this URL; NULL: the standards alone
    bool store_allowed;              // false: no_cache, a body in the request...: LOOKUP_PASS
    bool is_offline;                 // nothing may be asked of the origin
    bool is_again;   // has waited for another request's head in vain: does not wait for one again
    bool skips_disk; // what is on a disk is not waited for: never LOOKUP_WAIT
};

enum lookup {
    LOOKUP_HIT,   // reader attached to an object that may be used as it is. With *fill set it is past its
                  // lifetime and may be used while it is refreshed [RFC 5861 §3]: the caller fetches through
                  // it, and has no reader there
    LOOKUP_STALE, // what is stored must be confirmed first: reader attached to a new fill; the caller fetches
                  // with cache_fill_fields() through it, and a 304 makes it read what is stored
    LOOKUP_JOIN,  // reader attached to a fill that still runs; while its head is not there, the head decides
                  // (cache_reader_head)
    LOOKUP_MISS,  // reader attached to a new fill; the caller fetches through `fill`, with
                  // cache_fill_fields() when there are any (of other variants)
    LOOKUP_PASS,  // this request is not for the store (method, no_cache, its own no-store ...);
                  // reader attached to a new stream; the caller fetches through `fill`
    LOOKUP_WAIT, // what is stored under the name is being read from a disk: the reader's wake is called once,
                 // soon, whatever comes of it; then look up again with the same reader. Detach it to stop
                 // waiting
};

// Looks up, and attaches `reader`, which must be detached. `*fill` is set (owned by the caller, who ends it
// with finish, abandon or fail) for STALE, MISS and PASS, and for a HIT to be refreshed; NULL else. `*reason`
// becomes a static word for the log: "fresh", "expired", "absent", "no-store"... Never fails: without any
// memory at all it aborts (CHECK). Nothing usable, and the origin may not be asked: LOOKUP_PASS with reason
// "only-if-cached" or "offline" and *fill NULL: answer 504.
enum lookup cache_lookup(struct cache *cache, const struct cache_query *query, struct cache_reader *reader,
        struct cache_fill **fill, const char **reason);

// Detaches `reader` from what it has, and attaches it to a new stream that is never stored: for a waiter
// whose fill turned out not to be for it.
void cache_stream(struct cache *cache, struct cache_reader *reader, struct cache_fill **fill);

// ---- the producer ----

enum fill_kind {
    FILL_STORE,  // goes on; will be stored when it finishes
    FILL_STREAM, // goes on; will not be stored: joiners without the head are told READ_GONE and go on their
                 // own, and for a few seconds the next requests for the URL wait for no other's head
    FILL_NOT_MODIFIED, // the response was a 304 that confirmed the stored object: every reader of the fill
                       // now reads that, with the head freshened; the caller ends the fill with finish
    FILL_STALE, // the response tells of trouble, and what is stored may stand in for it [RFC 5861 §4]: every
                // reader now reads that; the caller ends the fill with finish and drops the body
    FILL_AGAIN, // an answer that is none to what the store has asked: nothing has changed. The caller sends
                // the request again with what cache_fill_fields() says now, the client's own range or
                // nothing, and calls this again with the answer
};

struct cache_response {
    const struct http_head *head; // copied: hop-by-hop fields, Content-Length framing aside, are left out
    int64_t content_length;       // -1 when not known in advance
    struct moment request_at;     // when the request was sent and when the head arrived [RFC 9111 §4.2.3]
    struct moment response_at;
    const struct cache_rules *rules; // as in the query
    bool has_body;                   // false: HEAD, 204, 304...
};

// Called once, with the final (not interim) response head. `*reason` becomes a static word for the log.
enum fill_kind cache_fill_head(
        struct cache_fill *fill, const struct cache_response *response, const char **reason);

// How many bytes append takes now. 0: wait; `wake` is called once when there is room, as cache_reader's is,
// and not after finish or abandon. A fill that stores has room as long as the store has; one that outgrows
// it, or is purged, becomes a stream. A stream holds a window ahead of its slowest reader, who thereby paces
// the others: what has arrived stays until all have passed it. There is room again only when a quarter of the
// window is free. When nobody reads a stream any more, `wake` is called, and what is appended from then on is
// dropped.
size_t cache_fill_room(struct cache_fill *fill, void (*wake)(void *owner), void *owner);
// Copies; `length` is at most the room just told. What goes beyond an announced end is dropped, and the fill
// ends as one that broke off.
void cache_fill_append(struct cache_fill *fill, const void *data, size_t length);
// For a fill that has had no room for too long: cuts off (READ_BROKEN, each is woken) the readers that hold
// it up, as long as another has taken all there is and waits for more. How many; 0: nobody waits for them.
// Those who can ask the origin for what they miss are waited for no more instead.
unsigned cache_fill_shed(struct cache_fill *fill);
// The message ended as its framing says. Consumes the fill. What does not match the announced length is an
// abandon.
void cache_fill_finish(struct cache_fill *fill);
// Cut short, refused or given up; without a head: there will be none. Readers get READ_BROKEN after what
// arrived, those who have not taken the head READ_GONE, the producer's own aside; never stored; a stale
// object it was to replace stays, as it does on an answer that tells of the origin's trouble (5xx). Consumes
// the fill.
void cache_fill_abandon(struct cache_fill *fill);
// As abandon, but because the origin could not be reached or broke off: what is stored is read in its place
// where the standards allow it to a disconnected cache [RFC 9111 §4.2.4]. True when it is.
bool cache_fill_fail(struct cache_fill *fill);
// Whether something is stored for its request, fit or not to stand in: without, a failure is the origin's
// alone; with one that must be confirmed, it is that of asking [RFC 9111 §5.2.2.2].
bool cache_fill_confirms(const struct cache_fill *fill);
// Readers attached now. 0: nobody waits for it.
unsigned cache_fill_readers(struct cache_fill *fill);
// Before it is abandoned for want of readers: nobody can come to it any more. False, and nothing has changed,
// when somebody reads it by now.
bool cache_fill_leave(struct cache_fill *fill);
// Whether it will be stored: for deciding whether to go on for nobody.
bool cache_fill_stores(const struct cache_fill *fill);

// What the store asks of the origin in place of the request's own conditions and range, as whole field lines:
// all validators of all stored variants ("If-None-Match: ...\r\n"), or the range that is missing (Range,
// If-Range). Valid until the fill ends; empty: the request goes out as the client sent it.
struct view cache_fill_fields(const struct cache_fill *fill);

// ---- the reader ----

enum read {
    READ_READY,  // what was asked for is there
    READ_WAIT,   // not yet; wake will be called once
    READ_END,    // the body is over, and whole
    READ_BROKEN, // the fill was abandoned: nothing more will come
    READ_GONE, // for a joiner: the response is not for this request (not storable, another variant): look up
               // again or cache_stream
    READ_HOLE, // of what is stored in parts: the next bytes are not there and nobody brings them, but the
               // origin can be asked for them: cache_reader_fill(), and fetch through it
};

enum cache_source {   // where a reader's response comes from
    SOURCE_ORIGIN,    // it arrives, or arrived, for this request
    SOURCE_STORED,    // as it was stored
    SOURCE_CONFIRMED, // stored, and the origin has just confirmed it
    SOURCE_STALE,     // stored and past its lifetime, `reason` says why all the same
};

struct cache_head {
    enum cache_source source;
    const char *reason; // static: why this one ("fresh", "confirmed", "stale-if-error", ...)
    int64_t lifetime_s; // freshness lifetime; minus age_s: what is left of it
    int status;
    int minor_version;            // of the origin
    const struct http_head *head; // end-to-end fields as they came, order and repeats kept; without
                                  // Content-Length, Transfer-Encoding and Age
    int64_t content_length;       // the whole body's, -1 when not known yet
    int64_t age_s; // current age at the lookup's or confirmation's `now` [RFC 9111 §4.2.3]; -1: none to
                   // send (the response is delivered for the first time, stored or not, and came without Age)
    bool has_body;
};

// READY, WAIT, BROKEN or GONE. `query` is the one that was looked up. Filled views live until detach.
enum read cache_reader_head(
        struct cache_reader *reader, const struct cache_query *query, struct cache_head *head);

// The next content at the reader's offset: at most `count` pieces into `pieces`. READY with *used > 0, WAIT,
// END, BROKEN.
enum read cache_reader_peek(struct cache_reader *reader, struct iovec *pieces, int count, int *used);
void cache_reader_advance(struct cache_reader *reader, uint64_t bytes);
// The bytes last peeked need not stay where they are: the client takes no more just now. Peek gives them
// again.
void cache_reader_rest(struct cache_reader *reader);
// Whether it has been cut off for holding up others: the next look says READ_BROKEN.
bool cache_reader_is_cut(struct cache_reader *reader);
// After READ_HOLE: a new fill that brings missing bytes from the reader's offset on, towards `until` (the
// offset behind the last byte wanted; UINT64_MAX: the end), rounded outwards to chunks as far as nothing is
// there. The reader waits for it (peek: READ_WAIT). Called again, it gives the next hole that begins
// within CACHE_AHEAD_BYTES of the reader, so that several are fetched at once. NULL: none is left for now.
// The caller fetches through it with a GET with cache_fill_fields() and none of the client's own conditions
// and range; an answer that does not fit makes cache_fill_head() say FILL_STALE (finish, drop the body), and
// the reader READ_BROKEN at the hole.
#define CACHE_AHEAD_BYTES (UINT64_C(16) << 20)
struct cache_fill *cache_reader_fill(
        struct cache_reader *reader, const struct cache_query *query, uint64_t until);
// Goes to `offset` of the representation (a range). Where the bytes are still to come, peek waits for them.
// False before the head, beyond the end, and backwards in a stream.
bool cache_reader_seek(struct cache_reader *reader, uint64_t offset);
// Idempotent. The wake is not running and will not be called after this returns.
void cache_reader_detach(struct cache_reader *reader);

// ---- the whole ----

// The number of responses dropped. A running fill of a purged URL is not stored.
unsigned cache_purge_url(struct cache *cache, struct view authority, struct view path); // every scope
unsigned cache_purge_host(struct cache *cache, struct view authority);
unsigned cache_purge_all(struct cache *cache);
// Of one host, what begins with `path_prefix`.
unsigned cache_purge_prefix(struct cache *cache, struct view authority, struct view path_prefix);
// What `matches` says; it is called with a lock held and must only look. `mask_text` is what it was made of,
// for a record of the purge that outlives the process.
unsigned cache_purge_mask(struct cache *cache,
        bool (*matches)(void *context, struct view authority, struct view path), void *context,
        struct view mask_text);
// 0, or -errno: a volume has not got the last purge durably, and would forget it when weir stops; its path
// then, cut to `size`.
int cache_purge_missed(struct cache *cache, char *path, size_t size);
// A response to the query's request [RFC 9111 §4.4]: when the method is unsafe (or unknown) and the status
// 2xx or 3xx, what is stored under the query's key is dropped, and what Location and Content-Location name,
// as far as it is of the same origin; fills that run under these keys will not be stored.
void cache_invalidate(struct cache *cache, const struct cache_query *query, const struct http_head *response);
// A HEAD was answered by the origin [RFC 9111 §4.3.5]: freshens what is stored, or makes it stale when it
// differs.
void cache_update_by_head(
        struct cache *cache, const struct cache_query *query, const struct cache_response *response);

struct cache_stats {
    uint64_t objects;
    uint64_t bytes;        // of memory_bytes in use
    uint64_t stream_bytes; // besides: what streams hold for their readers, bounded by their windows
    uint64_t limit_bytes;
    uint64_t fills; // running
    uint64_t evictions;
};
void cache_stats(struct cache *cache, struct cache_stats *stats);

struct disk_volume_stats; // cache/disk.h
// Of each volume, at most DISK_VOLUMES_MAX; how many there are.
unsigned cache_disk_stats(struct cache *cache, struct disk_volume_stats *out);

// ---- explaining ----

#define EXPLAIN_VARIANTS_MAX 20     // of one URL, stored and arriving; more are counted
#define EXPLAIN_DESTINATIONS_MAX 16 // under which one URL is stored; more are counted
#define EXPLAIN_SPANS_MAX 8         // of one response stored in parts; more are counted
#define EXPLAIN_TEXT_BYTES 512      // of one field or list; what is longer ends in "..."
#define EXPLAIN_FIELDS_BYTES 4096
#define EXPLAIN_PATH_BYTES 256
#define EXPLAIN_DISK_MS 1000 // waits for a disk

enum variant_state {
    VARIANT_STORED,
    VARIANT_ARRIVING, // with its head there
    VARIANT_AWAITED,  // without: only `state` says something then
};

struct cache_variant {
    enum variant_state state;
    bool is_selected; // by the query's fields
    int status;
    int64_t age_s, lifetime_s;
    int64_t content_length; // -1: not known yet
    uint64_t content_bytes; // there now
    bool is_partial;        // stored with holes: `spans` are there
    unsigned span_count;
    struct {
        uint64_t first, last;
    } spans[EXPLAIN_SPANS_MAX];
    char disk_path[EXPLAIN_PATH_BYTES]; // of the volume where it lies; empty: it does not
    uint64_t memory_bytes;              // all it takes; of what is stored alone
    bool is_confirmed_first;            // no-cache: confirmed before every use
    bool is_never_stale;                // must-revalidate and its kin
    char vary[EXPLAIN_TEXT_BYTES];      // names as cache/vary.h has them
    char selectors[EXPLAIN_TEXT_BYTES]; // their values
    char etag[EXPLAIN_TEXT_BYTES], last_modified[EXPLAIN_TEXT_BYTES], content_type[EXPLAIN_TEXT_BYTES];
};

struct cache_explanation {
    enum lookup lookup; // what cache_lookup would say now
    const char *reason;
    bool is_unavailable;               // it may not be asked for elsewhere: 504
    bool is_refreshed;                 // a hit that would begin a fetch in the background
    bool is_unread;                    // something may lie on disk that could not be read in time
    char fields[EXPLAIN_FIELDS_BYTES]; // what would be asked in place of the request's own conditions
    unsigned variant_count;            // all there are
    struct cache_variant variants[EXPLAIN_VARIANTS_MAX];
};

// What a request would get now, and why, without any of its effects: no fill is begun, nothing is touched or
// counted. Waits for a disk, EXPLAIN_DISK_MS at the most, unless the query skips it. Large: not for a
// worker's stack.
void cache_explain(struct cache *cache, const struct cache_query *query, struct cache_explanation *out);

// Under which destinations the URL is stored, or arrives. Returns how many there are; the first
// EXPLAIN_DESTINATIONS_MAX of them go to `out`. Walks the whole index.
unsigned cache_destinations(struct cache *cache, struct view authority, struct view path,
        struct endpoint out[static EXPLAIN_DESTINATIONS_MAX]);
