// Numbers in files: little-endian, at any address.
#pragma once

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void little_put16(unsigned char *at, uint16_t number) {
    number = htole16(number);
    memcpy(at, &number, sizeof number);
}

static inline void little_put32(unsigned char *at, uint32_t number) {
    number = htole32(number);
    memcpy(at, &number, sizeof number);
}

static inline void little_put64(unsigned char *at, uint64_t number) {
    number = htole64(number);
    memcpy(at, &number, sizeof number);
}

static inline uint16_t little_get16(const unsigned char *at) {
    uint16_t number;
    memcpy(&number, at, sizeof number);
    return le16toh(number);
}

static inline uint32_t little_get32(const unsigned char *at) {
    uint32_t number;
    memcpy(&number, at, sizeof number);
    return le32toh(number);
}

static inline uint64_t little_get64(const unsigned char *at) {
    uint64_t number;
    memcpy(&number, at, sizeof number);
    return le64toh(number);
}
