#include "cache/penalty.h"
#include "tests/unit/unit.h"

#include <math.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define DAY 86400
#define IN_FULL 0.000001

static void actions_that_are_read(void) {
    static const struct {
        const char *text;
        enum penalty_sign sign;
        double number;
    } good[] = {
            {"+1", PENALTY_ADD, 1},
            {"-30", PENALTY_SUBTRACT, 30},
            {"*2.5", PENALTY_MULTIPLY, 2.5},
            {"/4", PENALTY_DIVIDE, 4},
            {"=1", PENALTY_DROP_AT, 1},
            {"=0", PENALTY_DROP_AT, 0},
            {"*.125", PENALTY_MULTIPLY, 0.125},
            {"+123456789.123456789", PENALTY_ADD, 123456789.123456789},
    };
    for (size_t i = 0; i < LENGTH(good); i++) {
        struct penalty_action action;
        CU_ASSERT_PTR_NULL(penalty_action_read(view_of(good[i].text), &action));
        CU_ASSERT_EQUAL(action.sign, good[i].sign);
        CU_ASSERT_DOUBLE_EQUAL(action.number, good[i].number, IN_FULL);
    }
}

static void actions_that_are_refused(void) {
    static const char *const bad[] = {"", "+", "5", "*", "* 2", "+1d", "+1.", "+.", "++1", "*-1", "=1e3",
            "/0", "/0.0", "*1234567890", "+1,5", "*inf", "=0x1", "%2"};
    for (size_t i = 0; i < LENGTH(bad); i++) {
        struct penalty_action action;
        CU_ASSERT_PTR_NOT_NULL(penalty_action_read(view_of(bad[i]), &action));
    }
}

static struct penalty_action act(const char *text) {
    struct penalty_action action;
    CU_ASSERT_PTR_NULL_FATAL(penalty_action_read(view_of(text), &action));
    return action;
}

static const struct penalty_action *mask_of_ads(
        const void *context, struct view authority, struct view path) {
    return view_equal(authority, VIEW("ads")) && view_starts(path, VIEW("/x")) ? context : NULL;
}

// Each of another number, so that one can see which was taken.
static struct penalties all_of_them(void) {
    static struct penalty_action of_mask;
    of_mask = act("+1000");
    return (struct penalties){.reference_days = 365,
            .negative_cached = act("*2"),
            .expired = act("*3"),
            .expired_but_checkable = act("*5"),
            .redirect = act("*7"),
            .not_checkable = act("*11"),
            .large = {true, 1000, act("+1"), 100, act("+10")},
            .small = {true, 10, act("+2"), 4, act("+20")},
            .find_mask = mask_of_ads,
            .context = &of_mask};
}

static struct penalty_facts plain(void) {
    return (struct penalty_facts){.status = 200,
            .body_bytes = 500,
            .has_validator = true,
            .age_s = DAY,
            .authority = VIEW("a"),
            .path = VIEW("/")};
}

static void one_of_each_kind(void) {
    static const struct {
        int status;
        bool has_explicit, is_expired, has_validator, is_redirect;
        double days;
    } kinds[] = {
            {200, false, false, true, false, 1},
            {200, true, false, true, false, 1},
            {200, false, true, true, false, 1}, // heuristic lifetimes do not count as an expiry
            {200, true, true, true, false, 5},
            {200, true, true, false, false, 3},
            {200, true, false, false, false, 11},
            {200, false, false, false, false, 11},
            {301, false, false, false, true, 7},
            {301, false, false, true, true, 7},
            {301, true, true, false, true, 3}, // expired goes before redirect
            {404, true, true, true, false, 2}, // negative goes before all
            {400, false, false, false, false, 2},
            {399, false, false, true, false, 1},
            {503, false, false, false, false, 2},
    };
    struct penalties penalties = all_of_them();
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        struct penalty_facts facts = plain();
        facts.status = kinds[i].status;
        facts.has_explicit_lifetime = kinds[i].has_explicit;
        facts.is_expired = kinds[i].is_expired;
        facts.has_validator = kinds[i].has_validator;
        facts.is_redirect = kinds[i].is_redirect;
        CU_ASSERT_DOUBLE_EQUAL(penalty_age(&penalties, &facts, DAY), kinds[i].days, IN_FULL);
    }
}

static void sizes(void) {
    static const struct {
        int64_t bytes;
        double days;
    } sizes[] = {
            {-1, 1},
            {500, 1},
            {1000, 1},
            {1001, 2},
            {1100, 2},
            {1101, 12},
            {1200, 12},
            {1201, 22},
            {11, 1},
            {10, 3},
            {9, 23},
            {6, 23},
            {5, 43},
            {2, 43},
            {1, 63},
            {0, 63},
    };
    struct penalties penalties = all_of_them();
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        struct penalty_facts facts = plain();
        facts.body_bytes = sizes[i].bytes;
        CU_ASSERT_DOUBLE_EQUAL(penalty_age(&penalties, &facts, DAY), sizes[i].days, IN_FULL);
    }
}

