#include "admin/address.h"
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <string.h>

static struct address address_of(const char *text) {
    struct address address;
    memset(&address, 0xee, sizeof address);
    CU_ASSERT_TRUE_FATAL(address_parse(view_of(text), &address));
    return address;
}

static void parsing_and_printing(void) {
    static const struct {
        const char *text, *printed;
    } rows[] = {
            {"192.0.2.1", "192.0.2.1"},
            {"0.0.0.0", "0.0.0.0"},
            {"255.255.255.255", "255.255.255.255"},
            {"::", "::"},
            {"::1", "::1"},
            {"2001:DB8::1", "2001:db8::1"},
            {"2001:0db8:0:0:0:0:0:1", "2001:db8::1"},
            {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
            {"::ffff:192.0.2.1", "192.0.2.1"},
            {"::ffff:c000:201", "192.0.2.1"},
            {"64:ff9b::192.0.2.33", "64:ff9b::c000:221"},
            {"0064:0001::192.0.2.33", "64:1::c000:221"},
            {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
            {"ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char out[ADDRESS_TEXT_BYTES];
        struct address address = address_of(rows[i].text);
        CU_ASSERT_STRING_EQUAL(address_print(&address, out), rows[i].printed);
        struct address again = address_of(out);
        CU_ASSERT_TRUE(address_equal(&address, &again));
    }
}

static void refusing(void) {
    static const char *const rows[] = {"", " ", "1", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4",
            "1.2.3.04", "1.2.3.00", "1.2.3.4 ", " 1.2.3.4", "1.2.3.4.", ".1.2.3.4", "1..2.3", "0x7f.0.0.1",
            "127.1", "2130706433", "1.2.3.-4", "1.2.3.+4", ":", ":::", "1::2::3", "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8:", ":1:2:3:4:5:6:7:8", "12345::", "::g", "[::1]",
            "fe80::1%eth0", "fe80::1%1", "::1/128", "::ffff:01.2.3.4", "::ffff:1.2.3", "1.2.3.4:80",
            "::1.2.3.4.5", "1.2.3.4::", "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.2555"};
    struct address address;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (address_parse(view_of(rows[i]), &address))
            CU_FAIL(rows[i]);
    CU_ASSERT_FALSE(address_parse(VIEW("1.2.3.4\0"), &address));
    CU_ASSERT_FALSE(address_parse(VIEW("1.2.\0003.4"), &address));
}

static void families(void) {
    struct address ipv4 = address_of("10.1.2.3"), ipv6 = address_of("2001:db8::1");
    struct address compatible = address_of("::10.1.2.3"), none = address_of("::");
    struct address zero = address_of("0.0.0.0");
    CU_ASSERT_TRUE(address_is_ipv4(&ipv4));
    CU_ASSERT_FALSE(address_is_ipv4(&ipv6));
    CU_ASSERT_FALSE(address_is_ipv4(&compatible));
    CU_ASSERT_TRUE(address_in_prefix(&ipv4, &zero, 96));
    CU_ASSERT_FALSE(address_in_prefix(&ipv6, &zero, 96));
    CU_ASSERT_FALSE(address_in_prefix(&ipv4, &none, 0));
    CU_ASSERT_TRUE(address_in_prefix(&ipv6, &none, 0));
}

static void prefixes(void) {
    static const struct {
        const char *text, *address;
        unsigned bits;
    } rows[] = {
            {"10.0.0.0/8", "10.0.0.0", 104},
            {"10.0.0.0/255.0.0.0", "10.0.0.0", 104},
            {"0.0.0.0/0", "0.0.0.0", 96},
            {"0.0.0.0/0.0.0.0", "0.0.0.0", 96},
            {"192.0.2.7", "192.0.2.7", 128},
            {"192.0.2.7/32", "192.0.2.7", 128},
            {"192.0.2.6/31", "192.0.2.6", 127},
            {"192.0.2.4/255.255.255.252", "192.0.2.4", 126},
            {"::/0", "::", 0},
            {"::/::", "::", 0},
            {"2001:db8::/32", "2001:db8::", 32},
            {"2001:db8::/ffff:ffff::", "2001:db8::", 32},
            {"2001:db8::1", "2001:db8::1", 128},
            {"::ffff:10.0.0.0/104", "10.0.0.0", 104},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct address prefix, expected = address_of(rows[i].address);
        unsigned bits = 7;
        CU_ASSERT_PTR_NULL(address_parse_prefix(view_of(rows[i].text), &prefix, &bits));
        CU_ASSERT_EQUAL(bits, rows[i].bits);
        CU_ASSERT_TRUE(address_equal(&prefix, &expected));
    }
}

static void refused_prefixes(void) {
    static const struct {
        const char *text, *why;
    } rows[] = {
            {"10.0.0.0/33", "above 32"},
            {"::/129", "above 128"},
            {"10.0.0.0/99999999999999999999", "neither"},
            {"10.0.0.0/08", "leading zero"},
            {"10.0.0.0/", "neither"},
            {"10.0.0.0/-1", "neither"},
            {"10.0.0.0/ 8", "neither"},
            {"10.0.0.0/8/8", "neither"},
            {"10.0.0.0/255.0.255.0", "holes"},
            {"10.0.0.0/0.0.0.255", "holes"},
            {"::/ffff::1", "holes"},
            {"10.0.0.0/ffff::", "other family"},
            {"2001:db8::/255.0.0.0", "other family"},
            {"localhost", "not an IP address"},
            {"", "not an IP address"},
            {"/8", "not an IP address"},
            {"10/8", "not an IP address"},
            {"010.0.0.0/8", "not an IP address"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct address prefix;
        unsigned bits = 7;
        const char *why = address_parse_prefix(view_of(rows[i].text), &prefix, &bits);
        CU_ASSERT_PTR_NOT_NULL_FATAL(why);
        CU_ASSERT_TRUE(why && strstr(why, rows[i].why));
        CU_ASSERT_EQUAL(bits, ADDRESS_NO_PREFIX);
    }
}

// Host bits are an error, yet the right prefix can be named.
static void host_bits(void) {
    struct address prefix;
    unsigned bits;
    char out[ADDRESS_TEXT_BYTES];
    const char *why = address_parse_prefix(VIEW("10.1.2.3/8"), &prefix, &bits);
    CU_ASSERT_PTR_NOT_NULL_FATAL(why);
    CU_ASSERT_TRUE(why && strstr(why, "clear them"));
    CU_ASSERT_STRING_EQUAL(address_print_prefix(&prefix, bits, out), "10.0.0.0/8");
    CU_ASSERT_PTR_NOT_NULL(address_parse_prefix(VIEW("2001:db8::1/ffff:ffff::"), &prefix, &bits));
    CU_ASSERT_STRING_EQUAL(address_print_prefix(&prefix, bits, out), "2001:db8::/32");
    CU_ASSERT_PTR_NULL(address_parse_prefix(VIEW("::1"), &prefix, &bits));
    CU_ASSERT_STRING_EQUAL(address_print_prefix(&prefix, bits, out), "::1");
    CU_ASSERT_PTR_NULL(address_parse_prefix(VIEW("0.0.0.0/0"), &prefix, &bits));
    CU_ASSERT_STRING_EQUAL(address_print_prefix(&prefix, bits, out), "0.0.0.0/0");
}

// Every length against a loop over single bits.
static void masking(void) {
    for (unsigned bits = 0; bits <= 128; bits++) {
        struct address ones, masked, probe;
        memset(&ones, 0xff, sizeof ones);
        masked = ones;
        address_mask(&masked, bits);
        for (unsigned i = 0; i < 128; i++) {
            bool set = masked.bytes[i / 8] >> (7 - i % 8) & 1;
            CU_ASSERT_EQUAL(set, i < bits);
            probe = ones;
            probe.bytes[i / 8] ^= (uint8_t)(0x80 >> i % 8);
            CU_ASSERT_EQUAL(address_in_prefix(&probe, &masked, bits), i >= bits);
        }
    }
}

static void endpoints(void) {
    struct endpoint endpoint = {.address = address_of("192.0.2.1"), .port = 80}, back;
    struct sockaddr_storage storage;
    char out[ADDRESS_TEXT_BYTES];
    CU_ASSERT_STRING_EQUAL(endpoint_print(&endpoint, out), "192.0.2.1:80");
    CU_ASSERT_EQUAL(endpoint_to_sockaddr(&endpoint, false, &storage), sizeof(struct sockaddr_in));
    CU_ASSERT_EQUAL(storage.ss_family, AF_INET);
    CU_ASSERT_TRUE(endpoint_from_sockaddr(&back, (struct sockaddr *)&storage));
    CU_ASSERT_TRUE(endpoint_equal(&endpoint, &back));
    CU_ASSERT_EQUAL(endpoint_to_sockaddr(&endpoint, true, &storage), sizeof(struct sockaddr_in6));
    CU_ASSERT_EQUAL(storage.ss_family, AF_INET6);
    CU_ASSERT_TRUE(endpoint_from_sockaddr(&back, (struct sockaddr *)&storage));
    CU_ASSERT_TRUE(endpoint_equal(&endpoint, &back));

    endpoint = (struct endpoint){.address = address_of("fe80::1"), .port = 65535, .scope = UINT32_MAX};
    CU_ASSERT_STRING_EQUAL(endpoint_print(&endpoint, out), "[fe80::1%4294967295]:65535");
    CU_ASSERT_EQUAL(endpoint_to_sockaddr(&endpoint, false, &storage), sizeof(struct sockaddr_in6));
    CU_ASSERT_TRUE(endpoint_from_sockaddr(&back, (struct sockaddr *)&storage));
    CU_ASSERT_TRUE(endpoint_equal(&endpoint, &back));
    back.scope = 1;
    CU_ASSERT_FALSE(endpoint_equal(&endpoint, &back));
    storage.ss_family = AF_UNIX;
    CU_ASSERT_FALSE(endpoint_from_sockaddr(&back, (struct sockaddr *)&storage));
}

SUITE(admin_address, CASE(parsing_and_printing), CASE(refusing), CASE(families), CASE(prefixes),
        CASE(refused_prefixes), CASE(host_bits), CASE(masking), CASE(endpoints))
