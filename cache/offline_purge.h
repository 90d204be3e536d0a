// The purges of a volume that no weir has.
#pragma once

#include "cache/offline.h"
#include "cache/purge.h"

#define OFFLINE_PURGES "purge.log"

// What its journal says; freed by the caller. *is_good false: it is broken, and what was lost of it counts as
// a purge of everything before.
struct purge *offline_purges(const struct offline *offline, bool *is_good);
int offline_write_purges(const struct offline *offline, const struct purge *purge); // 0 or -errno
