"""What a hostile origin or client tries on the store: bytes that do not belong there, work that multiplies, memory that
grows."""
import pytest

from play import At, ask, reply

A = ask("/a")
MAX = "max-age=1000"
INJECTED = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nBAD"


def rest(body, **named):
    """Of /a, 100 octets, the last 50; chunked, so that its framing says nothing of a length."""
    return reply(206, body, cache_control=MAX, etag='"1"', chunked=True, content_range="bytes 50-99/100", **named)


def test_what_follows_the_announced_rest_is_not_delivered(play):
    """RFC 9112 §11.1: behind Content-Length it would be the next response. A rest that does not say how long it is joins
    nothing: the whole is asked for."""
    play.exchange(A, lambda seen: reply(503, "") if seen.get("Range") else reply(200, "x" * 100, cache_control=MAX,
        etag='"1"', accept_ranges="bytes", sends=50, end="close"))
    client = play.start(A)
    play.arrived().answer(rest("y" * 50 + INJECTED))
    again = play.arrived()
    assert "range" not in again.fields and client.connection.received == b""
    again.answer(reply(200, "z" * 100, cache_control=MAX, etag='"2"'))
    head, _, body = client.connection.received.partition(b"\r\n\r\n")
    assert b"Content-Length: 100" in head and body == b"z" * 100


def test_nor_that_of_a_range(play):
    got = play.exchange(ask("/a", range="bytes=50-99"), rest("y" * 50 + INJECTED))
    assert (got.status, got.body) == (206, b"y" * 50)
    got = play.exchange(ask("/a", range="bytes=50-99"), rest("z" * 50))
    assert (got.status, got.body, bool(got.seen)) == (206, b"z" * 50, True)


@pytest.mark.parametrize("given", ["9223372036854775800-9223372036854775807/*",
    "18446744073709551600-18446744073709551610/*", "18446744073709551600-18446744073709551610/18446744073709551615"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_range_beyond_any_length_is_no_answer(play, given, chunked):
    first, last = map(int, given.partition("/")[0].split("-"))
    got = play.exchange(ask("/a", range=f"bytes={first}-"),
        reply(206, "x" * (last - first + 1), content_range=f"bytes {given}", chunked=chunked, cache_control=MAX))
    assert got.status == 502


@pytest.mark.parametrize("control", ["max-age=0, stale-while-revalidate=600", "max-age=1, stale-while-revalidate=600"])
def test_one_refresh_until_its_end_however_short_it_lives(play, control):
    """RFC 5861 §3: while its content arrives, the next requests begin no other."""
    play.exchange(A, reply(200, "old", cache_control=control, etag='"1"'))
    play.advance(5)
    arrived = []
    for _ in range(5):
        assert play.start(A).take().body == b"old"
        for seen in play.arrived_all():
            arrived.append(seen)
            seen.answer(reply(200, "new", cache_control=control, etag='"2"', sends=1))
        play.advance(2)
    assert len(arrived) == 1
    arrived[0].connection.send(b"ew")
    client = play.start(A)
    assert client.take().body == b"new" and len(play.arrived_all()) == 1


def test_urls_that_store_nothing_leave_nothing(play):
    """What is remembered of a URL that may not be stored ends, whatever request comes upon it."""
    before = play.replay.stats()["bytes"]
    for number in range(300):
        play.exchange(ask(f"/{number}"), reply(200, "x", cache_control="no-store"))
    play.advance(6)
    for number in range(300):
        play.exchange(ask(f"/{number}", cache_control="no-store"), reply(200, "x", cache_control="no-store"))
    assert play.replay.stats()["bytes"] == before


def grow(play, how, rounds=60):
    """Every answer brings 10 KB of fields under names that were never there."""
    for number in range(rounds):
        play.advance(3)
        fields = [(f"X-{number}-{i}", "v" * 1000) for i in range(10)]
        play.exchange(*how(number, fields))
        assert play.replay.stats()["bytes"] < 1 << 20


def test_confirmations_do_not_make_a_head_grow_for_ever(play):
    play.exchange(A, reply(200, "x", cache_control="max-age=1", etag='"1"'))
    grow(play, lambda number, fields: (A, lambda seen: reply(304 if seen.get("If-None-Match") else 200, "x",
        fields=fields, cache_control="max-age=1", etag='"1"')))


def test_nor_do_answers_to_head(play):
    play.exchange(A, reply(200, "x", cache_control=MAX, etag='"1"'))
    grow(play, lambda number, fields: (ask("/a", method="HEAD", cache_control="no-cache"),
        reply(200, "x", fields=fields, cache_control=MAX, etag='"1"')))


def test_nor_do_parts(play):
    grow(play, lambda number, fields: (ask("/a", range=f"bytes={number}-{number}"), reply(206, "x", fields=fields,
        cache_control=MAX, etag='"1"', content_range=f"bytes {number}-{number}/1000")))


def test_a_confirmation_for_one_client_alone_leaves_what_others_have(play):
    """RFC 9111 §3.5: a 304 to a request with Authorization is not for all; what it is about is as it was."""
    play.exchange(A, reply(200, "x", cache_control="max-age=1", etag='"1"'))
    play.advance(3)
    confirmed = reply(304, cache_control=MAX, etag='"1"')
    got = play.exchange(ask("/a", authorization="Basic eDp5"), confirmed)
    assert (got.status, got.body, got.seen.get("If-None-Match")) == (200, b"x", '"1"')
    got = play.exchange(A, confirmed)
    assert (got.status, got.body, got.seen.get("If-None-Match")) == (200, b"x", '"1"')
    assert play.exchange(A).body == b"x"


def test_a_tag_too_long_to_ask_about_is_none(play):
    """The request goes out as the client sent it, and so is its answer understood."""
    long = '"' + "e" * 5000 + '"'
    play.exchange(A, reply(200, "old", cache_control="max-age=1", etag=long))
    play.advance(3)
    got = play.exchange(ask("/a", if_none_match='"new"'), reply(304, etag='"new"', cache_control="max-age=1"))
    assert (got.status, len(got.all_seen)) == (304, 1)
    got = play.exchange(ask("/a", range="bytes=1-2"),
        reply(206, "ew", etag='"new"', content_range="bytes 1-2/3", cache_control="max-age=1"))
    assert (got.status, got.body, len(got.all_seen)) == (206, b"ew", 1)


def test_parts_are_not_joined_by_a_date_of_our_own(play):
    """RFC 9110 §8.8.2.2: without the origin's Date nothing tells how old its Last-Modified was."""
    def part(first, last):
        return lambda seen: reply(206, "0123456789"[first:last + 1], date=None, last_modified=At(-100), cache_control=MAX,
            content_range=f"bytes {first}-{last}/10")
    play.exchange(ask("/a", range="bytes=0-4"), part(0, 4))
    play.exchange(ask("/a", range="bytes=5-9"), part(5, 9))
    assert play.exchange(ask("/a", range="bytes=0-9"), part(0, 9)).seen


def test_nor_completed(play):
    play.exchange(A, reply(200, "0123456789", date=None, last_modified=At(-100), cache_control=MAX, accept_ranges="bytes",
        sends=5, end="close"))
    got = play.exchange(A, reply(200, "abcdefghij", date=None, last_modified=At(-100), cache_control=MAX))
    assert got.body == b"abcdefghij" and got.seen.get("Range") is None
