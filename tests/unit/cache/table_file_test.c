#include "cache/record.h"
#include "cache/table.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEADER_BYTES 32

struct bytes {
    unsigned char *data;
    size_t length;
};

static struct cache_key key_number(uint64_t n) {
    return (struct cache_key){n, ~n};
}

static struct table *table_of(uint64_t objects, uint64_t entries, uint64_t first_location) {
    struct table *table = table_new(objects);
    uint64_t lost;
    for (uint64_t n = 0; n < entries; n++) {
        table_add(table, key_number(n), first_location + n, &lost);
        for (unsigned hits = 0; hits < n % 4; hits++)
            table_hit(table, key_number(n), first_location + n);
    }
    return table;
}

static struct bytes saved(const struct table *table) {
    int fd = memfd_create("table", 0);
    CU_ASSERT_EQUAL(table_save(table, fd), 0);
    struct bytes bytes = {.length = (size_t)lseek(fd, 0, SEEK_CUR)};
    bytes.data = malloc(bytes.length);
    CU_ASSERT_EQUAL(pread(fd, bytes.data, bytes.length, 0), (ssize_t)bytes.length);
    close(fd);
    return bytes;
}

static int load(struct table *table, struct bytes bytes) {
    int fd = memfd_create("table", 0);
    CU_ASSERT_EQUAL(write(fd, bytes.data, bytes.length), (ssize_t)bytes.length);
    lseek(fd, 0, SEEK_SET);
    int error = table_load(table, fd);
    close(fd);
    return error;
}

// Whether the bytes are refused by an empty table of this size, and leave nothing in it.
static bool is_refused(uint64_t objects, struct bytes bytes) {
    struct table *table = table_new(objects);
    bool refused = load(table, bytes) == -EBADMSG && table_count(table) == 0;
    struct table_entry entries[TABLE_CANDIDATES_MAX];
    for (uint64_t n = 0; n < 200; n++)
        refused = refused && table_find(table, key_number(n), entries) == 0;
    table_free(table);
    return refused;
}

static unsigned differences(const struct table *table, uint64_t entries, uint64_t first_location) {
    struct table_entry found[TABLE_CANDIDATES_MAX];
    unsigned different = 0;
    for (uint64_t n = 0; n < entries; n++)
        different += table_find(table, key_number(n), found) != 1 ||
                     found[0].location != first_location + n || found[0].hits != n % 4;
    return different;
}

static void comes_back(uint64_t objects, uint64_t entries) {
    const uint64_t first = TABLE_LOCATION_MAXIMUM - entries;
    struct table *table = table_of(objects, entries, first), *again = table_new(objects);
    struct bytes bytes = saved(table), twice;
    CU_ASSERT_EQUAL(load(again, bytes), 0);
    CU_ASSERT_EQUAL(table_count(again), entries);
    CU_ASSERT_EQUAL(differences(again, entries, first), 0);
    twice = saved(again); // entries of a bucket keep their order, but not their place
    CU_ASSERT_EQUAL(twice.length, bytes.length);
    free(bytes.data);
    free(twice.data);
    table_free(table);
    table_free(again);
}

static void what_was_saved_comes_back(void) {
    comes_back(0, 0);
    comes_back(100, 80);
    comes_back(20000, 16000);        // several blocks, the last one shorter
    comes_back(1024 * 480 / 100, 3); // exactly one block
}

static void loaded_entries_can_be_changed(void) {
    struct table *table = table_of(1000, 500, 0), *again = table_new(1000);
    struct bytes bytes = saved(table);
    CU_ASSERT_EQUAL(load(again, bytes), 0);
    for (uint64_t n = 0; n < 500; n++)
        CU_ASSERT_TRUE(table_remove(again, key_number(n), n));
    CU_ASSERT_EQUAL(table_count(again), 0);
    free(bytes.data);
    table_free(table);
    table_free(again);
}

