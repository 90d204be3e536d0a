#include "acl/mask.h"

#include "acl/domain.h"
#include "acl/glob.h"
#include "admin/check.h"

#include <stdlib.h>
#include <string.h>

// A mask being read; the views point into `host_bytes` and `path_bytes`.
struct draft {
    char host_bytes[MASK_BYTES_MAX + ADDRESS_TEXT_BYTES];
    char path_bytes[MASK_BYTES_MAX + 1];
    struct mask mask; // last, for its own bytes[] stays empty here
};

static const struct view any = {"\0", 1}; // the glob `*`

static const char *check_bytes(struct view text) {
    if (text.length == 0)
        return "the mask is empty, write a domain, an address or * for everything";
    if (text.length > MASK_BYTES_MAX)
        return "the mask is longer than 4096 bytes, shorten it with *";
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] == ' ' || text.data[i] == '\t')
            return "a blank within the mask can never match, write it as %20 or leave it out";
        if ((uint8_t)text.data[i] < ' ' || text.data[i] == 0x7f)
            return "a control byte within the mask can never match, leave it out";
        if (text.data[i] == '#')
            return "a URL's fragment is never sent, leave out # and what follows (or write %23)";
        if (text.data[i] == '\\')
            return "a backslash has no meaning in a mask, write / or %5C";
    }
    return NULL;
}

// Takes the scheme away. False when it is another one than http.
static bool skip_scheme(struct view *text, bool *had_scheme) {
    static const struct view schemes[] = {{"http://", 7}, {"*://", 4}};
    *had_scheme = true;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (view_starts_fold(*text, schemes[i])) {
            *text = view_skip(*text, schemes[i].length);
            return true;
        }
    *had_scheme = false;
    size_t colon = view_find(*text, ':'), slash = view_find(*text, '/'), query = view_find(*text, '?');
    bool other = colon + 1 == slash && colon < query && view_starts(view_skip(*text, colon), VIEW("://"));
    return !other;
}

// Whether what follows the slash behind an address is a length or a netmask, not a path.
static bool is_prefix_length(struct view text) {
    struct address netmask;
    uint64_t number;
    return view_number(text, &number) || address_parse(text, &netmask);
}

// "ADDRESS", "[ADDRESS]" and either with a length. False when the text is something else.
static bool read_address(struct view text, bool had_scheme, struct mask *mask, struct mask_error *error) {
    char plain[MASK_BYTES_MAX];
    struct address address;
    size_t slash = view_find(text, '/');
    struct view head = view_take(text, slash), rest = view_skip(text, slash);
    bool brackets = head.length > 2 && head.data[0] == '[' && head.data[head.length - 1] == ']';
    if (brackets)
        head = (struct view){head.data + 1, head.length - 2};
    if (!address_parse(head, &address) || (brackets && view_find(head, ':') == head.length))
        return false;
    if (rest.length && (had_scheme || !is_prefix_length(view_skip(rest, 1))))
        return false;
    memcpy(plain, head.data, head.length);
    memcpy(plain + head.length, rest.data, rest.length);
    mask->kind = MASK_ADDRESS;
    error->why = address_parse_prefix(
            (struct view){plain, head.length + rest.length}, &error->prefix, &error->bits);
    mask->prefix = error->prefix;
    mask->bits = error->bits;
    return true;
}

// Copies the mask with each run of `*` as one NUL.
static struct view compile_stars(struct view text, char *out) {
    size_t length = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] != '*')
            out[length++] = text.data[i];
        else if (length == 0 || out[length - 1] != GLOB_STAR)
            out[length++] = GLOB_STAR;
    }
    return (struct view){out, length};
}

// Splits ":PORT" off a host.
static const char *read_port(struct view *host, uint16_t *port) {
    uint64_t number;
    size_t from = host->length && host->data[0] == '[' ? view_find(*host, ']') : 0;
    size_t colon = from + view_find(view_skip(*host, from), ':');
    if (colon >= host->length)
        return NULL;
    struct view text = view_skip(*host, colon + 1);
    if (view_find(text, ':') < text.length)
        return "an IPv6 address with a port or a path needs brackets, write [2001:db8::1]:80";
    *host = view_take(*host, colon);
    if (text.length == 1 && text.data[0] == GLOB_STAR)
        return NULL;
    if (!view_number(text, &number) || number == 0 || number > UINT16_MAX)
        return "the port is not a number from 1 to 65535, write HOST:PORT (or leave it out for every port)";
    *port = (uint16_t)number;
    return NULL;
}

