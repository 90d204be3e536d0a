// The meaning of masks once more, as slowly and plainly as possible, to hold the real matcher against. Works
// on short texts only: the wildcard match tries everything. Shared by the property test and the fuzzer, hence
// in a header.
#pragma once

#include "admin/address.h"
#include "admin/check.h"

#include <string.h>

#define NAIVE_MAX 512
#define NAIVE_STAR (-1)

// A text whose bytes are numbers, so that a `*` is told from an asterisk.
struct naive_text {
    int byte[NAIVE_MAX + ADDRESS_TEXT_BYTES];
    unsigned length;
};

struct naive_url {
    struct naive_text host, path, text;
    unsigned port, other_port;
    bool is_address;
    struct address address;
};

static inline void naive_push(struct naive_text *text, int byte) {
    CHECK(text->length < NAIVE_MAX + ADDRESS_TEXT_BYTES);
    text->byte[text->length++] = byte;
}

static inline struct naive_text naive_of(struct view view, bool is_mask) {
    struct naive_text text = {.length = 0};
    for (size_t i = 0; i < view.length; i++)
        naive_push(&text, is_mask && view.data[i] == '*' ? NAIVE_STAR : (uint8_t)view.data[i]);
    return text;
}

static inline int naive_hex(int byte) {
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *found = byte > 0 ? strchr(digits, byte) : NULL;
    return found ? (int)(found - digits) % 16 : -1;
}

static inline struct naive_text naive_decode(const struct naive_text *from) {
    struct naive_text to = {.length = 0};
    for (unsigned i = 0; i < from->length; i++) {
        int high = -1, low = -1;
        if (from->byte[i] == '%' && i + 2 < from->length) {
            high = naive_hex(from->byte[i + 1]);
            low = naive_hex(from->byte[i + 2]);
        }
        int value = high * 16 + low;
        if (high < 0 || low < 0) {
            naive_push(&to, from->byte[i]);
        } else if (value <= 32 || value == 127 || strchr("/?#%", value)) {
            naive_push(&to, '%');
            naive_push(&to, "0123456789ABCDEF"[high]);
            naive_push(&to, "0123456789ABCDEF"[low]);
            i += 2;
        } else {
            naive_push(&to, value);
            i += 2;
        }
    }
    return to;
}

static inline struct naive_text naive_fold_host(struct naive_text host) {
    host = naive_decode(&host);
    for (unsigned i = 0; i < host.length; i++)
        if (host.byte[i] >= 'A' && host.byte[i] <= 'Z')
            host.byte[i] += 'a' - 'A';
    while (host.length && host.byte[host.length - 1] == '.')
        host.length--;
    return host;
}

static inline bool naive_segment_is(
        const struct naive_text *text, unsigned from, unsigned to, unsigned dots) {
    for (unsigned i = from; i < to; i++)
        if (text->byte[i] != '.')
            return false;
    return to - from == dots;
}

// Dot segments by a stack of segments; `text` starts with "/".
static inline struct naive_text naive_resolve(const struct naive_text *text) {
    struct {
        unsigned from, to;
    } stack[NAIVE_MAX + ADDRESS_TEXT_BYTES];
    struct naive_text out = {.length = 0};
    unsigned depth = 0, query = 0, at = 0;
    while (query < text->length && text->byte[query] != '?')
        query++;
    while (at < query) {
        unsigned from = ++at;
        while (at < query && text->byte[at] != '/')
            at++;
        bool dot = naive_segment_is(text, from, at, 1), up = naive_segment_is(text, from, at, 2);
        if (up && depth)
            depth--;
        if (!dot && !up)
            stack[depth].from = from, stack[depth++].to = at;
        else if (at == query)
            stack[depth].from = stack[depth].to = from, depth++;
    }
    for (unsigned i = 0; i < depth; i++) {
        naive_push(&out, '/');
        for (unsigned j = stack[i].from; j < stack[i].to; j++)
            naive_push(&out, text->byte[j]);
    }
    for (unsigned i = query; i < text->length; i++)
        naive_push(&out, text->byte[i]);
    return out;
}

