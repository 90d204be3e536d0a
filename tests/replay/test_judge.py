"""The judge is no yes-sayer: each thing that can be wrong with an answer, made so, is found by its name."""
import pytest

from judge import Contact, Seen, content, judge
from model import Cache, Moment, Request, Response, print_date

ZERO = 1767225600
NAME = "a.example|/|200|1||40"
FIELDS = [("Date", print_date(ZERO)), ("X-Id", "1"), ("X-List", "a"), ("X-List", "b"), ("Cache-Control", "max-age=10"), ("ETag", '"1"'),
    ("X-Body", NAME), ("Connection", "X-Hop"), ("X-Hop", "1")]
SENT = [line for line in FIELDS if line[0] not in ("Connection", "X-Hop")]


def at(seconds):
    return Moment(ZERO + seconds, seconds)


def request(*fields, method="GET", target="/"):
    return Request(method, target, [("Host", "a.example")] + list(fields))


def stored():
    """A cache that may have had one exchange, 40 bytes fresh for ten seconds."""
    cache = Cache()
    first = Seen(request(), Response(200, SENT, content(NAME)), at(0), [Contact(request(), Response(200, FIELDS, content(NAME)), at(0))])
    assert judge(cache, first) == []
    return cache


def names(cache, ask, answer, when=5, contacts=()):
    return {finding.name for finding in judge(cache, Seen(ask, answer, at(when), list(contacts)))}


def hit(*more, age="5", status=200, body=content(NAME), without=(), complete=True):
    fields = [line for line in SENT if line[0] not in without] + list(more) + ([("Age", age)] if age else [])
    return Response(status, fields, body, complete)


def of_range(text, body, *more):
    return hit(("Content-Range", text), *more, status=206, body=body)


RANGE = ("Range", "bytes=0-9")


@pytest.mark.parametrize("ask, answer", [
    (request(), hit()), (request(method="HEAD"), hit(body=b"")), (request(("If-None-Match", '"1"')), hit(status=304, body=b"")),
    (request(RANGE), of_range("bytes 0-9/40", content(NAME)[:10])), (request(RANGE), hit()),
    (request(("Range", "bytes=50-")), Response(416, SENT + [("Content-Range", "bytes */40"), ("Age", "5")]))])
def test_right(ask, answer):
    assert names(stored(), ask, answer) == set()


@pytest.mark.parametrize("ask, answer, when, name", [
    (request(), hit(), 10, "reused-wrongly"), (request(), hit(age="4"), 5, "wrong-age"), (request(), hit(age=None), 5, "wrong-age"),
    (request(("Cache-Control", "no-cache")), hit(), 5, "reused-wrongly"), (request(("Cache-Control", "max-age=4")), hit(), 5, "reused-wrongly"),
    (request(), hit(body=content(NAME)[:39] + b"!"), 5, "wrong-body"), (request(), hit(body=content(NAME)[:20]), 5, "wrong-body"),
    (request(), hit(body=b"!", complete=False), 5, "wrong-body"), (request(), hit(("Content-Length", "41")), 5, "wrong-length"),
    (request(), hit(("X-Hop", "1")), 5, "hop-by-hop"), (request(), hit(("Proxy-Authenticate", "x")), 5, "hop-by-hop"),
    (request(), hit(without=["X-List"]), 5, "fields"), (request(), hit(("X-New", "1")), 5, "fields"), (request(), hit(("Date", "x")), 5, "date"),
    (request(), hit(("X-List", "c")), 5, "fields"), (request(target="/b"), hit(), 5, "reused-for-other-url"),
    (request(method="POST"), hit(), 5, "reused-for-method"), (request(method="HEAD"), hit(), 5, "body-where-none"),
    (request(("If-None-Match", '"2"')), hit(status=304, body=b""), 5, "304-for-modified"), (request(), hit(status=304, body=b""), 5, "304-for-modified"),
    (request(), of_range("bytes 0-9/40", content(NAME)[:10]), 5, "206-without-range"),
    (request(RANGE), of_range("bytes 0-9/40", content(NAME)[1:11]), 5, "wrong-range-bytes"),
    (request(RANGE), of_range("bytes 0-8/40", content(NAME)[:9]), 5, "range-not-asked"),
    (request(RANGE), of_range("bytes 0-9/41", content(NAME)[:10]), 5, "wrong-content-range"),
    (request(RANGE, ("If-Range", '"2"')), of_range("bytes 0-9/40", content(NAME)[:10]), 5, "206-against-if-range"),
    (request(RANGE), Response(416, SENT + [("Content-Range", "bytes */40"), ("Age", "5")]), 5, "416-for-satisfiable"),
    (request(), hit(status=404), 5, "other-status"), (request(), Response(504), 5, "own-page"), (request(), None, 5, "no-answer"),
    (request(), hit(("X-Id", "9"), without=["X-Id"]), 5, "from-nowhere")])
