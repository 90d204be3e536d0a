"""Storing: status codes, directives that forbid or limit it, Authorization, cookies, methods, and the cache key."""
from case import *  # noqa: F403

STORING = "9111 §3"
HOUR = "Cache-Control: max-age=3600"

for number in (200, 203, 204, 299, 300, 301, 302, 303, 307, 308, 400, 403, 404, 405, 410, 414, 418, 451, 499, 500, 501, 502,
        503, 504, 599):
    reused(f"store-{number}", STORING, HOUR, status=number)
    if number in (201, 302, 404, 503):
        reused(f"store-{number}-expires", STORING, "Expires: {now+3600}", status=number)
for number in (200, 203, 204, 299, 301, 302, 308, 400, 404, 410, 499, 500, 503, 599):
    not_reused(f"store-{number}-stale", "9111 §4.2", HOUR, "Age: 7200", status=number)
reused("store-201", STORING, HOUR, status=201)
reused("store-202", STORING, HOUR, status=202)
reused("store-chunked", STORING, HOUR, framing="chunked")
reused("store-until-close", STORING, HOUR, framing="close")
reused("store-disposition", STORING, HOUR, "Content-Disposition: attachment; filename=x")
reused("store-disposition-heuristic", "9111 §4.2.2", "Last-Modified: {now-864000}", "Content-Disposition: attachment; filename=x")
reused("store-other-vary-line", STORING, HOUR, "Vary: X-Never-Sent")
reused("store-empty", STORING, HOUR, body=b"")
reused("store-redirect-s-maxage", STORING, "Cache-Control: s-maxage=3600", "Location: {url}/elsewhere", status=302)
not_reused("store-nothing-says-so", STORING)
not_reused("store-302-without-freshness", STORING, "Location: {url}/elsewhere", status=302)

# ---- no-store, private ----
for name, line in {"": "no-store", "-with-max-age": "no-store, max-age=3600", "-behind": "max-age=3600, no-store",
        "-case": "No-StOrE, max-age=3600", "-public": "public, no-store, max-age=3600"}.items():
    not_reused(f"no-store{name}", "9111 §5.2.2.5", f"Cache-Control: {line}")
not_reused("no-store-argument", "9111 §5.2.2.5", "Cache-Control: no-store=\"x\", max-age=3600", kind=SHOULD)
not_reused("no-store-expires", "9111 §5.2.2.5", "Cache-Control: no-store", "Expires: {now+3600}")
not_reused("no-store-line-first", "9111 §5.2.2.5", "Cache-Control: no-store", HOUR)
for name, line in {"": "private", "-with-max-age": "private, max-age=3600", "-case": "PrIvAtE, max-age=3600",
        "-s-maxage": "private, s-maxage=3600", "-public": "public, private, max-age=3600"}.items():
    not_reused(f"private{name}", "9111 §5.2.2.7", f"Cache-Control: {line}")
not_reused("private-expires", "9111 §5.2.2.7", "Cache-Control: private", "Expires: {now+3600}")
reused("store-in-quotes-no-store", "9111 §5.2", 'Cache-Control: extension="no-store", max-age=3600')
reused("store-in-quotes-private", "9111 §5.2", 'Cache-Control: extension="a, private, b", max-age=3600')
for name in ("private", "no-cache"):
    section = "9111 §5.2.2.7" if name == "private" else "9111 §5.2.2.4"
    for form, argument in {"": '"X-Secret"', "-list": '"X-Other, x-secret"', "-token": "X-Secret"}.items():
        first = answer(f"Cache-Control: {name}={argument}, max-age=3600", "X-Secret: 1", "X-Open: 1")
        must(f"{name}-field{form}", section, step(answer=first),
            step(expect=either(ASKED, (STORED, lacks("X-Secret")))))
        if form != "-token":
            may(f"{name}-field{form}-reused", section, step(answer=first, expect=field("X-Secret", "1")),
                step(expect=(STORED, lacks("X-Secret"), field("X-Open", "1"))))
for name, line in {"": "no-cache", "-with-max-age": "no-cache, max-age=3600", "-case": "NO-CACHE, max-age=3600",
        "-public": "public, no-cache, s-maxage=3600"}.items():
    not_reused(f"no-cache{name}", "9111 §5.2.2.4", f"Cache-Control: {line}")
    may(f"no-cache{name}-validated", "9111 §5.2.2.4", step(answer=answer(f"Cache-Control: {line}", 'ETag: "a"')),
        step(answer=answer(f"Cache-Control: {line}", on_condition=answer('ETag: "a"', status=304)),
            expect=(CONDITIONAL, status(200), body_of(1))))
not_reused("no-cache-expires", "9111 §5.2.2.4", "Cache-Control: no-cache", "Expires: {now+3600}")
reused("pragma-in-response", "9111 §5.4", HOUR, "Pragma: no-cache")
reused("targeted-no-store", "9213 §2.2", HOUR, "CDN-Cache-Control: no-store")
not_reused("targeted-max-age", "9213 §2.2", "Cache-Control: no-store", "CDN-Cache-Control: max-age=3600")
not_reused("surrogate-control", STORING, "Cache-Control: no-store", "Surrogate-Control: max-age=3600")

# ---- must-understand ----
reused("must-understand-200", "9111 §5.2.2.3", "Cache-Control: no-store, must-understand, max-age=3600")
reused("must-understand-404", "9111 §5.2.2.3", "Cache-Control: must-understand, no-store, max-age=3600", status=404)
reused("must-understand-alone", "9111 §5.2.2.3", "Cache-Control: must-understand, max-age=3600")
not_reused("must-understand-299", "9111 §5.2.2.3", "Cache-Control: must-understand, max-age=3600", status=299)
not_reused("must-understand-599", "9111 §5.2.2.3", "Cache-Control: no-store, must-understand, max-age=3600", status=599)
not_reused("must-understand-private", "9111 §5.2.2.3", "Cache-Control: no-store, must-understand, private, max-age=3600")

