#include "admin/cache_dir.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct config *load(const char *text, struct config_errors *errors) {
    return config_load_text("t", view_of(text), errors);
}

// Each text is refused with exactly these lines.
static const struct {
    const char *text, *errors;
} bad[] = {
        {"cache_dir\n", "t:1:1: cache_dir needs more words, write cache_dir PATH [SIZE]\n"},
        {"cache_dir ufs /c 100 16 256\n", "t:1:18: too many words, write cache_dir PATH [SIZE]\n"},
        {"cache_dir c 1G\n",
                "t:1:11: \"c\" is relative, write cache_dir PATH SIZE, PATH from the root: /...\n"},
        {"cache_dir // 1G\n", "t:1:11: the root cannot be a volume, name a directory of its own\n"},
        {"cache_dir /a/../b 1G\n", "t:1:11: \"/a/../b\" has . or .. in it, write the path without\n"},
        {"cache_dir /c 1GB\n", "t:1:14: \"1GB\" is no size, write bytes, or a number with K, M, G or T\n"},
        {"cache_dir /c 4095K\n", "t:1:14: a volume of \"4095K\" is out of range, write 4M to 8388607T\n"},
        {"cache_dir /c 99999999T\n",
                "t:1:14: a volume of \"99999999T\" is out of range, write 4M to 8388607T\n"},
        {"cache_dir /c\n", "t:1:1: the size is missing, write cache_dir PATH SIZE\n"},
        {"cache_dir /c # 1G\n",
                "t:1:1: the size is missing, write cache_dir PATH SIZE; a # begins a comment, put a word "
                "that has one in quotes\n"},
        {"cache_dir /c\ncache_swap_size 1M\n",
                "t:2:17: a volume of \"1M\" is out of range, write 4M to 8388607T\n"},
        {"cache_swap_size 1G\ncache_dir /c\ncache_dir /d\n",
                "t:3:1: cache_swap_size is the size of one volume, and the one at t:2 has it already, write "
                "cache_dir PATH SIZE\n"},
        {"cache_dir /c 1G\ncache_dir //c/ 2G\n",
                "t:2:11: this is the same directory as cache_dir /c at t:1, give each volume a directory of "
                "its own\n"},
        {"cache_dir /c 1G\ncache_dir /c/d 2G\n",
                "t:2:11: this is inside of cache_dir /c at t:1, give each volume a directory of its own\n"},
        {"cache_dir /c/d 1G\ncache_dir /c 2G\n",
                "t:2:11: this is around cache_dir /c/d at t:1, give each volume a directory of its own\n"},
        {"cache_dir /c 5000000T\ncache_dir /d 5000000T\n",
                "t:2:14: together the volumes are too large, make them smaller\n"},
        {"cache_dir /c 1G\nmaximum_object_size 2G\n",
                "t:2:21: maximum_object_size is above the size of every cache_dir, lower it\n"},
        {"cache_dir /c 1G\ncache_mem 0\n",
                "t:2:11: cache_mem 0 stores nothing, on disk neither: what is stored passes through memory, "
                "write 8M or more, or take the cache_dir lines out\n"},
        {"quick_abort_min 16 KB\n", "t:1:20: quick_abort_min takes one word, write 16K\n"},
        {"maximum_object_size 4 MB\n", "t:1:23: maximum_object_size takes one word, write 4M\n"},
        {"cache_mem 4 MiB\n", "t:1:13: cache_mem takes one word, write 4M\n"},
        {"cache_mem 4 potatoes\n",
                "t:1:13: cache_mem takes one value, take the rest out or put it all in quotes\n"},
        {"quick_abort_pct 101\n", "t:1:17: quick_abort_pct \"101\" is out of range, write 0 to 100\n"},
        {"quick_abort_min -1\n",
                "t:1:17: quick_abort_min \"-1\" is no size, write bytes, or a number with K, M, G or T, or "
                "unlimited\n"},
        {"cache_mem unlimited\n",
                "t:1:11: cache_mem \"unlimited\" is no size, write bytes, or a number with K, M, G or T\n"},
        {"reference_age 5x\n",
                "t:1:15: reference_age \"5x\" is no age, write days, or a number with s, m, h, d, w or y\n"},
};

static void refused(void) {
    for (size_t i = 0; i < LENGTH(bad); i++) {
        struct config_errors errors = {0};
        struct config *config = load(bad[i].text, &errors);
        CU_ASSERT_PTR_NULL(config);
        bool same = errors.text && strcmp(errors.text, bad[i].errors) == 0;
        if (!same)
            fprintf(stderr, "%s gives\n%s instead of\n%s", bad[i].text, errors.text, bad[i].errors);
        CU_ASSERT_TRUE(same);
        config_errors_fini(&errors);
        config_free(config);
    }
}

