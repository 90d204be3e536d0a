"""Which fields are kept, and which never come from the store [RFC 9111 §3.1, RFC 9110 §7.6]; cookies; interim
responses."""
import pytest

from play import ask, reply

A = ask("/a")
MAX = "max-age=60"

HOP = {"Connection": "X-Hop, x-other", "X-Hop": "1", "X-Other": "2", "Keep-Alive": "timeout=5", "TE": "trailers",
    "Upgrade": "foo/1", "Proxy-Connection": "keep-alive", "Proxy-Authenticate": "Basic realm=x",
    "Proxy-Authentication-Info": "x", "Proxy-Authorization": "Basic x"}


def test_fields_of_one_connection_are_not_stored(play):
    play.exchange(A, reply(200, "one", fields=HOP.items(), cache_control=MAX))
    got = play.exchange(A)
    names = {name.lower() for name, _ in got.fields}
    assert names & {name.lower() for name in HOP} <= {"connection"}
    assert "x-hop" not in (got.get("Connection") or "").lower()


@pytest.mark.parametrize("name", ["X-Hop", "X-Other", "Keep-Alive", "Proxy-Connection", "Upgrade"])
def test_nor_forwarded(play, name):
    """RFC 9110 §7.6.1, in both directions."""
    request = ask("/a", fields=[("Connection", "X-Hop, x-other"), ("X-Hop", "1"), ("X-Other", "2"),
        ("Keep-Alive", "5"), ("Proxy-Connection", "keep-alive")])
    got = play.exchange(request, reply(200, "one", fields=HOP.items()))
    assert got.seen.get(name) is None and got.get(name) is None


@pytest.mark.parametrize("named", ["Cache-Control", "ETag", "Date", "Content-Type", "Vary"])
def test_connection_may_not_take_out_what_the_store_lives_by(play, named):
    """RFC 9110 §7.6.1: a field that is named is dropped, so what it said no longer counts for the next; but nothing is
    reused longer for it."""
    play.exchange(A, reply(200, "one", connection=named, cache_control="max-age=60", etag='"1"', content_type="text/x",
        vary="X-A"))
    play.advance(60)
    assert play.exchange(A, reply(200, "two")).body == b"two"


def test_everything_else_is_kept(play):
    """Order and repeats included."""
    fields = [("X-One", "a"), ("X-Two", "b"), ("x-one", "c, d"), ("X-Empty", ""), ("Warning", '110 x "y"'),
        ("Link", "</a>; rel=x"), ("Link", "</b>; rel=y"), ("X-Quoted", '"a, b"'), ("Pragma", "x"), ("Server", "s/1"),
        ("Content-Language", "cs"), ("Set-Cookie2", "x"), ("Retry-After", "7")]
    for number in range(2):
        got = play.exchange(A, None if number else reply(200, "one", fields=fields, cache_control=f"{MAX}, public"))
        assert [pair for pair in got.fields if pair in fields] == fields


def test_via_and_age_and_length_are_ours(play):
    """RFC 9110 §7.6.3; one Content-Length, one Age."""
    play.exchange(A, reply(200, "one", cache_control=MAX, via="1.1 other", age="5"))
    got = play.exchange(A)
    assert got.get("Via").startswith("1.1 other, 1.1 ")
    assert (got.all("Content-Length"), got.all("Age")) == (["3"], ["5"])


def test_trailers_do_not_become_fields(play):
    """RFC 9110 §6.5.1: they are dropped or stay trailers."""
    head = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\nTrailer: X-End, Cache-Control\r\n\r\n"
    play.exchange(A, head + b"3\r\none\r\n0\r\nX-End: yes\r\nCache-Control: max-age=9999\r\n\r\n")
    got = play.exchange(A)
    assert (got.body, got.get("X-End"), got.get("Cache-Control")) == (b"one", None, "max-age=60")
    play.advance(60)
    assert play.exchange(A, reply(200, "two")).body == b"two"


# ---- named fields [RFC 9111 §5.2.2.4, §5.2.2.7] ----

@pytest.mark.parametrize("control", ['private="X-Secret"', 'private="x-secret, x-other"', 'Private="X-SECRET"'])
def test_named_private_fields_are_not_stored(play, control):
    """The rest may be stored; they themselves never are."""
    first = play.exchange(A, reply(200, "one", cache_control=f"max-age=60, {control}", x_secret="s", x_open="o"))
    assert first.get("X-Secret") == "s"
    got = play.exchange(A, reply(200, "two"))
    assert got.get("X-Secret") is None
    if not got.seen:
        assert (got.body, got.get("X-Open")) == (b"one", "o")


