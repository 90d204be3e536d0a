"""Invalidation by unsafe methods [RFC 9111 §4.4]."""
from case import *  # noqa: F403

SECTION = "9111 §4.4"
HOUR = "Cache-Control: max-age=3600"
STORE = step(answer=answer(HOUR))
FILL = answer("Cache-Control: no-store")

for name in ("POST", "PUT", "DELETE", "PATCH", "FOO"):
    for number in (200, 204, 303):
        must(f"invalidate-{name.lower()}-{number}", SECTION, STORE,
            step(method=name, body=b"x", answer=answer("Location: {url}/else", status=number)), step(expect=ASKED))
    for number in (400, 404, 500):
        may(f"invalidate-{name.lower()}-{number}-not", SECTION, STORE,
            step(method=name, body=b"x", answer=answer(status=number)), step(expect=(STORED, body_of(1))))
    for place in ("Location", "Content-Location"):
        may(f"invalidate-{name.lower()}-{place.lower()}", SECTION, step(path="/b", answer=answer(HOUR)),
            step(method=name, body=b"x", answer=answer(place + ": {url}/b", status=201)), step(path="/b", expect=ASKED))
may("invalidate-location-relative", SECTION, step(path="/b", answer=answer(HOUR)),
    step(method="POST", body=b"x", answer=answer("Location: {path}/b", status=201)), step(path="/b", expect=ASKED))
may("invalidate-content-location-relative", SECTION, step(path="/b", answer=answer(HOUR)),
    step(method="POST", body=b"x", path="/a", answer=answer("Content-Location: b", status=200)),
    step(path="/b", expect=ASKED))
for place in ("Location", "Content-Location"):
    may(f"invalidate-{place.lower()}-not-on-error", SECTION, step(path="/b", answer=answer(HOUR)),
        step(method="POST", body=b"x", answer=answer(place + ": {url}/b", status=500)), step(path="/b", expect=STORED))
    must(f"invalidate-{place.lower()}-not-of-another-origin", SECTION, step(path="/b", answer=answer(HOUR)),
        step(path="/b", given=STORED),
        step(method="POST", other=True, body=b"x", answer=answer(place + ": {url}/b", status=201)),
        step(path="/b", expect=STORED))
for name in ("HEAD", "OPTIONS"):
    may(f"invalidate-{name.lower()}-not", SECTION, STORE, step(method=name, answer=answer(status=200)),
        step(expect=STORED))
must("invalidate-all-variants", SECTION, step("Foo: 1", answer=answer(HOUR, "Vary: Foo")),
    step("Foo: 2", answer=answer(HOUR, "Vary: Foo")), step("Foo: 1", method="POST", body=b"x", answer=answer()),
    step("Foo: 1", expect=ASKED), step("Foo: 2", expect=ASKED))
must("invalidate-query-is-another", SECTION, step(path="?a", answer=answer(HOUR)), step(path="?a", given=STORED),
    step(method="POST", body=b"x", path="?b", answer=answer()), step(path="?a", expect=STORED))
may("invalidate-then-stored-anew", SECTION, STORE, step(method="POST", body=b"x", answer=answer()),
    step(answer=answer(HOUR)), step(expect=(STORED, body_of(3))))
must("invalidate-no-validation-by-old-tag", SECTION, step(answer=answer(HOUR, 'ETag: "a"')),
    step(method="POST", body=b"x", answer=answer()), step(answer=answer(HOUR), expect=(ASKED, WHOLE, body_of(3))))