def test_wrong(ask, answer, when, name):
    assert name in names(stored(), ask, answer, when)


def test_other_variant():
    cache = Cache()
    vary = FIELDS + [("Vary", "X-Flavour")]
    ask = request(("X-Flavour", "sweet"))
    judge(cache, Seen(ask, Response(200, vary, content(NAME)), at(0), [Contact(ask, Response(200, vary, content(NAME)), at(0))]))
    assert names(cache, request(("X-Flavour", "sweet")), hit(("Vary", "X-Flavour"))) == set()
    assert "reused-other-variant" in names(cache, request(("X-Flavour", "sour")), hit(("Vary", "X-Flavour")))


def answered(ask, asked=None, number="2", status=200, **named):
    fields = [(name, number if name == "X-Id" else value) for name, value in FIELDS if name != "X-Body" or status != 304]
    response = Response(status, fields, b"" if status == 304 else content(NAME), **named)
    return Contact(asked or ask, response, at(named.pop("when", 20)))


def passed(number="2", **named):
    answer = hit(age=None, **named)
    answer.fields = [(name, number if name == "X-Id" else value) for name, value in answer.fields]
    return answer


def test_misses():
    assert names(stored(), request(), passed(), 5, [answered(request())]) == {"not-reused-fresh"}
    assert names(stored(), request(), passed(), 20, [answered(request())]) == {"not-validated-etag"}
    conditional = request(("If-None-Match", '"1"'))
    assert names(stored(), request(), passed(), 20, [answered(request(), conditional)]) == set()
    assert names(stored(), request(), Response(502), 20, [Contact(conditional, None, at(20))]) == {"not-stood-in-disconnected"}
    assert names(stored(), request(), hit(age="20"), 20, [Contact(conditional, None, at(20))]) == set()


@pytest.mark.parametrize("asked, name", [
    (request(("If-None-Match", '"9"')), "asked-unknown-etag"), (request(("If-Modified-Since", "x")), "asked-unknown-date"),
    (request(("Proxy-Authorization", "x")), "asked-hop-by-hop"), (request(("X-New", "x")), "asked-fields"), (request(target="/b"), "asked-other"),
    (request(("Range", "bytes=0-1")), "asked-range"), (request(method="HEAD"), "asked-other")])
def test_wrong_question(asked, name):
    assert name in names(stored(), request(), passed(), 20, [answered(request(), asked)])


def test_confirmation():
    ask, conditional = request(), request(("If-None-Match", '"1"'))
    confirmed = passed("3")
    assert names(stored(), ask, confirmed, 20, [answered(ask, conditional, "3", 304)]) == set()
    assert "reused-wrongly" in names(stored(), ask, hit(age="20"), 20, [answered(ask, conditional, "3", 304)])
    cache = stored()
    names(cache, ask, confirmed, 20, [answered(ask, conditional, "3", 304)])
    renewed = hit(age="5")
    renewed.fields = [(name, "3" if name == "X-Id" else value) for name, value in renewed.fields]
    assert "wrong-age" in names(cache, ask, renewed, 27)


def test_only_if_cached_goes_nowhere():
    ask = request(("Cache-Control", "only-if-cached"))
    assert "asked-only-if-cached" in names(stored(), ask, passed(), 20, [answered(ask)])
    assert names(stored(), ask, Response(504), 20) == set()


def test_a_cut_is_seen():
    ask = request()
    assert "cut-without-cause" in names(stored(), ask, passed(body=content(NAME)[:9], complete=False), 20, [answered(ask)])
