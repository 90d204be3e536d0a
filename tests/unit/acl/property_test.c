// Random masks, URLs, prefixes and domains: the tables against plain loops.
#include "acl/acl.h"
#include "acl/prefix.h"
#include "tests/unit/acl/naive.h"
#include "tests/unit/acl/policy.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A few pieces, so that what is made by chance also meets by chance.
static size_t random_text(
        uint64_t *state, const char *const *pieces, uint32_t piece_count, unsigned most, char *out) {
    size_t length = 0;
    for (unsigned count = 1 + random_below(state, most); count; count--) {
        const char *piece = pieces[random_below(state, piece_count)];
        memcpy(out + length, piece, strlen(piece));
        length += strlen(piece);
    }
    out[length] = '\0';
    return length;
}

#define PIECES(...) ((const char *const[]){__VA_ARGS__})
#define RANDOM_TEXT(state, most, out, ...)                                                                   \
    random_text(state, PIECES(__VA_ARGS__), sizeof PIECES(__VA_ARGS__) / sizeof(char *), most, out)

static void random_mask(uint64_t *state, char *out) {
    size_t at = 0;
    if (random_below(state, 8) == 0)
        at = RANDOM_TEXT(state, 1, out, "http://", "*://", "HTTP://");
    at += RANDOM_TEXT(state, 4, out + at, "a", "b", "abc", ".", "a.b", "*", "**", "*.", "A", "%61",
            "192.0.2.7", "192.0.2.", "[::1]", "::1", "");
    if (random_below(state, 4) == 0)
        at += RANDOM_TEXT(state, 1, out + at, ":80", ":8080", ":*");
    if (random_below(state, 2) == 0) {
        out[at++] = '/';
        RANDOM_TEXT(state, 4, out + at, "a", "b", "abc", "/", "*", "?", "A", "%41", "%2f", "%2A", "%25", "24",
                "32", "255.255.255.0", "%", "..", "");
    }
}

struct url_text {
    char host[128], path[128];
};

static struct acl_request random_request(uint64_t *state, struct url_text *text) {
    static const char *const destinations[] = {"192.0.2.7", "192.0.2.8", "::1", "2001:db8::1"};
    RANDOM_TEXT(state, 5, text->host, "a", "b", "abc", ".", "a.b", "A", "%61", "192.0.2.7", "[::1]", "*",
            "[0::1]", "%2a");
    RANDOM_TEXT(state, 8, text->path, "a", "b", "abc", "/", "*", "?", "A", "%41", "%2F", "%2a", "%2541", "24",
            ".", "..", "/../", "/./", "/%2E%2e/", "%");
    struct acl_request request = {
            .scheme = VIEW("http"), .host = view_of(text->host), .path = view_of(text->path)};
    request.port = (uint16_t)(random_below(state, 2) ? 0 : 8080);
    if (random_below(state, 2)) {
        CU_ASSERT_TRUE(
                address_parse(view_of(destinations[random_below(state, 4)]), &request.destination.address));
        request.destination.port = (uint16_t)(random_below(state, 2) ? 80 : 8080);
    }
    return request;
}

static bool naive_request_matches(const char *mask, const struct acl_request *request) {
    char text[ADDRESS_TEXT_BYTES];
    unsigned port = request->port ? request->port : 80, dialled = request->destination.port;
    struct naive_url url = naive_url_of(request->host, request->path, port, dialled);
    if (naive_matches(view_of(mask), &url))
        return true;
    if (!dialled)
        return false;
    address_print(&request->destination.address, text);
    url = naive_url_of(view_of(text), request->path, dialled, dialled);
    return naive_matches(view_of(mask), &url);
}

// Each mask alone and all together against a few URLs.
static unsigned compare_masks(uint64_t *state, unsigned count, unsigned *matches) {
    static char masks[64][128];
    struct acl_mask *made[64];
    char lines[64 * 140] = "";
    unsigned wrong = 0;
    int length = 0;
    for (unsigned i = 0; i < count;) {
        const char *why;
        random_mask(state, masks[i]);
        made[i] = acl_mask_new(masks[i], &why);
        if (!made[i])
            continue;
        length += snprintf(lines + length, sizeof lines - (size_t)length, "block \"%s\"\n", masks[i]);
        i++;
    }
    struct acl *acl = policy_of(lines);
    for (unsigned round = 0; round < 40; round++) {
        struct url_text text;
        struct acl_request request = random_request(state, &text);
        bool any = false;
        for (unsigned i = 0; i < count; i++) {
            bool expected = naive_request_matches(masks[i], &request);
            any |= expected;
            *matches += expected;
            if (acl_mask_matches(made[i], &request) == expected)
                continue;
            fprintf(stderr, "%s on %s:%u%s: expected %d\n", masks[i], text.host, request.port, text.path,
                    expected);
            wrong++;
        }
        wrong += (acl_url(acl, &request, NULL) == ACL_BLOCK) != any;
    }
    acl_free(acl);
    for (unsigned i = 0; i < count; i++)
        acl_mask_free(made[i]);
    return wrong;
}

