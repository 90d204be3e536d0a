// The network of a replay: each connection of the daemon is one end of a socket pair, the driver has the
// other. What happens at the driver's end is said on standard output:
//
//     dial N ADDRESS:PORT [ERRNO]    the daemon opened connection N, or failed to
//     data N HEX                     it sent something on connection N
//     fin N, rst N                   and will send nothing more
#pragma once

#include "admin/address.h"

#include <stdbool.h>
#include <stddef.h>

// A client's connection: the daemon's end; *id is its number. Port 0: it was not intercepted.
int network_connect(const struct endpoint *destination, unsigned *id);
// Where it wanted to go.
const struct endpoint *network_destination(int fd);

// The daemon opens a connection: its end, or -errno.
int network_dial(const struct endpoint *destination);
int network_dial_result(int fd);
// The next `count` attempts fail with this errno, ETIMEDOUT by never coming to an end; 0: all do, until
// another call. Error 0: none do.
void network_refuse(int error, unsigned count);

// The driver's side of a connection. False when there is no such one.
bool network_send(unsigned id, const void *data, size_t length);
enum network_end {
    NETWORK_SHUTDOWN, // sends nothing more, goes on receiving
    NETWORK_CLOSE,    // takes nothing more either
    NETWORK_RESET,
};
bool network_end(unsigned id, enum network_end how); // once what it sends is taken; a reset at once
bool network_pause(unsigned id, bool paused);        // a paused one reads nothing

// Moves what can be moved between the driver and the sockets; whether anything could.
bool network_move(void);
// Ends all that is left at the driver's side.
void network_end_all(void);
// The daemon's ends that are still open.
unsigned network_open(void);
void network_free(void);
