"""Stale responses: where they may stand in, and where not [RFC 9111 §4.2.4, RFC 5861]."""
from case import *  # noqa: F403

STALE = "9111 §4.2.4"
SWR, SIE = "5861 §3", "5861 §4"
HOUR = "Cache-Control: max-age=3600"
DROP = answer(drop=True)


def old(line, *fields):
    return step(answer=answer(f"Cache-Control: max-age=1, {line}".rstrip(", "), "Age: 10", *fields))


# ---- the origin does not answer ----
for name, fields in {"max-age": ("Cache-Control: max-age=1", "Age: 10"), "expires": ("Expires: {now-10}", 'ETag: "a"'),
        "tag": ("Cache-Control: max-age=1", "Age: 10", 'ETag: "a"')}.items():
    may(f"stale-drop-{name}", STALE, step(answer=answer(*fields)), step(answer=DROP, expect=(WHOLE, status(200), body_of(1))))
for name in ("must-revalidate", "proxy-revalidate", "no-cache"):
    section = {"must-revalidate": "9111 §5.2.2.2", "proxy-revalidate": "9111 §5.2.2.8", "no-cache": "9111 §5.2.2.4"}[name]
    must(f"stale-drop-{name}", section, old(name), step(answer=DROP, expect=BROKEN))
    must(f"stale-drop-{name}-case", section, old(name.upper()), step(answer=DROP, expect=BROKEN))
    must(f"stale-drop-{name}-tag", section, old(name, 'ETag: "a"'), step(answer=DROP, expect=BROKEN))
    must(f"stale-error-{name}", section, old(f"{name}, stale-if-error=3600"), step(answer=answer(status=503), expect=status(503, 504)))
    must(f"stale-swr-{name}", section, old(f"{name}, stale-while-revalidate=3600"), step(answer=answer(HOUR), expect=body_of(2)))
must("stale-drop-s-maxage", "9111 §5.2.2.10", step(answer=answer("Cache-Control: s-maxage=1", "Age: 10")),
    step(answer=DROP, expect=BROKEN))
must("stale-swr-s-maxage", "9111 §5.2.2.10", step(answer=answer("Cache-Control: s-maxage=1, stale-while-revalidate=60", "Age: 10")),
    step(answer=answer(HOUR), expect=body_of(2)))
must("stale-sie-s-maxage", "9111 §5.2.2.10", step(answer=answer("Cache-Control: s-maxage=1, stale-if-error=60", "Age: 10")),
    step(answer=answer(status=503), expect=status(503, 504)))
should("stale-drop-no-cache-request", "9111 §5.2.1.4", step(answer=answer(HOUR)), step("Cache-Control: no-cache", answer=DROP, expect=BROKEN))
must("stale-age-is-honest", "9111 §4", old(""), step(answer=DROP, given=(status(200), body_of(1)), expect=age(10, 20)))
must("stale-not-without-reason", STALE, old(""), step(answer=answer(HOUR), expect=(ASKED, body_of(2))))
must("stale-not-when-absent", STALE, step(answer=DROP, expect=BROKEN))
must("stale-503-is-passed-or-stale", STALE, old(""), step(answer=answer(status=503), expect=either(status(503), body_of(1))))
must("stale-503-does-not-replace", STALE, step(answer=answer(HOUR, 'ETag: "a"')),
    step("Cache-Control: no-cache", answer=answer(status=503), given=ASKED), step(expect=either(body_of(1), ASKED)))
may("stale-503-keeps-what-is-stored", STALE, step(answer=answer(HOUR, 'ETag: "a"')),
    step("Cache-Control: no-cache", answer=answer(status=503), expect=ASKED), step(expect=(STORED, body_of(1))))
may("stale-after-drop-fresh-again", STALE, old(""), step(answer=DROP, expect=body_of(1)),
    step(answer=answer(HOUR), expect=(ASKED, body_of(3))), step(expect=(STORED, body_of(3))))

# ---- stale-if-error ----
for number in (500, 502, 503, 504):
    may(f"sie-{number}", SIE, old("stale-if-error=3600"), step(answer=answer(status=number), expect=(status(200), body_of(1))))
    should(f"sie-{number}-too-late", SIE, old("stale-if-error=2"), step(answer=answer(status=number), expect=status(number, 504)))
may("sie-drop", SIE, old("stale-if-error=3600"), step(answer=DROP, expect=(WHOLE, status(200), body_of(1))))
may("sie-tag", SIE, old("stale-if-error=3600", 'ETag: "a"'), step(answer=answer(status=503), expect=(status(200), body_of(1))))
may("sie-request", SIE, old(""), step("Cache-Control: stale-if-error=3600", answer=answer(status=503), expect=(status(200), body_of(1))))
may("sie-case", SIE, old("Stale-If-Error=3600"), step(answer=answer(status=503), expect=(status(200), body_of(1))))
may("sie-twice", SIE, old("stale-if-error=3600"), step(answer=answer(status=503), expect=body_of(1)),
    step(answer=answer(status=503), expect=body_of(1)))
may("sie-then-good", SIE, old("stale-if-error=3600"), step(answer=answer(status=503), expect=body_of(1)),
    step(answer=answer(HOUR), expect=(ASKED, body_of(3))))
