#include "intercept/purge.h"

#include "intercept/control.h"
#include "intercept/url_argument.h"
#include "intercept/url_mask.h"

#include <errno.h>
#include <string.h>

#define PATH_BYTES 256

enum purge_kind { PURGE_URL, PURGE_PREFIX, PURGE_HOST, PURGE_MASK, PURGE_ALL };

struct purge {
    enum purge_kind kind;
    struct acl_mask *mask; // of PURGE_MASK
    struct view text;      // what stands behind the kind
    struct view authority; // normalised
    struct view path;      // "/" at least, as a request has it
    char name[AUTHORITY_BYTES], mask_text[CONTROL_REQUEST_BYTES];
    char slashed[CONTROL_REQUEST_BYTES];
};

// ---- reading ----

static const char *set_authority(struct purge *purge, const struct authority *authority) {
    size_t length = authority_normalise(authority, purge->name, sizeof purge->name);
    purge->authority = (struct view){purge->name, length};
    return length ? NULL : "the host is too long";
}

static const char *read_host(struct purge *purge) {
    struct authority authority;
    if (!authority_parse(purge->text, &authority))
        return "write NAME or NAME:PORT";
    return set_authority(purge, &authority);
}

static const char *read_url(struct purge *purge) {
    struct url_argument url;
    const char *why = url_argument_read(purge->text, &url);
    if (why)
        return why;
    purge->path = url.path;
    if (!view_starts(url.path, VIEW("/"))) {
        int length =
                snprintf(purge->slashed, sizeof purge->slashed, "/" VIEW_FORMAT, VIEW_ARGUMENT(url.path));
        purge->path = (struct view){purge->slashed, (size_t)length};
    }
    return set_authority(purge, &url.authority);
}

static const char *read_mask(struct purge *purge) {
    const char *why = "";
    snprintf(purge->mask_text, sizeof purge->mask_text, VIEW_FORMAT, VIEW_ARGUMENT(purge->text));
    purge->mask = acl_mask_new(purge->mask_text, &why);
    return purge->mask ? NULL : why;
}

static bool take_kind(struct view *what, struct view kind) {
    if (!view_starts(*what, kind))
        return false;
    *what = view_skip(*what, kind.length);
    return true;
}

static const char *read_purge(struct purge *purge, struct view what) {
    if (what.length > CONTROL_REQUEST_BYTES - 20)
        return "that is too long";
    purge->kind = PURGE_ALL;
    if (view_equal(what, VIEW("all")))
        return NULL;
    purge->kind = take_kind(&what, VIEW("url "))      ? PURGE_URL
                  : take_kind(&what, VIEW("prefix ")) ? PURGE_PREFIX
                  : take_kind(&what, VIEW("host "))   ? PURGE_HOST
                  : take_kind(&what, VIEW("mask "))   ? PURGE_MASK
                                                      : PURGE_ALL;
    purge->text = what;
    switch (purge->kind) {
    case PURGE_URL:
    case PURGE_PREFIX:
        return read_url(purge);
    case PURGE_HOST:
        return read_host(purge);
    case PURGE_MASK:
        return read_mask(purge);
    case PURGE_ALL:
        break;
    }
    return "no such request";
}

const char *purge_problem(struct view what) {
    struct purge purge = {0};
    const char *why = read_purge(&purge, what);
    acl_mask_free(purge.mask);
    return why;
}

// ---- dropping ----

static bool matches(void *context, struct view authority, struct view path) {
    return url_mask_matches(context, authority, path);
}

static unsigned drop(struct cache *cache, const struct purge *purge) {
    switch (purge->kind) {
    case PURGE_URL:
        return cache_purge_url(cache, purge->authority, purge->path);
    case PURGE_PREFIX:
        return cache_purge_prefix(cache, purge->authority, purge->path);
    case PURGE_HOST:
        return cache_purge_host(cache, purge->authority);
    case PURGE_MASK:
        return cache_purge_mask(cache, matches, purge->mask, purge->text);
    case PURGE_ALL:
        break;
    }
    return cache_purge_all(cache);
}

void purge_answer(struct cache *cache, struct view what, FILE *out) {
    struct purge purge = {0};
    const char *why = read_purge(&purge, what);
    if (why) {
        fprintf(out, "error: %s\n", why);
        return;
    }
    unsigned dropped = drop(cache, &purge);
    acl_mask_free(purge.mask);
    char path[PATH_BYTES];
    int error = cache_purge_missed(cache, path, sizeof path);
    if (error < 0) {
        fprintf(out, "error: %u response%s dropped from memory, but volume %s ", dropped,
                dropped == 1 ? "" : "s", path);
        if (error == -EIO)
            fputs("is not in use now", out);
        else
            fprintf(out, "cannot write that down (%s)", strerror(-error));
        fputs("; the purge holds while weir runs, repeat it when the volume is back\n", out);
        return;
    }
    const char *on_disk = cache_has_disk(cache) ? " from memory, and all that lies on disk of it" : "";
    fprintf(out, "ok\n%u response%s dropped%s\n", dropped, dropped == 1 ? "" : "s", on_disk);
}
