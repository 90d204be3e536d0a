#include "intercept/cache_status.h"

#include "admin/check.h"
#include "cache/reason.h"
#include "http/compose.h"

#include <string.h>

#define INTEGER_MAXIMUM 999999999999999 // [RFC 8941 §3.3.1]
#define DETAIL_BYTES 64

static bool is_hit(const struct cache_status *status) {
    return status->lookup == LOOKUP_HIT;
}

static enum forward forward_of(const struct cache_status *status) {
    const struct reason *asked = reason_find(status->asked);
    enum forward forward = asked && asked->forward != FORWARD_NONE ? asked->forward : FORWARD_MISS;
    // A joiner does not know at first, and learns it by what it gets: something stored that the origin
    // confirmed, or did not replace.
    bool was_stored = status->source == SOURCE_CONFIRMED || status->source == SOURCE_STALE;
    return was_stored && forward == FORWARD_MISS ? FORWARD_STALE : forward;
}

static const char *forward_token(enum forward forward) {
    switch (forward) {
    case FORWARD_BYPASS:
        return "bypass";
    case FORWARD_METHOD:
        return "method";
    case FORWARD_URI_MISS:
        return "uri-miss";
    case FORWARD_VARY_MISS:
        return "vary-miss";
    case FORWARD_MISS:
        return "miss";
    case FORWARD_REQUEST:
        return "request";
    case FORWARD_STALE:
        return "stale";
    case FORWARD_PARTIAL:
        return "partial";
    case FORWARD_NONE:
        break;
    }
    UNREACHABLE("forward_of() gives a reason to go forward");
}

// A word that the other parameters have said already.
static bool is_said(const char *word, enum forward forward) {
    static const char *const plain[] = {"fresh", "stored", "confirmed", "absent", "variant"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strcmp(word, plain[i]) == 0)
            return true;
    return forward == FORWARD_STALE ? strcmp(word, "expired") == 0
                                    : forward == FORWARD_METHOD && strcmp(word, "method") == 0;
}

static bool is_token(const char *word) { // [RFC 8941 §3.3.4], those with a letter first
    bool starts = (*word >= 'a' && *word <= 'z') || (*word >= 'A' && *word <= 'Z') || *word == '*';
    return starts && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-."
                                  "^_`|~:/") == strlen(word);
}

static void compose_detail(struct composer *out, const struct cache_status *status, enum forward forward) {
    const char *word = status->reason;
    if (word && is_said(word, forward))
        word = status->asked;
    if (!word || is_said(word, forward))
        return;
    CHECK(is_token(word) && strlen(word) <= DETAIL_BYTES); // ours
    compose_format(out, "; detail=%s", word);
}

static void compose_forward(struct composer *out, const struct cache_status *status, enum forward forward) {
    compose_format(out, "; fwd=%s", forward_token(forward));
    if (status->lookup == LOOKUP_JOIN) {
        compose_text(out, "; collapsed");
        return;
    }
    if (status->origin_status)
        compose_format(out, "; fwd-status=%d", status->origin_status);
    if (status->is_stored)
        compose_text(out, "; stored");
}

static void compose_ttl(struct composer *out, int64_t ttl_s) {
    if (ttl_s > INTEGER_MAXIMUM)
        ttl_s = INTEGER_MAXIMUM;
    if (ttl_s < -INTEGER_MAXIMUM)
        ttl_s = -INTEGER_MAXIMUM;
    compose_format(out, "; ttl=%lld", (long long)ttl_s);
}

size_t cache_status_compose(const struct cache_status *status, char bytes[static CACHE_STATUS_BYTES]) {
    struct composer out;
    char text[ADDRESS_TEXT_BYTES];
    enum forward forward = is_hit(status) ? FORWARD_NONE : forward_of(status);
    compose_init(&out, bytes, CACHE_STATUS_BYTES);
    compose_text(&out, "weir");
    if (is_hit(status))
        compose_text(&out, "; hit");
    else
        compose_forward(&out, status, forward);
    if (status->has_ttl)
        compose_ttl(&out, status->ttl_s);
    if (status->destination && forward != FORWARD_BYPASS && forward != FORWARD_METHOD)
        compose_format(&out, "; key=\"%s\"", endpoint_print(status->destination, text));
    compose_detail(&out, status, forward);
    CHECK(!out.overflow);
    return out.length;
}
