"""Hostile clients and hostile origins: what each of them could break once."""
import contextlib
import socket
import threading
import time

import pytest

import chaos
import lab as lab_module
from lab import Lab, wait_for
from origin import pattern, wait_sent
from peer import Closed, chunked, head_bytes
from way import DEFAULT_CONFIG, Way

CONFIG = """\
block ads.example
maximum_object_size 100K
client_connections_per_host 60
"""


def begin_request(client, method, target, host, fields=()):
    client.send(head_bytes(f"{method} {target} HTTP/1.1", [("Host", host), *fields]))


# The request body

def test_bad_chunk_while_the_answer_comes(way):
    """The origin answers before the body is over; then the body's framing breaks."""
    go = threading.Event()

    def early(peer, _):
        peer.read_request_head()
        peer.respond("200 OK", {"Content-Length": "100000", "Content-Type": "text/plain"}, pattern(1000))
        go.wait(5)

    target = way.unique("/early")
    service = way.serve(early)
    with way.connect(service) as client:
        begin_request(client, "POST", target, "a.example", [("Transfer-Encoding", "chunked")])
        client.send(b"3\r\nabc\r\n")
        client.read_until(b"\r\n\r\n")
        client.read(1000)
        client.send(b"XYZ\r\n")
        assert client.ends()
    go.set()
    assert way.entry(target)["reason"] == "bad-body"


def test_reset_that_the_upload_meets_first(way):
    """The origin answers until close and resets: the upload is told of the reset, the answer must not look whole."""
    def resetting(peer, _):
        peer.read_request_head()
        peer.respond("200 OK", {"Connection": "close"}, pattern(50_000))
        wait_sent(peer)
        time.sleep(0.3)  # the upload has filled every buffer
        peer.reset()

    target = way.unique("/reset")
    service = way.serve(resetting)
    with way.connect(service) as client:
        begin_request(client, "POST", target, "a.example", [("Content-Length", "40000000")])
        thread = threading.Thread(target=lambda: quietly(client.send, pattern(40_000_000)))
        thread.start()
        with contextlib.suppress(Closed, ConnectionError):
            answer = client.read_response()
            assert not answer.complete, answer
        thread.join()
    assert way.entry(target)["reason"] == "origin-reset"


# Several who read one response

def growing(more, size, half):
    """An origin whose answer of unknown length goes on beyond `half` when `more` is set."""
    def serve(peer, _):
        while peer.read_request_head():
            peer.respond("200 OK", {"Cache-Control": "max-age=60", "Transfer-Encoding": "chunked"},
                chunked([pattern(half)])[:-5])
            more.wait(10)
            peer.send(chunked([pattern(size - half, half)]))
    return serve


def test_first_reader_leaves_a_slow_second_one(way):
    """A response that outgrew the store is read by two; the first leaves, the other pauses."""
    size, half = 4_000_000, 60_000
    more = threading.Event()

    service = way.serve(growing(more, size, half))
    with way.connect(service) as first, way.connect(service, before=small_window) as second:
        begin_request(first, "GET", "/grow", "a.example")
        first.read_until(b"\r\n\r\n")
        begin_request(second, "GET", "/grow", "a.example")
        second.read_until(b"\r\n\r\n")
        more.set()
        time.sleep(0.3)
        first.reset()
        time.sleep(2.5)
        second.buffer[:0] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        answer = second.read_response()
    assert answer.complete and answer.body == pattern(size), answer
    assert service.connections == 1


def test_a_trickle_for_nobody_ends(way4):
    """Little is left of a response when its only client leaves, but the origin sends it byte by byte."""
    ended = threading.Event()

    def trickling(peer, _):
        peer.read_request_head()
        peer.respond("200 OK", {"Cache-Control": "max-age=60", "Content-Length": "90000"}, pattern(1000))
        try:
            for _ in range(60):
                peer.send(b"x")
                time.sleep(0.3)
        except OSError:
            ended.set()

    service = way4.serve(trickling)
    with way4.connect(service) as client:
        begin_request(client, "GET", "/trickle", "a.example")
        client.read_until(b"\r\n\r\n")
    assert ended.wait(13), "the connection is still held"