static struct config *accepted(const char *text) {
    struct config_errors errors = {0};
    struct config *config = load(text, &errors);
    if (!config)
        fprintf(stderr, "%s gives\n%s", text, errors.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(config);
    CU_ASSERT_EQUAL(errors.count, 0);
    return config;
}

static struct cache_dirs dirs_of(const struct config *config) {
    struct config_errors errors = {0};
    struct cache_dirs dirs;
    CU_ASSERT_TRUE(cache_dirs_read(config, &dirs, &errors));
    CU_ASSERT_EQUAL(errors.count, 0);
    return dirs;
}

static void several(void) {
    struct config *config = accepted("cache_dir /c 4M\ncache_dir \"/d e\" 1G\ncache_dir /cc 2g\n");
    struct cache_dirs dirs = dirs_of(config);
    CU_ASSERT_EQUAL(dirs.count, 3);
    CU_ASSERT_EQUAL(dirs.bytes, (INT64_C(3) << 30) + (4 << 20));
    CU_ASSERT_EQUAL(dirs.smallest, 4 << 20);
    CU_ASSERT_STRING_EQUAL(dirs.dirs[1].path, "/d e");
    CU_ASSERT_EQUAL(dirs.dirs[1].bytes, 1 << 30);
    config_free(config);
}

static void none(void) {
    struct config *config = accepted("");
    struct cache_dirs dirs = dirs_of(config);
    CU_ASSERT_EQUAL(dirs.count, 0);
    CU_ASSERT_EQUAL(dirs.smallest, 0);
    config_free(config);
}

static void smart_caches_size(void) {
    struct config *config = accepted("cache_dir /c\ncache_swap_size 100M\ncache_dir /d 1G\n");
    struct cache_dirs dirs = dirs_of(config);
    CU_ASSERT_EQUAL(dirs.count, 2);
    CU_ASSERT_EQUAL(dirs.dirs[0].bytes, 100 << 20);
    CU_ASSERT_EQUAL(config->notes.count, 0);
    config_free(config);
}

static void a_size_for_nothing_is_noted(void) {
    struct config *config = accepted("cache_dir /c 1G\ncache_swap_size 100M\n");
    CU_ASSERT_PTR_NOT_NULL_FATAL(config->notes.text);
    CU_ASSERT_STRING_EQUAL(config->notes.text, "t:2:1: cache_swap_size does nothing here: every cache_dir "
                                               "line has a size of its own\n");
    config_free(config);
    config = accepted("cache_swap_size 100M\n");
    CU_ASSERT_PTR_NOT_NULL_FATAL(config->notes.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(config->notes.text, "the store is in memory"));
    config_free(config);
}

static void little_is_noted(void) {
    static const struct {
        const char *text, *note;
    } cases[] = {
            {"wear on\n", "t:1:1: wear does nothing here: without a cache_dir line nothing is written\n"},
            {"cache_dir /c 1G\ncache_mem 64K\n",
                    "t:2:11: cache_mem \"64K\" is little before a disk: what is stored passes through "
                    "memory, "
                    "and what finds no room there is not stored; write 8M or more\n"},
            {"cache_dir /c 4M\nwear on\ncache_mem 8M\n", ""},
            {"wear off\ncache_mem 64K\n", ""},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct config *config = accepted(cases[i].text);
        CU_ASSERT_STRING_EQUAL(config->notes.text ? config->notes.text : "", cases[i].note);
        config_free(config);
    }
}

static void more_than_the_file_system_has_is_noted(void) {
    struct config *config = accepted("cache_dir /nowhere/at/all 4M\ncache_dir /else/where 8000000T\n");
    CU_ASSERT_EQUAL(cache_dir_room(&dirs_of(config).dirs[0]), 0);
    cache_dirs_note_rooms(config, &config->notes);
    CU_ASSERT_EQUAL(config->notes.count, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(config->notes.text);
    CU_ASSERT_PTR_NOT_NULL(
            strstr(config->notes.text, "t:2:23: a volume of 8000000T, but its file system has "));
    config_free(config);
}

static void as_many_as_may_be(void) {
    char text[CACHE_DIRS_MAX * 32];
    size_t length = 0;
    for (unsigned i = 0; i < CACHE_DIRS_MAX; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "cache_dir /c%u 4M\n", i);
    struct config *config = accepted(text);
    CU_ASSERT_EQUAL(dirs_of(config).count, CACHE_DIRS_MAX);
    config_free(config);
    snprintf(text + length, sizeof text - length, "cache_dir /one 4M\n");
    struct config_errors errors = {0};
    CU_ASSERT_PTR_NULL(load(text, &errors));
    CU_ASSERT_STRING_EQUAL(errors.text, "t:65:1: more than 64 volumes, take some out\n");
    config_errors_fini(&errors);
}

static void words_for_without_end(void) {
    struct config *config = accepted("quick_abort_min Unlimited\nquick_abort_max 0\nreference_age 2y\n");
    CU_ASSERT_EQUAL(config->quick_abort_min, CONFIG_UNLIMITED);
    CU_ASSERT_EQUAL(config->quick_abort_max, 0);
    CU_ASSERT_EQUAL(config->reference_age, INT64_C(730) * 86400000);
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    config_print(config, out);
    config_print_json(config, out);
    fclose(out);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "quick_abort_min              unlimited "));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"quick_abort_min\", \"value\": \"unlimited\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"reference_age\", \"value\": 63072000000"));
    free(text);
    config_free(config);
    config = accepted("reference_age 30\n");
    CU_ASSERT_EQUAL(config->reference_age, INT64_C(30) * 86400000);
    config_free(config);
}

SUITE(admin_cache_dir, CASE(refused), CASE(several), CASE(none), CASE(smart_caches_size),
        CASE(a_size_for_nothing_is_noted), CASE(little_is_noted),
        CASE(more_than_the_file_system_has_is_noted), CASE(as_many_as_may_be), CASE(words_for_without_end))
