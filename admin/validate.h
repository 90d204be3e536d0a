// The whole check of a configuration: admin/validate.tbl names the functions that know more than the grammar.
#pragma once

#include "admin/config.h"

#define CHECKER(function) bool function(const struct config *config, struct config_errors *errors);
#include "admin/validate.tbl"

// Runs every one of them, also after one found errors. True when none did.
bool validate_config(const struct config *config, struct config_errors *errors);
