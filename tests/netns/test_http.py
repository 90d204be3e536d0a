"""HTTP/1.1 messages through the gateway: framing, interim responses, Expect, pipelining, limits, truncation."""
import hashlib
import json
import select
import threading

import pytest

from lab import wait_for
from origin import pattern, raw
from peer import Closed, chunked


def echo_of(answer):
    assert answer.status == 200, answer
    return json.loads(answer.body)


# Bodies

@pytest.mark.parametrize("path, size", [("/static/0", 0), ("/static/100000", 100000), ("/static/3000000", 3000000),
    ("/chunked/25000", 25000), ("/close/30000", 30000)])
def test_a_body_of_every_framing_arrives_whole(way, path, size):
    target = way.unique(path)
    for _ in ("from the origin", "and again"):
        answer = way.fetch(target)
        assert (answer.status, answer.complete, answer.body) == (200, True, pattern(size))


@pytest.mark.parametrize("path, method, status", [("/204", "GET", 204), ("/static/1000", "HEAD", 200),
    ("/chunked/1000", "HEAD", 200), ("/204", "OPTIONS", 204), ("/304", "GET", 304)])
def test_messages_without_a_body_leave_the_connection_in_step(way, path, method, status):
    with way.connect() as client:
        client.request(method, way.unique(path), {"Host": way.host, "If-None-Match": '"x"'})
        assert client.read_response(method).status == status
        client.request("GET", way.unique("/static/10"), {"Host": way.host})
        assert client.read_response().body == pattern(10)


def test_head_keeps_the_length(way4):
    assert way4.fetch(way4.unique("/static/1234"), "HEAD").get("Content-Length") == "1234"


@pytest.mark.parametrize("path", ["/static/5000", "/chunked/5000", "/close/5000"])
def test_http_1_0_client(way4, path):
    with way4.connect() as client:
        client.request("GET", way4.unique(path), {"Host": way4.host}, version="HTTP/1.0")
        answer = client.read_response()
        assert answer.body == pattern(5000)
        assert answer.get("Transfer-Encoding") is None
        assert client.ends()


def test_http_1_0_client_that_asks_to_keep_alive(way4):
    with way4.connect() as client:
        for _ in range(2):
            client.request("GET", way4.unique("/static/50"), {"Host": way4.host, "Connection": "keep-alive"},
                version="HTTP/1.0")
            answer = client.read_response()
            assert answer.body == pattern(50)
            if not answer.keeps_open:
                return


def test_http_1_0_origin(way4):
    origin = way4.serve(raw(b"HTTP/1.0 200 OK\r\n\r\nold but whole", "close"))
    answer = way4.fetch("/", to=origin)
    assert (answer.body, answer.complete) == (b"old but whole", True)


def test_trailers_and_extensions_do_not_get_into_the_body(way4):
    target = way4.unique("/chunked/25000")
    answer = way4.fetch(target)
    assert hashlib.sha256(answer.body).digest() == hashlib.sha256(pattern(25000)).digest()


# One connection, many requests

def test_keep_alive(way):
    origin = way.new_origin()
    with way.connect(origin) as client:
        for number in range(5):
            client.request("GET", f"/static/{1000 + number}?d=ETag&h=Cache-Control:no-store", {"Host": "keep.example"})
            assert client.read_response().body == pattern(1000 + number)
    assert (len(origin.requests), origin.connections) == (5, 1)


def test_pipelining(way):
    sizes = [10, 100000, 0, 77, 3000]
    with way.connect() as client:
        for size in sizes:
            client.request("GET", way.unique(f"/static/{size}"), {"Host": way.host})
        assert [len(client.read_response().body) for _ in sizes] == sizes


def test_pipelining_behind_an_upload(way4):
    with way4.connect() as client:
        client.request("POST", way4.unique("/echo"), {"Host": way4.host}, b"a" * 5000)
        client.request("GET", way4.unique("/static/20"), {"Host": way4.host})
        assert echo_of(client.read_response())["length"] == 5000
        assert client.read_response().body == pattern(20)


