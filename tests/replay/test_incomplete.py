"""Incomplete is incomplete [RFC 9111 §3.3, RFC 9112 §8]."""
import pytest

from play import RESET, ask, reply

A = ask("/a")
MAX = "max-age=60"
WHOLE = b"0123456789"
FRAMINGS = {"Content-Length": {}, "chunked": {"chunked": True}}
ENDS = ["close", "reset"]


def serve(seen):
    """An origin that has WHOLE, and knows ranges with If-Range."""
    wanted = seen.get("Range")
    if not wanted or seen.get("If-Range") not in (None, '"1"'):
        return reply(200, WHOLE, cache_control=MAX, etag='"1"')
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    first, last = int(first), int(last) if last else len(WHOLE) - 1
    return reply(206, WHOLE[first:last + 1], etag='"1"', cache_control=MAX,
        content_range=f"bytes {first}-{last}/{len(WHOLE)}")


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("framing", FRAMINGS)
def test_the_client_sees_it(play, framing, end):
    got = play.exchange(A, reply(200, WHOLE, sends=4, end=end, cache_control=MAX, **FRAMINGS[framing]))
    assert (got.status, got.body, got.complete) == (200, WHOLE[:4], False)
    assert got.closed in ("fin", "rst")


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("tag", [None, '"1"', 'W/"1"'])
def test_the_next_one_gets_the_whole(play, framing, end, tag):
    play.exchange(A, reply(200, WHOLE, sends=4, end=end, cache_control=MAX, etag=tag, **FRAMINGS[framing]))
    got = play.exchange(A, serve)
    assert (got.status, got.body, got.complete, bool(got.seen)) == (200, WHOLE, True, True)
    if tag != '"1"':
        assert got.seen.get("Range") is None  # RFC 9110 §13.1.5: only a strong validator joins
    assert play.exchange(A).body == WHOLE


@pytest.mark.parametrize("end", ENDS)
def test_a_changed_one_is_not_joined(play, end):
    """If-Range: what the origin has now is another."""
    play.exchange(A, reply(200, WHOLE, sends=4, end=end, cache_control=MAX, etag='"1"'))
    got = play.exchange(A, reply(200, "abcdefghij", cache_control=MAX, etag='"2"'))
    assert (got.status, got.body) == (200, b"abcdefghij")
    assert play.exchange(A).body == b"abcdefghij"


@pytest.mark.parametrize("tag", ['"2"', 'W/"1"', None])
def test_a_206_of_another_is_not_joined(play, tag):
    """RFC 9110 §15.3.7.3: parts are combined only under the same strong validator."""
    play.exchange(A, reply(200, WHOLE, sends=4, end="close", cache_control=MAX, etag='"1"'))

    def answer(seen):
        if seen.get("Range"):
            return reply(206, "efghij", etag=tag, content_range="bytes 4-9/10", cache_control=MAX)
        return reply(200, "abcdefghij", etag='"2"', cache_control=MAX)
    got = play.exchange(A, answer)
    assert got.status >= 500 or not got.complete or got.body == b"abcdefghij"
    assert play.exchange(A, answer).body == b"abcdefghij"


def test_completed_by_range(play):
    """RFC 9111 §3.4: what was kept is completed by what is missing."""
    def break_off(seen):  # and have no more for the one who waits
        if seen.get("Range"):
            return reply(503, "")
        return reply(200, WHOLE, sends=4, end="close", cache_control=MAX, etag='"1"', accept_ranges="bytes")
    play.exchange(A, break_off)
    got = play.exchange(A, serve)
    assert (got.seen.get("Range"), got.seen.get("If-Range")) == ("bytes=4-", '"1"')
    assert (got.status, got.body, got.complete) == (200, WHOLE, True)


def test_a_plain_get_stays_plain_until_the_origin_has_shown_that_it_answers_ranges(play):
    """RFC 9110 §14.3: without Accept-Ranges nobody knows."""
    play.exchange(A, reply(200, WHOLE, sends=4, end="close", cache_control=MAX, etag='"1"'))
    got = play.exchange(A, serve)
    assert (got.seen.get("Range"), got.seen.get("If-Range")) == (None, None)
    assert (got.status, got.body, got.complete) == (200, WHOLE, True)


