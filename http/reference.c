#include "http/reference.h"

#include <string.h>

struct parts { // [§3]
    struct view scheme, authority, path, query;
    bool has_scheme, has_authority, has_query;
};

static bool is_alpha(char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static bool is_scheme(struct view text) {
    if (text.length == 0 || !is_alpha(text.data[0]))
        return false;
    for (size_t i = 1; i < text.length; i++) {
        char byte = text.data[i];
        if (!is_alpha(byte) && !(byte >= '0' && byte <= '9') && byte != '+' && byte != '-' && byte != '.')
            return false;
    }
    return true;
}

// [Appendix B]
static struct parts split(struct view text) {
    struct parts parts = {.has_scheme = false};
    text = view_take(text, view_find(text, '#'));
    size_t at = view_find(text, '?');
    parts.has_query = at < text.length;
    parts.query = view_skip(text, at + 1);
    text = view_take(text, at);
    at = view_find(text, ':');
    if (at < text.length && is_scheme(view_take(text, at))) {
        parts.has_scheme = true;
        parts.scheme = view_take(text, at);
        text = view_skip(text, at + 1);
    }
    if (view_starts(text, VIEW("//"))) {
        text = view_skip(text, 2);
        at = view_find(text, '/');
        parts.has_authority = true;
        parts.authority = view_take(text, at);
        text = view_skip(text, at);
    }
    parts.path = text;
    return parts;
}

struct text {
    char *data;
    size_t length;
};

static void put(struct text *text, struct view view) {
    if (view.length)
        memcpy(text->data + text->length, view.data, view.length);
    text->length += view.length;
}

// The last segment, and its slash if there is one.
static void drop_segment(struct text *out, size_t start) {
    while (out->length > start && out->data[--out->length] != '/')
        continue;
}

// remove_dot_segments [§5.2.4]. `path` must not overlap with `out`, which it is appended to.
static void put_without_dots(struct text *out, struct view path) {
    size_t start = out->length;
    while (path.length) {
        size_t slash = path.data[0] == '/';
        size_t end = view_find(view_skip(path, slash), '/') + slash;
        struct view segment = view_skip(view_take(path, end), slash);
        bool is_last = end == path.length;
        path = view_skip(path, end);
        bool is_dots = view_equal(segment, VIEW(".."));
        if (!is_dots && !view_equal(segment, VIEW("."))) {
            put(out, slash ? VIEW("/") : VIEW(""));
            put(out, segment);
            continue;
        }
        if (is_dots)
            drop_segment(out, start);
        if (is_last)
            put(out, VIEW("/"));
    }
}

// merge [§5.2.3]: `text` becomes the base's path up to its last slash, then the reference.
static void put_merged(struct text *text, struct view base, struct view path) {
    size_t keep = base.length;
    while (keep > 0 && base.data[keep - 1] != '/')
        keep--;
    put(text, keep ? view_take(base, keep) : VIEW("/"));
    put(text, path);
}

static void put_path(struct text *out, const struct parts *base, const struct parts *reference) {
    char merged[REFERENCE_BYTES];
    struct text text = {merged, 0};
    if (reference->has_scheme || reference->has_authority || view_starts(reference->path, VIEW("/"))) {
        put_without_dots(out, reference->path);
    } else if (reference->path.length == 0) {
        put(out, base->path);
    } else {
        put_merged(&text, base->path, reference->path);
        put_without_dots(out, (struct view){merged, text.length});
    }
}

bool reference_resolve(struct view authority, struct view path, struct view reference,
        char buffer[static REFERENCE_BYTES], struct reference_target *target) {
    struct parts base = split(path), parts = split(reference);
    struct authority parsed;
    if (authority.length + path.length + reference.length + AUTHORITY_BYTES + 2 > REFERENCE_BYTES)
        return false;
    if (parts.has_scheme && (!view_equal_fold(parts.scheme, VIEW("http")) || !parts.has_authority))
        return false;
    struct text out = {buffer, 0};
    if (!parts.has_authority)
        put(&out, authority);
    else if (authority_parse(parts.authority, &parsed))
        out.length = authority_normalise(&parsed, buffer, AUTHORITY_BYTES);
    target->authority = (struct view){buffer, out.length};
    if (parts.has_authority && out.length == 0)
        return false;
    size_t start = out.length;
    put_path(&out, &base, &parts);
    if (out.length == start || buffer[start] != '/') {
        memmove(buffer + start + 1, buffer + start, out.length - start);
        buffer[start] = '/';
        out.length++;
    }
    bool takes_base = !parts.has_scheme && !parts.has_authority && parts.path.length == 0 && !parts.has_query;
    if (takes_base ? base.has_query : parts.has_query) {
        put(&out, VIEW("?"));
        put(&out, takes_base ? base.query : parts.query);
    }
    target->path = (struct view){buffer + start, out.length - start};
    return true;
}