def small_window(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)


def test_a_reader_that_stands_still_does_not_hold_up_the_other(way):
    """The response outgrew the store: what one does not take, the other cannot get, for three seconds at the most."""
    size, half = 4_000_000, 60_000
    more = threading.Event()

    service = way.serve(growing(more, size, half))
    with way.connect(service, before=small_window) as still, way.connect(service) as reading:
        for client in (still, reading):
            begin_request(client, "GET", "/still", "a.example")
            client.read_until(b"\r\n\r\n")
        more.set()
        reading.buffer[:0] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        answer = reading.read_response()
        assert answer.complete and answer.body == pattern(size), answer
        still.buffer[:0] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        with contextlib.suppress(Closed, ConnectionError):
            assert not still.read_response().complete
    assert service.connections == 1


# Around the rules

@pytest.mark.parametrize("part", [b"G", b"GET", b"FOO"])
def test_a_slow_start_is_no_way_around_the_rules(way4, part):
    """Bytes that may become HTTP, then a pause beyond the deadline, then the blocked request."""
    rest = b"GET /part HTTP/1.1\r\nHost: ads.example\r\n\r\n"[len(part):]
    with way4.connect() as client:
        client.send(part)
        time.sleep(2.6)
        try:
            client.send(rest)
            answer = client.read_response()
            assert answer.status in (400, 408, 403), answer
        except (Closed, ConnectionError):
            pass
    assert way4.origin.count("/part") == 0


# Kept connections to origins

def test_a_body_is_never_sent_on_a_kept_connection(way):
    """It could not be sent again if that turned out to be dead; not even when it is only a last chunk."""
    def once(peer, _):
        peer.read_request()
        peer.respond("200 OK", {"Content-Length": "2"}, b"ok")
        if peer.read_request():
            peer.reset()

    service = way.serve(once)
    with way.connect(service) as client:  # one client connection: one worker, which has the kept one
        begin_request(client, "GET", "/first", "a.example")
        assert client.read_response().status == 200
        begin_request(client, "PUT", "/second", "a.example", [("Transfer-Encoding", "chunked")])
        client.send(b"0\r\n\r\n")
        assert client.read_response().status == 200
    assert service.connections == 2


def test_upgrade_of_a_request_with_a_body(way):
    """An origin that switches before the body has come: no byte of it may be lost or reordered."""
    def switching(peer, _):
        peer.read_request_head()
        time.sleep(0.2)
        peer.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
        peer.collected = peer.read_to_end()

    service = way.serve(switching)
    with way.connect(service) as client:
        begin_request(client, "POST", "/up", "a.example",
            [("Upgrade", "x"), ("Connection", "Upgrade"), ("Transfer-Encoding", "chunked")])
        client.send(b"3\r\nabc\r\n")
        answer = client.read_response()
        assert answer.status == 502, answer


# One access line a request

@pytest.fixture(scope="module")
def impatient():
    """A daemon whose deadlines end requests in places where they seldom end."""
    with Lab() as lab:
        config = DEFAULT_CONFIG.replace("drain 2s", "drain 300ms").replace("connect 1s", "connect 20s")
        daemon = lab.weir(f"listen 3129 redirect\nlisten 3128 forward\nconnect_ports 80\n{config}timeout total 3s\n")
        yield Way(lab, daemon, 4)


def test_total_deadline_while_the_last_bytes_are_owed(impatient):
    """Answers that fit into no socket buffer any more, to a client that reads none of them."""
    target = impatient.unique("/static/100")
    assert impatient.fetch(target).complete
    with impatient.connect(before=small_window) as client:
        client.socket.settimeout(0.2)
        head = head_bytes(f"HEAD {target} HTTP/1.1", [("Host", impatient.host)])
        with pytest.raises(OSError):
            client.send(head * 20000)
        impatient.daemon.wait_entry(method="HEAD", reason="total-timeout", url=target)


