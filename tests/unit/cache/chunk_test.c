// A chunk's runs of bytes, beside a plain array that says of each byte whether it is there.
#include "cache/budget.h"
#include "cache/chunk.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH (5 * BODY_BLOCK_BYTES + 7)

static unsigned random_state;

static unsigned dice(unsigned sides) {
    random_state = random_state * 1103515245 + 12345;
    return (random_state >> 8) % sides;
}

static char byte_at(uint32_t offset) {
    return (char)(offset * 7 + offset / 253);
}

static uint32_t put(struct chunk *chunk, uint32_t from, uint32_t to) {
    static char data[LENGTH];
    for (uint32_t i = from; i < to; i++)
        data[i - from] = byte_at(i);
    uint32_t cost = chunk_copy(chunk, from, data, to - from);
    chunk_add(chunk, from, to);
    return cost;
}

static void check_span(const struct chunk *chunk, uint32_t at, uint32_t from, uint32_t to) {
    CU_ASSERT_TRUE_FATAL(at < chunk->span_count);
    CU_ASSERT_EQUAL(chunk->spans[at].from, from);
    CU_ASSERT_EQUAL(chunk->spans[at].to, to);
}

static void runs_grow_together(void) {
    struct chunk *chunk = chunk_new(NULL, 0, LENGTH);
    CU_ASSERT_PTR_NULL(chunk_next(chunk, 0));
    chunk_add(chunk, 10, 20);
    chunk_add(chunk, 40, 50);
    chunk_add(chunk, 25, 30);
    CU_ASSERT_EQUAL(chunk->span_count, 3);
    check_span(chunk, 0, 10, 20);
    check_span(chunk, 1, 25, 30);
    check_span(chunk, 2, 40, 50);
    chunk_add(chunk, 20, 25); // touches on both sides
    CU_ASSERT_EQUAL(chunk->span_count, 2);
    check_span(chunk, 0, 10, 30);
    chunk_add(chunk, 12, 13); // within
    check_span(chunk, 0, 10, 30);
    CU_ASSERT_FALSE(chunk_is_full(chunk, LENGTH));
    chunk_add(chunk, 0, LENGTH);
    CU_ASSERT_EQUAL(chunk->span_count, 1);
    check_span(chunk, 0, 0, LENGTH);
    CU_ASSERT_TRUE(chunk_is_full(chunk, LENGTH));
    chunk_put(chunk);
}

static void finds_the_run_of_a_byte(void) {
    static const struct {
        uint32_t offset;
        int found, next; // the run's beginning; -1: none
    } rows[] = {{0, -1, 10}, {9, -1, 10}, {10, 10, 10}, {19, 10, 10}, {20, -1, 40}, {39, -1, 40},
            {49, 40, 40}, {50, -1, -1}, {LENGTH - 1, -1, -1}};
    struct chunk *chunk = chunk_new(NULL, 0, LENGTH);
    chunk_add(chunk, 10, 20);
    chunk_add(chunk, 40, 50);
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct chunk_span *found = chunk_find(chunk, rows[i].offset);
        const struct chunk_span *next = chunk_next(chunk, rows[i].offset);
        CU_ASSERT_EQUAL(found ? (int)found->from : -1, rows[i].found);
        CU_ASSERT_EQUAL(next ? (int)next->from : -1, rows[i].next);
    }
    chunk_put(chunk);
}

static void the_smallest_run_makes_room(void) {
    struct chunk *chunk = chunk_new(NULL, 0, LENGTH);
    for (uint32_t i = 0; i < CHUNK_SPANS_MAX; i++)
        chunk_add(chunk, i * 100, i * 100 + (i == 33 ? 5 : 10));
    CU_ASSERT_EQUAL(chunk->span_count, CHUNK_SPANS_MAX);
    CU_ASSERT_PTR_NOT_NULL(chunk_find(chunk, 3302));
    chunk_add(chunk, 50, 51);
    CU_ASSERT_EQUAL(chunk->span_count, CHUNK_SPANS_MAX);
    CU_ASSERT_PTR_NULL(chunk_find(chunk, 3302));
    check_span(chunk, 1, 50, 51);
    check_span(chunk, 34, 3400, 3410);
    chunk_put(chunk);
}

