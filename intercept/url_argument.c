#include "intercept/url_argument.h"

#include "http/octet.h"

static size_t authority_end(struct view text) {
    size_t end = 0;
    while (end < text.length && text.data[end] != '/' && text.data[end] != '?' && text.data[end] != '#')
        end++;
    return end;
}

const char *url_argument_read(struct view text, struct url_argument *url) {
    static const struct view scheme = {"http://", 7};
    if (view_starts_fold(text, VIEW("https://")))
        return "HTTPS passes untouched: weir sees no request of it; write http://HOST/PATH";
    if (!view_starts_fold(text, scheme))
        return "write the whole URL, http://HOST/PATH";
    text = view_skip(text, scheme.length);
    struct view authority = view_take(text, authority_end(text));
    if (view_find(authority, '@') < authority.length)
        return "a user and password are no part of what is asked for; write http://HOST/PATH";
    if (!authority_parse(authority, &url->authority))
        return "its host is missing or malformed; write http://HOST[:PORT]/PATH";
    url->path = view_skip(text, authority.length);
    url->path = view_take(url->path, view_find(url->path, '#'));
    if (octet_run(url->path, OCTET_TARGET) != url->path.length)
        return "a blank or a control byte stands in it; write %20 for a blank";
    return NULL;
}
