// The grammar of refresh_pattern and default_refresh_pattern, word by word:
//
//     refresh_pattern [-i] REGEX MIN PERCENT MAX [OPTION...]      Squid's; -i: letters match in either case
//     default_refresh_pattern RELOAD MIN FACTOR MAX [EXPIRE REDIRECT]        Smart Cache's
//
// Times are minutes, or a number with s, m, h, d or w; PERCENT has its sign or not; FACTOR is a fraction with
// up to two decimals. OPTION: cache/refresh_option.tbl; max-stale=MINUTES.
#pragma once

#include "admin/config.h"
#include "cache/rules.h"

#define REFRESH_MINUTES_MAX (10 * 365 * 24 * 60)
#define REFRESH_PERCENT_MAX 10000

struct refresh_line {
    unsigned expression; // which word
    bool ignore_case;
    struct refresh_rule rule;
};

// False with errors added, one for each word that is wrong. The expression itself is not looked at.
bool refresh_line_read(
        const struct directive *directive, struct refresh_line *line, struct config_errors *errors);
bool refresh_line_read_default(
        const struct directive *directive, struct refresh_rule *rule, struct config_errors *errors);
