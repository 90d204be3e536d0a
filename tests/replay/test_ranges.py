"""Ranges [RFC 9110 §14], from a whole response and from parts [RFC 9111 §3.3, §3.4]."""
import email.parser
import re

import pytest

from play import ask, reply

MAX = "max-age=60"
WHOLE = b"".join(b"%04d-" % place for place in range(0, 2000, 5))  # each place tells where it is
SIZE = len(WHOLE)
A = ask("/a")
OLD = "Wed, 31 Dec 2025 00:00:00 GMT"


def part(first, last, **named):
    named = {"etag": '"1"', "cache_control": MAX} | named
    return reply(206, WHOLE[first:last + 1], content_range=f"bytes {first}-{last}/{SIZE}", **named)


def serve(seen):
    """An origin that has WHOLE and knows single ranges and If-Range."""
    wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", seen.get("Range") or "")
    if not wanted or seen.get("If-Range") not in (None, '"1"'):
        return reply(200, WHOLE, cache_control=MAX, etag='"1"')
    if not wanted[1]:
        return part(SIZE - int(wanted[2]), SIZE - 1)
    return part(int(wanted[1]), min(int(wanted[2] or SIZE), SIZE - 1))


def store(play, **named):
    play.exchange(A, reply(200, WHOLE, **({"cache_control": MAX, "etag": '"1"'} | named)))