// It lies between other things in its file, which stay unread.
static void it_reads_no_further_than_it_wrote(void) {
    struct table *table = table_of(100, 50, 0), *again = table_new(100);
    int fd = memfd_create("table", 0);
    CU_ASSERT_EQUAL(write(fd, "before", 6), 6);
    CU_ASSERT_EQUAL(table_save(table, fd), 0);
    off_t end = lseek(fd, 0, SEEK_CUR);
    CU_ASSERT_EQUAL(write(fd, "after", 5), 5);
    lseek(fd, 6, SEEK_SET);
    CU_ASSERT_EQUAL(table_load(again, fd), 0);
    CU_ASSERT_EQUAL(lseek(fd, 0, SEEK_CUR), end);
    CU_ASSERT_EQUAL(table_count(again), 50);
    close(fd);
    table_free(table);
    table_free(again);
}

// ---- rot ----

static void every_flipped_bit_is_refused(void) {
    struct table *table = table_of(10, 40, 5);
    struct bytes bytes = saved(table);
    unsigned accepted = 0;
    for (size_t bit = 0; bit < bytes.length * 8; bit++) {
        bytes.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        accepted += !is_refused(10, bytes);
        bytes.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    CU_ASSERT_EQUAL(accepted, 0);
    CU_ASSERT_FALSE(is_refused(10, bytes));
    free(bytes.data);
    table_free(table);
}

static void every_missing_end_is_refused(void) {
    struct table *table = table_of(10, 40, 5);
    struct bytes bytes = saved(table);
    unsigned accepted = 0;
    for (size_t length = 0; length < bytes.length; length++)
        accepted += !is_refused(10, (struct bytes){bytes.data, length});
    CU_ASSERT_EQUAL(accepted, 0);
    free(bytes.data);
    table_free(table);
}

static void zeros_and_noise_are_refused(void) {
    struct bytes bytes = {calloc(1, 100000), 100000};
    CU_ASSERT_TRUE(is_refused(10, bytes));
    uint32_t random = 1;
    for (size_t i = 0; i < bytes.length; i++)
        bytes.data[i] = (unsigned char)((random = random * 1103515245 + 12345) >> 16);
    CU_ASSERT_TRUE(is_refused(10, bytes));
    free(bytes.data);
}

static void lost_sectors_are_refused(void) {
    struct table *table = table_of(20000, 16000, 0);
    struct bytes bytes = saved(table);
    unsigned char sector[512];
    unsigned accepted = 0;
    for (size_t at = 0; at + sizeof sector <= bytes.length; at += 7 * sizeof sector) {
        memcpy(sector, bytes.data + at, sizeof sector);
        memset(bytes.data + at, 0, sizeof sector);
        accepted += !is_refused(20000, bytes);
        memcpy(bytes.data + at, sector, sizeof sector);
    }
    CU_ASSERT_EQUAL(accepted, 0);
    CU_ASSERT_FALSE(is_refused(20000, bytes));
    free(bytes.data);
    table_free(table);
}

static void another_size_is_refused(void) {
    struct table *table = table_of(10000, 100, 0);
    struct bytes bytes = saved(table);
    CU_ASSERT_TRUE(is_refused(9000, bytes));
    CU_ASSERT_TRUE(is_refused(11000, bytes));
    free(bytes.data);
    table_free(table);
}

static uint32_t get32(const unsigned char *from) {
    return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static void put32(unsigned char *to, uint32_t value) {
    for (unsigned i = 0; i < 4; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

static void another_version_is_refused(void) {
    struct table *table = table_of(10, 40, 5);
    struct bytes bytes = saved(table);
    CU_ASSERT_EQUAL(get32(bytes.data + 8), 1);
    put32(bytes.data + 8, 2);
    put32(bytes.data + 28, record_crc(bytes.data, 28));
    CU_ASSERT_TRUE(is_refused(10, bytes));
    free(bytes.data);
    table_free(table);
}

// Where block `n` begins.
static size_t block_at(struct bytes bytes, unsigned n) {
    size_t at = HEADER_BYTES;
    while (n-- > 0)
        at += 4 + get32(bytes.data + at) + 4;
    return at;
}

// The blocks of an index that was saved twice fit one by one, but not together.
static void parts_of_two_files_are_refused(void) {
    struct table *one = table_of(20000, 16000, 0), *other = table_of(20000, 16000, 100000);
    struct bytes bytes = saved(one), others = saved(other);
    CU_ASSERT_EQUAL(bytes.length, others.length);
    for (unsigned n = 1; n < 4; n++) {
        struct bytes mixed = {malloc(bytes.length), bytes.length};
        size_t at = block_at(bytes, n);
        CU_ASSERT_EQUAL(at, block_at(others, n));
        memcpy(mixed.data, bytes.data, at);
        memcpy(mixed.data + at, others.data + at, bytes.length - at);
        CU_ASSERT_TRUE(is_refused(20000, mixed));
        free(mixed.data);
    }
    free(bytes.data);
    free(others.data);
    table_free(one);
    table_free(other);
}

static void sign(unsigned char *block, const unsigned char *before) {
    uint32_t length = 4 + get32(block);
    unsigned char covered[8192];
    memcpy(covered, before, 4);
    memcpy(covered + 4, block, length);
    put32(block + length, record_crc(covered, 4 + length));
}

// Right checksums, wrong content: changes one byte of the first block, `offset` after its length.
static bool is_signed_lie_refused(size_t offset, unsigned char value) {
    struct table *table = table_of(10, 40, 5);
    struct bytes bytes = saved(table);
    size_t block = block_at(bytes, 0), end = block_at(bytes, 1);
    bytes.data[block + 4 + offset] = value;
    sign(bytes.data + block, bytes.data + HEADER_BYTES - 4);
    sign(bytes.data + end, bytes.data + end - 4);
    bool refused = is_refused(10, bytes);
    free(bytes.data);
    table_free(table);
    return refused;
}

static void entries_that_cannot_be_are_refused(void) {
    struct table *table = table_of(10, 40, 5);
    struct bytes bytes = saved(table);
    size_t payload = block_at(bytes, 0) + 4, first = 0;
    while (bytes.data[payload + first] == 0)
        first++;
    unsigned char count = bytes.data[payload + first];
    CU_ASSERT_FALSE(is_signed_lie_refused(first, count));
    CU_ASSERT_TRUE(is_signed_lie_refused(first, 7));                          // more than a bucket holds
    CU_ASSERT_TRUE(is_signed_lie_refused(first, (unsigned char)(count - 1))); // buckets shifted
    CU_ASSERT_TRUE(is_signed_lie_refused(first + 1 + 9, 1));                  // a spare bit
    CU_ASSERT_EQUAL(get32(bytes.data + block_at(bytes, 1)), 8);
    free(bytes.data);
    table_free(table);
}

static void a_wrong_count_is_refused(void) {
    struct table *table = table_of(10, 40, 5);
    struct bytes bytes = saved(table);
    size_t end = block_at(bytes, 1);
    CU_ASSERT_EQUAL(bytes.data[end + 4], 40);
    bytes.data[end + 4] = 41;
    sign(bytes.data + end, bytes.data + end - 4);
    CU_ASSERT_TRUE(is_refused(10, bytes));
    bytes.data[end + 4] = 40;
    sign(bytes.data + end, bytes.data + end - 4);
    CU_ASSERT_FALSE(is_refused(10, bytes));
    free(bytes.data);
    table_free(table);
}

// ---- the world ----

static void failures_of_the_world_are_told(void) {
    struct table *table = table_of(20000, 1000, 0), *other = table_new(20000);
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC),
        folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CU_ASSERT_EQUAL(table_save(table, full), -ENOSPC);
    CU_ASSERT_EQUAL(table_save(table, -1), -EBADF);
    CU_ASSERT_EQUAL(table_load(other, -1), -EBADF);
    CU_ASSERT_EQUAL(table_load(other, folder), -EISDIR);
    CU_ASSERT_EQUAL(table_count(table), 1000);
    close(full);
    close(folder);
    table_free(table);
    table_free(other);
}

SUITE(cache_table_file, CASE(what_was_saved_comes_back), CASE(loaded_entries_can_be_changed),
        CASE(it_reads_no_further_than_it_wrote), CASE(every_flipped_bit_is_refused),
        CASE(every_missing_end_is_refused), CASE(zeros_and_noise_are_refused), CASE(lost_sectors_are_refused),
        CASE(another_size_is_refused), CASE(another_version_is_refused), CASE(parts_of_two_files_are_refused),
        CASE(entries_that_cannot_be_are_refused), CASE(a_wrong_count_is_refused),
        CASE(failures_of_the_world_are_told))
