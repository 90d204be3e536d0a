"""Ranges [RFC 9110 §14, §15.3.7]: of what is stored, whole or in part, of what arrives, and of what the origin makes of them."""
import email
import email.utils
import threading

import pytest

from lab import wait_for
from origin import pattern, wait_sent

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


# Stored in part [RFC 9111 §3.3, §3.4]

def part(way, target, first, last, **options):
    answer = way.fetch(target, fields={"Range": f"bytes={first}-{last}"}, **options)
    assert (answer.status, answer.get("Content-Range")) == (206, f"bytes {first}-{last}/{SIZE}")
    assert (answer.body, answer.get("Content-Length")) == (pattern(last - first + 1, first), str(last - first + 1))
    return answer


def asked(origin, target):
    return [(request.get("Range"), request.get("If-Range")) for request in origin.seen(target)]


def test_a_part_serves_what_lies_within_it(way):
    target = way.unique(f"/static/{SIZE}")
    assert part(way, target, 1000, 1999).cache != "hit"
    assert part(way, target, 1000, 1999).cache == "hit"
    answer = way.fetch(target, fields={"Range": "bytes=1990-1999,1000-1009"})
    assert parts_of(answer) == expected_parts(SIZE, (1990, 1999), (1000, 1009))
    assert int(part(way, target, 1500, 1500).get("Age")) >= 0
    assert asked(way.origin, target) == [("bytes=1000-1999", None)]
    assert part(way, target, 1500, 2500).cache != "hit"
    assert part(way, target, 1000, 2500).cache == "hit"


@pytest.mark.parametrize("value", [f"bytes={SIZE - 10}-", "bytes=-10"])
def test_open_and_suffix_ranges_are_stored(way4, value):
    target = way4.unique(f"/static/{SIZE}")
    for result in ("miss", "hit"):
        answer = way4.fetch(target, fields={"Range": value})
        assert (answer.status, answer.body, answer.cache == "hit") == (206, pattern(10, SIZE - 10), result == "hit")
    assert part(way4, target, SIZE - 5, SIZE - 1).cache == "hit"


def test_parts_make_a_whole(way):
    target = way.unique(f"/static/{SIZE}")
    for first in (50_000, 0, 75_000, 25_000):
        part(way, target, first, first + 24_999)
    answer = way.fetch(target)
    assert (answer.status, answer.body, answer.cache) == (200, pattern(SIZE), "hit")
    assert way.origin.count(target) == 4


def test_the_rest_is_asked_for(way):
    target = way.unique(f"/static/{SIZE}")
    part(way, target, 0, 29_999)
    answer = way.fetch(target)
    assert (answer.status, answer.body, answer.get("Content-Range")) == (200, pattern(SIZE), None)
    assert asked(way.origin, target) == [("bytes=0-29999", None), ("bytes=30000-", f'"s-{SIZE}"')]
    assert way.fetch(target).cache == "hit"


def test_without_a_strong_validator_nothing_is_joined(way4):
    target = way4.unique(f"/static/{SIZE}?d=ETag&d=Last-Modified")
    part(way4, target, 0, 999)
    assert part(way4, target, 0, 999).cache == "hit"
    part(way4, target, 1000, 1999)
    assert part(way4, target, 0, 999).cache != "hit"
    assert way4.fetch(target).body == pattern(SIZE)
    assert asked(way4.origin, target)[-1] == (None, None)


def test_a_stale_part_is_confirmed(way4):
    target = way4.unique(f"/static/{SIZE}?h=Cache-Control:max-age=0")
    part(way4, target, 1000, 1999)
    part(way4, target, 1100, 1200)
    requests = way4.origin.seen(target)
    assert [request.get("If-None-Match") for request in requests] == [None, f'"s-{SIZE}"']
    assert requests[1].get("Range") is None


# Incomplete is incomplete