def test_a_request_that_comes_in_pieces(way4):
    request = f"GET {way4.unique('/static/33')} HTTP/1.1\r\nHost: {way4.host}\r\n\r\n".encode()
    with way4.connect() as client:
        for byte in request:
            client.send(bytes([byte]))
        assert client.read_response().body == pattern(33)


def test_a_client_that_closes_its_half_still_gets_the_answer(way4):
    with way4.connect() as client:
        client.request("GET", way4.unique("/static/500000"), {"Host": way4.host})
        client.half_close()
        assert client.read_response().body == pattern(500000)
        assert client.ends()


# Uploads

@pytest.mark.parametrize("size", [1, 65536, 10_000_000])
def test_upload(way, size):
    body = pattern(size)
    report = echo_of(way.fetch(way.unique("/echo"), "POST", body=body))
    assert (report["length"], report["sha256"]) == (size, hashlib.sha256(body).hexdigest())


def test_chunked_upload(way):
    parts = [pattern(size) for size in (1, 1000, 70000, 3)]
    body = chunked(parts, ";x=y", [("X-Trailer", "1")])
    report = echo_of(way.fetch(way.unique("/echo"), "PUT", {"Transfer-Encoding": "chunked"}, body))
    assert report["sha256"] == hashlib.sha256(b"".join(parts)).hexdigest()


def test_an_upload_is_not_buffered_whole(way4):
    def read_head_then_wait(peer, _):
        peer.read_until(b"\r\n\r\n")
        released.wait(10)
    released = threading.Event()
    origin = way4.serve(read_head_then_wait)
    before = way4.daemon.rss_bytes()
    size = 256 << 20
    with way4.connect(origin) as client:
        client.request("POST", "/", {"Host": "up.example", "Content-Length": str(size)})
        client.socket.setblocking(False)
        sent = 0
        while sent < size and select.select([], [client.socket], [], 0.3)[1]:
            sent += client.socket.send(bytes(262144))
        assert sent < size / 2, "nothing held the client back"
        assert way4.daemon.rss_bytes() - before < 8 << 20
        released.set()


def test_early_final_response_during_an_upload(way):
    with way.connect() as client:
        client.request("POST", way.unique("/early-final"), {"Host": way.host, "Content-Length": "2000000"})
        client.send(pattern(1000))
        answer = client.read_response()
        assert (answer.status, answer.body) == (200, b"early")


# Interim responses and Expect

def test_interim_responses_are_relayed(way):
    answer = way.fetch(way.unique("/interim"))
    assert [interim.status for interim in answer.interims] == [100, 102, 103]
    assert answer.interims[2].get("Link") and answer.body == b"final"


def test_expect_with_an_origin_that_takes_its_time(way):
    target, body = way.unique("/expect-delay"), pattern(20000)
    with way.connect() as client:
        client.request("POST", target, {"Host": way.host, "Expect": "100-continue", "Content-Length": len(body)})
        wait_for(lambda: way.origin.count(target), what="the request's head at the origin")
        assert not select.select([client.socket], [], [], 0.1)[0], "an answer before the origin gave one"
        way.origin.release(target)
        assert client.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 100")
        client.send(body)
        assert echo_of(client.read_response())["sha256"] == hashlib.sha256(body).hexdigest()


def test_expect_of_a_client_that_does_not_wait(way):
    target = way.unique("/expect-delay")
    way.origin.release(target)
    answer = way.fetch(target, "POST", {"Expect": "100-continue"}, pattern(20000))
    assert echo_of(answer)["length"] == 20000


@pytest.mark.parametrize("status", [417, 413])
def test_expect_refused(way, status):
    with way.connect() as client:
        client.request("POST", way.unique(f"/expect-refuse/{status}"),
            {"Host": way.host, "Expect": "100-continue", "Content-Length": "100000"})
        answer = client.read_response()
        assert (answer.status, answer.body, answer.interims) == (status, b"refused", [])


# What may not pass

