#include "cache/disk.h"

#include "tests/unit/cache/disk_play.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KIB (1 << 10)
#define MIB (1 << 20)

static const int64_t sizes[] = {-1, 0, 1, 1000, 64 * KIB, 64 * KIB + 1, 256 * KIB};
#define SIZES (sizeof sizes / sizeof *sizes)

static void puts_and_reads_back(void) {
    struct play_disk play;
    struct disk_head *heads;
    struct play_name name;
    play_start(&play, 1);
    for (unsigned i = 0; i < SIZES; i++) {
        struct disk_place place = {0};
        uint64_t location;
        play_name(&name, i);
        CU_ASSERT_FALSE(disk_may_have(play.disk, &name.name));
        CU_ASSERT_EQUAL(play_read(&play, i, false, &heads), 0);
        CU_ASSERT_PTR_NULL(heads);
        CU_ASSERT_EQUAL_FATAL(play_put(&play, i, NULL, i + 1, sizes[i], &place, &location), 0);
        CU_ASSERT_TRUE(disk_may_have(play.disk, &name.name));
        CU_ASSERT_PTR_EQUAL(disk_volume_of(play.disk, &name.name), place.volume);
        CU_ASSERT_EQUAL(play_only(&play, i, NULL), i + 1);
        CU_ASSERT_EQUAL(play_read(&play, i, true, &heads), 0);
        CU_ASSERT_PTR_NOT_NULL_FATAL(heads);
        CU_ASSERT_EQUAL(heads->location, location);
        CU_ASSERT_EQUAL(heads->has_content, sizes[i] >= 0);
        CU_ASSERT_EQUAL(heads->content_bytes, sizes[i] > 0 ? sizes[i] : 0);
        CU_ASSERT_EQUAL(heads->body_length, sizes[i] >= 0 ? sizes[i] : 5 * MIB);
        CU_ASSERT_EQUAL(heads->place.generation, place.generation);
        CU_ASSERT_TRUE(heads->gives_ranges && !heads->is_contradicted);
        disk_heads_free(heads);
        disk_place_put(&place);
        disk_place_put(&place);
    }
    play_close(&play);
    play_open(&play);
    for (unsigned i = 0; i < SIZES; i++)
        CU_ASSERT_EQUAL(play_only(&play, i, NULL), i + 1);
    play_end(&play);
}

static void what_is_cached_needs_no_wait(void) {
    struct play_disk play;
    struct disk_head *heads;
    play_start(&play, 1);
    CU_ASSERT_EQUAL(play_put(&play, 1, NULL, 3, 200 * KIB, NULL, NULL), 0);
    int error = play_read(&play, 1, false, &heads); // the file system may not know how
    CU_ASSERT_TRUE(error == -EAGAIN || (error == 0 && play_edition(heads->head, 1, NULL) == 3));
    disk_heads_free(heads);
    play_end(&play);
}

