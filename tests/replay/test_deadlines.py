"""Every wait ends at its deadline (`timeout NAME TIME`), and no earlier; connections to origins are kept and reused."""
from play import DROP, Play, ask, reply

A = ask("/a")
ALMOST = 0.001


def until(play, seconds):
    """Just before that many seconds; the caller looks, then lets the last millisecond pass."""
    play.advance(seconds - ALMOST)


def test_request_head(play):
    client = play.client()
    client.asked.append("GET")
    client.connection.send(b"GET / HTTP/1.1\r\nHost: exam")
    until(play, 30)
    assert client.connection.received == b""
    play.advance(ALMOST)
    assert client.take().status == 408


def test_request_head_is_not_prolonged_by_drips(play):
    client = play.client()
    client.asked.append("GET")
    for byte in b"GET / HTTP/1.1\r\nHost: example.com":
        client.connection.send(bytes([byte]))
        play.advance(1)
    assert (client.take().status, play.replay.now < 1040) == (408, True)


def test_client_idle(play):
    client = play.client()
    play.exchange(A, reply(200, "one"), client)
    until(play, 60)
    assert client.closed == ""
    play.advance(ALMOST)
    assert client.closed == "fin"


def test_client_body(play):
    client = play.client()
    client.asked.append("POST")
    client.connection.send(b"POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 4\r\n\r\nab")
    assert play.replay.accept()
    play.advance(30)
    client.connection.send(b"c")  # every byte begins it anew
    until(play, 60)
    assert client.connection.received == b""
    play.advance(ALMOST)
    assert client.take().status == 408


def test_client_write(play):
    client = play.client()
    client.connection.pause()
    client.send(A)
    play.arrived().answer(reply(200, b"x" * 4000000, cache_control="no-store"))
    until(play, 60)
    assert play.log == []
    play.advance(ALMOST)
    assert play.log[-1]["reason"] == "client-slow"


def test_connect(play):
    play.refuse_next("ETIMEDOUT")
    client = play.start(A)
    until(play, 10)
    assert client.take() is None
    play.advance(ALMOST)
    assert (client.take().status, play.log[-1]["reason"]) == (504, "connect-timeout")


def test_first_byte(play):
    client = play.start(A)
    assert play.arrived()
    until(play, 60)
    assert client.take() is None
    play.advance(ALMOST)
    assert client.take().status == 504


def test_upstream_idle(play):
    client = play.start(A)
    arrived = play.arrived()
    arrived.answer(reply(200, "0123456789", sends=4))
    play.advance(40)
    arrived.answer(b"4")
    until(play, 60)
    assert (client.partial.body, client.closed) == (b"01234", "")
    play.advance(ALMOST)
    assert (client.partial.complete, client.closed) == (False, "fin")


def test_total():
    with Play("cache_mem 16M\ntimeout total 100s\n") as play:
        client = play.start(A)
        arrived = play.arrived()
        arrived.answer(reply(200, "0123456789", sends=1))
        for digit in b"12":
            play.advance(40)
            arrived.answer(bytes([digit]))
        until(play, 20)
        assert (client.partial.body, client.closed) == (b"012", "")
        play.advance(ALMOST)
        assert (client.partial.complete, client.closed) == (False, "rst")


def test_upstream_keep(play):
    for number in range(3):
        play.exchange(ask(f"/{number}"), reply(200, "one"))
        until(play, 15)
        assert (len(play.replay.dials), play.replay.stats()["upstreams"]) == (1, 1)
    play.advance(ALMOST)
    assert play.replay.stats()["upstreams"] == 0
    play.exchange(A, reply(200, "one"))
    assert len(play.replay.dials) == 2


def test_a_kept_connection_that_the_origin_closed(play):
    play.exchange(A, reply(200, "one", end="close"))
    assert play.exchange(ask("/b"), reply(200, "two")).body == b"two"
    assert len(play.replay.dials) == 2


def test_a_kept_connection_that_dies_as_it_is_used(play):
    """RFC 9110 §9.2.2, RFC 9112 §9.3.1: what is idempotent is sent again on a new connection."""
    play.exchange(A, reply(200, "one"))
    got = play.exchange(ask("/b"), [DROP, reply(200, "two")])
    assert (got.body, len(got.all_seen), len(play.replay.dials)) == (b"two", 2, 2)


def test_what_is_not_idempotent_is_never_sent_twice(play):
    play.exchange(A, reply(200, "one"))
    got = play.exchange(ask("/b", "POST", "x"), [DROP])
    assert (got.status, len(got.all_seen)) == (502, 1)


def test_an_origin_that_speaks_unasked_is_not_listened_to(play):
    """RFC 9112 §9.2: what comes without a request is no answer to the next."""
    first = play.exchange(A, reply(200, "one"))
    first.seen.connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
    assert play.exchange(ask("/b"), reply(200, "two")).body == b"two"
    assert len(play.replay.dials) == 2


def test_other_destinations_have_other_connections(play):
    for number in range(3):
        play.exchange(ask("/a", to=f"192.0.2.{number + 1}:80"), reply(200, "one"))
    assert [destination for destination, _ in play.replay.dials] == [f"192.0.2.{number + 1}:80" for number in range(3)]
