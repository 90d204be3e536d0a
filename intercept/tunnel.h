// step tunnel: a connection relayed byte for byte with splice(2), both half-closes kept. Begun for what is
// not HTTP, for a client that waits for the server to speak first, for CONNECT on a forward port and for an
// accepted upgrade.
#pragma once

#include "intercept/session.h"

// For an upgrade: makes the tunnel (false without memory), then hands over the connection that switched.
bool tunnel_begin_upgraded(struct session *session);
void tunnel_give_upstream(struct session *session, struct upstream *upstream);

void tunnel_free(struct session *session); // none is allowed

// Neither side has said anything yet: it may be closed in favour of another connection.
bool tunnel_is_waiting(const struct session *session);