static void blocks_are_made_once_and_as_large_as_needed(void) {
    struct chunk *chunk = chunk_new(NULL, 0, LENGTH);
    CU_ASSERT_EQUAL(chunk_blocks(LENGTH), 6);
    CU_ASSERT_EQUAL(put(chunk, 5, 6), memory_cost(BODY_BLOCK_BYTES));
    CU_ASSERT_EQUAL(put(chunk, 0, BODY_BLOCK_BYTES), 0);
    CU_ASSERT_EQUAL(put(chunk, LENGTH - 1, LENGTH), memory_cost(7));
    CU_ASSERT_EQUAL(
            put(chunk, BODY_BLOCK_BYTES - 1, 2 * BODY_BLOCK_BYTES + 1), 2 * memory_cost(BODY_BLOCK_BYTES));
    CU_ASSERT_EQUAL(chunk_free_before(chunk, BODY_BLOCK_BYTES - 1), 0);
    CU_ASSERT_EQUAL(chunk_free_before(chunk, BODY_BLOCK_BYTES), memory_cost(BODY_BLOCK_BYTES));
    CU_ASSERT_EQUAL(chunk_free_before(chunk, BODY_BLOCK_BYTES), 0);
    CU_ASSERT_EQUAL(chunk_free_before(chunk, LENGTH), 2 * memory_cost(BODY_BLOCK_BYTES));
    chunk_put(chunk);
}

static void what_is_there_is_not_written_again(void) {
    struct chunk *chunk = chunk_new(NULL, 0, 100);
    chunk_copy(chunk, 10, "first", 5);
    chunk_add(chunk, 10, 15);
    chunk_copy(chunk, 8, "??XXXXX??", 9);
    chunk_add(chunk, 8, 17);
    CU_ASSERT_EQUAL(memcmp(chunk->blocks[0] + 8, "??first??", 9), 0);
    chunk_put(chunk);
}

static void check_pieces(const struct chunk *chunk, uint32_t from, uint32_t to) {
    struct iovec pieces[8];
    int used = chunk_pieces(chunk, from, to, pieces, 8);
    uint32_t at = from, wrong = 0;
    for (int i = 0; i < used; i++)
        for (size_t j = 0; j < pieces[i].iov_len; j++, at++)
            wrong += ((char *)pieces[i].iov_base)[j] != byte_at(at);
    CU_ASSERT_EQUAL(at, to);
    CU_ASSERT_EQUAL(wrong, 0);
}

static void check_against(const struct chunk *chunk, const char *present) {
    uint32_t at = 0, runs = 0;
    while (at < LENGTH) {
        const char *found = memchr(present + at, 1, LENGTH - at);
        const struct chunk_span *next = chunk_next(chunk, at);
        if (!found) {
            CU_ASSERT_PTR_NULL(next);
            break;
        }
        uint32_t from = (uint32_t)(found - present);
        const char *end = memchr(found, 0, LENGTH - from);
        uint32_t to = end ? (uint32_t)(end - present) : LENGTH;
        CU_ASSERT_PTR_NOT_NULL_FATAL(next);
        CU_ASSERT_EQUAL(next->from, from);
        CU_ASSERT_EQUAL(next->to, to);
        check_pieces(chunk, from, to);
        at = to;
        runs++;
    }
    CU_ASSERT_EQUAL(chunk->span_count, runs);
}

static void as_a_plain_array_has_it(void) {
    static char present[LENGTH];
    for (unsigned round = 0; round < 200; round++) {
        struct chunk *chunk = chunk_new(NULL, 0, LENGTH);
        uint64_t cost = 0;
        random_state = round;
        memset(present, 0, sizeof present);
        for (unsigned i = 0; i < CHUNK_SPANS_MAX; i++) {
            uint32_t from = dice(LENGTH), to = from + 1 + dice(round % 2 ? 200 : 9000);
            to = to < LENGTH ? to : LENGTH;
            cost += put(chunk, from, to);
            memset(present + from, 1, to - from);
        }
        check_against(chunk, present);
        CU_ASSERT_EQUAL(chunk_free_before(chunk, 6 * BODY_BLOCK_BYTES), cost);
        chunk_put(chunk);
    }
}

SUITE(cache_chunk, CASE(runs_grow_together), CASE(finds_the_run_of_a_byte), CASE(the_smallest_run_makes_room),
        CASE(blocks_are_made_once_and_as_large_as_needed), CASE(what_is_there_is_not_written_again),
        CASE(as_a_plain_array_has_it))
