// Which of the responses in a volume's directory count: of each variant the newest that was not purged, and
// where its content lies. Made by reading the directory once.
//
// Memory: 43 to 86 bytes for each response and each chunk that lies there, old ones included, and what a
// single stored head takes.
#pragma once

#include "cache/head_record.h"
#include "cache/offline.h"

#include <stdbool.h>
#include <stdint.h>

struct catalog;

// Whether an ACL mask of a purge matches "authority/path".
typedef bool catalog_match(void *context, struct view mask, struct view authority, struct view path);

// `tell` of `watch`, if any, hears of what is broken, and `count` becomes what was read. NULL, and *error.
struct catalog *catalog_read(struct offline *offline, const struct offline_watch *watch,
        catalog_match *matches, struct offline_count *count, int *error);
void catalog_free(struct catalog *catalog); // NULL is allowed

struct catalog_response {
    const struct offline_record *found;
    const struct stored_head *head;
    const struct head_record *record;
    uint64_t bytes_there; // of its content
};
// Goes through them in no order; `now` is what heads are decoded with. `visit` false ends it. 0 or -errno.
typedef bool catalog_visit(void *context, const struct catalog_response *response);
int catalog_walk(const struct catalog *catalog, const struct head_record_now *now, catalog_visit *visit,
        void *context);

// All that may be asked once the directory is closed. When a response for the same request arrived that is
// there already, by the wall clock; -1: there is none.
int64_t catalog_time(
        const struct catalog *catalog, const struct head_record *record, const struct stored_head *head);

// Reads the whole content of at most RECORD_SMALL_BYTES that lies with a head; -ENODATA: it does not.
// SEGMENT_RECORD_MAXIMUM of room. A view into `buffer`.
int catalog_content(const struct catalog *catalog, const struct catalog_response *response,
        unsigned char *buffer, struct view *content);
// The first chunk from `*number` on, whose number goes there; -ENODATA: there is none any more.
int catalog_chunk(const struct catalog *catalog, const struct catalog_response *response, uint32_t *number,
        unsigned char *buffer, struct view *content);