class Breaking:
    """An origin that breaks its first answer off after `cut` bytes, and is told what to do from the second on."""

    def __init__(self, cut, then="range", etag='"a"', etag_then=None, accept="bytes", how="close", chunked=False):
        self.cut, self.then, self.how, self.chunked = cut, then, how, chunked
        self.etag, self.etag_then, self.accept = etag, etag_then or etag, accept
        self.requests = []

    def __call__(self, peer, _):
        while (request := peer.read_request_head()) and request.start:
            self.requests.append(request)
            if not self.answer(peer, request):
                return

    def fields(self, etag, **more):
        fields = {"Cache-Control": "max-age=3600", "Content-Type": "application/octet-stream", "Date": NOW()}
        fields.update({"ETag": etag} if etag else {})
        fields.update({"Accept-Ranges": self.accept} if self.accept else {})
        return {**fields, **more}

    def answer(self, peer, request):
        if len(self.requests) == 1:
            body = pattern(self.cut)
            if self.chunked:
                fields, body = {"Transfer-Encoding": "chunked"}, b"%x\r\n%s\r\n" % (len(body), body)
            else:
                fields = {"Content-Length": SIZE}
            peer.respond("200 OK", self.fields(self.etag, **fields), body)
            wait_sent(peer)
            if self.how == "reset":
                peer.reset()
            return False
        value = request.get("Range")
        if value is None or self.then == "whole":
            peer.respond("200 OK", self.fields(self.etag_then, **{"Content-Length": SIZE}), pattern(SIZE))
        elif self.then == "416":
            peer.respond("416 No", self.fields(self.etag_then, **{"Content-Length": 0, "Content-Range": f"bytes */{self.cut}"}))
        else:
            first = int(value[6:].rstrip("-")) + (1 if self.then == "other" else 0)
            peer.respond("206 Partial Content", self.fields(self.etag_then, **{"Content-Length": SIZE - first,
                "Content-Range": f"bytes {first}-{SIZE - 1}/{SIZE}"}), pattern(SIZE - first, first))
        return True


def NOW():
    return email.utils.formatdate(usegmt=True)


def ask(way, service, **options):
    return way.fetch("/x", to=service, host="origin.example", **options)


def asked_of(script):
    return [(request.get("Range"), request.get("If-Range")) for request in script.requests]


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_broken_answer_is_completed(way, how):
    """For the client that reads it, too; then it is whole."""
    script = Breaking(40_000, how=how)
    service = way.serve(script)
    for result in ("miss", "hit"):
        answer = ask(way, service)
        assert (answer.status, answer.body, answer.cache == "hit") == (200, pattern(SIZE), result == "hit")
        assert answer.get("Content-Length") == str(SIZE)
    answer = ask(way, service, fields={"Range": "bytes=39900-40099"})
    assert (answer.status, answer.body, answer.cache) == (206, pattern(200, 39_900), "hit")
    assert asked_of(script) == [(None, None), ("bytes=40000-", '"a"')]


@pytest.mark.parametrize("options, is_resumed", [
    ({"then": "whole", "etag_then": '"b"'}, True), ({"then": "416"}, True), ({"then": "other"}, True),
    ({"then": "range", "etag_then": '"b"'}, True), ({"then": "range", "etag_then": 'W/"a"'}, True),
    ({"etag": 'W/"a"'}, False), ({"etag": None}, False), ({"accept": "none"}, False), ({"chunked": True}, False)])
def test_right_bytes_in_the_end(way4, options, is_resumed):
    """What cannot be completed is cut, and seen to be; the next client gets the whole."""
    script = Breaking(40_000, **options)
    service = way4.serve(script)
    answer = ask(way4, service)
    assert (answer.complete, answer.body) == (False, pattern(40_000))
    assert asked_of(script) == [(None, None)] + [("bytes=40000-", '"a"')] * is_resumed
    answer = ask(way4, service)
    assert (answer.status, answer.body) == (200, pattern(SIZE))
    assert is_resumed or asked_of(script) == [(None, None)] * 2
    assert len(script.requests) <= 4


def test_a_client_that_leaves_leaves_a_part(way4):
    size = 4_000_000
    target = way4.unique(f"/held/{size}?h=Accept-Ranges:bytes")
    with way4.connect() as client:
        client.request("GET", target, [("Host", way4.host)])
        client.read_until(b"\r\n\r\n")
        while len(client.buffer) < size // 4:
            client.more()
    wait_for(lambda: way4.daemon.entries() and any(e["url"].endswith(target) for e in way4.daemon.entries()), what="its line")
    answer = way4.fetch(target, fields={"Range": "bytes=0-99"})
    assert (answer.status, answer.body, answer.cache, way4.origin.count(target)) == (206, pattern(100), "hit", 1)
    way4.origin.release(target)


# What the origin makes of a range

def ranged(answer_with):
    def handler(peer, _):
        while (request := peer.read_request_head()) and request.start:
            status, fields, body = answer_with(request)
            peer.respond(status, {"Cache-Control": "max-age=60", "Date": NOW(), **fields}, body)
    return handler


def ask_once(way, fields, body, status="206 Partial Content", value="bytes=10-19"):
    service = way.serve(ranged(lambda request: (status, fields, body)))
    return way.fetch("/r", to=service, host="r.example", fields={"Range": value}), service


