// `weir rules`: admin/command.h declares rules_command. This is the part other folders may want.
#pragma once

#include "admin/config.h"

#include <stdbool.h>

// For `weir check`: what of the configuration the rules cannot hold (marks, names of interfaces), whatever
// the interfaces of this moment. Adds errors; true when there were none.
bool rules_check(const struct config *config, struct config_errors *errors);
