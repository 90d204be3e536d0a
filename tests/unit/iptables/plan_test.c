#include "iptables/plan.h"

#include "tests/unit/unit.h"

#include <string.h>

static int plan_of(const char *text, struct plan *plan, struct problem *problem) {
    struct config_errors errors = {0};
    struct config *config = config_load_text("test", view_of(text), &errors);
    CU_ASSERT_PTR_NOT_NULL_FATAL(config);
    int result = plan_make(config, plan, problem);
    config_free(config);
    config_errors_fini(&errors);
    return result;
}

static void listeners_decide_the_mode(void) {
    static const struct {
        const char *text;
        int mode; // -1: an error
        uint16_t port;
    } rows[] = {
            {"lan a", PLAN_REDIRECT, 3129},
            {"lan a\nlisten 1 redirect\nlisten 2 redirect", PLAN_REDIRECT, 1},
            {"lan a\nlisten 3 any", PLAN_REDIRECT, 3},
            {"lan a\nlisten 1 redirect\nlisten 2 tproxy", PLAN_TPROXY, 2},
            {"lan a\nlisten 1 forward\nlisten *:2 tproxy", PLAN_TPROXY, 2},
            {"lan a\nlisten 1 forward", -1, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct plan plan;
        struct problem problem;
        int result = plan_of(rows[i].text, &plan, &problem);
        CU_ASSERT_EQUAL(result < 0, rows[i].mode < 0);
        if (result == 0) {
            CU_ASSERT_EQUAL((int)plan.mode, rows[i].mode);
            CU_ASSERT_EQUAL(plan.target[FAMILY_IPV4].port, rows[i].port);
        }
    }
}

static void addresses_decide_the_family(void) {
    static const struct {
        const char *text;
        const char *address[FAMILY_COUNT]; // NULL: the family is off
    } rows[] = {
            {"lan a\nlisten 1 redirect", {"", ""}},
            {"lan a\nlisten 0.0.0.0:1 redirect", {"", NULL}},
            {"lan a\nlisten 10.0.0.1:1 redirect", {"10.0.0.1", NULL}},
            {"lan a\nlisten 10.0.0.1:1 redirect\nlisten [fd00::1]:2 redirect", {"10.0.0.1", "fd00::1"}},
            {"lan a\nlisten [::]:2 redirect", {"", ""}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct plan plan;
        struct problem problem;
        CU_ASSERT_EQUAL_FATAL(plan_of(rows[i].text, &plan, &problem), 0);
        CU_ASSERT_EQUAL(plan.target[FAMILY_IPV4].on, rows[i].address[FAMILY_IPV4] != NULL);
        for (enum family family = 0; family < FAMILY_COUNT; family++)
            if (plan.target[family].on && rows[i].address[family])
                CU_ASSERT_STRING_EQUAL(plan.target[family].address, rows[i].address[family]);
    }
}

static void interfaces_once_each_and_bounded(void) {
    struct plan plan;
    struct problem problem;
    CU_ASSERT_EQUAL_FATAL(plan_of("lan a b+ a\nlan c", &plan, &problem), 0);
    CU_ASSERT_EQUAL(plan.interface_count, 3);
    CU_ASSERT_STRING_EQUAL(plan.interfaces[1], "b+");
    char many[16 * (PLAN_INTERFACES_MAX + 1)] = "lan";
    for (int i = 0; i <= PLAN_INTERFACES_MAX; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), " i%d", i);
    CU_ASSERT_TRUE(plan_of(many, &plan, &problem) < 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(problem.text, "more than"));
}

SUITE(plan, CASE(listeners_decide_the_mode), CASE(addresses_decide_the_family),
        CASE(interfaces_once_each_and_bounded))
