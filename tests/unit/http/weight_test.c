#include "http/weight.h"

#include "tests/unit/http/message.h"
#include "tests/unit/unit.h"

#include <stdio.h>

// [RFC 9110 §12.4.2]
static void weights(void) {
    static const struct {
        const char *text;
        int weight; // -1: none
    } all[] = {{"0", 0}, {"1", 1000}, {"0.", 0}, {"1.", 1000}, {"0.5", 500}, {"0.50", 500}, {"0.05", 50},
            {"0.005", 5}, {"0.999", 999}, {"1.0", 1000}, {"1.000", 1000}, {"0.000", 0}, {"", -1}, {".5", -1},
            {"1.001", -1}, {"1.1", -1}, {"2", -1}, {"0.1234", -1}, {"00.5", -1}, {"0,5", -1}, {"-0", -1},
            {"0.x", -1}, {"0.5 ", -1}, {"01", -1}, {"1.00x", -1}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        unsigned weight = 0;
        bool is_weight = weight_parse(message_guarded(view_of(all[i].text)), &weight);
        if (is_weight != (all[i].weight >= 0) || (is_weight && (int)weight != all[i].weight))
            printf("\n  weight %s: %d %u\n", all[i].text, is_weight, weight);
        CU_ASSERT_EQUAL(is_weight, all[i].weight >= 0);
        CU_ASSERT(!is_weight || (int)weight == all[i].weight);
    }
}

static void members(void) {
    static const struct {
        const char *text, *name;
        int weight;
    } all[] = {{"gzip", "gzip", 1000}, {"gzip;q=0.5", "gzip", 500}, {"gzip ;\tQ=0.5", "gzip", 500},
            {"a/b;c=d;q=0.1", "a/b", 100}, {"a/b;c=\";q=0.1\"", "a/b", 1000},
            {"a/b;c=\"\\\";q=0.1\"", "a/b", 1000}, {"gzip;q=", "", -1}, {"gzip;q=2", "", -1},
            {"gzip;q=1;q=1", "", -1}, {"gzip;", "gzip", 1000}, {"gzip;qx=0", "gzip", 1000}, {"", "", -1},
            {";q=0.5", "", 500}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct view name;
        unsigned weight = 0;
        bool is_good = weight_of_member(message_guarded(view_of(all[i].text)), &name, &weight);
        CU_ASSERT_EQUAL(is_good, all[i].weight >= 0);
        CU_ASSERT(!is_good || ((int)weight == all[i].weight && view_equal(name, view_of(all[i].name))));
    }
}

SUITE(http_weight, CASE(weights), CASE(members))