static void huge_sizes_take_no_time(void) {
    struct penalties penalties = {.large = {true, 0, act("*1"), 1, act("*2")}};
    struct penalty_facts facts = plain();
    facts.body_bytes = INT64_MAX;
    CU_ASSERT_TRUE(isinf(penalty_age(&penalties, &facts, DAY)));
    CU_ASSERT_DOUBLE_EQUAL(penalty_age(&penalties, &facts, 0), 0, IN_FULL);
    penalties.large.step_action = act("/2");
    CU_ASSERT_DOUBLE_EQUAL(penalty_age(&penalties, &facts, DAY), 0, IN_FULL);
    penalties.large.step_action = act("=1");
    CU_ASSERT_TRUE(isinf(penalty_age(&penalties, &facts, DAY)));
}

static void signs_and_their_bounds(void) {
    static const struct {
        const char *action;
        double days, becomes;
    } cases[] = {
            {"+2", 1, 3},
            {"-2", 3, 1},
            {"-2", 1, 0},
            {"*2.5", 4, 10},
            {"/4", 10, 2.5},
            {"*0", 5, 0},
            {"=3", 2.9, 2.9},
            {"=3", 3, INFINITY},
            {"=0", 0, INFINITY},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct penalties penalties = {.not_checkable = act(cases[i].action)};
        struct penalty_facts facts = plain();
        facts.has_validator = false;
        double days = penalty_age(&penalties, &facts, cases[i].days * DAY);
        if (isinf(cases[i].becomes))
            CU_ASSERT_TRUE(isinf(days))
        else
            CU_ASSERT_DOUBLE_EQUAL(days, cases[i].becomes, IN_FULL);
    }
}

static void masks_come_last(void) {
    struct penalties penalties = all_of_them();
    struct penalty_facts facts = plain();
    facts.authority = VIEW("ads");
    facts.path = VIEW("/x.gif");
    facts.status = 404;
    CU_ASSERT_DOUBLE_EQUAL(penalty_age(&penalties, &facts, DAY), 1002, IN_FULL);
    facts.path = VIEW("/y.gif");
    CU_ASSERT_DOUBLE_EQUAL(penalty_age(&penalties, &facts, DAY), 2, IN_FULL);
}

static const struct {
    const char *action;
    double days; // since it was stored
    unsigned hits;
    bool is_new;
    enum penalty_verdict verdict;
} verdicts[] = {
        {"*1", 3, 0, true, PENALTY_PASS},
        {"*1", 3, 1, true, PENALTY_KEEP},
        {"*1", 3, 1, false, PENALTY_KEEP},
        {"*1", 0, 0, true, PENALTY_PASS},
        {"*1", 0, 1, true, PENALTY_KEEP}, // in the second it was stored
        {"*2", 3, 1, true, PENALTY_PASS},
        {"*2", 3, 2, true, PENALTY_KEEP},
        {"*10", 3, 3, true, PENALTY_PASS},
        {"/2", 3, 0, true, PENALTY_KEEP},
        {"/2", 3, 0, false, PENALTY_PASS}, // not for ever
        {"-5", 3, 0, true, PENALTY_KEEP},
        {"+5", 3, 3, true, PENALTY_PASS},
        {"+5", 30, 3, true, PENALTY_KEEP},
        {"=1", 3, 0, true, PENALTY_DROP},
        {"=1", 3, 2, true, PENALTY_DROP}, // last hit a day ago, as far as one can tell
        {"=1", 3, 3, true, PENALTY_KEEP}, // within three quarters of one
        {"*1", 364, 0, true, PENALTY_PASS},
        {"*1", 365, 0, true, PENALTY_DROP},
        {"*1", 365, 1, true, PENALTY_KEEP},
        {"*10", 36.5, 0, true, PENALTY_DROP},
        {"*10", 36.4, 0, true, PENALTY_PASS},
        {"*1", 1500, 3, false, PENALTY_DROP},
};

static void what_is_judged(void) {
    for (size_t i = 0; i < LENGTH(verdicts); i++) {
        struct penalties penalties = {.reference_days = 365, .not_checkable = act(verdicts[i].action)};
        struct penalty_facts facts = plain();
        facts.has_validator = false;
        facts.age_s = (int64_t)(verdicts[i].days * DAY);
        enum penalty_verdict verdict =
                penalty_judge(&penalties, &facts, verdicts[i].hits, verdicts[i].is_new);
        if (verdict != verdicts[i].verdict)
            fprintf(stderr, "%s at %g days with %u hits: %d\n", verdicts[i].action, verdicts[i].days,
                    verdicts[i].hits, verdict);
        CU_ASSERT_EQUAL(verdict, verdicts[i].verdict);
    }
}

static void without_a_reference_age(void) {
    struct penalties penalties = {.not_checkable = PENALTY_NONE};
    struct penalty_facts facts = plain();
    facts.age_s = INT64_C(100000) * DAY;
    CU_ASSERT_EQUAL(penalty_judge(&penalties, &facts, 0, true), PENALTY_PASS);
    CU_ASSERT_EQUAL(penalty_judge(&penalties, &facts, 1, true), PENALTY_KEEP);
}

SUITE(cache_penalty, CASE(actions_that_are_read), CASE(actions_that_are_refused), CASE(one_of_each_kind),
        CASE(sizes), CASE(huge_sizes_take_no_time), CASE(signs_and_their_bounds), CASE(masks_come_last),
        CASE(what_is_judged), CASE(without_a_reference_age))
