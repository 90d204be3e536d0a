// The bytes of a journal of purges.
#include "cache/little.h"
#include "cache/memory.h"
#include "cache/purge.h"
#include "cache/record.h"

#include <string.h>

#define HEADER_MAGIC "WEIRPURG"
#define RECORD_MAGIC "PURG"
#define JOURNAL_FORMAT 1
#define CRC_AT (PURGE_UNIT_BYTES - 4)

static void put_key(unsigned char *at, struct cache_key key) {
    little_put64(at, key.low);
    little_put64(at + 8, key.high);
}

static struct cache_key get_key(const unsigned char *at) {
    return (struct cache_key){little_get64(at), little_get64(at + 8)};
}

// ---- writing ----

static uint64_t round_up(uint64_t bytes) {
    return (bytes + PURGE_UNIT_BYTES - 1) / PURGE_UNIT_BYTES * PURGE_UNIT_BYTES;
}

uint64_t purge_rule_bytes(const struct purge_rule *rule) {
    return PURGE_UNIT_BYTES + round_up(rule->length);
}

// Over the unit with a checksum of 0, and all that follows it.
static uint32_t crc_of(const unsigned char *bytes, uint64_t length) {
    unsigned char all[PURGE_UNIT_BYTES + PURGE_TEXT_MAXIMUM];
    memcpy(all, bytes, length);
    memset(all + CRC_AT, 0, 4);
    return record_crc(all, length);
}

void purge_rule_encode(const struct purge_rule *rule, unsigned char *out) {
    uint64_t bytes = purge_rule_bytes(rule);
    memset(out, 0, bytes);
    memcpy(out, RECORD_MAGIC, strlen(RECORD_MAGIC));
    out[4] = (unsigned char)rule->kind;
    out[6] = (unsigned char)rule->length;
    out[7] = (unsigned char)(rule->length >> 8);
    little_put64(out + 8, rule->sequence);
    little_put64(out + 16, rule->number);
    put_key(out + 24, rule->id);
    put_key(out + 40, rule->host);
    if (rule->length)
        memcpy(out + PURGE_UNIT_BYTES, rule->text, rule->length);
    little_put32(out + CRC_AT, crc_of(out, bytes));
}

static void encode_header(uint64_t volume, unsigned char *out) {
    memset(out, 0, PURGE_UNIT_BYTES);
    memcpy(out, HEADER_MAGIC, strlen(HEADER_MAGIC));
    little_put32(out + 8, JOURNAL_FORMAT);
    little_put64(out + 16, volume);
    little_put32(out + CRC_AT, crc_of(out, PURGE_UNIT_BYTES));
}

static void encode_next(void *context, const struct purge_rule *rule) {
    unsigned char **at = context;
    purge_rule_encode(rule, *at);
    *at += purge_rule_bytes(rule);
}

void purge_encode(const struct purge *purge, uint64_t volume, unsigned char *out) {
    encode_header(volume, out);
    out += PURGE_UNIT_BYTES;
    purge_each(purge, encode_next, &out);
}

// ---- reading ----

static bool has_text(enum volume_purge kind) {
    return kind == VOLUME_PURGE_PREFIX || kind == VOLUME_PURGE_MASK;
}

// A whole record at the beginning of so many bytes: its text is borrowed.
static bool decode_rule(const unsigned char *bytes, uint64_t left, struct purge_rule *rule) {
    if (left < PURGE_UNIT_BYTES || memcmp(bytes, RECORD_MAGIC, strlen(RECORD_MAGIC)) != 0)
        return false;
    *rule = (struct purge_rule){.kind = bytes[4],
            .id = get_key(bytes + 24),
            .host = get_key(bytes + 40),
            .sequence = little_get64(bytes + 8),
            .number = little_get64(bytes + 16),
            .text = (char *)bytes + PURGE_UNIT_BYTES,
            .length = (uint32_t)(bytes[6] | bytes[7] << 8)};
    return rule->kind >= VOLUME_PURGE_URL && rule->kind <= VOLUME_PURGE_KEY && bytes[5] == 0 &&
           rule->length <= PURGE_TEXT_MAXIMUM && (has_text(rule->kind) || rule->length == 0) &&
           purge_rule_bytes(rule) <= left &&
           crc_of(bytes, purge_rule_bytes(rule)) == little_get32(bytes + CRC_AT);
}

static void take(struct purge *purge, const struct purge_rule *rule) {
    struct purge_rule copy = *rule;
    copy.text = NULL;
    if (has_text(rule->kind)) {
        copy.text = memory_new(rule->length + 1);
        memcpy(copy.text, rule->text, rule->length);
    }
    purge_add(purge, &copy);
}

static void take_lost(struct purge *purge) {
    struct purge_rule everything = {
            .kind = VOLUME_PURGE_ALL, .sequence = PURGE_PENDING, .number = PURGE_PENDING};
    purge_add(purge, &everything);
}

static bool is_zeros(const unsigned char *bytes) {
    static const unsigned char zeros[PURGE_UNIT_BYTES];
    return memcmp(bytes, zeros, sizeof zeros) == 0;
}

bool purge_read(struct purge *purge, uint64_t volume, struct view journal, uint64_t *end) {
    const unsigned char *bytes = (const unsigned char *)journal.data;
    bool is_broken = false, is_lost = false;
    *end = PURGE_UNIT_BYTES;
    if (journal.length < PURGE_UNIT_BYTES)
        return false;
    if (memcmp(bytes, HEADER_MAGIC, strlen(HEADER_MAGIC)) != 0 || little_get32(bytes + 8) != JOURNAL_FORMAT ||
            crc_of(bytes, PURGE_UNIT_BYTES) != little_get32(bytes + CRC_AT))
        is_broken = is_lost = true; // whose it is cannot be read: ours, rather
    else if (little_get64(bytes + 16) != volume)
        return false;
    for (uint64_t at = PURGE_UNIT_BYTES; at + PURGE_UNIT_BYTES <= journal.length;) {
        struct purge_rule rule;
        if (!decode_rule(bytes + at, journal.length - at, &rule)) {
            is_lost = is_lost || !is_zeros(bytes + at);
            at += PURGE_UNIT_BYTES;
            continue;
        }
        if (is_lost)
            take_lost(purge);
        is_broken = is_broken || is_lost;
        is_lost = false;
        take(purge, &rule);
        at += purge_rule_bytes(&rule);
        *end = at;
    }
    return !is_broken;
}
