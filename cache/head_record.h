// A response head in a RECORD_HEAD or RECORD_UPDATE: bytes and back. Pure. One head has one form: what
// decodes encodes to the same bytes. What is out of bounds, or could not have been stored (a control
// character, framing or hop-by-hop fields, a number beyond reason), is refused, whoever wrote it.
//
//   flags (2), little-endian: the bits of head_record.c
//   the original destination: address (4 of IPv4, else 16), port, 0
//   authority, path; generation; body_length + 1
//   boot (4, if flagged); when the response arrived by the wall clock, and with boot by the steady one
//   freshness: its numbers; content_length + 1
//   status, reason, Vary's names, selectors
//   how many fields; each: its name by head_record.tbl, or 0 and a text; its value
//
// Numbers and texts as cache/pack.h has them.
#pragma once

#include "admin/address.h"
#include "cache/record.h"
#include "cache/stored_head.h"

#define HEAD_RECORD_FIELDS_MAXIMUM (HTTP_FIELDS_MAX + 1) // with a Date added
#define HEAD_RECORD_NAME_BYTES 64                        // the longest of head_record.tbl is shorter
#define HEAD_RECORD_SECONDS_MAXIMUM (INT64_C(1) << 40)   // of a clock, a lifetime, an age
// A decoded head is no larger than this; about half as much again is used meanwhile.
#define HEAD_RECORD_MEMORY_MAXIMUM                                                                           \
    (sizeof(struct stored_head) + RECORD_HEAD_MAXIMUM +                                                      \
            HEAD_RECORD_FIELDS_MAXIMUM * (sizeof(struct http_field) + HEAD_RECORD_NAME_BYTES))

// What a record says beside the response head. The views are borrowed.
struct head_record {
    // Of scope 0: another is an interface's index, which another start may give to another one. Such
    // responses are not kept on disk.
    struct endpoint destination;
    struct view authority; // at most AUTHORITY_BYTES
    struct view path;
    uint64_t generation;  // of the body
    int64_t body_length;  // of the complete content; -1: not known yet
    bool gives_ranges;    // the origin has shown that it answers requests for ranges
    bool is_contradicted; // by its answer to a HEAD: to be confirmed before every use
    uint32_t boot;        // names the machine's start since which the steady clock counts; 0: not known
};

// Writes the head into `out` when it fits into `room`. Returns how many bytes it takes: above `room`, nothing
// of use is there. 0: it cannot be kept on disk (longer than RECORD_HEAD_MAXIMUM, or what decoding refuses).
// `head->first` is not kept.
size_t head_record_encode(
        const struct head_record *record, const struct stored_head *head, unsigned char *out, size_t room);

// The beginning alone: whose head it is. The views point into `bytes`. False: refused, and `record` is zeros.
// That the rest is well-formed is not said.
bool head_record_read(struct view bytes, struct head_record *record);

// When it is now, and since which start (0: not known): times of the steady clock mean nothing after another.
struct head_record_now {
    struct moment moment;
    uint32_t boot;
};

// A new head of one allocation, freed with free(); NULL: refused, and `record` is zeros. `bytes` is all there
// is; `record` has views into it. response_at becomes a time of this start's steady clock, which is negative
// for what is older than the start: by the same start's clock, else by the wall clock. When that has not come
// to where it was, nobody knows how much time has gone by, and the head is taken for DELTA_MAXIMUM old.
struct stored_head *head_record_decode(
        struct view bytes, const struct head_record_now *now, struct head_record *record);
