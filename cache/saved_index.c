#include "cache/saved_index.h"

#include "cache/file.h"
#include "cache/little.h"
#include "cache/memory.h"
#include "cache/segments.h"
#include "cache/table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "index"
#define MAGIC "WEIRINDX"
#define MAGIC_BYTES 8
#define FORMAT 1
#define HEADER_BYTES 64
#define LINE_BYTES 32

struct line {
    uint64_t segment;
    uint32_t slot;
};

struct saved_index {
    struct line *lines; // by segment, ascending
    uint32_t count;
    struct table *table;
};

static int compare_lines(const void *a, const void *b) {
    const struct line *left = a, *right = b;
    return left->segment < right->segment ? -1 : left->segment > right->segment;
}

static bool is_good_header(const unsigned char *header, uint64_t volume, uint64_t size) {
    return memcmp(header, MAGIC, MAGIC_BYTES) == 0 && little_get32(header + 60) == record_crc(header, 60) &&
           little_get32(header + 8) == FORMAT && little_get64(header + 16) == volume &&
           little_get32(header + 12) <= (size - HEADER_BYTES) / LINE_BYTES;
}

static int read_lines(struct saved_index *index, int fd, const unsigned char *header) {
    size_t bytes = (size_t)index->count * LINE_BYTES;
    unsigned char *list = memory_new(bytes + 1);
    index->lines = memory_new(index->count * sizeof *index->lines + 1);
    int error = file_read(fd, HEADER_BYTES, list, bytes);
    if (error == 0 && record_crc(list, bytes) != little_get32(header + 40))
        error = -EBADMSG;
    for (uint32_t i = 0; i < index->count && error == 0; i++)
        index->lines[i] = (struct line){
                little_get64(list + i * LINE_BYTES), little_get32(list + (size_t)i * LINE_BYTES + 16)};
    free(list);
    if (error == 0 && index->count > 0)
        qsort(index->lines, index->count, sizeof *index->lines, compare_lines);
    return error;
}

static int read_all(struct saved_index *index, int fd, uint64_t volume) {
    unsigned char header[HEADER_BYTES];
    uint64_t size;
    int error = file_size(fd, &size);
    if (error < 0)
        return error;
    if (size < HEADER_BYTES)
        return -EBADMSG;
    error = file_read(fd, 0, header, sizeof header);
    if (error < 0)
        return error;
    if (!is_good_header(header, volume, size))
        return -EBADMSG;
    index->count = little_get32(header + 12);
    error = read_lines(index, fd, header);
    uint64_t at = HEADER_BYTES + (uint64_t)index->count * LINE_BYTES;
    if (error < 0 || lseek(fd, (off_t)at, SEEK_SET) < 0)
        return error < 0 ? error : -errno;
    index->table = table_restore(fd, size - at, &error);
    return error;
}

struct saved_index *saved_index_read(int directory, uint64_t volume, int *error) {
    int fd;
    *error = file_open(directory, NAME, O_RDONLY, &fd);
    if (*error < 0)
        return NULL;
    struct saved_index *index = memory_new(sizeof *index);
    *index = (struct saved_index){0};
    *error = read_all(index, fd, volume);
    file_close(fd);
    if (*error == 0)
        return index;
    saved_index_free(index);
    return NULL;
}

void saved_index_free(struct saved_index *index) {
    if (!index)
        return;
    free(index->lines);
    table_free(index->table);
    free(index);
}

bool saved_index_segment(const struct saved_index *index, uint32_t n, uint64_t *segment) {
    if (n >= index->count)
        return false;
    *segment = index->lines[n].segment;
    return true;
}

int saved_index_hits(
        const struct saved_index *index, struct cache_key key, uint64_t segment, uint64_t offset) {
    struct table_entry entries[TABLE_CANDIDATES_MAX];
    struct line wanted = {.segment = segment};
    const struct line *line =
            index->count ? bsearch(&wanted, index->lines, index->count, sizeof wanted, compare_lines) : NULL;
    unsigned count = line ? table_find(index->table, key, entries) : 0;
    for (unsigned i = 0; i < count; i++)
        if (entries[i].location == segments_location(line->slot, offset))
            return entries[i].hits;
    return -1;
}