static void masks_against_the_plain_reading(void) {
    uint64_t state = 1;
    unsigned wrong = 0, matches = 0;
    for (unsigned round = 0; round < 400; round++)
        wrong += compare_masks(&state, 1 + random_below(&state, 20), &matches);
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_TRUE(matches > 1000); // else nothing was tried
}

struct prefix {
    struct address address;
    unsigned bits;
};

// Around few bit patterns, so that prefixes nest and addresses fall into them.
static struct address random_address(uint64_t *state, bool ipv4) {
    struct address address = {{0}};
    CU_ASSERT_TRUE(address_parse(ipv4 ? VIEW("0.0.0.0") : VIEW("::"), &address));
    for (unsigned i = ipv4 ? 12 : 0; i < 16; i++)
        address.bytes[i] = (uint8_t[]){0, 0xff, 1, 0x80, 0x7f, 0xfe}[random_below(state, 6)];
    return address;
}

static uint32_t longest_prefix(const struct prefix *prefixes, uint32_t count, const struct address *address) {
    uint32_t best = PREFIX_NONE;
    for (uint32_t i = 0; i < count; i++)
        if (address_in_prefix(address, &prefixes[i].address, prefixes[i].bits) &&
                (best == PREFIX_NONE || prefixes[i].bits >= prefixes[best].bits))
            best = i;
    return best;
}

struct losses {
    bool lost[300];
};

static void note_loss(void *context, uint32_t loser, uint32_t winner) {
    struct losses *losses = context;
    CU_ASSERT_TRUE(loser < 300 && !losses->lost[loser] && (winner == PREFIX_NONE || winner > loser));
    losses->lost[loser] = true;
}

static unsigned compare_prefixes(uint64_t *state, uint32_t count) {
    struct prefix prefixes[300];
    struct losses losses = {{false}};
    struct prefix_table *table = prefix_table_new();
    unsigned wrong = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool ipv4 = random_below(state, 2);
        prefixes[i].address = random_address(state, ipv4);
        prefixes[i].bits = ipv4 ? 96 + random_below(state, 33) : random_below(state, 129);
        address_mask(&prefixes[i].address, prefixes[i].bits);
        CU_ASSERT_TRUE(prefix_table_add(table, &prefixes[i].address, prefixes[i].bits, i));
    }
    CU_ASSERT_TRUE(prefix_table_finish(table, note_loss, &losses));
    for (unsigned round = 0; round < 300; round++) {
        struct address address = random_address(state, random_below(state, 2));
        if (count && random_below(state, 3) == 0) // a prefix's very edge
            address = prefixes[random_below(state, count)].address;
        uint32_t expected = longest_prefix(prefixes, count, &address);
        wrong += prefix_table_find(table, &address) != expected;
        wrong += expected != PREFIX_NONE && losses.lost[expected];
    }
    for (uint32_t i = 0; i < count; i++)
        wrong += prefix_table_cover(table, &prefixes[i].address, prefixes[i].bits) == PREFIX_NONE;
    prefix_table_free(table);
    return wrong;
}

static void prefixes_against_a_loop(void) {
    uint64_t state = 2;
    unsigned wrong = 0;
    for (unsigned round = 0; round < 300; round++)
        wrong += compare_prefixes(&state, random_below(&state, 300));
    CU_ASSERT_EQUAL(wrong, 0);
}

// Every address of a small IPv4 block, with every way to cut it.
static void prefixes_exhaustively(void) {
    uint64_t state = 3;
    unsigned wrong = 0;
    for (unsigned round = 0; round < 200; round++) {
        struct prefix prefixes[12];
        struct losses losses = {{false}};
        bool decides[12] = {false};
        struct prefix_table *table = prefix_table_new();
        for (uint32_t i = 0; i < 12; i++) {
            CU_ASSERT_TRUE(address_parse(VIEW("255.255.255.0"), &prefixes[i].address));
            prefixes[i].address.bytes[15] = (uint8_t)random_below(&state, 256);
            prefixes[i].bits = 120 + random_below(&state, 9);
            address_mask(&prefixes[i].address, prefixes[i].bits);
            CU_ASSERT_TRUE(prefix_table_add(table, &prefixes[i].address, prefixes[i].bits, i));
        }
        CU_ASSERT_TRUE(prefix_table_finish(table, note_loss, &losses));
        for (unsigned last = 0; last < 256; last++) {
            struct address address = prefixes[0].address;
            address.bytes[15] = (uint8_t)last;
            uint32_t expected = longest_prefix(prefixes, 12, &address);
            wrong += prefix_table_find(table, &address) != expected;
            if (expected != PREFIX_NONE)
                decides[expected] = true;
        }
        for (unsigned i = 0; i < 12; i++)
            wrong += decides[i] == losses.lost[i];
        prefix_table_free(table);
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

SUITE(acl_property, CASE(masks_against_the_plain_reading), CASE(prefixes_against_a_loop),
        CASE(prefixes_exhaustively))
