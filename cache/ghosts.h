// Ghosts of S3-FIFO: fingerprints of what left the small queue without a hit, 2 bytes each. In sets of a
// cache line, the newest first: what is new pushes the set's oldest out, so that about as many of the latest
// stay as there is room for. A fingerprint is mistaken for another one in 1 of 2000 questions. From any
// thread.
#pragma once

#include "cache/key.h"

#include <stdbool.h>
#include <stdint.h>

struct ghosts;

// Room for `objects`; NULL without memory.
struct ghosts *ghosts_new(uint64_t objects);
void ghosts_free(struct ghosts *ghosts); // NULL is allowed
uint64_t ghosts_bytes(const struct ghosts *ghosts);
// About so many of the latest count from now on, while there is room for more: S3-FIFO wants as many as there
// are objects.
void ghosts_limit(struct ghosts *ghosts, uint64_t objects);
void ghosts_add(struct ghosts *ghosts, struct cache_key key);
// All of them as bytes at `*at` of a file, which is moved on. 0 or -errno.
int ghosts_save(struct ghosts *ghosts, int fd, uint64_t *at);
// Into new ones of the same size. 0, -errno or -EBADMSG: then there are none.
int ghosts_load(struct ghosts *ghosts, int fd, uint64_t at);
bool ghosts_take(struct ghosts *ghosts, struct cache_key key); // whether it was there; it is forgotten
