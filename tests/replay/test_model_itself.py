"""The model against cases worked by hand from the text of the standards. What the model gets wrong here, the differential
run would blame on weir."""
import pytest

import model
from model import Cache, Moment, Request, Response, Stored

ZERO = 1767225600  # Thu, 01 Jan 2026 00:00:00 GMT
DATE = "Thu, 01 Jan 2026 00:00:00 GMT"


def at(seconds):
    return Moment(ZERO + seconds, seconds)


def response(*lines, status=200, body=b"x", date=DATE):
    fields = [tuple(part.strip() for part in line.split(":", 1)) for line in lines]
    return Response(status, ([("Date", date)] if date else []) + fields, body)


def request(*lines, method="GET", target="/", host="a.example", destination="192.0.2.1"):
    fields = [tuple(part.strip() for part in line.split(":", 1)) for line in lines]
    return Request(method, target, [("Host", host)] + fields, destination)


def stored(*lines, ask=(), when=0, **named):
    return Stored(request(*ask), response(*lines, **named), at(when), at(when), 1)


# ---- dates, [RFC 9110 §5.6.7] ----

@pytest.mark.parametrize("text, seconds", [
    ("Sun, 06 Nov 1994 08:49:37 GMT", 784111777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784111777),
    ("Sun Nov  6 08:49:37 1994", 784111777), ("SUN, 06 NOV 1994 08:49:37 gmt", 784111777),
    ("Sun Nov 16 08:49:37 1994", 784975777), ("Thursday, 18-Aug-50 02:01:18 GMT", 2544400878),
    ("Monday, 18-Aug-77 02:01:18 GMT", 240717678),  # 2077 is more than 50 years ahead
    ("Sun, 06 Nov 1994 08:49:37 UTC", None), ("Sun 06 Nov 1994 08:49:37 GMT", None), ("Sun, 6 Nov 1994 08:49:37 GMT", None),
    ("Sun, 06-Nov-94 08:49:37 GMT", None), ("Sun, 06 Nov 94 08:49:37 GMT", None), ("0", None), ("", None),
    ("Sun, 31 Nov 1994 08:49:37 GMT", None), ("Tue, 29 Feb 2028 00:00:00 GMT", 1835395200),
    ("Mon, 29 Feb 2027 00:00:00 GMT", None), ("Sun, 06 Nov 1994 24:00:00 GMT", None), ("Sun,  06 Nov 1994 08:49:37 GMT", None)])
def test_dates(text, seconds):
    assert model.parse_date(text, ZERO) == seconds


# ---- Cache-Control, [RFC 9111 §5.2, §1.2.2] ----

@pytest.mark.parametrize("lines, name, arguments", [
    (["Cache-Control: max-age=1, public"], "max-age", ["1"]), (["Cache-Control: MAX-age=1"], "max-age", ["1"]),
    (["Cache-Control: a=\"x, no-store, y\""], "no-store", []), (["Cache-Control: , ,no-store,"], "no-store", [None]),
    (["Cache-Control: max-age=1", "Cache-Control: max-age=2"], "max-age", ["1", "2"]),
    (["Cache-Control: max-age"], "max-age", [None]), (["Cache-Control: max-age="], "max-age", [""]),
    (["Cache-Control: max-age = 60"], "max-age", [" = 60"])])
def test_directives(lines, name, arguments):
    assert model.directive(response(*lines), name) == arguments


@pytest.mark.parametrize("argument, seconds", [("0", 0), ("0060", 60), ('"60"', 60), ("2147483648", 2 ** 31), ("99999999999", 2 ** 31),
    ("-1", None), ("1.5", None), ("60s", None), ("", None), (None, None), ("'60'", None), ("٣", None)])
def test_delta_seconds(argument, seconds):
    assert model.parse_delta(argument) == seconds


# ---- freshness lifetime, [RFC 9111 §4.2.1, §4.2.2] ----

