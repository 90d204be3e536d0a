// A million prefixes, a million domains, ten thousand masks: they are made in a few seconds, a look-up costs
// microseconds, an entry tens of bytes. The bounds are wide, for slow machines and sanitizers; the figures of
// this machine stand in the output.
#include "acl/acl.h"
#include "acl/prefix.h"
#include "tests/unit/acl/policy.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define MILLION 100000u // what sanitizers look for does not need more
#else
#define MILLION 1000000u
#endif
#define LOOKUPS 200000u

// Processor time, so that a busy machine does not count.
static int64_t spent_ms(void) {
    return (int64_t)clock() * 1000 / CLOCKS_PER_SEC;
}

static void report(const char *what, int64_t build_ms, int64_t lookup_ms, size_t bytes, size_t entries) {
    printf("\n    %s: made in %lld ms, %.0f ns a look-up, %.1f bytes an entry", what, (long long)build_ms,
            (double)lookup_ms * 1e6 / LOOKUPS, (double)bytes / (double)entries);
    CU_ASSERT_TRUE(build_ms < 30000);
    CU_ASSERT_TRUE(lookup_ms < LOOKUPS / 4); // 250 us each
}

static struct address random_address(uint64_t *state, bool ipv4) {
    struct address address = {{0}};
    if (ipv4)
        address.bytes[10] = address.bytes[11] = 0xff;
    for (unsigned i = ipv4 ? 12 : 0; i < 16; i++)
        address.bytes[i] = (uint8_t)random_below(state, 256);
    return address;
}

static struct address random_prefix(uint64_t *state, bool ipv4, unsigned *bits) {
    struct address prefix = random_address(state, ipv4);
    *bits = ipv4 ? 112 + random_below(state, 17) : 32 + random_below(state, 33);
    address_mask(&prefix, *bits);
    return prefix;
}

// Every other look-up is of a prefix that was added.
static void million_prefixes(const char *what, bool ipv4, size_t most_bytes) {
    uint64_t state = 4, again = 4;
    unsigned found = 0, bits;
    struct prefix_table *table = prefix_table_new();
    int64_t start = spent_ms();
    bool added = true;
    for (uint32_t i = 0; i < MILLION; i++) {
        struct address prefix = random_prefix(&state, ipv4, &bits);
        added = added && prefix_table_add(table, &prefix, bits, i);
    }
    CU_ASSERT_TRUE_FATAL(added && prefix_table_finish(table, NULL, NULL));
    int64_t made = spent_ms();
    for (uint32_t i = 0; i < LOOKUPS; i++) {
        struct address address = i % 2 ? random_address(&state, ipv4) : random_prefix(&again, ipv4, &bits);
        found += prefix_table_find(table, &address) != PREFIX_NONE;
    }
    CU_ASSERT_TRUE(found >= LOOKUPS / 2 && found < LOOKUPS);
    CU_ASSERT_TRUE(prefix_table_bytes(table) < most_bytes * MILLION);
    report(what, made - start, spent_ms() - made, prefix_table_bytes(table), MILLION);
    prefix_table_free(table);
}

static void a_million_ipv4_prefixes(void) {
    million_prefixes("IPv4 prefixes", true, 17);
}

static void a_million_ipv6_prefixes(void) {
    million_prefixes("IPv6 prefixes", false, 41);
}

// A configuration with one directive of `count` words; the words are cut from `text`.
typedef int write_word(char *out, size_t size, uint32_t number);

struct big_config {
    struct config config;
    struct directive directive;
    struct config_word *words;
    char *text;
};

static void big_config_init(struct big_config *big, enum directive_id id, uint32_t count, write_word *write) {
    big->words = calloc(count, sizeof *big->words);
    big->text = malloc((size_t)count * 64);
    CU_ASSERT_TRUE_FATAL(big->words && big->text);
    char *at = big->text;
    for (uint32_t i = 0; i < count; i++) {
        big->words[i] = (struct config_word){at, 1};
        at += write(at, 64, i) + 1;
    }
    big->directive =
            (struct directive){.id = id, .file = "big", .line = 1, .word_count = count, .words = big->words};
    memset(&big->config, 0, sizeof big->config);
    big->config.directives = &big->directive;
    big->config.directive_count = 1;
}

