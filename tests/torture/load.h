// The two halves of the load. Each runs until the world ends.
#pragma once

#include "tests/torture/world.h"

#include <stdint.h>

// Serves on 0.0.0.0:PORT; 0: a free one, which is printed as "port N".
void origin_run(struct world *world, uint16_t port);
// `threads` clients of the forward proxy at 127.0.0.1:`proxy`; a line "WRONG ..." for everything that must
// not be.
void clients_run(struct world *world, uint16_t proxy, uint16_t origin, unsigned threads);
