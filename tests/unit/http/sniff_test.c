#include "http/head.h"
#include "tests/unit/http/message.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TARGET_BYTES 8192

struct sniffed {
    struct view text;
    enum sniff sniff;
};

static const struct sniffed all[] = {
        // requests, good and bad
        {VIEW("GET "), SNIFF_HTTP},
        {VIEW("GET / HTTP/1.1\r\n"), SNIFF_HTTP},
        {VIEW("get / http/1.1\r\n"), SNIFF_HTTP},
        {VIEW("POST\t/ HTTP/1.1\r\n"), SNIFF_HTTP},
        {VIEW("PUT\x0b/x\r\n"), SNIFF_HTTP},
        {VIEW("\r\n\r\n GET / HTTP/1.1\r\n"), SNIFF_HTTP},
        {VIEW("\x0c GET / HTTP/1.1\r\n"), SNIFF_HTTP},
        {VIEW("GET / HTTP/2.0\r\n"), SNIFF_HTTP},
        {VIEW("GET / HTTP/0.9\r\n"), SNIFF_HTTP},
        {VIEW("GET /\r\n"), SNIFF_HTTP},
        {VIEW("GET /\0 HTTP/1.1\r\n"), SNIFF_HTTP},
        {VIEW("CONNECT a:443"), SNIFF_HTTP},
        {VIEW("FOO / HTTP/1.1\r\n"), SNIFF_HTTP},
        {VIEW("FOO / HTTP/1.1\n"), SNIFF_HTTP},
        {VIEW("FOO / hTtP/9.9\n"), SNIFF_HTTP},
        {VIEW("FOO\t/\tHTTP/1.1\r\n"), SNIFF_HTTP},
        {VIEW("FOO /HTTP/1.1\r\n"), SNIFF_HTTP},
        {VIEW("FOO /\rHTTP/1.1\r\n"), SNIFF_HTTP},
        {VIEW("F\0O / HTTP/1.1\r\n"), SNIFF_HTTP},
        {VIEW("\xef\xbb\xbfGET / HTTP/1.1\r\n"), SNIFF_HTTP},
        {VIEW(":FOO / HTTP/1.1\r\n"), SNIFF_HTTP},
        {VIEW("PRI * HTTP/1.1\r\n"), SNIFF_HTTP},
        {VIEW("pri * HTTP/2.0\r\n"), SNIFF_HTTP},
        {VIEW("\r\nPRI * HTTP/2.0\r\n"), SNIFF_HTTP},
        {VIEW("PRI  * HTTP/2.0\r\n"), SNIFF_HTTP},
        {VIEW("PRI * HTTP/2.0\n"), SNIFF_HTTP},
        // not yet
        {VIEW(""), SNIFF_MORE},
        {VIEW("G"), SNIFF_MORE},
        {VIEW("GET"), SNIFF_MORE},
        {VIEW("\r\n"), SNIFF_MORE},
        {VIEW("FOO / HTTP"), SNIFF_MORE},
        {VIEW("FOO /\0"), SNIFF_MORE},
        {VIEW("PRI * HTTP/2.0\r"), SNIFF_MORE},
        {VIEW("SSH-2.0-OpenSSH_9.2"), SNIFF_MORE},
        // other protocols
        {VIEW("PRI * HTTP/2.0\r\n"), SNIFF_OTHER},
        {VIEW("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x12\4"), SNIFF_OTHER},
        {VIEW("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 whatever"), SNIFF_OTHER},
        {VIEW("\x16"), SNIFF_OTHER},
        {VIEW("\x80\x2e\x01\x03\x01"), SNIFF_OTHER}, // an SSLv2 ClientHello
        {VIEW("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"), SNIFF_OTHER},
        {VIEW("EHLO mail.example\r\n"), SNIFF_OTHER},
        {VIEW("USER anonymous\r\n"), SNIFF_OTHER},
        {VIEW("QUIT\r\n"), SNIFF_OTHER},
        {VIEW("NICK someone\r\nUSER a b c :d\r\n"), SNIFF_OTHER},
        {VIEW("\x13"
              "BitTorrent protocol\0\0\0\0\0\0\0\0"),
                SNIFF_OTHER},
        {VIEW("\x03\0\0\x13\x0e\xe0\0\0"), SNIFF_OTHER}, // RDP
        {VIEW("\x05\x01\0"), SNIFF_OTHER},               // SOCKS 5
        {VIEW("*\0\0\0\x85\xa6\xff\x01"), SNIFF_OTHER},  // a length in front
        {VIEW("<policy-file-request/>\0"), SNIFF_OTHER}, // Flash
        {VIEW("{\"method\": \"mining.subscribe\"}\n"), SNIFF_OTHER},
        {VIEW("\0\0\0\0"), SNIFF_OTHER},
        {VIEW("HTTP/1.1 200 OK\r\n"), SNIFF_OTHER}, // no client says that
        {VIEW("\n\x05hello"), SNIFF_OTHER},
};

static void first_bytes(void) {
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        enum sniff sniff = http_sniff(message_guarded(all[i].text), TARGET_BYTES);
        if (sniff != all[i].sniff)
            printf("\n  sniff %zu: %d\n", i, sniff);
        CU_ASSERT_EQUAL(sniff, all[i].sniff);
    }
}

// Fed slowly the answer may come sooner, but text that looks like HTTP never becomes another protocol.
static void slowly(void) {
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        enum sniff sniff = SNIFF_MORE;
        for (size_t length = 0; length <= all[i].text.length && sniff == SNIFF_MORE; length++)
            sniff = http_sniff(message_guarded(view_take(all[i].text, length)), TARGET_BYTES);
        bool starts_odd = strchr("\xef:", all[i].text.data[0]) || view_starts(all[i].text, VIEW("F\0"));
        if (all[i].text.length > 0 && !starts_odd)
            CU_ASSERT_EQUAL(sniff, all[i].sniff);
    }
}

static enum sniff sniff_long(const char *start, char filler, size_t length) {
    char *text = malloc(length);
    memset(text, filler, length);
    memcpy(text, start, strlen(start));
    enum sniff sniff = http_sniff(message_guarded((struct view){text, length}), 1024);
    free(text);
    return sniff;
}

static void bounded(void) {
    static const struct {
        const char *start;
        char filler;
        enum sniff before, after; // at and above 1024 + 256 bytes
    } cases[] = {{"FOO /", 'a', SNIFF_MORE, SNIFF_HTTP}, {"FOO /", '\1', SNIFF_MORE, SNIFF_HTTP},
            {"FOO ", ' ', SNIFF_MORE, SNIFF_HTTP}, {"A", 'a', SNIFF_MORE, SNIFF_OTHER},
            {"\r\n", ' ', SNIFF_HTTP, SNIFF_HTTP}, {"\r\n", '\n', SNIFF_HTTP, SNIFF_HTTP}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CU_ASSERT_EQUAL(sniff_long(cases[i].start, cases[i].filler, 1280), cases[i].before);
        CU_ASSERT_EQUAL(sniff_long(cases[i].start, cases[i].filler, 1281), cases[i].after);
        CU_ASSERT_EQUAL(sniff_long(cases[i].start, cases[i].filler, 9000), cases[i].after);
    }
}

SUITE(http_sniff, CASE(first_bytes), CASE(slowly), CASE(bounded))
