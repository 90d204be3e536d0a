#include "acl/url.h"

#include "admin/check.h"

#include <stdlib.h>
#include <string.h>

static int hex_digit(char byte) {
    byte = view_lower(byte);
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static bool stays_encoded(uint8_t byte) {
    return byte <= ' ' || byte == 0x7f || byte == '/' || byte == '?' || byte == '#' || byte == '%';
}

size_t url_decode(struct view text, char *out) {
    static const char digits[] = "0123456789ABCDEF";
    size_t length = 0;
    for (size_t i = 0; i < text.length; i++) {
        bool escape = text.data[i] == '%' && i + 2 < text.length;
        int high = escape ? hex_digit(text.data[i + 1]) : -1, low = escape ? hex_digit(text.data[i + 2]) : -1;
        out[length++] = text.data[i];
        if (high < 0 || low < 0)
            continue;
        i += 2;
        if (stays_encoded((uint8_t)(high << 4 | low))) {
            out[length++] = digits[high];
            out[length++] = digits[low];
        } else {
            out[length - 1] = (char)(high << 4 | low);
        }
    }
    return length;
}

size_t url_fold_host(struct view text, char *out) {
    size_t length = url_decode(text, out);
    for (size_t i = 0; i < length; i++)
        out[i] = view_lower(out[i]);
    while (length && out[length - 1] == '.')
        length--;
    return length;
}

// Resolves "." and ".." in place, up to the query. `text` starts with "/"; so does the result.
static size_t resolve_dots(char *text, size_t length) {
    size_t path = view_find((struct view){text, length}, '?'), kept = 0;
    for (size_t i = 0; i < path;) {
        struct view rest = {text + i + 1, path - i - 1};
        struct view segment = view_take(rest, view_find(rest, '/'));
        bool is_last = segment.length == rest.length;
        bool dot = view_equal(segment, VIEW(".")), up = view_equal(segment, VIEW(".."));
        if (up && kept)
            while (text[--kept] != '/')
                ;
        if (!dot && !up) {
            memmove(text + kept, text + i, segment.length + 1);
            kept += segment.length + 1;
        } else if (is_last) {
            text[kept++] = '/';
        }
        i += segment.length + 1;
    }
    memmove(text + kept, text + path, length - path);
    return kept + length - path;
}

static size_t write_path(struct view path, char *out) {
    size_t start = path.length && path.data[0] == '/' ? 0 : 1;
    out[0] = '/';
    return resolve_dots(out, start + url_decode(path, out + start));
}

size_t url_write_address(const struct address *address, char out[static ADDRESS_TEXT_BYTES]) {
    char text[ADDRESS_TEXT_BYTES];
    address_print(address, text);
    struct view view = view_of(text);
    bool brackets = !address_is_ipv4(address);
    if (brackets)
        *out++ = '[';
    memcpy(out, view.data, view.length);
    if (brackets)
        out[view.length] = ']';
    return view.length + 2 * brackets;
}

bool url_host_is_address(struct view host, struct address *address) {
    if (host.length > 2 && host.data[0] == '[' && host.data[host.length - 1] == ']') {
        host = (struct view){host.data + 1, host.length - 2};
        return view_find(host, ':') < host.length && address_parse(host, address);
    }
    return address_parse(host, address);
}

static bool has_destination(const struct endpoint *destination) {
    static const struct address none; // "::" is no one's destination
    return !address_equal(&destination->address, &none);
}

static uint16_t named_port(const struct acl_request *request) {
    if (request->port)
        return request->port;
    if (view_equal_fold(request->scheme, VIEW("https")))
        return 443;
    return request->scheme.length == 0 && request->destination.port ? request->destination.port : 80;
}

// Adds a URL whose host stands at `text`, with the path right behind it.
static struct url *add_url(struct url_list *list, const char *text, size_t host, size_t path) {
    struct url *url = &list->url[list->count++];
    *url = (struct url){.text = {text, host + path}, .host = {text, host}, .path = {text + host, path}};
    return url;
}

// The URL under the name the request gives. Returns its length.
static size_t add_named(struct url_list *list, const struct acl_request *request, char *out) {
    struct address address;
    size_t host = url_fold_host(request->host, out);
    bool is_address = url_host_is_address((struct view){out, host}, &address);
    if (is_address)
        host = url_write_address(&address, out);
    struct url *url = add_url(list, out, host, write_path(request->path, out + host));
    url->port = named_port(request);
    url->other_port = request->destination.port;
    url->is_address = is_address;
    if (is_address)
        url->address = address;
    return url->text.length;
}

// The same under the address it goes to.
static void add_dialled(struct url_list *list, const struct acl_request *request, char *out) {
    size_t host = url_write_address(&request->destination.address, out), path;
    if (list->count) {
        path = list->url[0].path.length;
        memcpy(out + host, list->url[0].path.data, path);
    } else {
        path = write_path(request->path, out + host);
    }
    struct url *url = add_url(list, out, host, path);
    url->port = url->other_port = request->destination.port;
    url->is_address = url->is_destination = true;
    url->address = request->destination.address;
}

void url_list_init(struct url_list *list, const struct acl_request *request) {
    size_t path_room = request->path.length + 1;
    size_t room = request->host.length + 2 * ADDRESS_TEXT_BYTES + 2 * path_room;
    list->count = 0;
    list->heap = room > sizeof list->room ? malloc(room) : NULL;
    CHECK(list->heap || room <= sizeof list->room);
    char *out = list->heap ? list->heap : list->room;
    if (request->host.length)
        out += add_named(list, request, out);
    if (has_destination(&request->destination))
        add_dialled(list, request, out);
}

void url_list_fini(struct url_list *list) {
    free(list->heap);
    list->heap = NULL;
}
