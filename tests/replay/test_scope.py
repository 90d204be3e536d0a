"""What a stored response is stored under: the URL [RFC 9111 §2], and the address that gave it."""
import pytest

from play import ask, reply

MAX = "max-age=60"


def stored_under(play, request, other):
    """Whether what answers the one answers the other."""
    play.exchange(request, reply(200, "one", cache_control=MAX))
    return play.exchange(other, reply(200, "two", cache_control=MAX)).body == b"one"


# RFC 9110 §4.2.3: equivalent URLs, and such as are not.
URLS = {
    "the same": (ask("/a"), ask("/a"), True),
    "another client": (ask("/a"), ask("/a", client="10.0.0.77"), True),
    "letter case of the host": (ask("/a"), ask("/a", host="EXAMPLE.com"), True),
    "the default port": (ask("/a"), ask("/a", host="example.com:80"), True),
    "the absolute form": (ask("/a"), ask("http://example.com/a"), True),
    "letter case of the path": (ask("/a"), ask("/A"), False),
    "another path": (ask("/a"), ask("/a/"), False),
    "a query": (ask("/a"), ask("/a?"), False),
    "another query": (ask("/a?x=1"), ask("/a?x=2"), False),
    "the order of a query": (ask("/a?x=1&y=2"), ask("/a?y=2&x=1"), False),
    "another host": (ask("/a"), ask("/a", host="other.example"), False),
    "another port": (ask("/a"), ask("/a", host="example.com:81"), False),
    "another destination": (ask("/a"), ask("/a", to="192.0.2.2:80"), False),
    "another port of the destination": (ask("/a"), ask("/a", to="192.0.2.1:8080"), False),
}


@pytest.mark.parametrize("name", URLS)
def test_urls(play, name):
    request, other, same = URLS[name]
    assert stored_under(play, request, other) == same


def test_no_address_answers_for_another(play):
    """Who redirects itself to an address of its own choice can put nothing into the others' store."""
    play.exchange(ask("/a", to="203.0.113.9:80"), reply(200, "evil", cache_control="max-age=9999"))
    assert play.exchange(ask("/a"), reply(200, "good", cache_control=MAX)).body == b"good"
    play.exchange(ask("/a", "DELETE", to="203.0.113.9:80"), reply(200))
    assert play.exchange(ask("/a")).body == b"good"


def test_pipelined_requests_are_answered_in_order(play):
    """RFC 9112 §9.3.2."""
    play.exchange(ask("/b"), reply(200, "b", cache_control=MAX))
    client = play.client()
    for target in ("/a", "/b", "/c"):
        client.send(ask(target))
    assert client.connection.received == b""  # what is stored does not overtake
    while arrived := play.arrived():
        arrived.answer(reply(200, arrived.target[1:], cache_control=MAX))
    assert [client.take().body for _ in range(3)] == [b"a", b"b", b"c"]


def test_a_client_may_ask_again_and_again(play):
    client = play.client()
    for number in range(50):
        got = play.exchange(ask("/a"), None if number else reply(200, "one", cache_control="max-age=600"), client)
        assert (got.body, got.age) == (b"one", number or None)
        play.advance(1)
