#include "http/date.h"

#include "tests/unit/http/message.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <time.h>

#define NOW 1700000000 // 2023-11-14

static void forms(void) {
    static const struct {
        const char *text;
        int64_t seconds;
    } all[] = {
            {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
            {"Sunday, 06-Nov-94 08:49:37 GMT", 784111777},
            {"Sun Nov  6 08:49:37 1994", 784111777},
            {"Sun Nov 16 08:49:37 1994", 784975777},
            {" sun, 06 nov 1994 08:49:37 gmt\t", 784111777},
            {"Mon, 06 Nov 1994 08:49:37 GMT", 784111777}, // the wrong day
            {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
            {"Thu, 01 Jan 1970 00:00:01 GMT", 1},
            {"Wed, 31 Dec 1969 23:59:59 GMT", 0},
            {"Mon, 01 Jan 0001 00:00:00 GMT", 0},
            {"Fri, 31 Dec 9999 23:59:59 GMT", 253402300799},
            {"Thu, 29 Feb 2024 00:00:00 GMT", 1709164800},
            {"Tue, 29 Feb 2000 00:00:00 GMT", 951782400},
            {"Sat, 31 Dec 2016 23:59:60 GMT", 1483228800},
            {"Thursday, 01-Jan-70 00:00:00 GMT", 3155760000}, // 47 years ahead: 2070
            {"Friday, 01-Jan-73 00:00:00 GMT", 3250454400},   // 50 years: 2073
            {"Tuesday, 01-Jan-74 00:00:00 GMT", 126230400},   // 51: 1974
            {"Saturday, 01-Jan-00 00:00:00 GMT", 946684800},
            {"Friday, 01-Jan-99 00:00:00 GMT", 915148800},
            {"", -1},
            {"0", -1},
            {"-1", -1},
            {"Thu, 29 Feb 2023 00:00:00 GMT", -1},
            {"Thu, 29 Feb 1900 00:00:00 GMT", -1},
            {"Thu, 31 Apr 2023 00:00:00 GMT", -1},
            {"Thu, 00 Apr 2023 00:00:00 GMT", -1},
            {"Thu, 32 Jan 2023 00:00:00 GMT", -1},
            {"Sun, 06 Nov 1994 24:00:00 GMT", -1},
            {"Sun, 06 Nov 1994 08:60:37 GMT", -1},
            {"Sun, 06 Nov 1994 08:49:61 GMT", -1},
            {"Sun, 06 Nov 1994 08:49:37", -1},
            {"Sun, 06 Nov 1994 08:49:37 UTC", -1},
            {"Sun, 06 Nov 1994 08:49:37 +0000", -1},
            {"Sun, 06 Nov 1994 08:49:37 GMT+1", -1},
            {"Sun, 06 Nov 1994 08:49:37 EST", -1},
            {"Sun, 6 Nov 1994 08:49:37 GMT", -1},
            {"Sun, 06 Nov 94 08:49:37 GMT", -1},
            {"Sun, 06 Nvo 1994 08:49:37 GMT", -1},
            {"Son, 06 Nov 1994 08:49:37 GMT", -1},
            {"Sun,06 Nov 1994 08:49:37 GMT", -1},
            {"Sun, 06  Nov 1994 08:49:37 GMT", -1},
            {"Sun, 06-Nov-1994 08:49:37 GMT", -1},
            {"06 Nov 1994 08:49:37 GMT", -1},
            {"Sun, 06 Nov 1994 8:49:37 GMT", -1},
            {"Sun, +6 Nov 1994 08:49:37 GMT", -1},
            {"Sunday, 06-Nov-1994 08:49:37 GMT", -1},
            {"Sunda, 06-Nov-94 08:49:37 GMT", -1},
            {"Sunday, 06 Nov 1994 08:49:37 GMT", -1},
            {"Sun Nov 06 08:49:37 1994 GMT", -1},
            {"Sun Nov 6 08:49:37 1994", -1},
            {"Sun, 06 Nov 1994 08:49:37 GMT, x", -1},
            // case folds [RFC 9111 §4.2]
            {"SUN, 06 NOV 1994 08:49:37 GMT", 784111777},
            {"Sun, 06 nov 1994 08:49:37 GMT", 784111777},
            {"Sun, 06 Nov 1994 08:49:37 gmt", 784111777},
            {"sunday, 06-nov-94 08:49:37 gmt", 784111777},
            {"sun nov  6 08:49:37 1994", 784111777},
            {"Sun Nov 06 08:49:37 1994", 784111777},
            // years of two digits belong to one form
            {"Thursday, 18-Aug-50 02:01:18 GMT", 2544400878},
            {"Thu, 18-Aug-50 02:01:18 GMT", -1},
            {"Thu, 18 Aug 50 02:01:18 GMT", -1},
            {"Thu Aug 18 02:01:18 50", -1},
            {"Thursday, 18-Aug-2050 02:01:18 GMT", -1},
            {"Thursday, 18 Aug 50 02:01:18 GMT", -1},
            // zones
            {"Thu, 18 Aug 2050 02:01:18 GMT", 2544400878},
            {"Thu, 18 Aug 2050 02:01:18 AEST", -1},
            {"Thu, 18 Aug 2050 02:01:18 UT", -1},
            {"Thu, 18 Aug 2050 02:01:18 Z", -1},
            {"Thu, 18 Aug 2050 02:01:18 GMT+0", -1},
            {"Thu, 18 Aug 2050 02:01:18 -0000", -1},
            {"Thu, 18 Aug 2050 02:01:18GMT", -1},
            {"Thursday, 18-Aug-50 02:01:18 UTC", -1},
            {"Thu Aug 18 02:01:18 GMT 2050", -1},
            {"Thu Aug 18 02:01:18 2050 GMT", -1},
            // blanks, commas and dividers
            {"Thu 18 Aug 2050 02:01:18 GMT", -1},
            {"Thu, 18 Aug  2050 02:01:18 GMT", -1},
            {"Thu,  18 Aug 2050 02:01:18 GMT", -1},
            {"Thu, 18 Aug 2050  02:01:18 GMT", -1},
            {"Thu, 18 Aug 2050 02:01:18  GMT", -1},
            {"Thu, 18\tAug 2050 02:01:18 GMT", -1},
            {"Thu, 18-Aug-2050 02:01:18 GMT", -1},
            {"Thu, 18 Aug 2050 02.01.18 GMT", -1},
            {"Thu, 18 Aug 2050 02:01 GMT", -1},
            {"Thu, 18 Aug 2050 GMT", -1},
            {"Thu, 18 Aug 2050 2:01:18 GMT", -1},
            {"Thu, 18 Aug 2050 02:01:18.0 GMT", -1},
            {"18 Aug 2050 02:01:18 GMT", -1},
            {", 18 Aug 2050 02:01:18 GMT", -1},
            {"Thu, 18 August 2050 02:01:18 GMT", -1},
            {"Thu, 18 08 2050 02:01:18 GMT", -1},
            {"Thu, Aug 18 2050 02:01:18 GMT", -1},
            {"2050-08-18T02:01:18Z", -1},
            {"\"Thu, 18 Aug 2050 02:01:18 GMT\"", -1},
            {"Thu, 18 Aug 12050 02:01:18 GMT", -1},
            {"Thu, 18 Aug 2050 25:01:18 GMT", -1},
            {"Thu, 18 Aug 2050 02:60:18 GMT", -1},
            {"Thu, -8 Aug 2050 02:01:18 GMT", -1},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int64_t seconds = date_parse(message_guarded(view_of(all[i].text)), NOW);
        if (seconds != all[i].seconds)
            printf("\n  date %s: %jd\n", all[i].text, (intmax_t)seconds);
        CU_ASSERT_EQUAL(seconds, all[i].seconds);
    }
}

// Every prefix of a date is none, and nothing is read beyond it.
static void prefixes(void) {
    static const char *const all[] = {
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"};
    for (size_t i = 0; i < 3; i++)
        for (size_t length = 0; length < view_of(all[i]).length; length++)
            CU_ASSERT_EQUAL(date_parse(message_guarded(view_take(view_of(all[i]), length)), NOW), -1);
}

// Printing agrees with the C library's calendar, and parsing takes it back.
static void printing(void) {
    for (int64_t seconds = 0; seconds < 253402300799; seconds += 86400LL * 13 + 3607) {
        char text[DATE_BYTES], expected[64];
        time_t time = (time_t)seconds;
        struct tm tm;
        gmtime_r(&time, &tm);
        strftime(expected, sizeof expected, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        CU_ASSERT_STRING_EQUAL(date_print(seconds, text), expected);
        CU_ASSERT_EQUAL(date_parse(view_of(text), NOW), seconds);
    }
    char text[DATE_BYTES];
    CU_ASSERT_STRING_EQUAL(date_print(-5, text), "Thu, 01 Jan 1970 00:00:00 GMT");
    CU_ASSERT_STRING_EQUAL(date_print(INT64_MAX, text), "Fri, 31 Dec 9999 23:59:59 GMT");
}

SUITE(http_date, CASE(forms), CASE(prefixes), CASE(printing))
