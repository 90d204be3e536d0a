// The grammar of masks, for block, pass, no_cache and access_log:
//
//     mask    = [ "http://" ] ( address [ "/" bits | "/" netmask ] | site [ path ] ) | anywhere
//     site    = [ host ] [ ":" port ]
//     path    = "/" ...            what a URL has from there on, its query too
//
// `*` stands for any run of bytes, also for none. There is no other wildcard: "?", "." and "[" stand for
// themselves. "http://" may be left out and changes nothing; "*://" is the same. What a mask means:
//
//     example.com             this name and everything below it; every port, every path
//     .example.com            the same
//     *.example.com           everything below it, not the name itself
//     example.com:8080        as example.com, on port 8080 alone; a mask without a port means every port
//     example.com/            the front page of example.com and nothing else: a path is held against the
//     whole
//                             of the URL's path and query, and with a path the host is that host alone
//     example.com/*           every page of example.com, none of the hosts below it
//     example.com/x*          what starts with /x there; http://example.com/x* is the same
//     *.example.com/x*        the same on every host below
//     ads*, *-ads.*.com       hosts, by `*`: without a path, a `*` stays within the host
//     /x*                     what starts with /x, on every host
//     */x/*                   /x/ in any place of any path: a host that is `*` alone also runs on into the
//     path
//     */*.gif                 what ends in .gif
//     *ads*                   "ads" in any place of host, path and query: a mask without "/" that starts and
//                             ends with `*`. It has no port and no ":" (*:8080 means every host on port 8080)
//     *                       everything
//     192.0.2.7               an address: as the destination of the connection, and as the URL's host
//     192.0.2.0/24            every address of the prefix; 192.0.2.0/255.255.255.0 is the same
//     2001:db8::/32           IPv6, also as [2001:db8::]/32
//     [2001:db8::1]:8080      an address on one port; with a port or a path IPv6 needs its brackets
//     192.0.2.7/x*            a path under an address. "/24" is a prefix length, "http://192.0.2.7/24" a path
//
// A mask is held against the URL under the name that the request gives, and against the same URL with the
// connection's destination in the place of the host. Its port may be the one that was named or the one that
// was connected to. It is normalised as URLs are (url.h): the case of letters does not count in the host and
// does in the path; in `*ads*` a capital counts in the path, and the host is looked at in lower case. A
// mask's percent-encoding is undone too, so that %2A is a real asterisk, and "." or ".." as a segment of its
// path can never match and is refused, as are a fragment and a scheme other than http.
//
// Names in other scripts are taken as the bytes that stand in the file; write the xn-- form.
#pragma once

#include "acl/url.h"

#define MASK_BYTES_MAX 4096

enum mask_kind {
    MASK_ADDRESS,  // prefix, bits
    MASK_DOMAIN,   // host: a name, with what is below it, or only that (below_only)
    MASK_PLACE,    // host and path: globs
    MASK_ANYWHERE, // path: a glob over host and path in one; host: the same in lower case, for the host alone
};

struct mask {
    enum mask_kind kind;
    bool below_only;
    uint16_t port; // 0: every port; always 0 for MASK_ADDRESS
    unsigned bits;
    struct address prefix;
    struct view host, path; // both borrow from `bytes`
    char bytes[];
};

struct mask_error {
    const char *why;       // a static sentence: what is wrong, what to do
    struct address prefix; // and when it was only for host bits, the prefix that was meant,
    unsigned bits;         // else ADDRESS_NO_PREFIX
};

// NULL: `error` is filled. Freed with free().
struct mask *mask_new(struct view text, struct mask_error *error);

bool mask_matches(const struct mask *mask, const struct url *url);

// Whether two masks are the same but for spelling, and whether one is `*`.
bool mask_equal(const struct mask *a, const struct mask *b);
bool mask_is_everything(const struct mask *mask);
