"""The harness itself: what it promises to those who write scripts."""
import pytest

from play import DROP, Play, ask, reply
from replay import Replay, ReplayError

GET = b"GET /a HTTP/1.1\r\nHost: example.com\r\n\r\n"


def test_bytes_go_through_and_time_stands_still():
    with Replay() as replay:
        client = replay.connect("192.0.2.7:8080", "10.0.0.9")
        client.send(GET)
        assert client.received == b""
        origin = replay.accept()
        assert origin.destination == "192.0.2.7:8080" and replay.accept() is None
        assert origin.received.startswith(b"GET /a HTTP/1.1\r\nHost: example.com\r\n")
        before = replay.now, replay.wall
        origin.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        assert client.received.endswith(b"\r\n\r\nhi") and client.closed == ""
        assert (replay.now, replay.wall) == before
        assert [(line["client"], line["status"]) for line in replay.log] == [("10.0.0.9", 200)]


def test_ipv6():
    with Replay() as replay:
        replay.connect("[2001:db8::1]:80", "2001:db8::5").send(GET)
        assert replay.accept().destination == "[2001:db8::1]:80"


def test_a_forward_request():
    with Replay("listen 3128 forward\n") as replay:
        replay.connect(None).send(b"GET http://192.0.2.3/ HTTP/1.1\r\nHost: 192.0.2.3\r\n\r\n")
        assert replay.accept().destination == "192.0.2.3:80"


def test_deadlines_fire_when_time_passes_and_not_before(play):
    client = play.client()
    client.connection.send(b"GET / HT")
    assert client.closed == ""
    play.advance(9)
    assert client.closed == ""
    play.advance(86400)
    assert client.closed == "fin"


@pytest.mark.parametrize("error, status, reason", [("ECONNREFUSED", 502, "connect-refused"),
    ("ENETUNREACH", 502, "unreachable"), ("EHOSTUNREACH", 502, "unreachable")])
def test_a_refused_attempt(play, error, status, reason):
    play.refuse_next(error)
    got = play.exchange(ask("/"))
    assert (got.status, got.reason, play.replay.dials) == (status, reason, [(DEST, error)])
    assert play.exchange(ask("/"), reply(200, "x")).body == b"x"  # the next one is not refused


DEST = "192.0.2.1:80"


def test_an_attempt_that_never_ends(play):
    play.refuse_next("ETIMEDOUT")
    client = play.start(ask("/"))
    assert client.take() is None
    play.advance(3600)
    assert (client.take().status, play.log[-1]["reason"]) == (504, "connect-timeout")


def test_a_reset_from_the_daemon_is_told_from_an_end(play):
    short = play.exchange(ask("/"), reply(200, "x" * 100, sends=10, end="close"))
    assert (short.closed, short.complete, short.body) == ("fin", False, b"x" * 10)
    slow = play.client()
    slow.connection.pause()
    slow.send(ask("/"))
    play.arrived().answer(reply(200, b"x" * 1000000))
    play.advance(3600)
    slow.connection.resume()
    assert (slow.closed, slow.partial.complete, play.log[-1]["reason"]) == ("rst", False, "client-slow")


def test_a_reset_by_the_origin(play):
    client = play.start(ask("/"))
    arrived = play.arrived()
    arrived.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
    play.settle()
    arrived.connection.reset()
    assert (client.partial.body, client.partial.complete, client.closed) == (b"abc", False, "fin")


def test_a_client_that_does_not_read_holds_the_origin_up(play):
    client = play.client()
    client.connection.pause()
    client.send(ask("/"))
    body = bytes(range(256)) * 65536  # 16 MiB: more than may be stored, and than fits anywhere on the way
    arrived = play.arrived()
    arrived.answer(reply(200, body, cache_control="no-store"))
    assert client.connection.received == b""
    client.connection.resume()
    assert client.take().body == body


def test_the_same_script_gives_the_same_bytes():
    def run():
        with Play() as play:
            texts = []
            for target in ("/a", "/b", "/a"):
                got = play.exchange(ask(target), reply(200, "x" * 1000, cache_control="max-age=9"))
                texts.append(repr((got.fields, got.body, got.all_seen)))
                play.advance(6.25)
            return texts, play.log, play.replay.stats()
    assert run() == run()


def test_the_wall_clock_steps_alone(play):
    now, wall = play.replay.now, play.wall
    play.step_wall(-3600)
    assert (play.replay.now, play.wall) == (now, wall - 3600)
    play.advance(2)
    assert (play.replay.now, play.wall) == (now + 2, wall - 3598)


def test_a_reload_and_a_bad_one(play):
    play.reload("cache_mem 16M\nblock example.com\n")
    assert play.exchange(ask("/")).status == 403
    with pytest.raises(ReplayError):
        play.reload("no_such_directive\n")
    assert play.exchange(ask("/")).status == 403


def test_a_bad_configuration_is_told():
    with pytest.raises(ReplayError, match="no_such_directive"):
        Replay("no_such_directive 1\n").settle()


def test_a_request_that_may_not_reach_the_origin_is_told(play):
    with pytest.raises(AssertionError, match="the origin was asked"):
        play.exchange(ask("/"))


def test_a_dropped_connection(play):
    got = play.exchange(ask("/", method="POST", body="x"), DROP)
    assert got.status == 502


@pytest.mark.parametrize("destination", [None, "192.0.2.3:80"])
def test_a_listener_for_both(destination):
    with Replay("listen 3128 any\n") as replay:
        replay.connect(destination).send(b"GET http://192.0.2.3/ HTTP/1.1\r\nHost: 192.0.2.3\r\n\r\n")
        assert replay.accept().destination == "192.0.2.3:80"


def test_who_is_not_intercepted_is_refused():
    with Replay("listen 3129 redirect\n") as replay, pytest.raises(ReplayError, match="nothing listens"):
        replay.connect(None)


def test_the_gateway_itself_is_no_origin():
    with Replay() as replay:
        client = replay.connect("10.0.0.1:80")
        client.send(GET)
        assert client.received.startswith(b"HTTP/1.1 403 ") and replay.dials == []
