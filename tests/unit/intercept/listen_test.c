#include "intercept/listen.h"

#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct outcome {
    bool good;
    struct listen_set set;
    char errors[1024];
};

static struct outcome parse(const char *text) {
    struct outcome outcome = {0};
    struct config_errors errors = {0};
    struct config *config = config_load_text("t", view_of(text), &errors);
    CU_ASSERT_PTR_NOT_NULL_FATAL(config);
    outcome.good = listen_parse(config, &outcome.set, &errors);
    snprintf(outcome.errors, sizeof outcome.errors, "%s", errors.text ? errors.text : "");
    CU_ASSERT_EQUAL(outcome.good, errors.count == 0);
    config_errors_fini(&errors);
    config_free(config); // the points' directives go with it
    return outcome;
}

static void default_is_a_redirect_port(void) {
    struct outcome outcome = parse("");
    CU_ASSERT_TRUE(outcome.good);
    CU_ASSERT_EQUAL_FATAL(outcome.set.count, 1);
    CU_ASSERT_EQUAL(outcome.set.points[0].address.port, 3129);
    CU_ASSERT_TRUE(outcome.set.points[0].any_address);
    CU_ASSERT_EQUAL(outcome.set.points[0].mode, LISTEN_REDIRECT);
}

static void every_form_of_a_place(void) {
    struct outcome outcome =
            parse("listen 1 redirect\nlisten 192.0.2.1:2 TPROXY\nlisten [2001:db8::1]:3 forward\n"
                  "listen *:4 any\nlisten [::]:5 redirect\nlisten 0.0.0.0:6 redirect\n"
                  "listen 127.0.0.1:7 forward\nlisten 127.0.0.1:65535 tproxy\n");
    const struct listen_point *points = outcome.set.points;
    char text[ADDRESS_TEXT_BYTES];
    CU_ASSERT_TRUE(outcome.good);
    CU_ASSERT_EQUAL_FATAL(outcome.set.count, 8);
    CU_ASSERT_TRUE(points[0].any_address && points[3].any_address && points[4].any_address);
    CU_ASSERT_FALSE(points[1].any_address || points[2].any_address || points[5].any_address);
    CU_ASSERT_STRING_EQUAL(endpoint_print(&points[1].address, text), "192.0.2.1:2");
    CU_ASSERT_STRING_EQUAL(endpoint_print(&points[2].address, text), "[2001:db8::1]:3");
    CU_ASSERT_EQUAL(points[1].mode, LISTEN_TPROXY);
    CU_ASSERT_EQUAL(points[2].mode, LISTEN_FORWARD);
    CU_ASSERT_EQUAL(points[3].mode, LISTEN_ANY);
    CU_ASSERT_STRING_EQUAL(listen_mode_name(points[3].mode), "any");
}

static void bad_lines_are_named(void) {
    static const struct {
        const char *text, *error;
    } rows[] = {
            {"listen 0 any", "t:1:8: 0: the port"},
            {"listen 65536 any", "t:1:8: 65536: the port"},
            {"listen :80 any", "t:1:8: :80: the port"},
            {"listen 192.0.2.1 any", "t:1:8: 192.0.2.1: the port"},
            {"listen 192.0.2.1: any", "t:1:8: 192.0.2.1:: the port"},
            {"listen 192.0.2.300:80 any", "t:1:8: 192.0.2.300:80: not an address"},
            {"listen 2001:db8::1:80 any", "t:1:8: 2001:db8::1:80: not an address"},
            {"listen [192.0.2.1]:80 any", "t:1:8: [192.0.2.1]:80: not an address"},
            {"listen gateway:80 any", "t:1:8: gateway:80: not an address"},
            {"listen 80 transparent", "t:1:11: transparent is no way to listen"},
            {"listen 127.0.0.1:80 redirect", "t:1:8: netfilter redirects"},
            {"listen 127.3.0.1:80 any", "t:1:8: netfilter redirects"},
            {"listen [::1]:80 any", "t:1:8: netfilter redirects"},
            {"listen 80 any\nlisten 80 forward", "t:2:8: port 80 is taken by line 1"},
            {"listen 192.0.2.1:80 any\nlisten 0.0.0.0:80 any", "t:2:8: port 80 is taken by line 1"},
            {"listen 192.0.2.1:80 any\nlisten 192.0.2.1:80 any", "t:2:8: port 80 is taken by line 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct outcome outcome = parse(rows[i].text);
        CU_ASSERT_FALSE(outcome.good);
        CU_ASSERT_TRUE(strstr(outcome.errors, rows[i].error) == outcome.errors);
        if (strstr(outcome.errors, rows[i].error) != outcome.errors)
            fprintf(stderr, "row %zu: %s\n", i, outcome.errors);
    }
    CU_ASSERT_TRUE(parse("listen 192.0.2.1:80 any\nlisten 192.0.2.2:80 any").good);
}

static void too_many_points(void) {
    char text[LISTEN_MAXIMUM * 32 + 64];
    size_t used = 0;
    for (int i = 0; i < LISTEN_MAXIMUM; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "listen %d redirect\n", 1000 + i);
    CU_ASSERT_EQUAL(parse(text).set.count, LISTEN_MAXIMUM);
    snprintf(text + used, sizeof text - used, "listen 9 any\n");
    struct outcome outcome = parse(text);
    CU_ASSERT_FALSE(outcome.good);
    CU_ASSERT_PTR_NOT_NULL(strstr(outcome.errors, "more than 64 listen lines"));
}

static void sockets_share_a_port(void) {
    const char *what = "";
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    struct listen_point point = {.mode = LISTEN_FORWARD, .any_address = true};
    int first = listen_open(&point, &what); // port 0: the kernel's choice
    CU_ASSERT_TRUE_FATAL(first >= 0);
    CU_ASSERT_EQUAL(getsockname(first, (struct sockaddr *)&address, &length), 0);
    CU_ASSERT_TRUE(endpoint_from_sockaddr(&point.address, (struct sockaddr *)&address));
    CU_ASSERT_EQUAL(listen_probe(&point), -EADDRINUSE);
    int second = listen_open(&point, &what);
    CU_ASSERT_TRUE(second >= 0);
    close(first);
    close(second);
    CU_ASSERT_EQUAL(listen_probe(&point), 0);
    point = (struct listen_point){.address.port = 1, .mode = LISTEN_FORWARD};
    CU_ASSERT_TRUE(address_parse(VIEW("203.0.113.77"), &point.address.address));
    CU_ASSERT_EQUAL(listen_open(&point, &what), -EADDRNOTAVAIL);
    CU_ASSERT_STRING_EQUAL(what, "bind");
}

SUITE(intercept_listen, CASE(default_is_a_redirect_port), CASE(every_form_of_a_place),
        CASE(bad_lines_are_named), CASE(too_many_points), CASE(sockets_share_a_port))
