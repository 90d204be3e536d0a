"""Ranges [RFC 9110 §14, §15.3.7]: of what is stored, whole or in part, of what arrives, and of what the origin makes of them."""
import email

import pytest

from origin import pattern

SIZE = 100_000


def parts_of(answer):
    """The parts of a multipart/byteranges answer: (Content-Range, Content-Type, content)."""
    assert int(answer.get("Content-Length")) == len(answer.body)
    head = b"Content-Type: " + answer.get("Content-Type").encode() + b"\r\n\r\n"
    message = email.message_from_bytes(head + answer.body)
    assert message.get_content_type() == "multipart/byteranges" and not message.defects
    return [(part["Content-Range"], part["Content-Type"], part.get_payload(decode=True)) for part in message.get_payload()]


def expected_parts(size, *ranges):
    return [(f"bytes {first}-{last}/{size}", "application/octet-stream", pattern(last - first + 1, first))
            for first, last in ranges]


def stored(way, path=f"/static/{SIZE}"):
    target = way.unique(path)
    assert len(way.fetch(target).body) == SIZE
    return target


@pytest.mark.parametrize("value, ranges", [
    ("bytes=0-9,200-299", [(0, 9), (200, 299)]),
    ("bytes=-5, 7-7", [(SIZE - 5, SIZE - 1), (7, 7)]),
    ("bytes=70000-89999,0-0,70010-90009", [(70000, 90009), (0, 0)]),
    ("bytes=" + ",".join(f"{n}000-{n}009" for n in range(64)), [(n * 1000, n * 1000 + 9) for n in range(64)])])
def test_several_ranges(way4, value, ranges):
    target = stored(way4)
    answer = way4.fetch(target, fields={"Range": value})
    assert (answer.status, answer.get("Content-Range"), answer.cache) == (206, None, "hit")
    assert parts_of(answer) == expected_parts(SIZE, *ranges)
    assert (answer.get("ETag"), way4.origin.count(target)) == (f'"s-{SIZE}"', 1)


@pytest.mark.parametrize("value, first, last", [
    ("bytes=10-19,20-29", 10, 29), ("bytes=200000-,5-9", 5, 9), ("bytes=0-,0-,0-", 0, SIZE - 1)])
def test_several_that_come_to_one(way4, value, first, last):
    answer = way4.fetch(stored(way4), fields={"Range": value})
    assert (answer.status, answer.get("Content-Range")) == (206, f"bytes {first}-{last}/{SIZE}")
    assert answer.body == pattern(last - first + 1, first)


@pytest.mark.parametrize("value", ["bytes=0-1,x", "items=0-1", "bytes=5-4", "bytes=" + "0-0," * 65])
def test_no_range_that_counts(way4, value):
    answer = way4.fetch(stored(way4), fields={"Range": value})
    assert (answer.status, answer.body, answer.get("Content-Range")) == (200, pattern(SIZE), None)


def test_unsatisfiable(way4):
    answer = way4.fetch(stored(way4), fields={"Range": f"bytes={SIZE}-,-0"})
    assert (answer.status, answer.get("Content-Range"), answer.body) == (416, f"bytes */{SIZE}", b"")


def test_head_has_no_ranges(way4):
    answer = way4.fetch(stored(way4), "HEAD", fields={"Range": "bytes=0-9,200-209"})
    assert (answer.status, answer.get("Content-Length")) == (200, str(SIZE))


@pytest.mark.parametrize("if_range, status", [
    (f'"s-{SIZE}"', 206), ('"other"', 200), (f'W/"s-{SIZE}"', 200), ("Thu, 01 Jan 2099 00:00:00 GMT", 200)])
def test_if_range(way4, if_range, status):
    answer = way4.fetch(stored(way4), fields={"Range": "bytes=0-9,200-209", "If-Range": if_range})
    assert answer.status == status