def test_chunked_without_its_end_is_not_whole(play):
    """RFC 9112 §8: all content arrived, the last chunk did not."""
    got = play.exchange(A, reply(200, WHOLE, sends=len(WHOLE), chunked=True, end="close", cache_control=MAX))
    assert (got.body, got.complete) == (WHOLE, False)
    assert play.exchange(A, serve).seen


def test_a_bad_chunk(play):
    head = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n"
    got = play.exchange(A, head + b"4\r\n0123\r\nxyz\r\n")
    assert (got.body, got.complete, got.closed != "") == (b"0123", False, True)
    assert play.exchange(A, serve).body == WHOLE


def test_the_end_of_the_connection_is_an_end(play):
    """RFC 9112 §6.3: without framing the content goes on to the close, and is whole then."""
    got = play.exchange(A, reply(200, WHOLE, length=None, end="close", cache_control=MAX))
    assert (got.body, got.complete) == (WHOLE, True)
    assert play.exchange(A).body == WHOLE


def test_but_a_reset_is_none(play):
    got = play.exchange(A, reply(200, WHOLE, length=None, end="reset", cache_control=MAX))
    assert (got.body, got.complete) == (WHOLE, False)
    assert play.exchange(A, serve).seen


@pytest.mark.parametrize("cut", [0, 10, 17, 40])
@pytest.mark.parametrize("end", ENDS)
def test_a_cut_head(play, cut, end):
    client = play.start(A)
    arrived = play.arrived()
    arrived.answer(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 3\r\n\r\n"[:cut])
    play.settle()
    arrived.connection.close() if end == "close" else arrived.connection.reset()
    again = play.arrived()
    if again:  # nothing of an answer came: asking once more is allowed [RFC 9110 §9.2.2]
        assert cut == 0
        again.answer(RESET)
    assert client.take().status == 502
    assert play.exchange(A, serve).body == WHOLE


def test_more_than_was_announced(play):
    """What follows the content is not part of it, and the connection is not used again [RFC 9112 §6.3]."""
    got = play.exchange(A, reply(200, WHOLE, length="4", cache_control=MAX))
    assert (got.body, got.complete) == (WHOLE[:4], True)
    again = play.exchange(ask("/b"), reply(200, "b"))
    assert (again.body, len(play.replay.dials)) == (b"b", 2)


@pytest.mark.parametrize("lengths", [["10", "11"], ["10, 11"], ["-1"], ["ten"], ["1e1"]])
def test_framing_that_cannot_be_trusted(play, lengths):
    """RFC 9112 §6.3: unrecoverable; a gateway answers 502 and closes."""
    got = play.exchange(A, reply(200, WHOLE, length=lengths[0], fields=[("Content-Length", one) for one in lengths[1:]],
        cache_control=MAX))
    assert got.status == 502
    assert play.exchange(A, serve).body == WHOLE


def test_an_origin_that_stops_in_the_middle(play):
    client = play.start(A)
    play.arrived().answer(reply(200, WHOLE, sends=4, cache_control=MAX))
    assert client.partial.body == WHOLE[:4]
    play.advance(3600)
    assert (client.partial.complete, client.closed != "") == (False, True)
    assert play.exchange(A, serve).body == WHOLE


def test_an_incomplete_one_does_not_replace(play):
    """§4.3.3: what is stored stays until a whole one is there, or is gone: never half."""
    play.exchange(A, reply(200, "the old one", cache_control=MAX, etag='"0"'))
    play.advance(60)
    play.exchange(A, reply(200, WHOLE, sends=4, end="close", cache_control=MAX, etag='"1"'))
    got = play.exchange(A, serve)
    assert (got.body, got.complete, bool(got.seen)) == (WHOLE, True, True)


def test_a_head_request_of_an_incomplete_one(play):
    play.exchange(A, reply(200, WHOLE, sends=4, end="close", cache_control=MAX, etag='"1"'))
    got = play.exchange(ask("/a", "HEAD"), serve)
    assert (got.status, got.get("Content-Length")) == (200, "10")
