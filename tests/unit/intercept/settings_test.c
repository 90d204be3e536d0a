#include "intercept/settings.h"

#include "tests/unit/intercept/netns.h"
#include "tests/unit/unit.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct settings *build(const char *text) {
    struct config_errors errors = {0};
    struct config *config = config_load_text("t", view_of(text), &errors);
    CU_ASSERT_PTR_NOT_NULL_FATAL(config);
    struct settings *settings = settings_build(config, &errors);
    CU_ASSERT_EQUAL(settings != NULL, errors.count == 0);
    config_errors_fini(&errors);
    return settings;
}

static void defaults(void) {
    struct settings *settings = build("workers 3\n");
    CU_ASSERT_PTR_NOT_NULL_FATAL(settings);
    CU_ASSERT_TRUE(
            settings->connect_ports[443] && !settings->connect_ports[80] && !settings->connect_ports[0]);
    CU_ASSERT_EQUAL(strlen(settings->via_name), strlen("weir-12345678"));
    CU_ASSERT_EQUAL(settings_workers(settings->config), 3);
    CU_ASSERT_TRUE(settings->client_connections_per_host <= settings->client_connections);
    settings_put(settings);
    settings = build("");
    CU_ASSERT_TRUE(settings_workers(settings->config) >= 1);
    settings_put(settings);
    settings_put(NULL);
}

static void configured_values(void) {
    struct settings *settings =
            build("connect_ports 443 8443\nconnect_ports 65535\nvia_name gate\n"
                  "forward_default [2001:db8::1]:8080\nclient_connections 10\n"
                  "client_connections_per_host 4\nupstream_connections 7\ncache_mem 1M\n");
    struct cache_limits limits;
    CU_ASSERT_PTR_NOT_NULL_FATAL(settings);
    CU_ASSERT_TRUE(settings->connect_ports[8443] && settings->connect_ports[65535]);
    CU_ASSERT_STRING_EQUAL(settings->via_name, "gate");
    CU_ASSERT_EQUAL(settings->client_connections, 10);
    CU_ASSERT_EQUAL(settings->client_connections_per_host, 4);
    CU_ASSERT_EQUAL(settings->upstream_connections, 7);
    settings_cache_limits(settings, &limits);
    CU_ASSERT_EQUAL(limits.memory_bytes, 1 << 20);
    settings_put(settings);
    settings = build("forward_default www.example.com:81\n"); // a name: looked up when it is needed
    settings_put(settings);
}

static void bad_ones_fail(void) {
    CU_ASSERT_PTR_NULL(
            build("via_name aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"));
    CU_ASSERT_PTR_NULL(build("allow 10.0.0.0/40\n"));
    CU_ASSERT_PTR_NULL(build("listen 127.0.0.1:80 redirect\n"));
    CU_ASSERT_PTR_NULL(build("access_log /no/such/folder/log\n"));
    struct config_errors errors = {0};
    CU_ASSERT_PTR_NULL(settings_load("/no/such/file", &errors));
    CU_ASSERT_EQUAL(errors.count, 1);
    config_errors_fini(&errors);
}

// In a child, whose descriptor limit is its own.
static int limits_of(rlim_t files, unsigned clients, unsigned per_host) {
    struct rlimit limit = {files, files};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    struct settings *settings = build("workers 2\n");
    REQUIRE(settings != NULL);
    REQUIRE(settings->client_connections == clients);
    REQUIRE(settings->upstream_connections == clients);
    REQUIRE(settings->client_connections_per_host == per_host);
    settings_put(settings);
    return 0;
}

static int all_limits(void) {
    REQUIRE(limits_of(4096, 1354, 338) == 0); // downwards: a hard limit does not go up again
    REQUIRE(limits_of(1024, 330, 82) == 0);   // (1024 - 24 - 2 x 5) / 3
    REQUIRE(limits_of(64, 10, 8) == 0);
    REQUIRE(limits_of(24, 1, 1) == 0);
    return 0;
}

static void limits_follow_the_descriptors(void) {
    CU_ASSERT_TRUE(netns_passes(all_limits));
}

static void references(void) {
    struct settings *settings = build("");
    CU_ASSERT_PTR_EQUAL(settings_get(settings), settings);
    CU_ASSERT_EQUAL(settings->references, 2);
    settings_put(settings);
    CU_ASSERT_EQUAL(settings->references, 1);
    settings_put(settings);
}

SUITE(intercept_settings, CASE(defaults), CASE(configured_values), CASE(bad_ones_fail),
        CASE(limits_follow_the_descriptors), CASE(references))
