#include "iptables/policy.h"

#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

static const struct plan tproxy = {.mode = PLAN_TPROXY,
        .target = {{.on = true, .port = 3129}, {.on = false}},
        .intercept = 0x57000000,
        .mask = 0xff000000,
        .table = 5700};

static void rules_only_for_tproxy_and_its_families(void) {
    char *lines;
    policy_make(&tproxy, FAMILY_IPV4, &lines);
    CU_ASSERT_PTR_NOT_NULL(strstr(lines, "rule priority 58 fwmark 0x57000000/0xff000000 lookup 5700\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(lines, " iif lo goto 59\n"));
    free(lines);
    policy_make(&tproxy, FAMILY_IPV6, &lines);
    CU_ASSERT_STRING_EQUAL(lines, "");
    free(lines);
    struct plan redirect = tproxy;
    redirect.mode = PLAN_REDIRECT;
    policy_make(&redirect, FAMILY_IPV4, &lines);
    CU_ASSERT_STRING_EQUAL(lines, "");
    free(lines);
}

static void order_does_not_matter(void) {
    CU_ASSERT_TRUE(policy_equal("", ""));
    CU_ASSERT_TRUE(policy_equal("a b\nc\n", "c\na b\n"));
    CU_ASSERT_FALSE(policy_equal("a\n", "a b\n"));
    CU_ASSERT_FALSE(policy_equal("a\nb\n", "a\n"));
    CU_ASSERT_FALSE(policy_equal("", "a\n"));
}

SUITE(policy, CASE(rules_only_for_tproxy_and_its_families), CASE(order_does_not_matter))