static bool is_name_byte(char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' ||
           byte == '.' || byte == GLOB_STAR || (byte & 0x80);
}

// Four numbers that are no address: a slip of the pen rather than a name.
static bool is_broken_ipv4(struct view host) {
    unsigned dots = 0;
    for (size_t i = 0; i < host.length; i++) {
        if (host.data[i] == '.')
            dots++;
        else if (host.data[i] < '0' || host.data[i] > '9')
            return false;
    }
    return dots == 3;
}

static const char *check_name(struct view host) {
    if (host.length > DOMAIN_NAME_MAX)
        return "no host name is longer than 253 bytes, shorten it";
    if (is_broken_ipv4(host))
        return "not an IPv4 address, write four numbers from 0 to 255 without leading zeros";
    for (size_t i = 0; i < host.length; i++) {
        if (host.data[i] == '?')
            return "a query needs a path before it, write HOST/?QUERY or HOST/*?QUERY";
        if (host.data[i] == '@')
            return "a user name is no part of what is matched, leave out everything up to @";
        if (!is_name_byte(host.data[i]))
            return "this byte is in no host name, write DOMAIN, HOST/PATH or ADDRESS";
        if (host.data[i] == '.' && (i == 0 || host.data[i - 1] == '.'))
            return "an empty label in the host name, write one dot between two labels";
    }
    return NULL;
}

// The host of a mask, its port gone: normalised, checked, an address in its canonical form.
static const char *read_host(struct draft *draft, struct view text, bool has_path) {
    struct address address;
    bool dot = text.length > 1 && text.data[0] == '.';
    if (dot && has_path)
        return "a host does not start with a dot, write *. for every host below a domain";
    struct view host = {draft->host_bytes, url_fold_host(view_skip(text, dot), draft->host_bytes)};
    if (host.length == 0)
        return "the host is nothing but dots, write a domain";
    bool is_address = url_host_is_address(host, &address);
    if (is_address)
        host.length = url_write_address(&address, draft->host_bytes);
    draft->mask.host = host;
    return is_address ? NULL : check_name(host);
}

// A host mask without a path: a domain when it can be one, for the table of domains is the cheapest.
static void read_bare(struct draft *draft) {
    struct view host = draft->mask.host;
    struct address address;
    bool below = view_starts(host, VIEW("\0."));
    draft->mask.kind = MASK_PLACE;
    draft->mask.path = any;
    if (url_host_is_address(host, &address) || !glob_is_literal(view_skip(host, 2 * below)))
        return;
    draft->mask.kind = MASK_DOMAIN;
    draft->mask.below_only = below;
    draft->mask.host = view_skip(host, 2 * below);
}

static bool has_dot_segment(struct view path) {
    path = view_take(path, view_find(path, '?'));
    while (path.length) {
        path = view_skip(path, 1);
        struct view segment = view_take(path, view_find(path, '/'));
        if (view_equal(segment, VIEW(".")) || view_equal(segment, VIEW("..")))
            return true;
        path = view_skip(path, segment.length);
    }
    return false;
}

static const char *read_path(struct draft *draft, struct view text) {
    draft->mask.path = (struct view){draft->path_bytes, url_decode(text, draft->path_bytes)};
    return has_dot_segment(draft->mask.path)
                   ? "dot segments are resolved before matching, write the path without . and .."
                   : NULL;
}

static const char *read_place(struct draft *draft, struct view text) {
    size_t slash = view_find(text, '/');
    struct view host = view_take(text, slash), path = view_skip(text, slash);
    const char *why = read_port(&host, &draft->mask.port);
    if (why)
        return why;
    if (host.length == 0 && path.length == 0)
        return "a port alone is no mask, write *:PORT for every host";
    draft->mask.host = any;
    if (host.length)
        why = read_host(draft, host, path.length > 0);
    if (why)
        return why;
    draft->mask.kind = MASK_PLACE;
    if (path.length)
        return read_path(draft, path);
    read_bare(draft);
    return NULL;
}

// `*ads*`, which looks at the host in lower case besides.
static const char *read_anywhere(struct draft *draft, struct view text) {
    if (view_find(text, ':') < text.length)
        return "a colon between two * is unclear, write *:PORT for a port or */* before a colon in a path";
    draft->mask.kind = MASK_ANYWHERE;
    draft->mask.path = (struct view){draft->path_bytes, url_decode(text, draft->path_bytes)};
    draft->mask.host = (struct view){draft->host_bytes, url_fold_host(text, draft->host_bytes)};
    return NULL;
}

