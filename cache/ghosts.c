#include "cache/ghosts.h"

#include "cache/file.h"
#include "cache/record.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define WAYS 32 // of 2 bytes: a cache line

struct ghosts {
    pthread_mutex_t lock;
    uint16_t (*sets)[WAYS]; // the newest first, without gaps; 0: none
    uint32_t set_count;
    unsigned ways; // that count
};

// On disk: magic, how many sets, the CRC32C of all; then pieces of so many sets, little-endian.
#define MAGIC "GHST"
#define HEADER_BYTES 16
#define PIECE_SETS 512

struct ghosts *ghosts_new(uint64_t objects) {
    uint64_t sets = objects / WAYS + 1;
    if (sets > UINT32_MAX || sets > SIZE_MAX / sizeof(uint16_t[WAYS]))
        return NULL;
    struct ghosts *ghosts = calloc(1, sizeof *ghosts);
    if (!ghosts)
        return NULL;
    void *memory = mmap(NULL, sets * sizeof *ghosts->sets, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        free(ghosts);
        return NULL;
    }
    pthread_mutex_init(&ghosts->lock, NULL);
    ghosts->sets = memory;
    ghosts->set_count = (uint32_t)sets;
    ghosts->ways = WAYS;
    return ghosts;
}

void ghosts_free(struct ghosts *ghosts) {
    if (!ghosts)
        return;
    munmap(ghosts->sets, ghosts->set_count * sizeof *ghosts->sets);
    pthread_mutex_destroy(&ghosts->lock);
    free(ghosts);
}

uint64_t ghosts_bytes(const struct ghosts *ghosts) {
    return sizeof *ghosts + ghosts->set_count * sizeof *ghosts->sets;
}

// The place in a set is an age: as many came to this set since, and to each other one on average.
void ghosts_limit(struct ghosts *ghosts, uint64_t objects) {
    uint64_t ways = objects / ghosts->set_count + (objects % ghosts->set_count != 0);
    pthread_mutex_lock(&ghosts->lock);
    ghosts->ways = ways > WAYS ? WAYS : (unsigned)ways;
    pthread_mutex_unlock(&ghosts->lock);
}

static uint16_t fingerprint(uint64_t bits) {
    uint16_t lowest = (uint16_t)bits;
    return lowest ? lowest : 1;
}

void ghosts_add(struct ghosts *ghosts, struct cache_key key) {
    uint64_t bits = key_fold(key);
    uint16_t *set = ghosts->sets[key_reduce(bits, ghosts->set_count)];
    pthread_mutex_lock(&ghosts->lock);
    memmove(set + 1, set, (WAYS - 1) * sizeof *set);
    set[0] = fingerprint(bits);
    pthread_mutex_unlock(&ghosts->lock);
}

static unsigned position(const uint16_t set[static WAYS], uint16_t wanted) {
    unsigned at = 0;
    while (at < WAYS && set[at] != wanted)
        at++;
    return at;
}

bool ghosts_take(struct ghosts *ghosts, struct cache_key key) {
    uint64_t bits = key_fold(key);
    uint16_t *set = ghosts->sets[key_reduce(bits, ghosts->set_count)];
    pthread_mutex_lock(&ghosts->lock);
    unsigned at = position(set, fingerprint(bits));
    bool found = at < ghosts->ways;
    if (at < WAYS) {
        memmove(set + at, set + at + 1, (WAYS - 1 - at) * sizeof *set);
        set[WAYS - 1] = 0;
    }
    pthread_mutex_unlock(&ghosts->lock);
    return found;
}

// ---- on disk ----

struct piece {
    uint16_t sets[PIECE_SETS][WAYS];
};

static uint32_t piece_of(const struct ghosts *ghosts, uint32_t first) {
    return ghosts->set_count - first < PIECE_SETS ? ghosts->set_count - first : PIECE_SETS;
}

// Big-endian machines turn the bytes round, both ways.
static void turn(struct piece *piece) {
    for (uint32_t i = 0; i < PIECE_SETS; i++)
        for (unsigned way = 0; way < WAYS; way++)
            piece->sets[i][way] = htole16(piece->sets[i][way]);
}

static uint32_t mixed_crc(uint32_t crc, const void *data, size_t length) {
    uint32_t both[] = {htole32(crc), htole32(record_crc(data, length))};
    return record_crc(both, sizeof both);
}

static void encode_header(const struct ghosts *ghosts, uint32_t crc, unsigned char header[HEADER_BYTES]) {
    uint32_t numbers[] = {htole32(ghosts->set_count), htole32(WAYS), htole32(crc)};
    memcpy(header, MAGIC, 4);
    memcpy(header + 4, numbers, sizeof numbers);
}

int ghosts_save(struct ghosts *ghosts, int fd, uint64_t *at) {
    unsigned char header[HEADER_BYTES];
    uint64_t begin = *at;
    uint32_t crc = 0;
    struct piece *piece = calloc(1, sizeof *piece);
    int error = piece ? 0 : -ENOMEM;
    *at += HEADER_BYTES;
    for (uint32_t first = 0; error == 0 && first < ghosts->set_count; first += PIECE_SETS) {
        size_t bytes = piece_of(ghosts, first) * sizeof piece->sets[0];
        pthread_mutex_lock(&ghosts->lock);
        memcpy(piece, ghosts->sets[first], bytes);
        pthread_mutex_unlock(&ghosts->lock);
        turn(piece);
        crc = mixed_crc(crc, piece, bytes);
        error = file_write_bytes(fd, *at, piece, bytes);
        *at += bytes;
    }
    free(piece);
    encode_header(ghosts, crc, header);
    return error == 0 ? file_write_bytes(fd, begin, header, sizeof header) : error;
}

int ghosts_load(struct ghosts *ghosts, int fd, uint64_t at) {
    unsigned char header[HEADER_BYTES], wanted[HEADER_BYTES];
    uint32_t crc = 0;
    int error = file_read(fd, at, header, sizeof header);
    struct piece *piece = calloc(1, sizeof *piece);
    if (!piece)
        return -ENOMEM;
    at += HEADER_BYTES;
    encode_header(ghosts, 0, wanted);
    if (error == 0 && memcmp(header, wanted, 12) != 0)
        error = -EBADMSG;
    pthread_mutex_lock(&ghosts->lock);
    for (uint32_t first = 0; error == 0 && first < ghosts->set_count; first += PIECE_SETS) {
        size_t bytes = piece_of(ghosts, first) * sizeof piece->sets[0];
        error = file_read(fd, at, piece, bytes);
        crc = mixed_crc(crc, piece, bytes);
        turn(piece);
        memcpy(ghosts->sets[first], piece, bytes);
        at += bytes;
    }
    encode_header(ghosts, crc, wanted);
    if (error == 0 && memcmp(header, wanted, sizeof header) != 0)
        error = -EBADMSG;
    if (error < 0) // what was read is none of what they were
        memset(ghosts->sets, 0, ghosts->set_count * sizeof *ghosts->sets);
    pthread_mutex_unlock(&ghosts->lock);
    free(piece);
    return error;
}
