// The index as bytes. Little-endian:
//
//     magic (8)  version (4)  buckets in a block (4)  buckets (8)  reserved (4), 0  CRC32C (4) of the 28
//     before for each block of buckets: length (4)  for each bucket: entries (1), each word (8) and rest (2)
//     CRC32C (4) the end, a block as well: 8 (4)  entries in all (8)  CRC32C (4)
//
// A block's CRC covers the CRC before it too: parts of two files do not fit together.
#include "cache/table.h"

#include "cache/bucket.h"
#include "cache/little.h"
#include "cache/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC "WEIRINDX"
#define VERSION 1
#define HEADER_BYTES 32
#define HEADER_CRC_AT 28
#define BLOCK_BUCKETS 1024
#define ENTRY_BYTES 10
#define BLOCK_BYTES (BLOCK_BUCKETS * (1 + BUCKET_ENTRIES * ENTRY_BYTES)) // at most
#define CRC_BYTES 4
#define LENGTH_BYTES 4
#define NOT_IT (-EBADMSG)

// A block in memory: the CRC of the one before, then what is in the file.
struct stream {
    int fd;
    uint32_t length; // of the payload
    unsigned char block[CRC_BYTES + LENGTH_BYTES + BLOCK_BYTES + CRC_BYTES];
};

static unsigned char *payload_of(struct stream *stream) {
    return stream->block + CRC_BYTES + LENGTH_BYTES;
}