def test_an_origin_without_ranges(way):
    answer, service = ask_once(way, {"Content-Length": SIZE}, pattern(SIZE), status="200 OK")
    assert (answer.status, answer.body) == (206, pattern(10, 10))
    assert answer.get("Content-Range") == f"bytes 10-19/{SIZE}"


def test_an_origin_without_ranges_fills_the_store(way4):
    service = way4.serve(ranged(lambda request: ("200 OK", {"Content-Length": 5000}, pattern(5000))))
    for value, first in (("bytes=4990-", 4990), ("bytes=0-9", 0)):
        answer = way4.fetch("/r", to=service, host="r.example", fields={"Range": value})
        assert (answer.status, answer.body) == (206, pattern(10, first))
    answer = way4.fetch("/r", to=service, host="r.example")
    assert (answer.body, answer.cache) == (pattern(5000), "hit")


def test_an_origin_without_ranges_or_length(way4):
    answer, _ = ask_once(way4, {"Transfer-Encoding": "chunked"}, b"5\r\nwhole\r\n0\r\n\r\n", "200 OK", "bytes=0-4")
    assert answer.status in (200, 206) and answer.body == b"whole"  # by whether it was over before it was looked at


@pytest.mark.parametrize("fields, body", [
    ({"Content-Range": "bytes 0-9/100", "Content-Length": 10}, pattern(10)),
    ({"Content-Range": "bytes 20-29/100", "Content-Length": 10}, pattern(10, 20)),
    ({"Content-Range": "bytes 10-19/100", "Content-Length": 9}, pattern(9, 10)),
    ({"Content-Range": "bytes 10-19/100", "Content-Length": 11}, pattern(11, 10)),
    ({"Content-Range": "bytes 10-19/15", "Content-Length": 10}, pattern(10, 10)),
    ({"Content-Range": "bytes ten-twenty", "Content-Length": 10}, pattern(10, 10)),
    ({"Content-Length": 10}, pattern(10, 10))])
def test_another_range_is_a_bad_gateway(way4, fields, body):
    answer, service = ask_once(way4, fields, body)
    assert answer.status == 502
    wait_for(lambda: any(entry["destination"] == f"{service.address}:80" and entry["reason"] == "bad-range"
            for entry in way4.daemon.entries()), what="bad-range in the log")


@pytest.mark.parametrize("fields, body, expected", [
    ({"Content-Range": "bytes 10-19/100", "Content-Length": 10}, pattern(10, 10), (10, 19)),
    ({"Content-Range": "bytes 10-14/100", "Content-Length": 5}, pattern(5, 10), (10, 14)),  # less, as it may
    ({"Content-Range": "bytes 0-99/100", "Content-Length": 100}, pattern(100), (10, 19)),   # more around
    ({"Content-Range": "bytes 5-24/100", "Transfer-Encoding": "chunked"}, b"14\r\n%s\r\n0\r\n\r\n" % pattern(20, 5), (10, 19)),
    ({"Content-Range": "bytes 10-19/100", "Transfer-Encoding": "chunked"}, b"a\r\n%s\r\n0\r\n\r\n" % pattern(10, 10), (10, 19))])
def test_the_right_bytes_of_a_206(way4, fields, body, expected):
    answer, _ = ask_once(way4, fields, body)
    first, last = expected
    assert (answer.status, answer.get("Content-Range")) == (206, f"bytes {first}-{last}/100")
    assert answer.body == pattern(last - first + 1, first)


@pytest.mark.parametrize("sent", [5, 15])
def test_a_chunked_206_of_another_length_is_cut(way4, sent):
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (sent, pattern(sent, 10))
    service = way4.serve(ranged(lambda request: ("206 P", {"Content-Range": "bytes 10-19/100", "Transfer-Encoding": "chunked"}, body)))
    with way4.connect(service) as client:
        client.request("GET", "/r", [("Host", "r.example"), ("Range", "bytes=10-19"), ("Connection", "close")])
        received = client.read_to_end()
    content = bytes(received).split(b"\r\n\r\n", 1)[1]
    assert content == pattern(min(sent, 10), 10)


def test_a_range_of_unknown_length_is_passed_on(way4):
    fields = {"Content-Range": "bytes 10-19/*", "Content-Length": 10}
    answer, service = ask_once(way4, fields, pattern(10, 10))
    assert (answer.status, answer.get("Content-Range"), answer.body) == (206, "bytes 10-19/*", pattern(10, 10))


