// Masks and URLs: nothing crashes, a mask alone and among others says the same, and for small inputs both say
// what the plain reading says. Input is lines: host, path, destination address, then masks.
#include "acl/acl.h"
#include "admin/check.h"
#include "tests/unit/acl/naive.h"

#include <stdlib.h>
#include <string.h>

#define MASKS_MAX 24
#define NAIVE_LENGTH 80 // a longer text, or a mask with more stars, is not read the slow way
#define NAIVE_STARS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// The next line as a C string of its own; a NUL within it ends it.
static char *next_line(struct view *input) {
    struct view line = view_take(*input, view_find(*input, '\n'));
    *input = view_skip(*input, line.length + 1);
    return strndup(line.data ? line.data : "", line.length);
}

static struct acl *policy_of(char *const *masks, unsigned count) {
    struct config_word words[MASKS_MAX];
    struct config_errors errors = {0};
    struct directive directive = {
            .id = DIRECTIVE_block, .file = "fuzz", .line = 1, .word_count = count, .words = words};
    struct config config = {.directive_count = count > 0, .directives = &directive};
    for (unsigned i = 0; i < count; i++)
        words[i] = (struct config_word){masks[i], i + 1};
    struct acl *acl = acl_new(&config, &errors);
    CHECK(!acl == (errors.count > 0));
    config_errors_fini(&errors);
    return acl;
}

static bool is_small(const char *mask, const struct acl_request *request) {
    unsigned stars = 0;
    for (const char *at = mask; *at; at++)
        stars += *at == '*';
    return stars <= NAIVE_STARS && strlen(mask) <= NAIVE_LENGTH && request->host.length <= NAIVE_LENGTH &&
           request->path.length <= NAIVE_LENGTH;
}

static bool naive_request_matches(const char *mask, const struct acl_request *request) {
    char text[ADDRESS_TEXT_BYTES];
    struct naive_url url;
    if (request->host.length) {
        url = naive_url_of(request->host, request->path, request->port, request->destination.port);
        if (naive_matches(view_of(mask), &url))
            return true;
    }
    if (!request->destination.port)
        return false;
    address_print(&request->destination.address, text);
    url = naive_url_of(view_of(text), request->path, request->destination.port, request->destination.port);
    return naive_matches(view_of(mask), &url);
}

// Whether this mask matches; counts it among the good ones when it is well formed.
static bool try_mask(char *mask, const struct acl_request *request, char **good, unsigned *count) {
    const char *why = NULL;
    struct acl_mask *made = acl_mask_new(mask, &why);
    CHECK(!made == (why != NULL));
    if (!made) {
        CHECK(policy_of(&mask, 1) == NULL);
        return false;
    }
    bool matches = acl_mask_matches(made, request);
    if (is_small(mask, request))
        CHECK(matches == naive_request_matches(mask, request));
    good[(*count)++] = mask;
    acl_mask_free(made);
    return matches;
}

static struct acl_request read_request(char *const *lines) {
    struct acl_request request = {
            .scheme = VIEW("http"), .host = view_of(lines[0]), .path = view_of(lines[1])};
    static const struct address none;
    request.port = request.path.length % 3 ? 80 : 8080;
    if (address_parse(view_of(lines[2]), &request.destination.address))
        request.destination.port = request.path.length % 2 ? 80 : 8080;
    if (address_equal(&request.destination.address, &none))
        request.destination.port = 0;
    return request;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct view input = {(const char *)data, size};
    char *lines[3 + MASKS_MAX], *good[MASKS_MAX];
    unsigned count = 0, good_count = 0;
    bool any = false;
    while (count < 3 || (count < 3 + MASKS_MAX && input.length))
        lines[count++] = next_line(&input);
    struct acl_request request = read_request(lines);
    for (unsigned i = 3; i < count; i++)
        any |= try_mask(lines[i], &request, good, &good_count);
    struct acl *acl = policy_of(good, good_count);
    struct acl_match match;
    CHECK(acl && acl_count(acl) == good_count);
    CHECK((acl_url(acl, &request, &match) == ACL_BLOCK) == any);
    CHECK((match.rule.length > 0) == any);
    acl_free(acl);
    for (unsigned i = 0; i < count; i++)
        free(lines[i]);
    return 0;
}