static void big_config_fini(struct big_config *big) {
    free(big->words);
    free(big->text);
}

static int write_domain(char *out, size_t size, uint32_t number) {
    return snprintf(out, size, "ads%u.tracker-%u.example.com", number, number % 1000);
}

static int write_mask(char *out, size_t size, uint32_t number) {
    switch (number % 5) {
    case 0:
        return snprintf(out, size, "*banner%u.*", number);
    case 1:
        return snprintf(out, size, "*/ad%u/*", number);
    case 2:
        return snprintf(out, size, "www%u.example.com/x*", number);
    case 3:
        return snprintf(out, size, "*.host%u.*/y*", number);
    default:
        return snprintf(out, size, "same.example.com/path%u/*", number);
    }
}

// Look-ups of twice as many hosts as there are words: hits and misses.
static void time_policy(const char *what, uint32_t count, write_word *write, write_word *write_host) {
    struct big_config big;
    struct config_errors errors = {0};
    big_config_init(&big, DIRECTIVE_block, count, write);
    int64_t start = spent_ms();
    struct acl *acl = acl_new(&big.config, &errors);
    int64_t made = spent_ms();
    big_config_fini(&big);
    CU_ASSERT_PTR_NOT_NULL_FATAL(acl);
    CU_ASSERT_EQUAL(acl_count(acl), count);
    uint64_t state = 5;
    unsigned blocked = 0;
    for (uint32_t i = 0; i < LOOKUPS; i++) {
        char host[64];
        int length = write_host(host, sizeof host, random_below(&state, 2 * count));
        struct acl_request request = {.scheme = VIEW("http"),
                .host = {host, (size_t)length},
                .path = VIEW("/a/path/to/something.gif?with=query")};
        request.destination = (struct endpoint){random_address(&state, true), 80, 0};
        blocked += acl_url(acl, &request, NULL) == ACL_BLOCK;
    }
    CU_ASSERT_TRUE(blocked > LOOKUPS / 20 && blocked < LOOKUPS * 2 / 3);
    report(what, made - start, spent_ms() - made, acl_bytes(acl), count);
    CU_ASSERT_TRUE(acl_bytes(acl) < (size_t)count * 400);
    acl_free(acl);
    config_errors_fini(&errors);
}

static void a_million_domains(void) {
    time_policy("domains", MILLION, write_domain, write_domain);
}

static int write_mask_host(char *out, size_t size, uint32_t number) {
    return snprintf(out, size, "www.banner%u.some.where.org", number);
}

static void ten_thousand_masks(void) {
    time_policy("masks", 10000, write_mask, write_mask_host);
}

// Masks and a URL made to be slow for a matcher that goes back, or that tries a mask for each place where it
// could start.
static void hostile_urls(void) {
    static char path[65536];
    struct acl *acl = policy_of("block *a*a*a*a*a*a*a*a*a*a*a*a*b* *aaaaaaaaaaaaaaaaaaaaaaaaaaaaaab*\n"
                                "block */aaaaaa*b *aaaaaa*c* *aaaaaa*aaaaaa*d*\n");
    memset(path, 'a', sizeof path);
    path[0] = '/';
    struct acl_request request = {.host = VIEW("example.com"), .path = {path, sizeof path}};
    int64_t start = spent_ms();
    for (unsigned i = 0; i < 20; i++)
        CU_ASSERT_EQUAL(acl_url(acl, &request, NULL), ACL_ALLOW);
    memset(path, '/', sizeof path);
    for (size_t i = 1; i + 2 < sizeof path; i += 3)
        memset(path + i, '.', 2);
    for (unsigned i = 0; i < 20; i++)
        CU_ASSERT_EQUAL(acl_url(acl, &request, NULL), ACL_ALLOW);
    CU_ASSERT_TRUE(spent_ms() - start < 20000); // half a second each, where a step back takes hours
    acl_free(acl);
}

SUITE(acl_size, CASE(a_million_ipv4_prefixes), CASE(a_million_ipv6_prefixes), CASE(a_million_domains),
        CASE(ten_thousand_masks), CASE(hostile_urls))
