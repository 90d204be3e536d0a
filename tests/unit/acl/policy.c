#include "tests/unit/acl/policy.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct acl *build(const char *lines, struct config_errors *errors) {
    struct config *config = config_load_text("test", view_of(lines), errors);
    struct acl *acl = config ? acl_new(config, errors) : NULL;
    config_free(config); // nothing of it is needed any more
    return acl;
}

struct acl *policy_of(const char *lines) {
    struct config_errors errors = {0};
    struct acl *acl = build(lines, &errors);
    if (!acl || errors.count)
        fprintf(stderr, "%s", errors.text ? errors.text : "no errors, no policy\n");
    CU_ASSERT_EQUAL(errors.count, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(acl);
    config_errors_fini(&errors);
    return acl;
}

char *policy_errors(const char *lines) {
    struct config_errors errors = {0};
    struct acl *acl = build(lines, &errors);
    CU_ASSERT_PTR_NULL(acl);
    CU_ASSERT_PTR_NOT_NULL_FATAL(errors.text);
    char *text = strdup(errors.text ? errors.text : "");
    acl_free(acl);
    config_errors_fini(&errors);
    return text;
}

struct acl_request request_of_url(struct request_text *text, const char *url) {
    struct acl_request request = {.path = VIEW("")};
    uint64_t port = 0;
    snprintf(text->bytes, sizeof text->bytes, "%s", url);
    struct view rest = view_of(text->bytes);
    request.scheme = view_take(rest, view_find(rest, ':'));
    rest = view_skip(rest, request.scheme.length + 3);
    size_t slash = view_find(rest, '/');
    request.path = view_skip(rest, slash);
    request.host = view_take(rest, slash);
    size_t from = request.host.length && request.host.data[0] == '[' ? view_find(request.host, ']') : 0;
    size_t colon = from + view_find(view_skip(request.host, from), ':');
    if (colon < request.host.length) {
        CU_ASSERT_TRUE(view_number(view_skip(request.host, colon + 1), &port));
        request.host = view_take(request.host, colon);
    }
    request.port = (uint16_t)port;
    return request;
}

struct acl_request request_to(
        struct request_text *text, const char *url, const char *address, uint16_t port) {
    struct acl_request request = request_of_url(text, url);
    CU_ASSERT_TRUE(address_parse(view_of(address), &request.destination.address));
    request.destination.port = port;
    return request;
}

uint32_t random_below(uint64_t *state, uint32_t bound) {
    *state += 0x9e3779b97f4a7c15u;
    uint64_t mixed = (*state ^ *state >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((mixed ^ mixed >> 31) % bound);
}
