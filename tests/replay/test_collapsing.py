"""One fetch for all who ask at the same time, and no harm from it [RFC 9111 §4, RFC 9211 §2.8 "collapsed"]."""
import pytest

from play import DROP, RESET, ask, reply

A = ask("/a")
MAX = "max-age=60"
N = 8


def crowd(play, requests=None):
    return [play.start(request) for request in requests or [A] * N]


def bodies(clients):
    return [client.take().body for client in clients]


def answer_each(play, make):
    """Answers what arrives until nothing does; how many there were."""
    count = 0
    while arrived := play.arrived():
        arrived.answer(make(count, arrived))
        count += 1
    return count


def test_one_fetch_for_all(play):
    clients = crowd(play)
    arrived = play.arrived_all()
    assert len(arrived) == 1
    arrived[0].answer(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 6\r\n\r\nabc")
    assert [client.partial.body for client in clients] == [b"abc"] * N  # nobody waits for the end
    late = play.start(A)
    assert late.partial.body == b"abc"
    arrived[0].answer(b"def")
    assert bodies(clients + [late]) == [b"abcdef"] * (N + 1)
    assert play.arrived() is None
    assert play.exchange(A).body == b"abcdef"


def test_different_hosts_paths_and_destinations_are_apart(play):
    requests = [A, ask("/b"), ask("/a", host="other.example"), ask("/a", to="192.0.2.2:80"), ask("/a?"), ask("/a?x")]
    clients = crowd(play, requests)
    assert len({(one.destination, one.get("Host"), one.target) for one in play.arrived_all()}) == len(requests)
    for client in clients:
        client.reset()


# What turns out not to be for all: the others go on at once, each on its own.
APART = {
    "private": {"cache_control": "private, max-age=60"},
    "no-store": {"cache_control": "no-store"},
    "nothing said": {},
    "Vary: *": {"cache_control": MAX, "vary": "*"},
}


@pytest.mark.parametrize("name", APART)
def test_what_is_not_for_all(play, name):
    clients = crowd(play)
    first = play.arrived_all()
    assert len(first) == 1
    first[0].answer(reply(200, "number 0", **APART[name]))
    others = play.arrived_all()
    assert len(others) == N - 1  # all at once, none after the other
    for number, arrived in enumerate(others, 1):
        arrived.answer(reply(200, f"number {number}", **APART[name]))
    assert sorted(bodies(clients)) == [b"number %d" % number for number in range(N)]


def test_what_varies(play):
    """Those whom the response does not select go on their own; equal ones among them may go together."""
    clients = crowd(play, [ask("/a", accept_language=language) for language in ("cs", "cs", "en", "de", "en")])
    seen = answer_each(play, lambda _, arrived: reply(200, arrived.get("Accept-Language"), cache_control=MAX,
        vary="Accept-Language"))
    assert bodies(clients) == [b"cs", b"cs", b"en", b"de", b"en"]
    assert 3 <= seen <= 4


def test_a_private_answer_reaches_one(play):
    """Content for one is never another's, whoever asked first."""
    clients = crowd(play, [ask("/a", cookie=f"user={number}", client=f"10.0.0.{number + 5}") for number in range(N)])
    answer_each(play, lambda _, arrived: reply(200, arrived.get("Cookie"), cache_control="private"))
    assert bodies(clients) == [b"user=%d" % number for number in range(N)]


@pytest.mark.parametrize("status", [404, 500, 503])
def test_an_error_is_not_sticky(play, status):
    clients = crowd(play)
    answer_each(play, lambda *_: reply(status, "sorry"))
    assert [client.take().status for client in clients] == [status] * N
    assert play.exchange(A, reply(200, "well", cache_control=MAX)).body == b"well"


@pytest.mark.parametrize("failure", [DROP, RESET], ids=["closed", "reset"])
def test_a_failure_before_the_head(play, failure):
    """Each is told, or tries for itself; nobody waits for what does not come."""
    clients = crowd(play)
    count = answer_each(play, lambda *_: failure)
    assert [client.take().status for client in clients] == [502] * N
    assert count <= 2 * N
    assert play.exchange(A, reply(200, "well", cache_control=MAX)).body == b"well"


def test_a_refused_connection(play):
    play.cut("ECONNREFUSED")
    assert [client.take().status for client in crowd(play)] == [502] * N
    play.mend()
    assert play.exchange(A, reply(200, "well", cache_control=MAX)).body == b"well"


def test_a_failure_in_the_content(play):
    """All see that it is cut; none takes it for whole; nothing of it is given as whole later."""
    clients = crowd(play)
    arrived = play.arrived()
    arrived.answer(reply(200, "0123456789", sends=4, cache_control=MAX))
    assert [client.partial.body for client in clients] == [b"0123"] * N
    arrived.connection.close()
    for client in clients:
        assert (client.partial.body, client.partial.complete, client.closed) == (b"0123", False, "fin")
    assert play.exchange(A, reply(200, "0123456789", cache_control=MAX)).body == b"0123456789"


@pytest.mark.parametrize("when", ["before the head", "in the content"])
def test_the_first_client_leaves(play, when):
    clients = crowd(play)
    arrived = play.arrived()
    response = reply(200, "0123456789", cache_control=MAX).bytes(play.wall)
    if when == "in the content":
        arrived.answer(response[:-5])
        assert clients[0].partial.body == b"01234"
        response = response[-5:]
    clients[0].reset()
    play.settle()
    arrived.answer(response)
    again = play.arrived()  # another may have to ask anew, and then all are served by that
    if again:
        again.answer(reply(200, "0123456789", cache_control=MAX))
    assert bodies(clients[1:]) == [b"0123456789"] * (N - 1)
    assert play.arrived() is None


def test_all_leave(play):
    clients = crowd(play)
    assert len(play.arrived_all()) == 1
    for client in clients:
        client.reset()
    play.advance(600)
    assert play.replay.stats()["fills"] == 0
    assert play.exchange(A, reply(200, "well", cache_control=MAX)).body == b"well"


def test_one_that_does_not_read_stops_nobody(play):
    body = bytes(range(256)) * 4096
    slow = play.client()
    slow.connection.pause()
    slow.send(A)
    play.settle()
    others = crowd(play)
    play.arrived().answer(reply(200, body, cache_control=MAX))
    assert bodies(others) == [body] * N
    slow.connection.resume()
    assert slow.take().body == body


def test_a_stale_one_is_confirmed_once_for_all(play):
    play.exchange(A, reply(200, "old", cache_control=MAX, etag='"1"'))
    play.advance(60)
    clients = crowd(play)
    arrived = play.arrived_all()
    assert [one.get("If-None-Match") for one in arrived] == ['"1"']
    arrived[0].answer(reply(304, etag='"1"', cache_control=MAX))
    assert bodies(clients) == [b"old"] * N
    assert play.arrived() is None


def test_a_confirmation_that_becomes_private(play):
    play.exchange(A, reply(200, "old", cache_control=MAX, etag='"1"'))
    play.advance(60)
    clients = crowd(play)
    count = answer_each(play, lambda number, _: reply(200, f"number {number}", cache_control="private"))
    assert sorted(bodies(clients)) == [b"number %d" % number for number in range(N)]
    assert count == N


def test_conditions_of_those_who_wait(play):
    """Each answer is by the client's own condition [RFC 9110 §13.2]."""
    clients = crowd(play, [A, ask("/a", if_none_match='"1"'), ask("/a", if_none_match='"2"')])
    assert answer_each(play, lambda _, arrived: reply(304, etag='"1"') if arrived.get("If-None-Match") == '"1"' else
        reply(200, "one", cache_control=MAX, etag='"1"')) <= 3
    got = [client.take() for client in clients]
    assert [(one.status, one.body) for one in got] == [(200, b"one"), (304, b""), (200, b"one")]


def test_who_insists_on_the_origin_does_not_read_what_has_already_come(play):
    """A no-cache [RFC 9111 §5.2.1.4] may wait for an answer with others, but not take one that is there, in part."""
    first = play.start(A)
    arrived = play.arrived()
    response = reply(200, "number 0", cache_control=MAX).bytes(play.wall)
    arrived.answer(response[:-1])
    assert first.partial.body == b"number "
    second = play.start(ask("/a", cache_control="no-cache"))
    again = play.arrived()
    assert again
    again.answer(reply(200, "number 1", cache_control=MAX))
    arrived.answer(response[-1:])
    assert (first.take().body, second.take().body) == (b"number 0", b"number 1")
    assert play.exchange(A).body == b"number 1"  # the later asked for


def test_a_head_waits_for_a_get(play):
    clients = crowd(play, [A, ask("/a", "HEAD")])
    count = answer_each(play, lambda *_: reply(200, "one", cache_control=MAX))
    assert count <= 2
    assert [client.take().get("Content-Length") for client in clients] == ["3", "3"]


@pytest.mark.parametrize("control", ["private", "no-store", ""])
def test_a_storable_answer_after_one_that_was_not(play, control):
    """RFC 9111 §3: what may be stored depends on this response, not on the one before."""
    play.exchange(A, reply(200, "one", cache_control=control or None))
    assert play.exchange(A, reply(200, "two", cache_control="max-age=60")).body == b"two"
    assert play.exchange(A).body == b"two"
