#include "cache/super.h"

#include "cache/file.h"
#include "cache/little.h"
#include "cache/record.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>

#define NAME "super"
#define MAGIC "WEIRVOLU"
#define MAGIC_BYTES 8
#define CRC_AT 60
#define COPIES SUPER_COPIES

struct super super_new(uint64_t segment_bytes) {
    struct super super = {.format = SUPER_FORMAT, .segment_bytes = segment_bytes};
    // Before the pool of random numbers is filled the address of a variable has to do.
    if (getrandom(super.uuid, sizeof super.uuid, GRND_NONBLOCK) != sizeof super.uuid)
        super.uuid[0] = (uint64_t)(uintptr_t)&super ^ (uint64_t)file_now_ms() << 32;
    if (getrandom(&super.seed, sizeof super.seed, GRND_NONBLOCK) != sizeof super.seed)
        super.seed = super.uuid[0] * UINT64_C(0x9e3779b97f4a7c15);
    return super;
}

static void encode(const struct super *super, unsigned char out[static SUPER_BYTES]) {
    memset(out, 0, SUPER_BYTES);
    memcpy(out, MAGIC, MAGIC_BYTES);
    little_put32(out + 8, super->format);
    little_put32(out + 12, super->needed_bits);
    little_put32(out + 16, super->other_bits);
    little_put64(out + 24, super->uuid[0]);
    little_put64(out + 32, super->uuid[1]);
    little_put64(out + 40, super->seed);
    little_put64(out + 48, super->segment_bytes);
    little_put32(out + CRC_AT, record_crc(out, CRC_AT));
}

static enum super_found decode(const unsigned char bytes[static SUPER_BYTES], struct super *super) {
    if (memcmp(bytes, MAGIC, MAGIC_BYTES) != 0 || little_get32(bytes + CRC_AT) != record_crc(bytes, CRC_AT))
        return SUPER_BROKEN;
    *super = (struct super){.format = little_get32(bytes + 8),
            .needed_bits = little_get32(bytes + 12),
            .other_bits = little_get32(bytes + 16),
            .uuid = {little_get64(bytes + 24), little_get64(bytes + 32)},
            .seed = little_get64(bytes + 40),
            .segment_bytes = little_get64(bytes + 48)};
    return super->format == SUPER_FORMAT && super->needed_bits == 0 ? SUPER_GOOD : SUPER_FOREIGN;
}

static int write_copies(int fd, const struct super *super) {
    unsigned char bytes[SUPER_BYTES];
    int error = 0;
    encode(super, bytes);
    for (uint64_t i = 0; i < COPIES && error == 0; i++)
        if ((error = file_write_bytes(fd, i * SUPER_COPY_AT, bytes, sizeof bytes)) == 0)
            error = file_sync(fd);
    return error;
}

int super_write(int directory, const struct super *super) {
    int fd, error = file_open(directory, NAME, O_RDWR | O_CREAT, &fd);
    if (error < 0)
        return error;
    error = write_copies(fd, super);
    file_close(fd);
    return error < 0 ? error : file_sync(directory);
}

// A copy that cannot be read counts as broken; only when that is all there is it is an error.
static int read_copies(int fd, struct super *super, enum super_found *found) {
    enum super_found copies[COPIES];
    struct super read;
    int error = 0;
    *found = SUPER_BROKEN;
    for (uint64_t i = 0; i < COPIES; i++) {
        unsigned char bytes[SUPER_BYTES] = {0};
        int result = file_read(fd, i * SUPER_COPY_AT, bytes, sizeof bytes);
        copies[i] = decode(bytes, &read);
        if (result < 0)
            error = result;
        else if (copies[i] != SUPER_BROKEN && *found == SUPER_BROKEN) {
            *super = read;
            *found = copies[i];
        }
    }
    if (*found == SUPER_GOOD && (copies[0] == SUPER_BROKEN || copies[1] == SUPER_BROKEN))
        write_copies(fd, super); // as well as it goes: one is enough
    return *found == SUPER_BROKEN ? error : 0;
}

int super_read(int directory, struct super *super, enum super_found *found) {
    uint64_t size = 0;
    int fd, error = file_open(directory, NAME, O_RDWR, &fd);
    *found = SUPER_NONE;
    if (error < 0)
        return error == -ENOENT ? 0 : error;
    error = file_size(fd, &size);
    if (error == 0 && size > 0) {
        error = read_copies(fd, super, found);
        if (error == -EIO && size < SUPER_COPY_AT + SUPER_BYTES)
            error = 0; // shorter than it was written: broken, not unreadable
    }
    file_close(fd);
    return error;
}

int super_look(int directory, struct super *super, enum super_found copies[static SUPER_COPIES]) {
    int fd, error = file_open(directory, NAME, O_RDONLY, &fd);
    *super = (struct super){0};
    for (unsigned i = 0; i < SUPER_COPIES; i++)
        copies[i] = SUPER_NONE;
    if (error < 0)
        return error == -ENOENT ? 0 : error;
    for (unsigned i = 0; i < SUPER_COPIES; i++) {
        unsigned char bytes[SUPER_BYTES];
        struct super found;
        copies[i] = SUPER_BROKEN;
        if (file_read(fd, (uint64_t)i * SUPER_COPY_AT, bytes, sizeof bytes) < 0)
            continue;
        copies[i] = decode(bytes, &found);
        if (copies[i] != SUPER_BROKEN)
            *super = found;
    }
    file_close(fd);
    return 0;
}
