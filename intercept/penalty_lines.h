// What the configuration says about eviction: reference_age and Smart Cache's penalties, compiled. Built once
// from a configuration, then never changed and shared by all threads. Pure: no clock, no I/O.
#pragma once

#include "admin/config.h"
#include "cache/penalty.h"

#define PENALTY_MASKS_MAX 1024 // urlmask lines; each URL is held against them one by one

struct penalty_lines;

// NULL with errors added; every bad line is reported, not only the first.
struct penalty_lines *penalty_lines_new(const struct config *config, struct config_errors *errors);
void penalty_lines_free(struct penalty_lines *lines); // NULL is allowed

// For penalty_judge(); lives as long as `lines`.
const struct penalties *penalty_lines_get(const struct penalty_lines *lines);
// Whether anything can become younger by them: then what nobody has asked for may be worth keeping.
bool penalty_lines_have_bonus(const struct penalty_lines *lines);

// For `weir check`.
bool penalty_lines_validate(const struct config *config, struct config_errors *errors);