@pytest.mark.parametrize("lines, most, wanted", [
    (["Cache-Control: max-age=60"], 60, 60), (["Cache-Control: max-age=60, s-maxage=5"], 5, 5),
    (["Cache-Control: s-maxage=abc, max-age=60"], 0, 0), (["Cache-Control: max-age=60", "Expires: 0"], 60, 60),
    (["Expires: Thu, 01 Jan 2026 00:01:00 GMT"], 60, 60), (["Expires: 0"], 0, 0), (["Expires: Wed, 31 Dec 2025 23:00:00 GMT"], 0, 0),
    (["Expires: Thu, 01 Jan 2026 00:01:00 GMT", "Expires: Thu, 01 Jan 2026 00:02:00 GMT"], 60, 0),
    (["Cache-Control: max-age=10, max-age=60"], 10, 0), (["Cache-Control: max-age=60, max-age=60"], 60, 60),
    (["Cache-Control: max-age=-1"], 0, 0), (["Cache-Control: max-age=99999999999"], 2 ** 31, 2 ** 31),
    (["Last-Modified: Wed, 31 Dec 2025 23:43:20 GMT"], 100, 100), (["Last-Modified: Thu, 01 Jan 2015 00:00:00 GMT"], 604800, 604800),
    (["Last-Modified: Fri, 02 Jan 2026 00:00:00 GMT"], 0, 0), (["Last-Modified: lately"], 0, 0), ([], 0, 0)])
def test_lifetime(lines, most, wanted):
    assert model.lifetime(response(*lines), at(0))[:2] == (most, wanted)


def test_lifetime_by_status():
    modified = "Last-Modified: Wed, 31 Dec 2025 23:43:20 GMT"
    assert model.lifetime(response(modified, status=404), at(0)).most == 100
    assert model.lifetime(response(modified, status=302), at(0)).most == 0
    assert model.lifetime(response(modified, "Cache-Control: public", status=302), at(0)).most == 100
    assert model.lifetime(response("Cache-Control: max-age=5", status=599), at(0)).most == 5


def test_expires_without_date():  # counts from the arrival
    assert model.lifetime(response("Expires: Thu, 01 Jan 2026 00:01:00 GMT", date=None), at(20)).most == 40


# ---- age, [RFC 9111 §4.2.3, §5.1] ----

@pytest.mark.parametrize("lines, age", [([], 0), (["Age: 5"], 5), (["Age: 5, 7"], 5), (["Age: 5", "Age: 7"], 5), (["Age: abc"], 0),
    (["Age: -5"], 0), (["Age: 1.5"], 0), (["Age: abc, 5"], 0), (["Age: 99999999999"], 2 ** 31)])
def test_age_value(lines, age):
    assert model.initial_age(response(*lines), at(0), at(0)) == age


def test_age():
    slow = response("Age: 5", date="Wed, 31 Dec 2025 23:59:00 GMT")
    assert model.initial_age(slow, at(0), at(0)) == 60                                # apparent_age
    assert model.initial_age(response("Age: 5"), at(0), at(3)) == 8                   # response_delay
    assert model.initial_age(response(date="Thu, 01 Jan 2026 00:10:00 GMT"), at(0), at(0)) == 0   # a fast clock
    one = stored("Age: 5")
    assert one.age(at(10)) == 15
    assert one.age(Moment(ZERO - 86400, 10)) == 15                                    # our clock was set


# ---- storing, [RFC 9111 §3] ----

@pytest.mark.parametrize("ask, lines, status, may", [
    ([], [], 200, True), ([], ["Cache-Control: no-store, max-age=9"], 200, False), ([], ["Cache-Control: private"], 200, False),
    ([], ["Cache-Control: private=\"X-A\", max-age=9"], 200, True), ([], ["Cache-Control: private="], 200, False),
    (["Cache-Control: no-store"], ["Cache-Control: max-age=9"], 200, False),
    (["Authorization: x"], ["Cache-Control: max-age=9"], 200, False), (["Authorization: x"], ["Cache-Control: public"], 200, True),
    (["Authorization: x"], ["Cache-Control: s-maxage=9"], 200, True), (["Authorization: x"], ["Cache-Control: must-revalidate"], 200, True),
    (["Authorization: x"], ["Cache-Control: max-age=9, proxy-revalidate"], 200, False),
    ([], [], 302, False), ([], ["Cache-Control: max-age=9"], 302, True), ([], ["Expires: 0"], 302, True),
    ([], ["Cache-Control: max-age=9"], 599, True), ([], ["Cache-Control: max-age=9"], 500, True), ([], [], 500, False), ([], [], 404, True),
    ([], ["Cache-Control: must-understand, no-store, max-age=9"], 200, True),
    ([], ["Cache-Control: must-understand, no-store, max-age=9"], 599, False),
    ([], ["Cache-Control: must-understand, max-age=9"], 599, False), ([], ["Cache-Control: max-age=9"], 206, True),
    ([], ["Cache-Control: max-age=9", "ETag: \"a\""], 206, True), ([], ["Cache-Control: public"], 302, True)])