static int write_all(int fd, const unsigned char *data, size_t length) {
    while (length > 0) {
        ssize_t written = write(fd, data, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        if (written == 0)
            return -EIO;
        data += written;
        length -= (size_t)written;
    }
    return 0;
}

static int read_all(int fd, unsigned char *data, size_t length) {
    while (length > 0) {
        ssize_t got = read(fd, data, length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            return NOT_IT;
        data += got;
        length -= (size_t)got;
    }
    return 0;
}

static uint32_t blocks_of(const struct table *table) {
    return table->bucket_count / BLOCK_BUCKETS + (table->bucket_count % BLOCK_BUCKETS != 0);
}

// The bucket after the last one of block `n`.
static uint32_t block_end(const struct table *table, uint32_t n) {
    uint64_t end = ((uint64_t)n + 1) * BLOCK_BUCKETS;
    return end < table->bucket_count ? (uint32_t)end : table->bucket_count;
}

static void make_header(const struct table *table, unsigned char header[static HEADER_BYTES]) {
    memset(header, 0, HEADER_BYTES);
    memcpy(header, MAGIC, sizeof MAGIC - 1);
    little_put32(header + 8, VERSION);
    little_put32(header + 12, BLOCK_BUCKETS);
    little_put64(header + 16, table->bucket_count);
    little_put32(header + HEADER_CRC_AT, record_crc(header, HEADER_CRC_AT));
}

// ---- saving ----

static int write_block(struct stream *stream) {
    uint32_t covered = CRC_BYTES + LENGTH_BYTES + stream->length;
    little_put32(stream->block + CRC_BYTES, stream->length);
    uint32_t crc = record_crc(stream->block, covered);
    little_put32(stream->block + covered, crc);
    int error = write_all(stream->fd, stream->block + CRC_BYTES, covered);
    little_put32(stream->block, crc);
    return error;
}

static unsigned read_bucket(const struct bucket *bucket, struct bucket_entry entries[BUCKET_ENTRIES]) {
    uint32_t sequence;
    unsigned count;
    do {
        sequence = bucket_sequence(bucket);
        count = 0;
        for (unsigned i = 0; i < BUCKET_ENTRIES; i++) {
            entries[count] = bucket_read(bucket, i);
            count += entries[count].word != 0;
        }
    } while (bucket_changed(bucket, sequence));
    return count;
}

static unsigned encode_bucket(struct stream *stream, const struct bucket *bucket) {
    struct bucket_entry entries[BUCKET_ENTRIES];
    unsigned count = read_bucket(bucket, entries);
    unsigned char *to = payload_of(stream) + stream->length;
    *to++ = (unsigned char)count;
    for (unsigned i = 0; i < count; i++, to += ENTRY_BYTES) {
        little_put64(to, entries[i].word);
        little_put16(to + 8, entries[i].rest);
    }
    stream->length += 1 + count * ENTRY_BYTES;
    return count;
}

static int save_blocks(const struct table *table, struct stream *stream) {
    uint64_t entries = 0;
    for (uint32_t n = 0; n < blocks_of(table); n++) {
        stream->length = 0;
        for (uint32_t i = n * BLOCK_BUCKETS; i < block_end(table, n); i++)
            entries += encode_bucket(stream, &table->buckets[i]);
        int error = write_block(stream);
        if (error)
            return error;
    }
    little_put64(payload_of(stream), entries);
    stream->length = sizeof entries;
    return write_block(stream);
}

int table_save(const struct table *table, int fd) {
    struct stream *stream = malloc(sizeof *stream);
    if (!stream)
        return -ENOMEM;
    stream->fd = fd;
    unsigned char header[HEADER_BYTES];
    make_header(table, header);
    memcpy(stream->block, header + HEADER_CRC_AT, CRC_BYTES);
    int error = write_all(fd, header, sizeof header);
    if (!error)
        error = save_blocks(table, stream);
    free(stream);
    return error;
}

// ---- loading ----

static int read_block(struct stream *stream) {
    int error = read_all(stream->fd, stream->block + CRC_BYTES, LENGTH_BYTES);
    if (error)
        return error;
    stream->length = little_get32(stream->block + CRC_BYTES);
    if (stream->length > BLOCK_BYTES)
        return NOT_IT;
    error = read_all(stream->fd, payload_of(stream), stream->length + CRC_BYTES);
    if (error)
        return error;
    uint32_t covered = CRC_BYTES + LENGTH_BYTES + stream->length;
    if (little_get32(stream->block + covered) != record_crc(stream->block, covered))
        return NOT_IT;
    memcpy(stream->block, stream->block + covered, CRC_BYTES);
    return 0;
}

// A bucket that others filled meanwhile takes what it has room for.
static unsigned fill_bucket(struct bucket *bucket, const unsigned char *from, unsigned count) {
    unsigned place, filled = 0;
    bucket_lock(bucket);
    for (; filled < count && bucket_room(bucket, &place); filled++, from += ENTRY_BYTES)
        bucket_write(bucket, place, (struct bucket_entry){little_get64(from), little_get16(from + 8)});
    bucket_unlock(bucket);
    return filled;
}

static bool is_entry(const unsigned char *from) {
    return (little_get64(from) & BUCKET_TAG_MASK) != 0 && little_get16(from + 8) <= BUCKET_REST_MASK;
}

// The bytes the bucket's entries take at `from`, with their count; 0: no bucket.
static uint32_t bucket_length(const unsigned char *from, uint32_t left) {
    if (left == 0 || *from > BUCKET_ENTRIES || left - 1 < *from * ENTRY_BYTES)
        return 0;
    for (unsigned i = 0; i < *from; i++)
        if (!is_entry(from + 1 + i * ENTRY_BYTES))
            return 0;
    return 1 + *from * ENTRY_BYTES;
}

static int decode_block(struct table *table, struct stream *stream, uint32_t n, uint64_t *entries) {
    const unsigned char *from = payload_of(stream);
    uint32_t left = stream->length;
    for (uint32_t i = n * BLOCK_BUCKETS; i < block_end(table, n); i++) {
        uint32_t length = bucket_length(from, left);
        if (length == 0)
            return NOT_IT;
        if (*from > 0)
            atomic_fetch_add_explicit(
                    &table->entries, fill_bucket(&table->buckets[i], from + 1, *from), memory_order_relaxed);
        *entries += *from;
        from += length;
        left -= length;
    }
    return left == 0 ? 0 : NOT_IT;
}

static int load_blocks(struct table *table, struct stream *stream) {
    uint64_t entries = 0;
    int error;
    for (uint32_t n = 0; n < blocks_of(table); n++) {
        error = read_block(stream);
        if (!error)
            error = decode_block(table, stream, n, &entries);
        if (error)
            return error;
    }
    error = read_block(stream);
    if (error)
        return error;
    return stream->length == sizeof entries && little_get64(payload_of(stream)) == entries ? 0 : NOT_IT;
}

int table_load(struct table *table, int fd) {
    struct stream *stream = malloc(sizeof *stream);
    if (!stream)
        return -ENOMEM;
    stream->fd = fd;
    unsigned char header[HEADER_BYTES], expected[HEADER_BYTES];
    make_header(table, expected);
    memcpy(stream->block, expected + HEADER_CRC_AT, CRC_BYTES);
    int error = read_all(fd, header, sizeof header);
    if (!error && memcmp(header, expected, sizeof header) != 0)
        error = NOT_IT;
    if (!error) {
        error = load_blocks(table, stream);
        if (error)
            table_forget(table, 0, TABLE_LOCATION_MAXIMUM);
    }
    free(stream);
    return error;
}

// The number of buckets that a header at the descriptor's position names; 0: it is none. The position stays.
static uint64_t peek_buckets(int fd) {
    unsigned char header[HEADER_BYTES];
    off_t at = lseek(fd, 0, SEEK_CUR);
    if (at < 0 || read_all(fd, header, sizeof header) != 0 || lseek(fd, at, SEEK_SET) < 0 ||
            little_get32(header + HEADER_CRC_AT) != record_crc(header, HEADER_CRC_AT))
        return 0;
    return little_get64(header + 16);
}

struct table *table_restore(int fd, uint64_t bytes, int *error) {
    uint64_t buckets = peek_buckets(fd);
    *error = NOT_IT;
    if (buckets == 0 || buckets > bytes) // a bucket takes a byte at least
        return NULL;
    struct table *table = table_new_of(buckets);
    *error = table ? table_load(table, fd) : -ENOMEM;
    if (*error == 0)
        return table;
    table_free(table);
    return NULL;
}
