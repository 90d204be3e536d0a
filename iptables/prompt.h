// Asks the admin at the terminal whether the new rules may stay.
#pragma once

#include "iptables/guard.h"

// Without a terminal: says how to confirm, and leaves the guard alone; COMMAND_DONE. With one: waits for an
// answer or the guard's end; COMMAND_DONE when the rules stay, else COMMAND_PROBLEM.
int prompt_confirm(struct guard *guard, unsigned seconds);