def test_storing(ask, lines, status, may):
    assert model.may_store(request(*ask), response(*lines, status=status), at(0)) is may


def test_storing_by_method():
    explicit = "Cache-Control: max-age=9"
    assert not model.may_store(request(method="PUT"), response(explicit), at(0))
    assert not model.may_store(request(method="POST"), response(explicit), at(0))
    assert model.may_store(request(method="POST", target="/a"), response(explicit, "Content-Location: /a"), at(0))
    assert not model.may_store(request(method="POST", target="/a"), response("Content-Location: /a"), at(0))
    assert not model.may_store(request(method="POST", target="/a"), response(explicit, "Content-Location: /a", status=404), at(0))
    assert model.may_store(request(method="PATCH", target="/a"), response(explicit, "Content-Location: /a"), at(0))


# ---- use, [RFC 9111 §4.2.4, §5.2, RFC 5861] ----

@pytest.mark.parametrize("lines, ask, now, grounds", [
    (["Cache-Control: max-age=10"], [], 9, "fresh"), (["Cache-Control: max-age=10"], [], 10, None),
    (["Cache-Control: max-age=10"], ["Cache-Control: max-stale"], 10, "max-stale"),
    (["Cache-Control: max-age=10"], ["Cache-Control: max-stale=5"], 15, "max-stale"),
    (["Cache-Control: max-age=10"], ["Cache-Control: max-stale=5"], 16, None),
    (["Cache-Control: max-age=10, must-revalidate"], ["Cache-Control: max-stale"], 10, None),
    (["Cache-Control: s-maxage=10"], ["Cache-Control: max-stale"], 10, None),
    (["Cache-Control: max-age=10, proxy-revalidate"], ["Cache-Control: max-stale"], 10, None),
    (["Cache-Control: max-age=10, no-cache"], ["Cache-Control: max-stale"], 1, None),
    (["Cache-Control: max-age=10"], ["Cache-Control: max-age=5"], 5, "fresh"),
    (["Cache-Control: max-age=10"], ["Cache-Control: max-age=5"], 6, None),
    (["Cache-Control: max-age=10"], ["Cache-Control: max-age=5, max-stale"], 6, None),
    (["Cache-Control: max-age=10"], ["Cache-Control: min-fresh=5"], 5, "fresh"),
    (["Cache-Control: max-age=10"], ["Cache-Control: min-fresh=5"], 6, None),
    (["Cache-Control: max-age=10"], ["Cache-Control: no-cache"], 0, None),
    (["Cache-Control: max-age=10"], ["Pragma: no-cache"], 0, None),
    (["Cache-Control: max-age=10"], ["Pragma: no-cache", "Cache-Control: max-age=9"], 0, "fresh"),
    (["Cache-Control: max-age=10"], ["Cache-Control: no-store"], 0, "fresh"),
    (["Cache-Control: no-cache=\"X-A\", max-age=9"], [], 0, "fresh"), (["Cache-Control: no-cache=, max-age=9"], [], 0, None)])
def test_use(lines, ask, now, grounds):
    assert model.why_usable(stored(*lines), request(*ask), at(now))[0] == grounds


