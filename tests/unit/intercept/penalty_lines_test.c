#include "intercept/penalty_lines.h"

#include "admin/clock.h"
#include "cache/head_record.h"
#include "intercept/store_judge.h"
#include "intercept/store_volumes.h"
#include "tests/unit/cache/text.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DAY_S 86400

static struct config *load(const char *text) {
    struct config_errors errors = {0};
    struct config *config = config_load_text("t", view_of(text), &errors);
    CU_ASSERT_PTR_NOT_NULL_FATAL(config);
    return config;
}

static const struct {
    const char *text, *errors;
} bad[] = {
        {"expired_penalty 5\n",
                "t:1:17: \"5\" is no action, write +N, -N, *N or /N for its age in days, or =N "
                "for the age at which it is dropped\n"},
        {"redirect_penalty /0\n", "t:1:18: \"/0\" is no action, nothing can be divided by 0\n"},
        {"large_object_penalty 1X *2\n",
                "t:1:22: \"1X\" is no size, write bytes, or a number with K, M, G or T\n"},
        {"large_object_penalty 1M *2 1M\n",
                "t:1:28: a step needs its action, write large_object_penalty SIZE ACTION STEP ACTION\n"},
        {"small_object_penalty 1M *2 0 *2\n", "t:1:28: a step of 0 never ends, write 1 or more\n"},
        {"small_object_penalty 1 *2\nsmall_object_penalty 2 *2\n",
                "t:2:1: small_object_penalty is set already at t:1:1, take one of the two out\n"},
};

static void refused(void) {
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct config_errors errors = {0};
        struct config *config = load(bad[i].text);
        CU_ASSERT_PTR_NULL(penalty_lines_new(config, &errors));
        CU_ASSERT_PTR_NOT_NULL_FATAL(errors.text);
        CU_ASSERT_STRING_EQUAL(errors.text, bad[i].errors);
        config_errors_fini(&errors);
        config_free(config);
    }
    struct config_errors errors = {0};
    struct config *config = load("urlmask ftp://x/ *2\nurlmask a *2x\n");
    CU_ASSERT_FALSE(penalty_lines_validate(config, &errors));
    CU_ASSERT_EQUAL(errors.count, 2);
    config_errors_fini(&errors);
    config_free(config);
}

static double age(const struct penalty_lines *lines, const char *authority, const char *path) {
    struct penalty_facts facts = {.status = 200,
            .has_validator = true,
            .body_bytes = 100,
            .authority = view_of(authority),
            .path = view_of(path)};
    return penalty_age(penalty_lines_get(lines), &facts, DAY_S);
}

static void masks_in_their_order(void) {
    struct config_errors errors = {0};
    struct config *config =
            load("urlmask example.com/x* +1\nurlmask example.com *10\nurlmask 192.0.2.0/24 =0\n"
                 "urlmask *:81 /2\nreference_age 10\n");
    struct penalty_lines *lines = penalty_lines_new(config, &errors);
    CU_ASSERT_PTR_NOT_NULL_FATAL(lines);
    CU_ASSERT_DOUBLE_EQUAL(age(lines, "example.com", "/xy"), 2, 0.0001);
    CU_ASSERT_DOUBLE_EQUAL(age(lines, "example.com", "/y"), 10, 0.0001);
    CU_ASSERT_DOUBLE_EQUAL(age(lines, "www.example.com", "/xy"), 10, 0.0001);
    CU_ASSERT_DOUBLE_EQUAL(age(lines, "other.example", "/"), 1, 0.0001);
    CU_ASSERT_DOUBLE_EQUAL(age(lines, "other.example:81", "/"), 0.5, 0.0001);
    CU_ASSERT_TRUE(isinf(age(lines, "192.0.2.9", "/")));
    CU_ASSERT_DOUBLE_EQUAL(penalty_lines_get(lines)->reference_days, 10, 0.0001);
    CU_ASSERT_TRUE(penalty_lines_have_bonus(lines));
    penalty_lines_free(lines);
    config_free(config);
}

