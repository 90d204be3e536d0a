// Smart Cache's penalties: what becomes of a stored response when its place on disk is reclaimed. Pure: time
// is an argument. An object's age in days since it was last asked for is changed by one action after the
// other, in Smart Cache's order; what comes out against reference_age decides whether it is dropped, and
// against the age of what nobody has asked for whether it is carried over.
//
//     1. size: larger than large_object_penalty's SIZE, or not larger than small_object_penalty's
//     2. the first that fits: status of 400 and above; past its explicit lifetime, with a validator or
//     without
//        one; a redirect; without a validator
//     3. the first urlmask that matches
//
// When something was last asked for is not written down. Something stored `age` ago and hit `hits` times
// since is taken for age / (hits + 1) old: the gap that so many hits leave.
#pragma once

#include "cache/stored_head.h"

#include <stdbool.h>
#include <stdint.h>

enum penalty_sign {
    PENALTY_ADD,      // "+N": days
    PENALTY_SUBTRACT, // "-N": days
    PENALTY_MULTIPLY, // "*N"
    PENALTY_DIVIDE,   // "/N"
    PENALTY_DROP_AT,  // "=N": dropped at this age, in days
};

struct penalty_action {
    enum penalty_sign sign;
    double number;
};
#define PENALTY_NONE ((struct penalty_action){PENALTY_MULTIPLY, 1})

// An operator and a number with up to 9 digits before and behind its point. NULL and *action, or what is
// wrong, a static sentence.
const char *penalty_action_read(struct view text, struct penalty_action *action);
// Whether it makes anything younger.
bool penalty_action_is_bonus(const struct penalty_action *action);

struct penalty_size {
    bool is_set;
    uint64_t bytes;
    struct penalty_action action;
    uint64_t step; // 0: none
    struct penalty_action step_action;
};

struct penalties {
    double reference_days; // 0: nothing is dropped for its age alone
    struct penalty_action negative_cached, expired, expired_but_checkable, redirect, not_checkable;
    struct penalty_size large, small;
    // The first urlmask for the URL, NULL: none. NULL: there are no masks at all.
    const struct penalty_action *(*find_mask)(const void *context, struct view authority, struct view path);
    const void *context;
};

struct penalty_facts {
    int status;
    int64_t body_bytes; // -1: not known
    bool has_explicit_lifetime, is_expired, has_validator, is_redirect;
    int64_t age_s;               // since it was stored or last confirmed
    struct view authority, path; // borrowed
};

// What is known of a stored response. `body_length` -1: not known; `rule` NULL: none holds for its URL.
void penalty_facts_of(struct penalty_facts *facts, const struct stored_head *head, int64_t body_length,
        struct view authority, struct view path, const struct refresh_rule *rule, struct moment now);

// Its age in days by the penalties, when it was last asked for `age_s` ago; infinite: is to be dropped.
double penalty_age(const struct penalties *penalties, const struct penalty_facts *facts, double age_s);

enum penalty_verdict {
    PENALTY_DROP, // not found any more
    PENALTY_PASS, // as if nobody had asked for it: goes with its place
    PENALTY_KEEP, // carried over
};

// Of something hit `hits` times since it was written. `is_new`: it was not carried over before; only then can
// a bonus keep what nobody has asked for, so that no place is carried over as a whole for ever.
enum penalty_verdict penalty_judge(
        const struct penalties *penalties, const struct penalty_facts *facts, unsigned hits, bool is_new);