def test_several_ranges_of_the_origin_are_passed_on(way4):
    body = (b"--x\r\nContent-Range: bytes 0-0/100\r\n\r\na\r\n"
            b"--x\r\nContent-Range: bytes 50-50/100\r\n\r\nb\r\n--x--\r\n")
    fields = {"Content-Type": "multipart/byteranges; boundary=x", "Content-Length": len(body)}
    service = way4.serve(ranged(lambda request: ("206 P", fields, body)))
    for _ in range(2):
        answer = way4.fetch("/r", to=service, host="r.example", fields={"Range": "bytes=0-0,50-50"})
        assert (answer.status, answer.body, answer.cache == "hit") == (206, body, False)


def test_a_416_is_not_for_others(way4):
    def answer_with(request):
        if request.get("Range"):
            return "416 No", {"Content-Range": "bytes */10", "Content-Length": 0}, b""
        return "200 OK", {"Content-Length": 10}, pattern(10)
    service = way4.serve(ranged(answer_with))
    assert way4.fetch("/r", to=service, host="r.example", fields={"Range": "bytes=10-"}).status == 416
    assert way4.fetch("/r", to=service, host="r.example").body == pattern(10)


# While it arrives

def test_a_range_of_what_arrives(way4):
    size = 400_000
    target = way4.unique(f"/held/{size}")
    first = Fetcher(way4, target)
    first.start()
    wait_for(lambda: way4.origin.count(target) == 1, what="the origin to be asked")
    head = way4.fetch(target, fields={"Range": "bytes=1000-1009"})
    assert (head.status, head.body) == (206, pattern(10, 1000))
    tails = [Fetcher(way4, target, {"Range": value}) for value in (f"bytes={size - 10}-", "bytes=-5,0-4")]
    for tail in tails:
        tail.start()
    way4.origin.release(target)
    for one in (first, *tails):
        one.join(20)
    assert first.answer.body == pattern(size)
    assert tails[0].answer.body == pattern(10, size - 10)
    assert sorted(parts_of(tails[1].answer)) == expected_parts(size, (0, 4), (size - 5, size - 1))
    assert way4.origin.count(target) == 1


def test_the_same_range_at_once_is_asked_for_once(way4):
    target = way4.unique(f"/late/{SIZE}")
    crowd = [Fetcher(way4, target, {"Range": "bytes=500-599"}) for _ in range(6)]
    for one in crowd:
        one.start()
    wait_for(lambda: way4.origin.count(target) == 1, what="the origin to be asked")
    way4.origin.release(target)
    for one in crowd:
        one.join(20)
        assert (one.answer.status, one.answer.body) == (206, pattern(100, 500))
    assert way4.origin.count(target) == 1


class Fetcher(threading.Thread):
    def __init__(self, way, target, fields=()):
        super().__init__(daemon=True)
        self.way, self.target, self.fields = way, target, fields

    def run(self):
        self.answer = self.way.fetch(self.target, fields=self.fields)


# Clients that use ranges

def curl(way, target, *arguments):
    url = f"http://{way.host}{target}"
    return way.lab.lan.run("curl", "-sS", "--fail", "--max-time", "20", *arguments, url)


def test_curl_goes_on(way4, tmp_path):
    target = way4.unique(f"/static/{SIZE}")
    file = tmp_path / "file"
    curl(way4, target, "-r", "0-29999", "-o", file)
    assert file.read_bytes() == pattern(30_000)
    curl(way4, target, "-C", "-", "-o", file)
    assert file.read_bytes() == pattern(SIZE)
    again = tmp_path / "again"
    curl(way4, target, "-o", again)
    assert again.read_bytes() == pattern(SIZE)
    assert [value for value, _ in asked(way4.origin, target)] == ["bytes=0-29999", "bytes=30000-"]


def test_aria2_then_a_whole(way4, tmp_path):
    size = 8_000_000
    target = way4.unique(f"/static/{size}?h=Content-Disposition:attachment")
    url = f"http://{way4.host}{target}"
    for name in ("first", "second"):
        way4.lab.lan.run("aria2c", "-q", "-x4", "-s4", "-k1M", "--async-dns=false", "--file-allocation=none",
                "-d", str(tmp_path), "-o", name, url)
        assert (tmp_path / name).read_bytes() == pattern(size)
        if name == "first":  # a fetch may still be fetching the rest
            wait_for(lambda: way4.fetch(target, "HEAD").cache == "hit", what="the whole to be stored")
            before = way4.origin.count(target)
    assert way4.origin.count(target) == before