@pytest.mark.parametrize("lines, ask, now, happened, grounds", [
    (["Cache-Control: max-age=10, stale-while-revalidate=5"], [], 15, {"asked"}, "stale-while-revalidate"),
    (["Cache-Control: max-age=10, stale-while-revalidate=5"], [], 15, set(), None),
    (["Cache-Control: max-age=10, stale-while-revalidate=5"], [], 16, {"asked"}, None),
    (["Cache-Control: max-age=10, stale-while-revalidate=5, must-revalidate"], [], 12, {"asked"}, None),
    (["Cache-Control: max-age=10, stale-if-error=5"], [], 15, {"error"}, "stale-if-error"),
    (["Cache-Control: max-age=10, stale-if-error=5"], [], 16, {"error"}, None),
    (["Cache-Control: max-age=10"], ["Cache-Control: stale-if-error=5"], 15, {"error"}, "stale-if-error"),
    (["Cache-Control: max-age=10"], [], 15, {"error"}, None), (["Cache-Control: max-age=10"], [], 999, {"disconnected"}, "disconnected"),
    (["Cache-Control: s-maxage=10"], [], 15, {"disconnected"}, None), (["Cache-Control: no-cache"], [], 0, {"disconnected"}, None)])
def test_use_after_asking(lines, ask, now, happened, grounds):
    assert model.why_usable(stored(*lines), request(*ask), at(now), **{name: True for name in happened})[0] == grounds


# ---- Vary, [RFC 9111 §4.1] ----

@pytest.mark.parametrize("vary, first, second, selects", [
    ("", ["X: a"], ["X: b"], True), ("X", ["X: a"], ["X: a"], True), ("X", ["X: a"], ["X: b"], False), ("x", ["X: a"], ["x: a"], True),
    ("X", [], [], True), ("X", [], ["X: "], False), ("*", [], [], False), ("X, *", ["X: a"], ["X: a"], False),
    ("X", ["X: a, b"], ["X: a,b"], True), ("X", ["X: a", "X: b"], ["X: a, b"], True), ("X", ["X: a"], ["X: A"], False),
    ("Accept-Encoding", ["Accept-Encoding: gzip, br"], ["Accept-Encoding: BR,gzip"], True),
    ("Accept-Encoding", ["Accept-Encoding: gzip"], ["Accept-Encoding: gzip;q=0.5"], False),
    ("Accept-Encoding", ["Accept-Encoding: gzip;q=1"], ["Accept-Encoding: gzip"], True),
    ("Accept-Encoding", [], ["Accept-Encoding: "], False), ("Accept-Language", ["Accept-Language: cs, EN"], ["Accept-Language: en,cs"], True)])
def test_vary(vary, first, second, selects):
    one = stored(*([f"Vary: {vary}"] if vary else []), ask=first)
    assert model.selects(one, request(*second)) is selects


@pytest.mark.parametrize("lines, first, second, fits", [
    (["Vary: Accept-Language", "Content-Language: cs"], "Accept-Language: cs, en;q=0.5", "Accept-Language: CS", True),
    (["Vary: Accept-Language", "Content-Language: en"], "Accept-Language: en", "Accept-Language: cs, en;q=0.5", False),
    (["Vary: Accept-Language", "Content-Language: en"], "Accept-Language: en", "Accept-Language: cs, en", False),
    (["Vary: Accept-Language"], "Accept-Language: en", "Accept-Language: en;q=0.5", False),
    (["Vary: Accept-Encoding", "Content-Encoding: br"], "Accept-Encoding: br", "Accept-Encoding: gzip;q=0.5, br", False),
    (["Vary: Accept-Encoding"], "X: 1", "Accept-Encoding: identity", False), (["Vary: Accept-Encoding"], "X: 1", "Accept-Encoding: gzip", False),
    (["Vary: Accept-Encoding, X", "Content-Encoding: br"], "X: 1", "Accept-Encoding: br", False)])
def test_favourites(lines, first, second, fits):
    one = stored(*lines, ask=[first])
    assert (model.selects(one, request(second), favourites=True), model.selects(one, request(second))) == (fits, False)


def test_choice_among_several():  # §4.1: what lacks Vary may lack it by mistake
    cache = cache_with((["X: 1"], ["Vary: X", "A: 1"]), (["X: 2"], ["A: 2"]), (["X: 1"], ["Vary: X", "A: 3"]), (["X: 1"], ["A: 4"]))
    assert [one.response.first("A") for one in cache.matching(request("X: 1"))] == ["2", "4", "1", "3"]


# ---- conditions, [RFC 9110 §13, RFC 9111 §4.3.2] ----

