// From a member that lies in place in its owner to the owner: what callbacks are given is the member.
#pragma once

#include <stddef.h>

// `pointer` must point to `member` of a `type`; another type than the member's does not compile.
#define CONTAINER_OF(pointer, type, member)                                                                  \
    ((type *)((char *)(1 ? (pointer) : &((type *)NULL)->member) - offsetof(type, member)))