// `*/x/*`: the first `*` runs on into the path, so the whole is one glob.
static const char *read_any_place(struct draft *draft, struct view text) {
    const char *why = read_path(draft, view_skip(text, 1));
    draft->mask.kind = MASK_ANYWHERE;
    memmove(draft->path_bytes + 1, draft->path_bytes, draft->mask.path.length);
    draft->path_bytes[0] = GLOB_STAR;
    draft->mask.path.length++;
    return why;
}

static const char *read_text(struct draft *draft, struct view text) {
    bool starts = text.length && text.data[0] == GLOB_STAR;
    bool ends = text.length && text.data[text.length - 1] == GLOB_STAR;
    size_t slash = view_find(text, '/');
    if (text.length == 0)
        return "nothing follows the scheme, write a domain, an address or * for everything";
    if (starts && ends && slash == text.length)
        return read_anywhere(draft, text);
    return starts && slash == 1 ? read_any_place(draft, text) : read_place(draft, text);
}

static const char *read_mask(struct draft *draft, struct view text, struct mask_error *error) {
    char compiled[MASK_BYTES_MAX];
    bool had_scheme;
    const char *why = check_bytes(text);
    if (why)
        return why;
    if (!skip_scheme(&text, &had_scheme))
        return "only http URLs are seen here, write the mask without its scheme";
    if (read_address(text, had_scheme, &draft->mask, error))
        return error->why;
    return read_text(draft, compile_stars(text, compiled));
}

// A copy of the draft that owns its bytes, and no more than those.
static struct mask *keep(const struct draft *draft) {
    const struct mask *from = &draft->mask;
    struct mask *mask = malloc(sizeof *mask + from->host.length + from->path.length);
    if (!mask)
        return NULL;
    *mask = *from;
    mask->host.data = mask->bytes;
    mask->path.data = mask->bytes + from->host.length;
    if (from->host.length)
        memcpy(mask->bytes, from->host.data, from->host.length);
    if (from->path.length)
        memcpy(mask->bytes + from->host.length, from->path.data, from->path.length);
    return mask;
}

struct mask *mask_new(struct view text, struct mask_error *error) {
    struct draft draft;
    draft.mask = (struct mask){.kind = MASK_ANYWHERE};
    *error = (struct mask_error){.bits = ADDRESS_NO_PREFIX};
    error->why = read_mask(&draft, text, error);
    if (error->why)
        return NULL;
    struct mask *mask = keep(&draft);
    if (!mask)
        error->why = "out of memory";
    return mask;
}

static bool matches_domain(const struct mask *mask, const struct url *url) {
    struct view name = mask->host, host = url->host;
    if (url->is_address || host.length < name.length)
        return false;
    size_t before = host.length - name.length;
    if (!view_equal(view_skip(host, before), name))
        return false;
    return before ? host.data[before - 1] == '.' : !mask->below_only;
}

bool mask_matches(const struct mask *mask, const struct url *url) {
    if (mask->port && mask->port != url->port && mask->port != url->other_port)
        return false;
    switch (mask->kind) {
    case MASK_ADDRESS:
        return url->is_address && address_in_prefix(&url->address, &mask->prefix, mask->bits);
    case MASK_DOMAIN:
        return matches_domain(mask, url);
    case MASK_PLACE:
        return glob_match(mask->host, url->host) && glob_match(mask->path, url->path);
    case MASK_ANYWHERE:
        return glob_match(mask->path, url->text) || (mask->host.length && glob_match(mask->host, url->host));
    }
    UNREACHABLE("a mask of no kind");
}

bool mask_equal(const struct mask *a, const struct mask *b) {
    return a->kind == b->kind && a->below_only == b->below_only && a->port == b->port && a->bits == b->bits &&
           address_equal(&a->prefix, &b->prefix) && view_equal(a->host, b->host) &&
           view_equal(a->path, b->path);
}

bool mask_is_everything(const struct mask *mask) {
    bool host = view_equal(mask->host, any), path = view_equal(mask->path, any);
    return mask->port == 0 && path && (mask->kind == MASK_ANYWHERE || (mask->kind == MASK_PLACE && host));
}
