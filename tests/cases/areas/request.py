"""What a request says: all advisory but no-store [RFC 9111 §5.2.1], so what is asked of a cache is a "should"."""
from case import *  # noqa: F403

HOUR = "Cache-Control: max-age=3600"
OLD = (HOUR, "Age: 1000")
EXPIRED = ("Cache-Control: max-age=1", "Age: 10")


def asks(name, section, request, *fields, kind=SHOULD, pause=0):
    not_reused(f"request-{name}", section, *(fields or (HOUR,)), kind=kind, then=request, pause=pause)


def gets(name, section, request, *fields, pause=0):
    reused(f"request-{name}", section, *(fields or (HOUR,)), then=request, pause=pause)


asks("max-age-0", "9111 §5.2.1.1", ("Cache-Control: max-age=0",), HOUR, "Age: 1")
asks("max-age-exceeded", "9111 §5.2.1.1", ("Cache-Control: max-age=600",), *OLD)
asks("max-age-case", "9111 §5.2.1.1", ("Cache-Control: MAX-AGE=600",), *OLD)
asks("max-age-quoted", "9111 §5.2.1.1", ('Cache-Control: max-age="600"',), *OLD)
asks("max-age-passes", "9111 §5.2.1.1", ("Cache-Control: max-age=1",), pause=3.2)
gets("max-age-enough", "9111 §5.2.1.1", ("Cache-Control: max-age=2000",), *OLD)
gets("max-age-overflow", "9111 §5.2.1.1", ("Cache-Control: max-age=99999999999999999999",), *OLD)
asks("max-age-does-not-lengthen", "9111 §4.2", ("Cache-Control: max-age=3600",), *EXPIRED, kind=MUST)
asks("min-fresh-too-little-left", "9111 §5.2.1.3", ("Cache-Control: min-fresh=3000",), *OLD)
asks("min-fresh-more-than-lifetime", "9111 §5.2.1.3", ("Cache-Control: min-fresh=4000",))
asks("min-fresh-case", "9111 §5.2.1.3", ("Cache-Control: Min-Fresh=4000",))
gets("min-fresh-enough", "9111 §5.2.1.3", ("Cache-Control: min-fresh=2000",), *OLD)
gets("max-stale", "9111 §5.2.1.2", ("Cache-Control: max-stale",), *EXPIRED)
gets("max-stale-enough", "9111 §5.2.1.2", ("Cache-Control: max-stale=1000",), *EXPIRED)
gets("max-stale-case", "9111 §5.2.1.2", ("Cache-Control: MAX-Stale=1000",), *EXPIRED)
asks("max-stale-too-stale", "9111 §5.2.1.2", ("Cache-Control: max-stale=5",), *EXPIRED, kind=MUST)
asks("max-stale-0", "9111 §5.2.1.2", ("Cache-Control: max-stale=0",), *EXPIRED, kind=MUST)
for name in ("must-revalidate", "proxy-revalidate", "no-cache"):
    asks(f"max-stale-{name}", "9111 §4.2.4", ("Cache-Control: max-stale=1000",), f"Cache-Control: max-age=1, {name}", "Age: 10",
        kind=MUST)
asks("max-stale-s-maxage", "9111 §5.2.2.10", ("Cache-Control: max-stale=1000",), "Cache-Control: s-maxage=1", "Age: 10",
    kind=MUST)
asks("max-stale-no-store", "9111 §5.2.2.5", ("Cache-Control: max-stale",), "Cache-Control: no-store", kind=MUST)
asks("no-cache", "9111 §5.2.1.4", ("Cache-Control: no-cache",))
asks("no-cache-case", "9111 §5.2.1.4", ("Cache-Control: No-Cache",))
asks("no-cache-with-max-age", "9111 §5.2.1.4", ("Cache-Control: max-age=3600, no-cache",))
asks("no-cache-second-line", "9110 §5.3", ("Cache-Control: max-age=3600", "Cache-Control: no-cache"))
asks("pragma", "9111 §5.4", ("Pragma: no-cache",))
asks("pragma-case", "9111 §5.4", ("Pragma: No-Cache",))
gets("pragma-beside-cache-control", "9111 §5.4", ("Pragma: no-cache", "Cache-Control: max-age=3600"))
gets("pragma-other", "9111 §5.4", ("Pragma: foo",))
gets("unknown-directive", "9111 §5.2.3", ("Cache-Control: foobar, x=\"no-cache\"",))
gets("no-transform", "9111 §5.2.1.6", ("Cache-Control: no-transform",))
gets("expires-field", "9111 §5.3", ("Expires: 0",))
may("request-no-store-from-the-store", "9111 §5.2.1.5", step(answer=answer(HOUR)),
    step("Cache-Control: no-store", expect=STORED))
must("request-no-store-is-not-stored", "9111 §5.2.1.5", step("Cache-Control: no-store", answer=answer(HOUR)),
    step(expect=ASKED))
must("request-no-store-case-is-not-stored", "9111 §5.2.1.5", step("Cache-Control: No-Store", answer=answer(HOUR)),
    step(expect=ASKED))
should("request-only-if-cached-absent", "9111 §5.2.1.7",
    step("Cache-Control: only-if-cached", answer=answer(HOUR), expect=(status(504), asked(0))))
should("request-only-if-cached-stale", "9111 §5.2.1.7", step(answer=answer(*EXPIRED)),
    step("Cache-Control: only-if-cached", answer=answer(HOUR), expect=(status(504), asked(0))))
should("request-only-if-cached-case", "9111 §5.2.1.7",
    step("Cache-Control: ONLY-IF-CACHED", answer=answer(HOUR), expect=(status(504), asked(0))))
gets("only-if-cached-stored", "9111 §5.2.1.7", ("Cache-Control: only-if-cached",))
gets("only-if-cached-max-stale", "9111 §5.2.1.7", ("Cache-Control: only-if-cached, max-stale",), *EXPIRED)
may("request-no-cache-is-validated", "9111 §5.2.1.4", step(answer=answer(HOUR, 'ETag: "a"')),
    step("Cache-Control: no-cache", answer=answer(HOUR, on_condition=answer('ETag: "a"', status=304)),
        expect=(CONDITIONAL, status(200), body_of(1))))
may("request-no-cache-answer-is-stored", "9111 §5.2.1.4", step(answer=answer(HOUR)),
    step("Cache-Control: no-cache", answer=answer(HOUR), expect=body_of(2)), step(expect=(STORED, body_of(2))))
may("request-max-age-0-answer-is-stored", "9111 §5.2.1.1", step("Cache-Control: max-age=0", answer=answer(HOUR)),
    step(expect=STORED))
must("request-no-cache-reaches-the-origin", "9111 §5.2", step("Cache-Control: no-cache, foobar=1", answer=answer(HOUR),
    expect=origin_members("Cache-Control", "no-cache", "foobar=1")))