@pytest.mark.parametrize("ask, lines, status, result", [
    (["If-None-Match: \"a\""], ["ETag: \"a\""], 200, True), (["If-None-Match: W/\"a\""], ["ETag: \"a\""], 200, True),
    (["If-None-Match: \"b\", \"a\""], ["ETag: W/\"a\""], 200, True), (["If-None-Match: \"b\""], ["ETag: \"a\""], 200, False),
    (["If-None-Match: *"], [], 200, True), (["If-None-Match: \"a\""], ["ETag: \"a\""], 404, False),
    (["If-None-Match: a"], ["ETag: \"a\""], 200, None), (["If-None-Match: \"b\" \"a\""], ["ETag: \"a\""], 200, None),
    (["If-Modified-Since: " + DATE], ["Last-Modified: " + DATE], 200, True),
    (["If-Modified-Since: Wed, 31 Dec 2025 23:00:00 GMT"], ["Last-Modified: " + DATE], 200, False),
    (["If-Modified-Since: " + DATE], [], 200, True), (["If-Modified-Since: lately"], ["Last-Modified: " + DATE], 200, False),
    (["If-None-Match: \"b\"", "If-Modified-Since: " + DATE], ["ETag: \"a\"", "Last-Modified: " + DATE], 200, False), ([], [], 200, False)])
def test_conditions(ask, lines, status, result):
    assert model.not_modified(request(*ask), response(*lines, status=status), ZERO) is result


@pytest.mark.parametrize("text, ranges", [("bytes=0-9", [(0, 9)]), ("bytes=90-", [(90, 99)]), ("bytes=-10", [(90, 99)]), ("bytes=-200", [(0, 99)]),
    ("bytes=100-", []), ("bytes=-0", []), ("bytes=0-0,5-6", [(0, 0), (5, 6)]), ("bytes=9-0", None), ("items=0-1", None),
    ("bytes=a-b", None), ("bytes=0-9,200-", [(0, 9)]), ("BYTES=0-9", [(0, 9)]), ("bytes=", []), ("bytes=-", None)])
def test_ranges(text, ranges):
    assert model.byte_ranges(request("Range: " + text), 100) == ranges


@pytest.mark.parametrize("value, lines, holds", [('"a"', ['ETag: "a"'], True), ('W/"a"', ['ETag: W/"a"'], False), ('"a"', ['ETag: W/"a"'], False),
    ('"b"', ['ETag: "a"'], False), ("Wed, 31 Dec 2025 00:00:00 GMT", ["Last-Modified: Wed, 31 Dec 2025 00:00:00 GMT"], True),
    ("Wed, 31 Dec 2025 00:00:01 GMT", ["Last-Modified: Wed, 31 Dec 2025 00:00:00 GMT"], False), (DATE, ["Last-Modified: " + DATE], None),
    ("lately", ["Last-Modified: lately"], False)])
def test_if_range(value, lines, holds):
    assert model.if_range_holds(request("Range: bytes=0-1", "If-Range: " + value), response(*lines), ZERO) is holds


# ---- 304, [RFC 9111 §4.3.3, §4.3.4, §3.2] ----

def cache_with(*responses):
    cache = Cache()
    for when, (ask, lines) in enumerate(responses):
        cache.learn(request(*ask), request(*ask), response(*lines, date=model.print_date(ZERO + when)), at(when), at(when))
    return cache


def confirm(cache, *lines, asked=(), ask=(), when=50):
    return cache.learn(request(*ask), request(*asked), response(*lines, status=304, body=b"", date=model.print_date(ZERO + when)),
        at(when), at(when))


def test_304_by_strong_tag_updates_all_of_that_tag():
    cache = cache_with((["X: 1"], ["Vary: X", "ETag: \"a\""]), (["X: 2"], ["Vary: X", "ETag: \"a\""]), (["X: 3"], ["Vary: X", "ETag: \"b\""]))
    assert len(confirm(cache, "ETag: \"a\"", ask=["X: 1"])) == 2


def test_304_of_an_unknown_tag_updates_nothing():
    cache = cache_with(([], ["ETag: \"a\""]))
    assert confirm(cache, "ETag: \"b\"", asked=["If-None-Match: \"a\""]) == []
    assert confirm(cache, "ETag: W/\"b\"", asked=["If-None-Match: \"a\""]) == []
    assert [one.response_at for one in cache.stored] == [at(0)]


