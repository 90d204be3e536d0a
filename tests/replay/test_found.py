"""Disagreements that the generated sequences have found, made small and kept under a name: what is right is said with
each. The judge of the sequences decides here as well."""
import pytest

from drive import run, tell
from exceptions import exception_for

PLAIN = {"control": [], "expires": [], "age": [], "date": 0, "etag": "none", "modified": "none", "vary": [], "framing": "length",
    "cookie": False, "hop": False, "encoded": False, "version": 2, "status": 200, "condition": "honest", "range": "honest",
    "failure": None, "cut_at": 0.5, "interim": False, "location": None, "content_location": None}


def fetch(*fields, method="GET", path="/one", **origin):
    return "fetch", {"host": "a.example", "destination": "192.0.2.1", "path": path, "method": method, "fields": list(fields),
        "origin": dict(PLAIN, **origin)}


def crowd(*others, **origin):
    first = fetch(**origin)[1]
    return "crowd", (first, [list(fields) for fields in others])


def later(seconds):
    return "advance", seconds


FRESH, RANGE = ["max-age=60"], ("Range", "bytes=5-14")
REVALIDATE = ["max-age=5, stale-while-revalidate=20"]

FOUND = {
    # A 304 whose validator is that of nothing stored confirms nothing: the same is asked again without conditions
    # [RFC 9111 §4.3.4].
    "a 304 of another tag is asked again": [fetch(etag="strong"), fetch(etag="strong", version=2, condition="other"), fetch()],
    "a 304 of another date is asked again": [fetch(modified="days"), fetch(modified="days", version=3, condition="spurious")],
    # A tag that comes with a 304 for what has none is not that of the stored bytes.
    "no tag is grafted on stored bytes": [fetch(modified="future"), fetch(etag="weak", version=6, condition="spurious"),
        later(20), fetch(etag="weak", version=6)],
    # Content-Location makes only a 2xx the target's representation [RFC 9110 §8.7].
    "an error that answers POST is not for GET": [fetch(method="POST", status=404, control=FRESH, content_location="/one"), fetch()],
    "a redirect that answers POST is not for GET": [fetch(method="POST", status=307, control=FRESH, content_location="/one"), fetch()],
    # only-if-cached is stronger than whose condition it is [RFC 9111 §5.2.1.7].
    "only-if-cached stays at home with If-Match": [fetch(("Cache-Control", "only-if-cached"), ("If-Match", '"2"'))],
    "only-if-cached stays at home with If-Unmodified-Since":
        [fetch(("Cache-Control", "only-if-cached"), ("If-Unmodified-Since", ("date", "now", 0)))],
    # The whole that answers a range is the whole.
    "a 200 that answers a range is stored": [fetch(RANGE, control=FRESH, range="ignore"), fetch()],
    # The chunks of a 206 are framing, not content.
    "a chunked 206": [fetch(RANGE, framing="chunked"), fetch(RANGE, framing="chunked", etag="strong", control=FRESH)],
    # Right bytes or a clear 502: nobody can use a part without knowing which it is [RFC 9110 §15.3.7].
    "a 206 without Content-Range": [fetch(RANGE, range="bare")],
    "a 206 without Content-Range for several ranges": [fetch(("Range", "bytes=0-3,10-14"), range="bare")],
    "a 206 with a Content-Range that cannot be": [fetch(RANGE, range="bad")],
    "a 206 of another range": [fetch(RANGE, range="other")],
    # What a URL answered before says nothing of what may be stored now.
    "what comes after an unstorable answer is stored": [fetch(control=["no-store"]), fetch(control=FRESH), fetch()],
    "what comes after Vary: * is stored": [fetch(vary=["*"]), fetch(control=FRESH), fetch()],
    # Each use of a stale response within its window has a refresh under way [RFC 5861 §3].
    "a refresh that brought an error is tried again": [fetch(control=REVALIDATE), later(6), fetch(status=405), fetch(status=405)],
    # What the origin has just sent is stored, though its own client needs no more than a 304 of it.
    "what a 304 was made of is stored": [fetch(etag="strong"),
        fetch(("If-Modified-Since", ("date", "now", 0)), version=4, control=FRESH, framing="close"), fetch()],
    # Nor does what is stored outlive it.
    "what a 304 was made of replaces": [fetch(etag="strong", control=FRESH), later(4),
        fetch(("Cache-Control", "max-age=0"), ("If-Modified-Since", ("date", "now", 0)), version=4, control=FRESH, framing="close"),
        fetch()],
    # No part of the answer to a request that says no-store is kept [RFC 9111 §5.2.1.5].
    "a HEAD with no-store freshens nothing": [fetch(etag="strong", control=["max-age=5"]), later(6),
        fetch(("Cache-Control", "no-store"), method="HEAD", control=FRESH), fetch(etag="strong")],
    # Vary: * matches nobody else, a confirmation included [RFC 9111 §4.1].
    "a crowd at what a 304 makes Vary: *": [fetch(modified="days", control=["max-age=0"]), later(6),
        crowd([], modified="days", vary=["*"])],
    "a crowd at what a 304 makes private": [fetch(modified="days", control=["max-age=0"]), later(6),
        crowd([], modified="days", control=["private"])],
    # What a 304 to a request with credentials says is for that alone [RFC 9111 §3.5]; what it confirms stays as it is.
    "credentials confirm for themselves": [fetch(modified="future"), fetch(("Authorization", "Basic eDp5"), modified="future"),
        fetch(("Cache-Control", "max-stale"))],
    # Preferences are a set [RFC 9110 §12.5].
    "order and case of preferences": [fetch(("Accept-Encoding", "gzip, br"), vary=["Accept-Encoding"], control=FRESH),
        fetch(("Accept-Encoding", "BR,gzip"), vary=["Accept-Encoding"])],
    # A stored response with Vary is preferred to a newer one that lacks it [RFC 9111 §4.1].
    "Vary that was left out": [fetch(vary=["Accept-Language"], control=FRESH), later(1), fetch(("Accept-Language", "en"), control=FRESH),
        later(1), fetch(vary=["Accept-Language"])],
    # Who joins a response that may not be shared asks on its own.
    "a crowd at what is private": [crowd([], [], control=["private"])],
    "a crowd at what is stale on arrival": [crowd([], control=["max-age=0"]), crowd([], etag="strong", control=["max-age=0"])],
    "a crowd of variants": [crowd([("X-Flavour", "sweet")], [], control=FRESH, vary=["X-Flavour"])],
    "a crowd while it is refreshed": [fetch(control=REVALIDATE), later(6), crowd([], [], control=REVALIDATE)],
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    steps = FOUND[name]
    left = [finding for _, finding in run(steps) if not exception_for(finding)]
    assert not left, tell(steps)