static void smart_caches_defaults(void) {
    struct config_errors errors = {0};
    struct config *config = load("");
    struct penalty_lines *lines = penalty_lines_new(config, &errors);
    CU_ASSERT_PTR_NOT_NULL_FATAL(lines);
    const struct penalties *penalties = penalty_lines_get(lines);
    CU_ASSERT_EQUAL(penalties->negative_cached.number, 10);
    CU_ASSERT_EQUAL(penalties->expired.sign, PENALTY_DROP_AT);
    CU_ASSERT_EQUAL(penalties->expired_but_checkable.number, 2);
    CU_ASSERT_FALSE(penalties->large.is_set || penalties->small.is_set || penalties->find_mask);
    CU_ASSERT_FALSE(penalty_lines_have_bonus(lines));
    penalty_lines_free(lines);
    config_free(config);
}

// ---- what volumes ask ----

static struct settings *settings_of(const char *text) {
    struct config_errors errors = {0};
    struct settings *settings = settings_build(load(text), &errors);
    CU_ASSERT_PTR_NOT_NULL_FATAL(settings);
    return settings;
}

static void masks_of_purges(void) {
    struct store_judge *judge = store_judge_new();
    CU_ASSERT_PTR_NOT_NULL_FATAL(judge);
    for (int round = 0; round < 3; round++) {
        CU_ASSERT_TRUE(store_judge_matches(judge, VIEW("*/*.gif"), VIEW("a.example"), VIEW("/b.gif")));
        CU_ASSERT_FALSE(store_judge_matches(judge, VIEW("*/*.gif"), VIEW("a.example"), VIEW("/b.png")));
        CU_ASSERT_TRUE(
                store_judge_matches(judge, VIEW("example.com"), VIEW("www.example.com:8080"), VIEW("/")));
        CU_ASSERT_FALSE(store_judge_matches(judge, VIEW("http://a b/"), VIEW("a.example"), VIEW("/")));
        for (int i = 0; i < 100; i++) { // more than are kept
            char mask[32];
            snprintf(mask, sizeof mask, "h%d.example/*", i);
            CU_ASSERT_TRUE(store_judge_matches(judge, view_of(mask),
                    view_take(view_of(mask), view_find(view_of(mask), '/')), VIEW("/x")));
        }
    }
    store_judge_free(judge);
}

// A head stored `days` ago, with so many hits.
static enum volume_verdict judge_of(
        struct store_judge *judge, int status, const char *fields, int days, uint8_t hits) {
    unsigned char bytes[4096];
    struct text_head text;
    struct stored_head_source source = {.head = text_response(&text, status, fields), .date_s = -1};
    struct stored_head *head = stored_head_new(&source);
    struct moment now = moment_of_ms(clock_wall_ms(), clock_monotonic_ms());
    struct head_record record = {.authority = VIEW("a.example"), .path = VIEW("/"), .body_length = 10};
    head->freshness = (struct freshness){.response_at = {now.wall_s - (int64_t)days * DAY_S, now.steady_s},
            .lifetime_s = 60,
            .explicit_s = 60,
            .date_s = now.wall_s - (int64_t)days * DAY_S,
            .while_revalidate_s = -1,
            .if_error_s = -1,
            .is_explicit = true};
    head->content_length = 10;
    address_parse(VIEW("192.0.2.1"), &record.destination.address);
    record.destination.port = 80;
    size_t length = head_record_encode(&record, head, bytes, sizeof bytes);
    CU_ASSERT_TRUE_FATAL(length > 0 && length <= sizeof bytes);
    struct record none = {0};
    struct volume_judged judged = {
            .record = &none, .head = {(const char *)bytes, length}, .hits = hits, .is_main = false};
    enum volume_verdict verdict = store_judge_keep(judge, &judged);
    free(head);
    return verdict;
}

