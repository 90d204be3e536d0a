#include "intercept/url_argument.h"

#include "tests/unit/unit.h"

#include <string.h>

static void urls_are_cut(void) {
    static const struct {
        const char *text, *host, *path;
        unsigned port;
    } rows[] = {
            {"http://a/", "a", "/", 0},
            {"HTTP://A:8080?x#y", "A", "?x", 8080},
            {"http://a.example.", "a.example.", "", 0},
            {"http://[2001:db8::1]:80/x#/y", "2001:db8::1", "/x", 80},
            {"http://a#b", "a", "", 0},
            {"http://a/u@b", "a", "/u@b", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct url_argument url;
        CU_ASSERT_PTR_NULL_FATAL(url_argument_read(view_of(rows[i].text), &url));
        CU_ASSERT_TRUE(view_equal(url.authority.host, view_of(rows[i].host)));
        CU_ASSERT_TRUE(view_equal(url.path, view_of(rows[i].path)));
        CU_ASSERT_EQUAL(url.authority.port, rows[i].port);
    }
}

static void what_is_wrong_is_said(void) {
    static const struct {
        const char *text, *words;
    } rows[] = {
            {"", "whole URL"},
            {"foo", "whole URL"},
            {"ftp://a/", "whole URL"},
            {"https://a/", "HTTPS"},
            {"http://", "host is missing"},
            {"http:///x", "host is missing"},
            {"http://a:0/", "host is missing or malformed"},
            {"http://a b/", "host is missing or malformed"},
            {"http://me:pw@a/", "user and password"},
            {"http://a/b c", "%20"},
            {"http://a/b\tc", "control byte"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct url_argument url;
        const char *why = url_argument_read(view_of(rows[i].text), &url);
        if (!why || !strstr(why, rows[i].words))
            CU_FAIL(rows[i].text);
    }
}

SUITE(intercept_url_argument, CASE(urls_are_cut), CASE(what_is_wrong_is_said))
