"""What is not HTTP passes byte for byte, with both half-closes; so does what follows an accepted Upgrade."""
import hashlib
import threading

import pytest

from lab import bracketed, wait_for
from origin import WEBSOCKET_HELLO, answer_then_collect, collect_then_answer, echo, pattern, speaks_first
from way import is_refused

TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(range(200))
OPENINGS = {"tls": TLS_HELLO, "ssh": b"SSH-2.0-OpenSSH_9.2\r\n", "http2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "nul": b"\0\0\0\0", "rtsp": b"\x24\x00\x01"}


def to(service):
    """The destination as the access log writes it."""
    return f"{bracketed(service.address)}:80"


@pytest.mark.parametrize("name", OPENINGS)
def test_other_protocols_pass_unchanged(way, name):
    service = way.serve(echo)
    with way.connect(service) as client:
        client.send(OPENINGS[name])
        assert client.read(len(OPENINGS[name])) == OPENINGS[name]
        client.send(b"more")
        client.half_close()
        assert client.read_to_end() == b"more"
    entry = way.daemon.wait_entry(destination=to(service))
    assert entry["result"] == "TUNNEL" and entry["reason"]
    assert entry["bytes_in"] == entry["bytes"] == len(OPENINGS[name]) + 4


def test_ten_megabytes_both_ways_at_once(way):
    size = 10_000_000
    service = way.serve(echo)
    with way.connect(service) as client:
        sender = threading.Thread(target=lambda: (client.send(TLS_HELLO + pattern(size)), client.half_close()))
        sender.start()
        received = client.read_to_end()
        sender.join()
    assert hashlib.sha256(received).digest() == hashlib.sha256(TLS_HELLO + pattern(size)).digest()


@pytest.mark.parametrize("banner", [b"SSH-2.0-OpenSSH_9.2\r\n", b"220 mail.example ESMTP\r\n"])
def test_a_server_that_speaks_first(way, banner):
    with way.connect(way.serve(speaks_first(banner))) as client:
        assert client.read_until(b"\n") == banner
        client.send(b"EHLO me\r\n")
        assert client.read_until(b"\n") == b"EHLO me\r\n"


def test_the_clients_half_close(way):
    service = way.serve(collect_then_answer(b"bye"))
    with way.connect(service) as client:
        client.send(TLS_HELLO)
        client.half_close()
        assert client.read_to_end() == b"bye"
    assert service.peers[0].collected == TLS_HELLO


def test_the_servers_half_close(way):
    service = way.serve(answer_then_collect(b"bye"))
    with way.connect(service) as client:
        client.send(TLS_HELLO)
        assert client.read_to_end() == b"bye"
        client.send(b"still heard")
        client.half_close()
        wait_for(lambda: getattr(service.peers[0], "collected", None) == TLS_HELLO + b"still heard",
            what="what the client sent after the server's end")


def test_a_tunnel_to_nobody_ends(way):
    address = way.free_address()
    def connect():
        return way.connect(address).send(TLS_HELLO)
    assert is_refused(connect)
    assert way.daemon.wait_entry(destination=f"{bracketed(address)}:80")["result"] in ("TUNNEL", "ERROR")


def test_websocket_with_bytes_along_with_the_101(way):
    target = way.unique("/websocket")
    with way.connect() as client:
        client.request("GET", target, {"Host": way.host, "Upgrade": "websocket", "Connection": "Upgrade",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13"})
        answer = client.read_response()
        assert (answer.status, answer.get("Upgrade")) == (101, "websocket")
        assert client.read(len(WEBSOCKET_HELLO)) == WEBSOCKET_HELLO
        client.send(pattern(100000))
        assert client.read(100000) == pattern(100000)
        client.half_close()
        assert client.ends()
    assert way.entry(target)["status"] == 101


def test_an_upgrade_that_the_origin_declines(way):
    with way.connect() as client:
        for _ in range(2):
            client.request("GET", way.unique("/static/10"),
                {"Host": way.host, "Upgrade": "h2c", "Connection": "Upgrade, HTTP2-Settings", "HTTP2-Settings": "x"})
            assert client.read_response().body == pattern(10)


def test_a_silent_client_and_a_silent_server(way4):
    """The client speaks late: after the server had its chance, HTTP still works on that connection or it ends."""
    with way4.connect() as client:
        wait_for(lambda: way4.daemon.stats()["sessions_open"] > 0, what="the session")
        threading.Event().wait(0.5)  # longer than server_first
        client.request("GET", way4.unique("/static/10"), {"Host": way4.host, "Connection": "close"})
        assert client.read_response().body == pattern(10)
