"""Unsafe requests that succeed make what is stored invalid [RFC 9111 §4.4]."""
import pytest

from play import ask, reply

A, B = ask("/a"), ask("/b")
MAX = "max-age=600"


def store(play, *requests):
    for request in requests:
        play.exchange(request, reply(200, "old", cache_control=MAX))
        assert play.exchange(request).body == b"old"


def is_stored(play, request):
    return play.exchange(request, reply(200, "new", cache_control=MAX)).body == b"old"


def unsafe(method="POST", target="/a", **named):
    body = None if method in ("DELETE", "FOO") else "x"
    return ask(target, method, body=body, **named)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "FOO", "M-SEARCH"])
@pytest.mark.parametrize("status", [200, 201, 204, 299, 301, 302, 303, 307])
def test_success_invalidates(play, method, status):
    """Methods whose safety is unknown too; a 2xx or 3xx is a success."""
    store(play, A, B)
    assert play.exchange(unsafe(method), reply(status)).status == status
    assert (is_stored(play, A), is_stored(play, B)) == (False, True)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "FOO"])
@pytest.mark.parametrize("status", [400, 403, 404, 409, 500, 503])
def test_failure_does_not(play, method, status):
    store(play, A)
    assert play.exchange(unsafe(method), reply(status)).status == status
    assert is_stored(play, A)


@pytest.mark.parametrize("method", ["OPTIONS"])
def test_a_safe_one_does_not(play, method):
    """RFC 9110 §9.2.1."""
    store(play, A)
    play.exchange(ask("/a", method), reply(200))
    assert is_stored(play, A)


LINKS = ["/b", "http://example.com/b", "http://EXAMPLE.com:80/b", "b", "//example.com/b"]


@pytest.mark.parametrize("field", ["location", "content_location"])
@pytest.mark.parametrize("value", LINKS)
def test_what_the_answer_names(play, field, value):
    store(play, A, B)
    play.exchange(unsafe(target="/c"), reply(201, **{field: value}))
    assert (is_stored(play, B), is_stored(play, A)) == (False, True)


@pytest.mark.parametrize("field", ["location", "content_location"])
@pytest.mark.parametrize("value", ["http://other.example/b", "http://example.com:81/b", "https://example.com/b"])
def test_never_by_another_origins_word(play, field, value):
    """"Origin" as in RFC 9110 §4.3.1: scheme, host and port."""
    others = [ask("/b", host="other.example"), ask("/b", host="example.com:81", to="192.0.2.1:81"), B]
    store(play, *others)
    play.exchange(unsafe(target="/c"), reply(201, **{field: value}))
    assert [is_stored(play, one) for one in others] == [True, True, True]


def test_a_failed_one_names_nothing(play):
    store(play, B)
    play.exchange(unsafe(target="/c"), reply(404, location="/b", content_location="/b"))
    assert is_stored(play, B)


def test_the_answer_of_a_get_names_nothing(play):
    store(play, B)
    play.exchange(ask("/c"), reply(200, "c", content_location="/b", location="/b"))
    assert is_stored(play, B)


def test_all_variants_go(play):
    def variant(language, answer=None):
        return play.exchange(ask("/a", accept_language=language), answer)
    for language in ("cs", "en"):
        variant(language, reply(200, language, vary="Accept-Language", cache_control=MAX))
    play.exchange(unsafe(), reply(200))
    for language in ("cs", "en"):
        assert variant(language, reply(200, "new", vary="Accept-Language", cache_control=MAX)).body == b"new"


def test_the_query_belongs_to_the_target(play):
    queries = [ask("/a?x=1"), ask("/a?x=2"), A]
    store(play, *queries)
    play.exchange(unsafe(target="/a?x=1"), reply(200))
    assert [is_stored(play, one) for one in queries] == [False, True, True]


def test_a_fetch_that_began_before(play):
    """What was asked for before the unsafe request may be what was there before it: it is not reused after."""
    slow = play.start(A)
    arrived = play.arrived()
    play.exchange(unsafe(), reply(200))
    arrived.answer(reply(200, "old", cache_control=MAX))
    assert slow.take().body == b"old"
    assert not is_stored(play, A)


def test_what_an_unsafe_request_got_answers_no_get(play):
    play.exchange(unsafe(), reply(200, "of the post", cache_control=MAX))
    assert play.exchange(A, reply(200, "of the get")).body == b"of the get"


def test_a_post_that_may_answer_a_get(play):
    """RFC 9110 §9.3.3: explicit freshness, and a Content-Location that is the target."""
    play.exchange(unsafe(), reply(200, "of the post", cache_control=MAX, content_location="/a"))
    assert play.exchange(A).body == b"of the post"
    assert play.exchange(unsafe(), reply(200, "second", cache_control=MAX)).seen  # but never another POST