def test_hop_by_hop_fields_stop_here(way):
    report = echo_of(way.fetch(way.unique("/echo"), fields={"Connection": "close, X-Mine", "X-Mine": "1",
        "Keep-Alive": "5", "TE": "gzip", "Proxy-Connection": "keep-alive", "X-Other": "stays"}))
    arrived = {name.lower(): value for name, value in report["fields"]}
    assert "x-other" in arrived and "gzip" not in arrived.get("te", "")
    assert not set(arrived) & {"x-mine", "keep-alive", "proxy-connection"}
    answer = way.fetch(way.unique("/static/10?h=Connection:X-Mine&h=X-Mine:1&h=Keep-Alive:5&h=X-Other:stays"))
    assert (answer.get("X-Mine"), answer.get("Keep-Alive"), answer.get("X-Other")) == (None, None, "stays")


def test_via_both_ways(way):
    answer = way.fetch(way.unique("/echo"))
    vias = [value for name, value in echo_of(answer)["fields"] if name.lower() == "via"]
    assert vias and vias[0].startswith("1.1 weir")
    assert answer.get("Via").startswith("1.1 weir")


def test_a_loop_is_answered_at_the_first_repeat(way):
    via = way.fetch(way.unique("/static/1")).get("Via")
    target = way.unique("/static/10")
    answer = way.fetch(target, fields={"Via": f"1.0 fred, {via}"})
    assert answer.status >= 400
    assert way.origin.count(target) == 0
    assert way.entry(target)["result"] == "LOOP"


def test_connect_is_not_for_intercepted_ports(way):
    with way.connect() as client:
        client.send(b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")
        assert client.read_response().status == 405


@pytest.mark.parametrize("head, status", [
    (b"GET / HTTP/1.1\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    (b"GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
    (b"GET / HTTP/2.7\r\nHost: a\r\n\r\n", 505),
    (b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
    (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 200 + b"\r\n", 431),
    (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 70000 + b"\r\n\r\n", 431),
], ids=["no Host", "two Hosts", "target against Host", "Host with a blank", "length and chunked", "coding",
    "version", "long target", "many fields", "long head"])
def test_what_is_refused_and_how(way4, head, status):
    origin = way4.new_origin()
    with way4.connect(origin) as client:
        client.send(head)
        answer = client.read_response()
        assert (answer.status, answer.complete) == (status, True)
        assert client.ends()
    assert origin.requests == []


# Cut short, and too long

@pytest.mark.parametrize("path", ["/truncate/100000", "/truncate-reset/100000", "/truncate-chunked/9000",
    "/stall-body/100000"])
def test_cut_short_stays_cut_short_and_is_not_stored(way, path):
    target = way.unique(path)
    for _ in range(2):
        assert not way.fetch(target).complete
    assert way.origin.count(target) == 2


@pytest.mark.parametrize("path", ["/truncate/100000", "/truncate-chunked/9000"])
def test_an_http_1_0_client_sees_it_too(way4, path):
    with way4.connect() as client:
        client.request("GET", way4.unique(path), {"Host": way4.host}, version="HTTP/1.0")
        assert not client.read_response().complete


def test_bytes_after_a_complete_response_poison_nothing(way):
    origin = way.new_origin()
    with way.connect(origin) as client:
        client.request("GET", "/surplus", {"Host": "surplus.example"})
        assert client.read_response().body == b"whole"
        client.request("GET", "/static/30", {"Host": "surplus.example"})
        assert client.read_response().body == pattern(30)
    assert way.fetch("/static/31", to=origin).body == pattern(31)


@pytest.mark.parametrize("response", [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    b"SIP/2.0 200 OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70000 + b"\r\n\r\n",
], ids=["two lengths", "length and chunked", "negative", "another protocol", "long head"])
def test_an_ambiguous_response_is_a_502(way4, response):
    origin = way4.serve(raw(response, "close"))
    answer = way4.fetch("/", to=origin)
    assert (answer.status, answer.complete) == (502, True)


def test_a_reset_instead_of_an_answer_is_a_502(way):
    assert way.fetch(way.unique("/reset")).status == 502


def test_a_silent_client_is_let_go(way4):
    """A head that never ends gets 408 or the end of the connection at its deadline."""
    with way4.connect() as client:
        client.send(b"GET / HTTP/1.1\r\nHost: slow")
        try:
            assert client.read_response().status == 408
        except Closed:
            pass
        assert client.ends()