static void variants_stand_side_by_side(void) {
    static const char *const languages[] = {"de", "fr", "it"};
    struct play_disk play;
    struct disk_head *heads;
    play_start(&play, 2);
    for (unsigned i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(play_put(&play, 5, languages[i], i, 100 * i, NULL, NULL), 0);
    CU_ASSERT_EQUAL(play_read(&play, 5, true, &heads), 0);
    unsigned count = 0;
    for (const struct disk_head *head = heads; head; head = head->next, count++)
        CU_ASSERT_EQUAL(play_edition(head->head, 5, languages[2 - count]), 2 - count); // the latest first
    CU_ASSERT_EQUAL(count, 3);
    disk_heads_free(heads);
    play_end(&play);
}

static int update(const struct disk_place *place, unsigned number, const char *variant, unsigned edition,
        int64_t body_length, uint64_t *location) {
    struct play_name name;
    play_name(&name, number);
    struct head_record record = {.destination = name.destination,
            .authority = name.name.authority,
            .path = name.name.path,
            .body_length = body_length,
            .boot = 7};
    struct stored_head *head = play_head(number, variant, edition);
    int error = disk_put_update(place, &record, head, location);
    free(head);
    return error;
}

// A 304 gives another head; the content stays what it was.
static void updates_keep_the_content(void) {
    struct play_disk play;
    struct disk_head *heads;
    unsigned char content[5000];
    play_start(&play, 1);
    for (unsigned i = 0; i < 2; i++) {
        struct disk_place place;
        uint64_t location;
        int64_t bytes = i ? (int64_t)sizeof content : -1;
        CU_ASSERT_EQUAL(play_put(&play, i, NULL, 1, bytes, &place, &location), 0);
        uint64_t stale = location;
        CU_ASSERT_EQUAL(update(&place, i, NULL, 2, bytes < 0 ? 6 * MIB : bytes, &location), 0);
        CU_ASSERT_NOT_EQUAL(stale, location);
        CU_ASSERT_EQUAL(update(&place, i, NULL, 3, bytes < 0 ? 7 * MIB : bytes, &stale), 0); // carried over
        CU_ASSERT_EQUAL(play_read(&play, i, true, &heads), 0);
        CU_ASSERT_PTR_NOT_NULL_FATAL(heads);
        CU_ASSERT_PTR_NULL(heads->next);
        CU_ASSERT_EQUAL(play_edition(heads->head, i, NULL), 3);
        CU_ASSERT_EQUAL(heads->location, stale);
        CU_ASSERT_EQUAL(heads->body_length, bytes < 0 ? 7 * MIB : bytes);
        CU_ASSERT_EQUAL(heads->place.generation, place.generation);
        CU_ASSERT_EQUAL(heads->content_bytes, i ? sizeof content : 0);
        play_fill(content, sizeof content, 1);
        CU_ASSERT_TRUE(!i || memcmp(heads->content, content, sizeof content) == 0);
        disk_heads_free(heads);
        disk_place_put(&place);
    }
    play_end(&play);
}

static void put_chunk(const struct disk_place *place, uint32_t number, uint32_t length, uint64_t salt) {
    unsigned char *content = malloc(length + 1);
    struct iovec parts[64];
    int count = 0;
    play_fill(content, length, salt);
    for (uint32_t at = 0; at < length; at += 16 * KIB, count++)
        parts[count] = (struct iovec){content + at, length - at < 16 * KIB ? length - at : 16 * KIB};
    CU_ASSERT_EQUAL(disk_put_chunk(place, number, parts, count), 0);
    free(content);
}

static void check_chunk(const struct disk_place *place, uint32_t number, uint32_t length, uint64_t salt) {
    unsigned char *wanted = malloc(length + 1), *got = malloc(MIB);
    uint32_t bytes, end;
    play_fill(wanted, length, salt);
    CU_ASSERT_TRUE(disk_may_have_chunk(place, number));
    for (uint32_t at = 0; at < length; at += 128 * KIB) {
        uint32_t left = length - at < 128 * KIB ? length - at : 128 * KIB;
        CU_ASSERT_EQUAL(disk_read_chunk(place, number, at, got, 128 * KIB, true, &bytes, &end), 0);
        CU_ASSERT_EQUAL(bytes, left);
        CU_ASSERT_EQUAL(end, length);
        CU_ASSERT_TRUE(bytes == left && memcmp(got, wanted + at, left) == 0);
    }
    uint32_t behind = (length + 64 * KIB - 1) / (64 * KIB) * (64 * KIB);
    CU_ASSERT_EQUAL(disk_read_chunk(place, number, behind, got, 64 * KIB, true, &bytes, &end), 0);
    CU_ASSERT_EQUAL(bytes, 0);
    CU_ASSERT_EQUAL(end, length);
    free(wanted);
    free(got);
}

static void chunks_are_found_with_their_place(void) {
    struct play_disk play;
    struct disk_place place, other;
    struct disk_head *heads;
    unsigned char block[64 * KIB];
    uint32_t bytes, end;
    play_start(&play, 1);
    CU_ASSERT_EQUAL(play_put(&play, 1, NULL, 1, -1, &place, NULL), 0);
    CU_ASSERT_EQUAL(play_put(&play, 1, NULL, 2, -1, &other, NULL), 0); // a new version
    CU_ASSERT_TRUE(other.generation > place.generation);
    CU_ASSERT_FALSE(disk_may_have_chunk(&place, 0));
    CU_ASSERT_EQUAL(disk_read_chunk(&place, 0, 0, block, sizeof block, true, &bytes, &end), -ENODATA);
    put_chunk(&place, 0, MIB, 10);
    put_chunk(&place, 1, 100 * KIB, 11); // broke off
    put_chunk(&place, 5, 1, 12);
    put_chunk(&place, 1, 100 * KIB - 1, 11); // less than there is
    check_chunk(&place, 0, MIB, 10);
    check_chunk(&place, 1, 100 * KIB, 11);
    check_chunk(&place, 5, 1, 12);
    put_chunk(&place, 1, MIB, 11);
    check_chunk(&place, 1, MIB, 11);
    CU_ASSERT_FALSE(disk_may_have_chunk(&place, 2));
    CU_ASSERT_FALSE(disk_may_have_chunk(&other, 0));
    disk_place_put(&place);
    disk_place_put(&other);
    play_close(&play);
    play_open(&play);
    CU_ASSERT_EQUAL(play_read(&play, 1, true, &heads), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(heads);
    CU_ASSERT_PTR_NOT_NULL_FATAL(heads->next); // each generation's
    CU_ASSERT_EQUAL(play_edition(heads->head, 1, NULL), 2);
    check_chunk(&heads->next->place, 0, MIB, 10);
    check_chunk(&heads->next->place, 1, MIB, 11);
    check_chunk(&heads->next->place, 5, 1, 12);
    CU_ASSERT_FALSE(disk_may_have_chunk(&heads->place, 0));
    disk_heads_free(heads);
    play_end(&play);
}

static void a_link_local_destination_is_not_stored(void) {
    struct play_disk play;
    struct play_name name;
    struct disk_place place = {0};
    uint64_t location;
    play_start(&play, 1);
    play_name(&name, 1);
    name.destination.scope = 2;
    struct head_record record = {.destination = name.destination,
            .authority = name.name.authority,
            .path = name.name.path,
            .body_length = 0};
    struct stored_head *head = play_head(1, NULL, 1);
    CU_ASSERT_EQUAL(disk_put_head(play.disk, &record, head, true, NULL, 0, &place, &location), -EINVAL);
    CU_ASSERT_FALSE(disk_may_have(play.disk, &name.name));
    free(head);
    play_end(&play);
}

SUITE(cache_disk, CASE(puts_and_reads_back), CASE(what_is_cached_needs_no_wait),
        CASE(variants_stand_side_by_side), CASE(updates_keep_the_content),
        CASE(chunks_are_found_with_their_place), CASE(a_link_local_destination_is_not_stored))