# ---- Authorization ----
LOGIN = "Authorization: Basic eDp5"


def after_login(kind, name, line, second=()):
    case(kind, f"authorization-{name}", "9111 §3.5", step(LOGIN, answer=answer(line)),
        step(*second, expect=STORED if kind == MAY else ASKED))


after_login(MUST, "max-age", HOUR)
after_login(MUST, "max-age-same-user", HOUR, (LOGIN,))
after_login(MUST, "expires", "Expires: {now+3600}")
after_login(MUST, "heuristic", "Last-Modified: {now-864000}")
after_login(MUST, "proxy-revalidate", "Cache-Control: proxy-revalidate, max-age=3600")
after_login(MUST, "no-cache-word", 'Cache-Control: x="public", max-age=3600')
after_login(MAY, "public", "Cache-Control: public, max-age=3600")
after_login(MAY, "public-same-user", "Cache-Control: public, max-age=3600", (LOGIN,))
after_login(MAY, "s-maxage", "Cache-Control: s-maxage=3600")
after_login(MAY, "must-revalidate", "Cache-Control: must-revalidate, max-age=3600")
reused("authorization-asks-what-is-stored", "9111 §3.5", HOUR, then=(LOGIN,))

# ---- cookies ----
reused("cookie-request", STORING, HOUR, then=("Cookie: a=b",))
may("cookie-set-max-age", "9111 §7.3", step(answer=answer(HOUR, "Set-Cookie: a=b")),
    step(expect=(STORED, field("Set-Cookie", "a=b"))))
may("cookie-set-public", "9111 §7.3", step(answer=answer("Cache-Control: public, max-age=3600", "Set-Cookie: a=b")),
    step(expect=(STORED, field("Set-Cookie", "a=b"))))
may("cookie-set-s-maxage", "9111 §7.3", step(answer=answer("Cache-Control: s-maxage=3600", "Set-Cookie: a=b")),
    step(expect=(STORED, field("Set-Cookie", "a=b"))))
not_reused("cookie-set-private", "9111 §7.3", "Cache-Control: private, max-age=3600", "Set-Cookie: a=b")

# ---- methods ----
must("method-post-passes", "9111 §4", step(method="POST", body=b"x", answer=answer(HOUR)),
    step(method="POST", body=b"x", expect=ASKED))
may("method-post-content-location", "9110 §9.3.3",
    step(method="POST", body=b"x", answer=answer(HOUR, "Content-Location: {path}")), step(expect=STORED))
may("method-post-content-location-absolute", "9110 §9.3.3",
    step(method="POST", body=b"x", answer=answer(HOUR, "Content-Location: {url}")), step(expect=STORED))
may("method-post-content-location-head", "9110 §9.3.3",
    step(method="POST", body=b"x", answer=answer(HOUR, "Content-Location: {path}")), step(method="HEAD", expect=STORED))
must("method-post-no-content-location", "9110 §9.3.3", step(method="POST", body=b"x", answer=answer(HOUR)),
    step(expect=ASKED))
must("method-post-other-content-location", "9110 §9.3.3",
    step(method="POST", body=b"x", answer=answer(HOUR, "Content-Location: {path}/b")), step(expect=ASKED),
    step(path="/b", expect=ASKED))
must("method-post-no-freshness", "9110 §9.3.3",
    step(method="POST", body=b"x", answer=answer("Content-Location: {path}", "Last-Modified: {now-864000}")),
    step(expect=ASKED))
for name in ("PUT", "DELETE", "PATCH", "OPTIONS", "SEARCH", "FOO"):
    must(f"method-{name.lower()}-not-stored", STORING, step(method=name, body=b"x", answer=answer(HOUR)),
        step(expect=ASKED))
    must(f"method-{name.lower()}-not-from-the-store", "9111 §4", step(answer=answer(HOUR)),
        step(method=name, body=b"x", expect=ASKED))
must("method-head-is-no-get", STORING, step(method="HEAD", answer=answer(HOUR)), step(expect=(ASKED, body_of(2))))
may("method-head-from-get", "9110 §9.3.2", step(answer=answer(HOUR, body=b"0123456789")),
    step(method="HEAD", expect=(STORED, status(200), field("Content-Length", "10"), body(b""))))
may("method-head-then-head", "9110 §9.3.2", step(method="HEAD", answer=answer(HOUR)), step(method="HEAD", expect=STORED))
may("method-get-with-body-then-get", "9110 §9.3.1", step(answer=answer(HOUR)), step(expect=STORED))

# ---- the key ----
must("key-query", "9111 §2", step(path="?a", answer=answer(HOUR)), step(path="?b", expect=ASKED))
must("key-no-query", "9111 §2", step(path="?a", answer=answer(HOUR)), step(expect=ASKED))
must("key-path-case", "9111 §2", step(path="/a", answer=answer(HOUR)), step(path="/A", expect=ASKED))
must("key-host", "9111 §2", step(answer=answer(HOUR)), step(other=True, expect=ASKED))
may("key-query-reused", "9111 §2", step(path="?a=1&b", answer=answer(HOUR)), step(path="?a=1&b", expect=STORED))
may("key-referer", "9111 §2", step("Referer: {url}/1", answer=answer(HOUR)), step("Referer: {url}/2", expect=STORED))