def test_drain_while_connect_waits(impatient):
    """A CONNECT whose connection does not come about before the drain ends."""
    with impatient.lab.connect(lab_module.GATEWAY[4], 3128) as client:
        begin_request(client, "CONNECT", f"{lab_module.SILENT[4]}:80", "a.example")
        wait_for(lambda: impatient.daemon.stats()["sessions_open"] == 1, what="the connection")
        time.sleep(0.2)
        impatient.daemon.command("drain")
        assert client.ends()
        impatient.daemon.wait_entry(method="CONNECT")


# Limits

def test_a_host_stays_within_its_limit(way4):
    clients = []
    most = 0
    try:
        for _ in range(600):
            try:
                clients.append(way4.connect(source="10.57.1.77"))
            except (ConnectionError, socket.timeout):
                pass
            if len(clients) % 50 == 0:
                time.sleep(0.3)
                most = max(most, way4.daemon.stats()["sessions_open"])
    finally:
        for client in clients:
            client.reset()
    assert most <= 80, most


# Variants

def test_nominated_field_does_not_select_a_variant(way):
    """A field that Connection takes off the request cannot file the answer under its value."""
    def varying(peer, _):
        while request := peer.read_request():
            body = (request.get("X-Kind") or "none").encode()
            peer.respond("200 OK", {"Cache-Control": "max-age=60", "Vary": "X-Kind",
                "Content-Length": str(len(body))}, body)

    service = way.serve(varying)
    first = way.fetch("/kind", to=service, fields=[("X-Kind", "b"), ("Connection", "X-Kind")])
    assert first.body == b"none"
    second = way.fetch("/kind", to=service, fields=[("X-Kind", "b")])
    assert second.body == b"b", second


# Who is late

def test_answer_before_the_upload_is_over_to_a_client_that_only_writes(way4):
    """The answer is larger than what sockets hold, and the client reads nothing before it has written all."""
    size = 150_000

    def early(peer, _):
        peer.read_request_head()
        peer.respond("200 OK", {"Content-Length": str(size)}, pattern(size))

    service = way4.serve(early)
    with way4.connect(service, before=small_window) as client:
        begin_request(client, "POST", "/w", "a.example", [("Content-Length", "40000000")])
        time.sleep(0.5)
        client.socket.settimeout(8)
        client.send(pattern(40_000_000))
        answer = client.read_response()
    assert answer.complete and answer.body == pattern(size), answer


def test_an_origin_that_does_not_take_the_upload(way4):
    """Nothing is read by the origin: it is its fault, and nobody waits for ever."""
    stop = threading.Event()

    def deaf(peer, _):
        stop.wait(20)

    target = way4.unique("/deaf")
    service = way4.serve(deaf)
    with way4.connect(service) as client:
        begin_request(client, "POST", target, "a.example", [("Content-Length", "40000000")])
        thread = threading.Thread(target=lambda: quietly(client.send, pattern(40_000_000)))
        thread.start()
        answer = client.read_response()
        thread.join()
    stop.set()
    assert answer.status == 504, answer


def quietly(call, *arguments):
    try:
        call(*arguments)
    except OSError:
        pass


def test_early_hints_are_no_continue(way4):
    """A client that waits for 100 is not made responsible for a body after a 103."""
    def hinting(peer, _):
        request = peer.read_request_head()
        peer.respond("103 Early Hints", {"Link": "</a>"})
        time.sleep(0.5)
        peer.respond("103 Early Hints", {"Link": "</b>"})
        time.sleep(0.7)
        peer.respond("103 Early Hints", {"Link": "</b>"})
        time.sleep(0.7)
        peer.respond("103 Early Hints", {"Link": "</b>"})
        time.sleep(0.7)
        peer.respond("100 Continue")
        body = peer.read(4)
        peer.respond("200 OK", {"Content-Length": "4"}, body)

    service = way4.serve(hinting)
    with way4.connect(service) as client:
        begin_request(client, "POST", "/h", "a.example", [("Content-Length", "4"), ("Expect", "100-continue")])
        client.read_until(b"100 Continue\r\n")
        client.read_until(b"\r\n\r\n")
        client.send(b"body")
        assert client.read_response().body == b"body"


# All of it at once

def test_chaos():
    chaos.run(chaos.config(), seconds=10, clients=25, seed=4)
