// A network namespace of our own for a moment: rules can be tried there, and read back in the kernel's own
// spelling, without a packet or an admin ever meeting them. It ends with the process or with scratch_leave.
#pragma once

struct scratch {
    int outside; // descriptor of the namespace to come back to
};

// The calling thread, and the programs it starts, are in an empty namespace with lo up. -errno (mostly
// -EPERM: it takes CAP_SYS_ADMIN) when it stays where it was.
int scratch_enter(struct scratch *scratch);

// Back. That this fails is a bug: going on would be in the wrong place.
void scratch_leave(struct scratch *scratch);
