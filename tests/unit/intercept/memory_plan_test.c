#include "intercept/memory_plan.h"
#include "tests/unit/unit.h"

#include <string.h>

#define MIB (INT64_C(1) << 20)

static const struct memory_facts facts = {
        .machine_bytes = 1024 * MIB, .workers = 2, .client_connections = 20000};

// "" for a plan that holds, else what was said against it.
static const char *plan_of(const char *text, struct memory_plan *plan) {
    static char said[1024];
    struct config_errors errors = {0};
    struct config *config = config_load_text("t", view_of(text), &errors);
    CU_ASSERT_PTR_NOT_NULL_FATAL(config);
    bool good = memory_plan_make(plan, config, &facts, &errors);
    CU_ASSERT_EQUAL(good, errors.count == 0);
    snprintf(said, sizeof said, "%s", errors.text ? errors.text : "");
    config_errors_fini(&errors);
    config_free(config);
    return said;
}

static void without_a_budget(void) {
    struct memory_plan plan;
    CU_ASSERT_STRING_EQUAL(plan_of("", &plan), "");
    CU_ASSERT_EQUAL(plan.cache_bytes, 64 * MIB);
    CU_ASSERT_EQUAL(plan.client_connections, 20000);
    CU_ASSERT_EQUAL(plan.objects, 0);
    CU_ASSERT_EQUAL(plan.disk_bytes + plan.index_bytes + plan.wear_bytes, 0);
}

// One object for each 8 KiB, as long as a quarter of the machine's memory has room for them.
static void as_many_objects_as_fit(void) {
    struct memory_plan plan;
    plan_of("cache_dir /c 1G\n", &plan);
    CU_ASSERT_EQUAL(plan.objects, 131072);
    CU_ASSERT_TRUE(plan.index_bytes >= 131072 * 18);
    plan_of("cache_dir /c 500G\ncache_dir /d 500G\n", &plan);
    CU_ASSERT_EQUAL(plan.objects, 256 * MIB / 18);
    plan_of("cache_dir /c 500G\nstore_objects 200000000\n", &plan);
    CU_ASSERT_EQUAL(plan.objects, 200000000);
    plan_of("cache_dir /c 4M\nstore_objects 1\n", &plan);
    CU_ASSERT_EQUAL(plan.objects, 1024);
    plan_of("memory 64M\ncache_dir /c 500G\n", &plan);
    CU_ASSERT_EQUAL(plan.objects, 16 * MIB / 18);
}

static void what_is_left_goes_to_cache_mem(void) {
    static const char *const texts[] = {"memory 64M\n", "memory 64M\ncache_dir /c 10G\n",
            "memory 64M\ncache_dir /c 10G\nwear on\n",
            "memory 2G\ncache_dir /c 1T\ncache_dir /d 1T\nwear on\n",
            "memory 64M\nclient_connections 100\nstore_objects 100000\ncache_dir /c 10G\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct memory_plan plan;
        CU_ASSERT_STRING_EQUAL(plan_of(texts[i], &plan), "");
        CU_ASSERT_TRUE(plan.cache_bytes >= MEMORY_PLAN_CACHE_MINIMUM);
        CU_ASSERT_TRUE(memory_plan_sum(&plan) <= plan.memory_bytes);
        CU_ASSERT_TRUE(memory_plan_sum(&plan) > plan.memory_bytes - 64); // nothing is left over
    }
}

static void wear_has_its_share(void) {
    struct memory_plan plan;
    plan_of("cache_dir /c 10G\nwear on\ncache_mem 64M\n", &plan);
    CU_ASSERT_EQUAL(plan.wear_bytes, 16 * MIB);
    plan_of("cache_dir /c 10G\ncache_dir /d 10G\nwear on\ncache_mem 4M\n", &plan);
    CU_ASSERT_EQUAL(plan.wear_bytes, 4 * MIB);
    plan_of("wear on\n", &plan);
    CU_ASSERT_EQUAL(plan.wear_bytes, 0); // no disk to spare
}

static void what_cannot_be(void) {
    struct memory_plan plan;
    CU_ASSERT_STRING_EQUAL(plan_of("memory 64M\ncache_mem 60M\nclient_connections 100\n", &plan),
            "t:1:8: memory cannot hold what is to be in it (64M: 8192K program + 60M cache_mem + 4000K for "
            "100 "
            "client_connections = 72M), raise it to 72M, or lower cache_mem or client_connections\n");
    CU_ASSERT_STRING_EQUAL(plan_of("cache_dir /c 10G\nmemory 64M\nstore_objects 3000000\n", &plan),
            "t:2:8: memory cannot hold what is to be in it (64M: 8192K program + 4096K cache_mem + 52M index "
            "of "
            "3000000 objects + 4096K disks + 16M for 409 client_connections = 84M), raise it to 91M, or "
            "lower "
            "store_objects or client_connections\n");
    CU_ASSERT_TRUE(*plan_of("memory 64M\ncache_mem 8000000T\n", &plan) != '\0');
    CU_ASSERT_TRUE(*plan_of("memory 1\n", &plan) != '\0');
}

// What it says is enough is enough, though what is not set grows with it.
static void what_is_said_to_be_enough_is(void) {
    static const char *const rests[] = {"cache_dir /c 10G\nstore_objects 3000000\n", "cache_mem 300M\n",
            "cache_dir /c 1T\nwear on\n", "cache_dir /c 1T\ncache_mem 700M\nwear on\n",
            "cache_dir /c 1T\ncache_dir /d 1T\ncache_mem 16M\n"};
    for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
        struct memory_plan plan;
        char text[256];
        snprintf(text, sizeof text, "memory 1M\n%s", rests[i]);
        const char *advice = strstr(plan_of(text, &plan), "raise it to ");
        CU_ASSERT_PTR_NOT_NULL_FATAL(advice);
        advice += strlen("raise it to ");
        snprintf(text, sizeof text, "memory %.*s\n%s", (int)strcspn(advice, ","), advice, rests[i]);
        CU_ASSERT_STRING_EQUAL(plan_of(text, &plan), "");
    }
}

SUITE(intercept_memory_plan, CASE(without_a_budget), CASE(as_many_objects_as_fit),
        CASE(what_is_left_goes_to_cache_mem), CASE(wear_has_its_share), CASE(what_cannot_be),
        CASE(what_is_said_to_be_enough_is))