static inline struct naive_text naive_part(const struct naive_text *text, unsigned from, unsigned to) {
    struct naive_text part = {.length = 0};
    for (unsigned i = from; i < to; i++)
        naive_push(&part, text->byte[i]);
    return part;
}

// The bytes again. False when there is a `*` among them.
static inline bool naive_bytes(const struct naive_text *text, char *out) {
    for (unsigned i = 0; i < text->length; i++) {
        if (text->byte[i] == NAIVE_STAR)
            return false;
        out[i] = (char)text->byte[i];
    }
    return true;
}

static inline bool naive_address(const struct naive_text *text, struct address *address) {
    char bytes[NAIVE_MAX + ADDRESS_TEXT_BYTES];
    unsigned length = text->length;
    if (!naive_bytes(text, bytes) || length == 0)
        return false;
    if (bytes[0] != '[')
        return address_parse((struct view){bytes, length}, address);
    return bytes[length - 1] == ']' && memchr(bytes, ':', length) &&
           address_parse((struct view){bytes + 1, length - 2}, address);
}

// The host of a URL: folded, an address in its canonical form.
static inline struct naive_text naive_host(
        const struct naive_text *from, bool *is_address, struct address *address) {
    char text[ADDRESS_TEXT_BYTES];
    struct naive_text host = naive_fold_host(*from), canonical = {.length = 0};
    *is_address = naive_address(&host, address);
    if (!*is_address)
        return host;
    address_print(address, text);
    if (!address_is_ipv4(address))
        naive_push(&canonical, '[');
    for (const char *at = text; *at; at++)
        naive_push(&canonical, *at);
    if (!address_is_ipv4(address))
        naive_push(&canonical, ']');
    return canonical;
}

static inline struct naive_url naive_url_of(
        struct view host, struct view path, unsigned port, unsigned other_port) {
    struct naive_url url = {.port = port, .other_port = other_port};
    struct naive_text sent = naive_of(host, false), slash = {.byte = {'/'}, .length = 1};
    url.host = naive_host(&sent, &url.is_address, &url.address);
    sent = naive_of(path, false);
    sent = naive_decode(&sent);
    if (sent.length == 0 || path.data[0] != '/') {
        for (unsigned i = 0; i < sent.length; i++)
            naive_push(&slash, sent.byte[i]);
        sent = slash;
    }
    url.path = naive_resolve(&sent);
    url.text = url.host;
    for (unsigned i = 0; i < url.path.length; i++)
        naive_push(&url.text, url.path.byte[i]);
    return url;
}

static inline bool naive_glob_from(
        const struct naive_text *glob, unsigned g, const struct naive_text *text, unsigned t) {
    if (g == glob->length)
        return t == text->length;
    if (glob->byte[g] != NAIVE_STAR)
        return t < text->length && glob->byte[g] == text->byte[t] &&
               naive_glob_from(glob, g + 1, text, t + 1);
    for (; t <= text->length; t++)
        if (naive_glob_from(glob, g + 1, text, t))
            return true;
    return false;
}

static inline bool naive_glob(const struct naive_text *glob, const struct naive_text *text) {
    return naive_glob_from(glob, 0, text, 0);
}

static inline unsigned naive_find(const struct naive_text *text, unsigned from, int byte) {
    while (from < text->length && text->byte[from] != byte)
        from++;
    return from;
}

// "example.com": the name and what is below it. `below`: only that.
static inline bool naive_domain(const struct naive_text *name, const struct naive_text *host, bool below) {
    if (host->length < name->length)
        return false;
    unsigned before = host->length - name->length;
    struct naive_text tail = naive_part(host, before, host->length);
    bool equal = tail.length == name->length;
    for (unsigned i = 0; i < tail.length; i++)
        equal = equal && tail.byte[i] == name->byte[i];
    return equal && (before ? host->byte[before - 1] == '.' : !below);
}

