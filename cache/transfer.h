// Stored responses out of a volume that no weir has, as a parcel, and into another one.
#pragma once

#include "cache/catalog.h"
#include "cache/parcel.h"
#include "cache/volume.h"

struct transfer_count {
    uint64_t responses, bytes; // moved; bytes of content
    uint64_t skipped;          // import: what is there is as new
    uint64_t refused;          // import: what could not have been stored, or is too large for the volume
};

// Everything that `wanted` (NULL: all) says, and the end. 0 or -errno.
typedef bool transfer_wanted(void *context, const struct catalog_response *response);
int transfer_export(const struct catalog *catalog, const struct head_record_now *now, transfer_wanted *wanted,
        parcel_write *write, void *context, struct transfer_count *count);

// Everything up to the end, or as far as the parcel is whole. Keys are made with the volume's seed, and a
// generation of its own keeps each from mixing with what is there. `there`, of the same directory, says what
// is not to be taken; NULL: nothing is there. 0; -EBADMSG: the parcel is broken (reader->what, ->offset);
// another -errno of reading it or of the volume, which takes no more.
int transfer_import(struct volume *volume, const struct catalog *there, struct parcel_reader *reader,
        const struct head_record_now *now, struct transfer_count *count);