static void what_is_carried_over(void) {
    struct store_judge *judge = store_judge_new();
    CU_ASSERT_PTR_NOT_NULL_FATAL(judge);
    CU_ASSERT_EQUAL(judge_of(judge, 200, "A: b\n", 3, 3), VOLUME_BY_HITS); // no settings yet
    struct settings *settings = settings_of("");
    store_judge_set(judge, settings);
    CU_ASSERT_EQUAL(judge_of(judge, 200, "A: b\n", 3, 1), VOLUME_DROP); // expired, with no validator
    CU_ASSERT_EQUAL(judge_of(judge, 200, "Etag: \"b\"\n", 3, 2), VOLUME_BY_HITS);
    CU_ASSERT_EQUAL(judge_of(judge, 200, "Etag: \"b\"\n", 3, 1), VOLUME_DROP);
    CU_ASSERT_EQUAL(judge_of(judge, 404, "Etag: \"b\"\n", 3, 3), VOLUME_DROP);
    CU_ASSERT_EQUAL(judge_of(judge, 200, "Etag: \"b\"\n", 3, 0), VOLUME_BY_HITS);
    struct settings *other = settings_of("urlmask a.example /4\nexpired_penalty *1\n");
    store_judge_set(judge, other);
    CU_ASSERT_TRUE(settings_is_last(settings)); // a reload lets go of the old ones
    CU_ASSERT_EQUAL(judge_of(judge, 200, "A: b\n", 3, 0), VOLUME_KEEP);
    CU_ASSERT_EQUAL(judge_of(judge, 200, "A: b\n", 3, 1), VOLUME_BY_HITS);
    struct record none = {0};
    CU_ASSERT_EQUAL(
            store_judge_keep(judge, &(struct volume_judged){.record = &none, .head = VIEW("?"), .hits = 3}),
            VOLUME_BY_HITS);
    settings_put(settings);
    settings_put(other);
    store_judge_free(judge);
}

static void volumes_as_configured(void) {
    struct store_volumes *volumes = calloc(1, sizeof *volumes);
    struct settings *settings =
            settings_of("cache_dir /c 3G\ncache_dir /d 1G\nwear on\nstore_objects 4000000\n");
    struct cache_limits limits;
    CU_ASSERT_PTR_NOT_NULL_FATAL(volumes);
    store_volumes_fill(volumes, settings, NULL);
    CU_ASSERT_EQUAL(volumes->disk.count, 2);
    CU_ASSERT_PTR_EQUAL(volumes->disk.volumes, volumes->volumes);
    CU_ASSERT_STRING_EQUAL(volumes->volumes[1].path, "/d");
    CU_ASSERT_EQUAL(volumes->volumes[0].bytes, UINT64_C(3) << 30);
    CU_ASSERT_EQUAL(volumes->volumes[0].objects, 3000000);
    CU_ASSERT_EQUAL(volumes->volumes[1].objects, 1000000);
    CU_ASSERT_EQUAL(volumes->volumes[0].small_memory_bytes, 12 << 20);
    CU_ASSERT_FALSE(volumes->volumes[0].judges_unhit);
    settings_cache_limits(settings, &limits);
    CU_ASSERT_EQUAL(limits.maximum_object_bytes, 256 << 20);
    settings_put(settings);
    settings = settings_of("");
    store_volumes_fill(volumes, settings, NULL);
    CU_ASSERT_EQUAL(volumes->disk.count, 0);
    settings_cache_limits(settings, &limits);
    CU_ASSERT_EQUAL(limits.maximum_object_bytes, 0);
    settings_put(settings);
    free(volumes);
}

SUITE(intercept_penalty_lines, CASE(refused), CASE(masks_in_their_order), CASE(smart_caches_defaults),
        CASE(masks_of_purges), CASE(what_is_carried_over), CASE(volumes_as_configured))
