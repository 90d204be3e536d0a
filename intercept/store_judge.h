// The questions of volume_settings, for store_volumes.c.
#pragma once

#include "cache/volume.h"

bool store_judge_matches(void *judge, struct view mask, struct view authority, struct view path);
enum volume_verdict store_judge_keep(void *judge, const struct volume_judged *judged);