must("sie-not-for-404", SIE, old("stale-if-error=3600"), step(answer=answer(status=404), expect=status(404)))
should("sie-not-for-501", SIE, old("stale-if-error=3600"), step(answer=answer(status=501), expect=status(501)))
must("sie-not-when-good", SIE, old("stale-if-error=3600"), step(answer=answer(HOUR), expect=body_of(2)))
should("sie-garbage", SIE, old("stale-if-error=abc"), step(answer=answer(status=503), expect=status(503, 504)))

# ---- stale-while-revalidate ----
LATE = answer(HOUR, delay=1.0)
may("swr-served", SWR, old("stale-while-revalidate=3600"), step(answer=LATE, expect=(WHOLE, status(200), body_of(1))))
may("swr-refreshed", SWR, old("stale-while-revalidate=3600"), step(answer=answer(HOUR), expect=body_of(1)),
    step(pause=2.5, expect=(STORED, body_of(2))))
may("swr-refreshed-by-304", SWR, old("stale-while-revalidate=3600", 'ETag: "a"'),
    step(answer=answer(HOUR, on_condition=answer(HOUR, 'ETag: "a"', status=304)), expect=body_of(1)),
    step(pause=2.5, expect=(STORED, body_of(1), age(0, 8))))
may("swr-refreshed-once", SWR, old("stale-while-revalidate=3600"), step(times=6, answer=LATE, expect=(body_of(1), asked(0, 1))),
    step(pause=2.5, expect=(STORED, body_of(2))))
may("swr-case", SWR, old("Stale-While-Revalidate=3600"), step(answer=LATE, expect=body_of(1)))
may("swr-head", SWR, old("stale-while-revalidate=3600"), step(method="HEAD", answer=LATE, expect=(status(200), age(10, 20))))
may("swr-refresh-fails", SWR, old("stale-while-revalidate=3600"), step(answer=DROP, expect=body_of(1)),
    step(pause=1, answer=answer(HOUR), expect=body_of(1)))
must("swr-age", "9111 §4", old("stale-while-revalidate=3600"), step(answer=LATE, given=body_of(1), expect=age(10, 20)))
must("swr-too-late", SWR, old("stale-while-revalidate=2"), step(answer=answer(HOUR), expect=(ASKED, body_of(2))))
must("swr-0", SWR, old("stale-while-revalidate=0"), step(answer=answer(HOUR), expect=(ASKED, body_of(2))))
must("swr-garbage", SWR, old("stale-while-revalidate=abc"), step(answer=answer(HOUR), expect=(ASKED, body_of(2))))
should("swr-not-for-request-no-cache", "9111 §5.2.1.4", old("stale-while-revalidate=3600"),
    step("Cache-Control: no-cache", answer=answer(HOUR), expect=(ASKED, body_of(2))))
must("swr-refresh-says-no-store", SWR, old("stale-while-revalidate=3600"),
    step(answer=answer("Cache-Control: no-store"), given=body_of(1)), step(pause=2, answer=answer(HOUR)),
    step(expect=not_body_of(2)))

# ---- immutable ----
may("immutable-reload", "8246 §2", step(answer=answer("Cache-Control: max-age=3600, immutable")), step(expect=STORED))
must("immutable-is-no-lifetime", "8246 §2", step(answer=answer("Cache-Control: immutable")), step(expect=ASKED))
must("immutable-ends", "8246 §2", step(answer=answer("Cache-Control: max-age=1, immutable", "Age: 10")), step(expect=ASKED))

# ---- several at once ----
may("collapse-one-fetch", "9111 §4", step(times=6, answer=answer(HOUR, delay=0.7), expect=(WHOLE, body_of(1), asked(1))))
must("collapse-private-is-not-shared", "9111 §5.2.2.7", step(times=4, answer=answer("Cache-Control: private, max-age=3600", delay=0.5),
    expect=(WHOLE, asked(4, 9))))
must("collapse-no-store-is-not-shared", "9111 §5.2.2.5", step(times=4, answer=answer("Cache-Control: no-store", delay=0.5),
    expect=(WHOLE, asked(4, 9))))
must("collapse-drop-is-not-sticky", "9111 §4", step(times=4, answer=answer(drop=True, delay=0.5), expect=BROKEN),
    step(answer=answer(HOUR), expect=(WHOLE, status(200), body_of(2))))
must("collapse-error-is-not-sticky", "9111 §4", step(times=4, answer=answer(status=503, delay=0.5), expect=status(503)),
    step(answer=answer(HOUR), expect=(WHOLE, status(200), body_of(2))))
must("collapse-cut-is-seen-by-all", "9112 §8", step(times=4, answer=answer(HOUR, body=b"0123456789", cut=5, delay=0.5), expect=BROKEN),
    step(answer=answer(HOUR, 'ETag: "b"'), expect=(WHOLE, status(200), body_of(2))))
may("collapse-confirmation", "9111 §4.3.3", old("", 'ETag: "a"'), step(times=4, expect=(status(200), body_of(1), asked(1)),
    answer=answer(HOUR, on_condition=answer(HOUR, 'ETag: "a"', status=304, delay=0.7))))
may("sie-head", SIE, old("stale-if-error=3600"), step(method="HEAD", answer=answer(status=503), expect=status(200)))