def check_part(got):
    """A 206 is what its Content-Range says it is."""
    first, last, size = map(int, re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", got.get("Content-Range")).groups())
    assert (got.body, size, got.complete) == (WHOLE[first:last + 1], SIZE, True)
    return first, last


# ---- from a whole response ----

@pytest.mark.parametrize("wanted, expected", [("0-0", (0, 0)), ("0-9", (0, 9)), ("10-", (10, SIZE - 1)),
    ("-5", (SIZE - 5, SIZE - 1)), ("-3000", (0, SIZE - 1)), ("1990-5000", (1990, SIZE - 1)), ("1999-1999", (1999, 1999))])
def test_single(play, wanted, expected):
    """§14.1.2."""
    store(play)
    play.advance(7)
    got = play.exchange(ask("/a", range=f"bytes={wanted}"))
    assert (got.status, check_part(got), got.age, got.get("ETag")) == (206, expected, 7, '"1"')


@pytest.mark.parametrize("wanted", ["2000-", "2000-2010", "9000-", "-0"])
def test_unsatisfiable(play, wanted):
    """§15.5.17: 416, and how long it is."""
    store(play)
    got = play.exchange(ask("/a", range=f"bytes={wanted}"))
    assert (got.status, got.get("Content-Range")) == (416, f"bytes */{SIZE}")


@pytest.mark.parametrize("wanted", ["bytes=5-4", "bytes=a-b", "bytes=", "bytes=1", "lines=0-5", "bytes 0-5", "0-5"])
def test_invalid_is_ignored(play, wanted):
    """§14.2: a range that is malformed, or of an unknown unit, may be ignored."""
    store(play)
    got = play.exchange(ask("/a", range=wanted))
    assert (got.status, got.body) in [(200, WHOLE), (416, got.body)]
    if wanted.startswith("lines"):
        assert got.status == 200  # MUST


def test_only_of_a_get(play):
    """§14.2: MUST ignore it with other methods."""
    store(play)
    got = play.exchange(ask("/a", "HEAD", range="bytes=0-9"))
    assert (got.status, got.get("Content-Length"), got.get("Content-Range")) == (200, str(SIZE), None)


# §13.1.5: the whole one unless the condition says that it is the same; only strong validators say so.
IF_RANGE = {
    "equal": ({}, '"1"', 206),
    "other": ({}, '"2"', 200),
    "weak in the request": ({}, 'W/"1"', 200),
    "weak in the store": ({"etag": 'W/"1"'}, 'W/"1"', 200),
    "date equal": ({"last_modified": OLD}, OLD, 206),
    "date later": ({"last_modified": OLD}, "Wed, 31 Dec 2025 12:00:00 GMT", 200),
    "date earlier": ({"last_modified": OLD}, "Tue, 30 Dec 2025 00:00:00 GMT", 200),
    "date of none": ({}, OLD, 200),
    "garbage": ({}, "1", 200),
}


@pytest.mark.parametrize("name", IF_RANGE)
def test_if_range(play, name):
    stored, condition, status = IF_RANGE[name]
    store(play, **stored)
    got = play.exchange(ask("/a", range="bytes=0-9", if_range=condition))
    assert (got.status, got.body) == (status, WHOLE[:10] if status == 206 else WHOLE)


def test_a_condition_comes_before_the_range(play):
    """§13.2.2."""
    store(play)
    assert play.exchange(ask("/a", range="bytes=0-9", if_none_match='"1"')).status == 304
    assert play.exchange(ask("/a", range="bytes=0-9", if_none_match='"2"')).status == 206


def parts_of(got):
    """[(first, last)] of a multipart/byteranges [§14.6], each checked."""
    head = f"Content-Type: {got.get('Content-Type')}\r\n\r\n".encode()
    message = email.parser.BytesParser().parsebytes(head + got.body)
    found = []
    for one in message.get_payload():
        first, last, size = map(int, re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", one["Content-Range"]).groups())
        assert (one.get_payload(decode=True), size) == (WHOLE[first:last + 1], SIZE)
        found.append((first, last))
    return found


def test_several(play):
    store(play, content_type="text/x")
    got = play.exchange(ask("/a", range="bytes=0-4, 500-509,-5"))
    assert (got.status, got.get("Content-Type").split(";")[0]) == (206, "multipart/byteranges")
    assert parts_of(got) == [(0, 4), (500, 509), (1995, 1999)] and got.get("Content-Range") is None


def test_overlapping_ones_are_coalesced(play):
    """§15.3.7.2: MAY; §14.2 warns of what is asked to hurt: never more than there is."""
    store(play, content_type="text/x")
    got = play.exchange(ask("/a", range="bytes=" + ",".join(["0-"] * 50)))
    assert got.status in (200, 206) and len(got.body) < 2 * SIZE + 500


def test_of_several_the_one_that_is_there(play):
    store(play)
    got = play.exchange(ask("/a", range="bytes=0-4, 9000-9010"))
    assert got.status == 206
    assert (check_part(got) if got.get("Content-Range") else parts_of(got)[0]) == (0, 4)


# ---- what is not stored ----

def test_a_206_is_stored_as_what_it_is(play):
    """§3.3."""
    first = play.exchange(ask("/a", range="bytes=0-9"), part(0, 9))
    assert first.seen.get("Range") == "bytes=0-9" and check_part(first) == (0, 9)
    assert check_part(play.exchange(ask("/a", range="bytes=0-9"))) == (0, 9)
    assert check_part(play.exchange(ask("/a", range="bytes=2-5"))) == (2, 5)


@pytest.mark.parametrize("control", ["no-store", MAX])
def test_a_206_goes_through_as_it_came(play, control):
    got = play.exchange(ask("/a", range="bytes=50-59"), part(50, 59, cache_control=control))
    assert got.status == 206 and check_part(got) == (50, 59)


def test_a_part_is_not_the_whole(play):
    play.exchange(ask("/a", range="bytes=0-9"), part(0, 9))
    got = play.exchange(A, serve)
    assert (got.status, got.body, got.get("Content-Range"), got.get("Content-Length")) == (200, WHOLE, None, str(SIZE))
    assert play.exchange(A).body == WHOLE


def test_parts_are_joined(play):
    """§3.4, RFC 9110 §15.3.7.3: under one strong validator."""
    for first, last in ((0, 49), (50, SIZE - 1)):
        play.exchange(ask("/a", range=f"bytes={first}-{last}"), part(first, last))
    assert check_part(play.exchange(ask("/a", range="bytes=40-59"))) == (40, 59)
    got = play.exchange(A)
    assert (got.status, got.body, got.get("Content-Range")) == (200, WHOLE, None)


@pytest.mark.parametrize("tags", [('W/"1"', 'W/"1"'), ('"1"', '"2"'), (None, None)], ids=["weak", "other", "none"])
def test_parts_that_may_not_be_joined(play, tags):
    play.exchange(ask("/a", range="bytes=0-49"), part(0, 49, etag=tags[0]))
    play.exchange(ask("/a", range="bytes=50-1999"), part(50, 1999, etag=tags[1]))
    got = play.exchange(A, lambda seen: reply(200, WHOLE, etag='"3"', cache_control=MAX))
    assert (got.body, bool(got.seen)) == (WHOLE, True)


def test_a_missing_part_alone_is_asked_for(play):
    """§3.4: a partial response completed by a range with If-Range."""
    play.exchange(ask("/a", range="bytes=0-49"), part(0, 49))
    got = play.exchange(A, serve)
    assert (got.seen.get("Range"), got.seen.get("If-Range")) == ("bytes=50-", '"1"')
    assert (got.status, got.body) == (200, WHOLE)


def test_a_stale_part(play):
    play.exchange(ask("/a", range="bytes=0-9"), part(0, 9))
    play.advance(60)
    got = play.exchange(ask("/a", range="bytes=0-9"), serve)
    assert bool(got.seen) and check_part(got) == (0, 9)


@pytest.mark.parametrize("control", ["no-store", "private", "max-age=0"])
def test_a_206_that_may_not_be_reused(play, control):
    play.exchange(ask("/a", range="bytes=0-9"), part(0, 9, cache_control=control, etag=None))
    assert play.exchange(ask("/a", range="bytes=0-9"), serve).seen


def test_the_origin_answers_with_the_whole(play):
    """§14.2: it may ignore the range; the client gets right bytes, and the whole is kept."""
    got = play.exchange(ask("/a", range="bytes=0-9"), reply(200, WHOLE, cache_control=MAX, etag='"1"'))
    assert got.status in (200, 206)
    assert got.body == WHOLE if got.status == 200 else check_part(got) == (0, 9)
    assert play.exchange(A).body == WHOLE


@pytest.mark.parametrize("content_range", ["bytes 10-19/2000", "bytes 0-4/2000", "bytes 0-9/5", "bytes 9-0/2000", "0-9/2000",
    "bytes 0-99/2000", None])
def test_another_range_than_asked(play, content_range):
    """§15.3.7, §14.4: right bytes, labelled so, or a clear 502; nothing wrong is stored."""
    got = play.exchange(ask("/a", range="bytes=0-9"), reply(206, WHOLE[10:20], content_range=content_range, etag='"1"',
        cache_control=MAX))
    if got.status != 502 and got.complete:
        assert (got.status, got.get("Content-Range"), got.body) == (206, "bytes 10-19/2000", WHOLE[10:20])
    again = play.exchange(ask("/a", range="bytes=0-9"), serve)
    assert again.seen and check_part(again) == (0, 9)
    assert play.exchange(A, serve).body == WHOLE


def test_a_206_nobody_asked_for(play):
    """Without a Range it answers nothing [RFC 9110 §15.3.7]."""
    got = play.exchange(A, part(0, 9))
    assert got.status in (206, 502)
    assert play.exchange(A, serve).body == WHOLE


def test_a_416_of_the_origin_is_not_the_resource(play):
    got = play.exchange(ask("/a", range="bytes=9000-"), reply(416, "no", content_range=f"bytes */{SIZE}"))
    assert (got.status, got.get("Content-Range")) == (416, f"bytes */{SIZE}")
    assert play.exchange(A, serve).body == WHOLE


def test_a_stale_whole_and_a_range(play):
    """Our condition confirms the whole; the range is cut from it."""
    store(play)
    play.advance(60)
    got = play.exchange(ask("/a", range="bytes=0-9"), lambda seen: reply(304, etag='"1"', cache_control=MAX)
        if seen.get("If-None-Match") == '"1"' else serve(seen))
    assert (got.status, check_part(got)) == (206, (0, 9))


def test_waiting_ranges(play):
    """Several clients with ranges of what is just arriving: right bytes each."""
    clients = [play.start(A)] + [play.start(ask("/a", range=f"bytes={first}-{first + 9}")) for first in (0, 50, 990)]
    while arrived := play.arrived():
        arrived.answer(serve(arrived))
    got = [client.take() for client in clients]
    assert got[0].body == WHOLE
    for one in got[1:]:
        assert one.status == 200 and one.body == WHOLE or check_part(one)
