// Range and Content-Range, [RFC 9110 §14].
#pragma once

#include "http/head.h"

struct range {
    uint64_t first, last; // both included
};

#define RANGES_MAX 64      // that one request may ask for, satisfiable or not; more: the whole [§14.2]
#define RANGE_GAP_BYTES 64 // less than what a part of a multipart answer costs beside its content

// Disjoint, and at least RANGE_GAP_BYTES apart: with `count` parts sent, their content and what divides it
// are together no more than the whole.
struct range_list {
    unsigned count;
    struct range all[RANGES_MAX];
};

enum ranges {
    RANGES_NONE,          // no Range, another unit, malformed, or too many ranges: answer with the whole
    RANGES_SOME,          // `list`: one or more, each within `size`
    RANGES_UNSATISFIABLE, // 416
};

// Reads a Range value against a representation of `size` bytes. Those that overlap, or are hardly apart, are
// one; the order is the one asked for, what is coalesced standing where its first member stood [§15.3.7.2].
enum ranges range_parse(struct view value, uint64_t size, struct range_list *list);

// The same for a request: RANGES_NONE as well for another method than GET, and for several Range lines.
enum ranges range_of_request(const struct http_head *request, uint64_t size, struct range_list *list);

// In ascending order, for a representation that is read as it arrives.
void range_sort(struct range_list *list);

// Whether the origin answers ranges of this: by its own word, and unless it says that it does not [§14.3].
bool range_is_offered(const struct http_head *response);
bool range_may_be_asked(const struct http_head *response);

// A Content-Range in bytes [§14.4].
struct content_range {
    bool is_unsatisfied; // "bytes */SIZE", which has neither first nor last
    bool has_size;       // else the complete length is not known ("*")
    struct range range;
    uint64_t size;
};
// False when it is malformed or of another unit. Else `range` lies within `size`, as far as that is known.
bool content_range_parse(struct view value, struct content_range *range);

// What a 206 holds: its one Content-Range. False without one (multipart), with several, or when it
// contradicts the content's length (`content_length` >= 0).
bool content_range_of(const struct http_head *response, int64_t content_length, struct content_range *range);

// What a 206 is to the request it answers.
enum range_answer {
    RANGE_ANSWER_GOOD,  // what was asked for, a part of it, or all of it with more around
    RANGE_ANSWER_OTHER, // no range of bytes was asked for, or it is multipart: not judged here
    RANGE_ANSWER_BAD,   // another range, or none, or one that contradicts its length
};
enum range_answer range_judge(
        const struct http_head *request, const struct http_head *response, int64_t content_length);