def test_304_by_weak_tag_and_by_date():
    assert len(confirm(cache_with(([], ["ETag: W/\"a\""])), "ETag: W/\"a\"")) == 1
    modified = "Last-Modified: Wed, 31 Dec 2025 00:00:00 GMT"
    assert len(confirm(cache_with(([], [modified])), modified)) == 1
    assert len(confirm(cache_with(([], [modified])), "ETag: W/\"new\"", modified)) == 1  # one of them corresponds
    assert confirm(cache_with(([], [modified])), "ETag: \"new\"", modified) == []
    assert confirm(cache_with(([], [modified])), "Last-Modified: Wed, 31 Dec 2025 00:00:01 GMT") == []


def test_304_without_validator_means_what_was_asked():
    cache = cache_with(([], ["ETag: \"a\""]))
    assert len(confirm(cache, asked=["If-None-Match: \"a\""])) == 1


def test_304_renews():
    cache = cache_with(([], ["ETag: \"a\"", "Cache-Control: max-age=10", "X-Old: 1", "X-Both: 1", "Age: 7", "Content-Encoding: gzip"]))
    new, = confirm(cache, "ETag: \"a\"", "Cache-Control: max-age=20", "X-Both: 2", "Content-Length: 99", "Content-Encoding: br",
        "Connection: X-Hop", "X-Hop: 1")
    assert (new.age(at(55)), new.lifetime.most, new.response.body) == (5, 20, b"x")
    values = {name: new.response.lines(name) for name in ("X-Old", "X-Both", "Content-Length", "Content-Encoding", "X-Hop", "Date")}
    assert values == {"X-Old": ["1"], "X-Both": ["2"], "Content-Length": [], "Content-Encoding": ["gzip"], "X-Hop": [],
        "Date": [model.print_date(ZERO + 50)]}
    assert len(cache.stored) == 1


def test_304_that_forbids_storing():
    cache = cache_with(([], ["ETag: \"a\"", "Cache-Control: max-age=10"]))
    new, = confirm(cache, "ETag: \"a\"", "Cache-Control: no-store")
    assert new.must_confirm and not new.sure


# ---- HEAD and unsafe methods, [RFC 9111 §4.3.5, §4.4] ----

@pytest.mark.parametrize("lines, stale", [(["ETag: \"a\""], False), (["ETag: \"b\""], True), (["Content-Length: 1"], False),
    (["Content-Length: 2"], True), ([], False)])
def test_head(lines, stale):
    cache = cache_with(([], ["ETag: \"a\"", "Cache-Control: max-age=100"]))
    cache.learn(request(method="HEAD"), request(method="HEAD"), response(*lines, body=b""), at(5), at(5))
    assert cache.stored[0].must_confirm is stale


@pytest.mark.parametrize("method, status, invalid", [("POST", 200, True), ("PUT", 204, True), ("DELETE", 303, True), ("BREW", 200, True),
    ("POST", 404, False), ("POST", 500, False), ("OPTIONS", 200, False)])
def test_invalidation(method, status, invalid):
    cache = cache_with(([], ["Cache-Control: max-age=100"]))
    cache.learn(request(method=method), request(method=method), response(status=status), at(5), at(5))
    assert cache.stored[0].must_confirm is invalid


@pytest.mark.parametrize("location, invalid", [("/", True), ("http://a.example/", True), ("http://A.example:80/", True), ("http://a.example", True),
    ("http://b.example/", False), ("//b.example/", False), ("/other", False), ("http://a.example:8080/", False)])
@pytest.mark.parametrize("field", ["Location", "Content-Location"])
def test_invalidation_of_others(field, location, invalid):
    cache = cache_with(([], ["Cache-Control: max-age=100"]))
    cache.learn(request(method="POST", target="/form"), None, response(f"{field}: {location}"), at(5), at(5))
    assert cache.stored[0].must_confirm is invalid


# ---- what is of one connection, [RFC 9110 §7.6.1] ----

def test_hop_by_hop():
    names = model.hop_by_hop(response("Connection: X-A, close", "Connection: x-b"))
    assert {"x-a", "x-b", "te", "proxy-authenticate", "keep-alive"} <= names and "x-c" not in names