def test_named_no_cache_fields_are_not_replayed(play):
    play.exchange(A, reply(200, "one", cache_control='max-age=60, no-cache="X-Secret"', x_secret="s", etag='"1"'))
    got = play.exchange(A, reply(304, etag='"1"'))
    assert got.body == b"one" and (bool(got.seen) or got.get("X-Secret") is None)


# ---- Set-Cookie [RFC 9111 §7.3] ----

COOKIES = [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2; Path=/")]


@pytest.mark.parametrize("control", ["max-age=60, public", "s-maxage=60"])
def test_cookies_of_what_is_explicitly_shared_are_replayed(play, control):
    play.exchange(A, reply(200, "one", fields=COOKIES, cache_control=control))
    assert play.exchange(A).all("Set-Cookie") == ["a=1", "b=2; Path=/"]


def test_cookies_without_an_explicit_word_are_for_one(play):
    """A heuristic lifetime is no word of the origin's that everybody may have the cookie."""
    play.exchange(A, reply(200, "one", fields=COOKIES, last_modified="Wed, 31 Dec 2025 00:00:00 GMT"))
    got = play.exchange(A, reply(200, "two"))
    assert got.body == b"two" and got.get("Set-Cookie") is None


def test_a_cookie_in_the_request_hinders_nothing(play):
    play.exchange(ask("/a", cookie="x=1"), reply(200, "one", cache_control=MAX))
    assert play.exchange(ask("/a", cookie="y=2")).body == b"one"


# ---- interim responses [RFC 9110 §15.2] ----

HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\nCache-Control: max-age=6000\r\n\r\n"


def test_interim_responses_go_through_and_are_not_stored(play):
    got = play.exchange(A, reply(200, "one", before=HINTS + HINTS, cache_control=MAX))
    assert [(one.status, one.get("Link")) for one in got.interim] == [(103, "</x>; rel=preload")] * 2
    assert (got.status, got.body, got.get("Link")) == (200, b"one", None)
    got = play.exchange(A)
    assert (got.interim, got.status, got.body, got.get("Link")) == ([], 200, b"one", None)
    play.advance(60)
    assert play.exchange(A, reply(200, "two")).body == b"two"


def test_an_interim_response_arrives_before_the_final_one(play):
    client = play.client()
    client.send(A)
    arrived = play.arrived()
    arrived.answer(HINTS)
    assert client.connection.received.startswith(b"HTTP/1.1 103 ") and client.take() is None
    arrived.answer(reply(200, "one"))
    assert client.take().body == b"one"


def test_an_interim_response_before_a_confirmation(play):
    play.exchange(A, reply(200, "one", cache_control=MAX, etag='"1"'))
    play.advance(60)
    got = play.exchange(A, reply(304, before=HINTS, etag='"1"', cache_control=MAX))
    assert (got.status, got.body) == (200, b"one")
    assert play.exchange(A).get("Link") is None


def test_100_continue_is_forwarded_to_who_waits_for_it(play):
    """RFC 9110 §10.1.1."""
    client = play.client()
    client.asked.append("POST")
    client.connection.send(b"POST /a HTTP/1.1\r\nHost: example.com\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    origin = play.replay.accept()
    assert b"Expect: 100-continue" in origin.received
    origin.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    assert client.connection.received.startswith(b"HTTP/1.1 100 Continue\r\n") and client.take() is None
    client.connection.send(b"abc")
    assert origin.received.endswith(b"\r\n\r\nabc")
    origin.send(reply(200, "done").bytes(play.wall))
    assert client.take().body == b"done"


# ---- statuses with conditions of their own ----

@pytest.mark.parametrize("status, named, stored", [
    (200, {"cache_control": "max-age=60, must-understand"}, True),                # §5.2.2.3
    (200, {"cache_control": "max-age=60, must-understand, no-store"}, True),      # no-store is overridden
    (299, {"cache_control": "max-age=60, must-understand, no-store"}, False),     # not understood
    (299, {"cache_control": "max-age=60, must-understand"}, False),
])
def test_must_understand(play, status, named, stored):
    play.exchange(A, reply(status, "one", **named))
    assert (play.exchange(A, reply(200, "two")).body == b"one") == stored