// A mask with a host, the path from `slash` on if it has one.
static inline bool naive_place(const struct naive_text *mask, unsigned slash, const struct naive_url *url) {
    struct naive_text host = naive_part(mask, 0, slash), path = naive_part(mask, slash, mask->length);
    unsigned colon =
            naive_find(&host, host.length && host.byte[0] == '[' ? naive_find(&host, 0, ']') : 0, ':');
    unsigned port = 0;
    for (unsigned i = colon + 1; i < host.length && host.byte[i] != NAIVE_STAR; i++)
        port = port * 10 + (unsigned)(host.byte[i] - '0');
    if (port && port != url->port && port != url->other_port)
        return false;
    host = naive_part(&host, 0, colon);
    bool dot = host.length > 1 && host.byte[0] == '.', is_address;
    struct address address;
    host = naive_part(&host, dot, host.length);
    host = naive_host(&host, &is_address, &address);
    path = naive_decode(&path);
    if (path.length)
        return (host.length == 0 || naive_glob(&host, &url->host)) && naive_glob(&path, &url->path);
    if (is_address || (url->is_address && naive_find(&host, 0, NAIVE_STAR) == host.length))
        return naive_glob(&host, &url->host);
    bool below = host.length > 2 && host.byte[0] == NAIVE_STAR && host.byte[1] == '.';
    struct naive_text name = naive_part(&host, below ? 2 : 0, host.length);
    if (naive_find(&name, 0, NAIVE_STAR) == name.length)
        return !url->is_address && naive_domain(&name, &url->host, below);
    return naive_glob(&host, &url->host);
}

// Whether a mask that is well formed matches.
static inline bool naive_matches(struct view text, const struct naive_url *url) {
    bool scheme = view_starts_fold(text, VIEW("http://")), any = view_starts(text, VIEW("*://"));
    text = view_skip(text, scheme ? 7 : any ? 4 : 0);
    struct naive_text mask = naive_of(text, true);
    unsigned slash = naive_find(&mask, 0, '/');
    struct naive_text head = naive_part(&mask, 0, slash), tail = naive_part(&mask, slash, mask.length);
    struct address address, prefix;
    char plain[NAIVE_MAX + ADDRESS_TEXT_BYTES];
    if (naive_address(&head, &address) && naive_bytes(&tail, plain)) {
        struct view rest = {plain + 1, tail.length ? tail.length - 1 : 0};
        uint64_t number;
        if (tail.length == 0)
            return url->is_address && address_equal(&address, &url->address);
        if (!scheme && !any && (view_number(rest, &number) || address_parse(rest, &prefix))) {
            bool brackets = head.byte[0] == '[';
            struct naive_text whole = naive_part(&head, brackets, head.length - brackets);
            for (unsigned i = 0; i < tail.length; i++)
                naive_push(&whole, tail.byte[i]);
            unsigned bits;
            naive_bytes(&whole, plain);
            CHECK(address_parse_prefix((struct view){plain, whole.length}, &prefix, &bits) == NULL);
            return url->is_address && address_in_prefix(&url->address, &prefix, bits);
        }
    }
    bool starts = mask.byte[0] == NAIVE_STAR, ends = mask.byte[mask.length - 1] == NAIVE_STAR;
    struct naive_text decoded = naive_decode(&mask), folded = naive_fold_host(mask);
    if (starts && ends && slash == mask.length)
        return naive_glob(&decoded, &url->text) || naive_glob(&folded, &url->host);
    unsigned stars = 0;
    while (stars < mask.length && mask.byte[stars] == NAIVE_STAR)
        stars++;
    if (stars && stars == slash)
        return naive_glob(&decoded, &url->text);
    return naive_place(&mask, slash, url);
}
